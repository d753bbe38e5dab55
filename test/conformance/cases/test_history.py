"""Histories larger than what the client holds."""

import time

from harness import BrokerCase, numbered

# The client's own: queues of 256 frames and 256 events, a stream window of 64 MiB.
CLIENT_WINDOW = 64 << 20


class History(BrokerCase):
    def test_B22_replay_beyond_the_clients_queues(self):
        """5,000 records to a slow reader, while new ones arrive: what lies below the live offset is never dropped,
        and what the client drops of the rest it gets from the log."""
        client, stream = self.client(), self.stream()
        by_offset = self.publish_all(client, stream, numbered(5000))
        subscription = self.subscribe(client, stream, "earliest")
        events = []
        for part in range(10):
            events += self.take(subscription, 50)
            time.sleep(0.05)  # the application is busy: that is the case
            self.publish(client, stream, b"live %d" % part)
        events += self.take(subscription, 4500, timeout=60)
        self.assertEqual([(e.offset, bytes(e.payload)) for e in events], sorted(by_offset.items()))
        self.expect(subscription, 5000, [b"live %d" % part for part in range(10)])

    def test_B72_history_beyond_the_stream_window(self):
        """The client reads no event before it has the answer to its subscribe: a broker that sends history first
        would wait for window for ever."""
        client, stream = self.client(), self.stream()
        size, count = 1 << 20, CLIENT_WINDOW // (1 << 20) + 8
        payloads = numbered(count, size=size)
        by_offset = self.publish_all(client, stream, payloads, workers=4)
        subscription = self.subscribe(client, stream, "earliest")
        self.expect(subscription, 0, [by_offset[i] for i in range(count)], timeout=60)
        self.publish(client, stream, b"live")
        self.expect(subscription, count, [b"live"])
