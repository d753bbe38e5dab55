"""A broker that comes back."""

import threading
import time

import felix

from harness import NAMESPACE, BrokerCase, numbered, wait_until

# What the client takes to notice a dead connection by itself, and to try again.
NOTICE = 20.0


class Restart(BrokerCase):
    own_broker = True

    def kill(self):
        self.broker.kill()

    def terminate(self):
        self.assertEqual(self.broker.terminate(), 0, self.broker.log_tail())

    def everything_is_there(self, end):
        """Ends the broker by end(); a new client then finds all that was acked, and resumes behind it."""
        stream = self.stream()
        by_offset = self.publish_all(self.client(), stream, numbered(1000))
        end()
        self.broker.start()
        client = self.client()
        self.expect(self.subscribe(client, stream, "earliest"), 0, [by_offset[i] for i in range(1000)])
        resumed = self.subscribe(client, stream, 600)
        self.assertIn(self.publish(client, stream, b"after"), range(1000, 1001 + self.broker.holes))
        self.expect(resumed, 600, [by_offset[i] for i in range(600, 1000)] + [b"after"])

    def test_records_survive_kill(self):
        self.everything_is_there(self.kill)

    def test_records_survive_sigterm(self):
        self.everything_is_there(self.terminate)

    def subscription_goes_on(self, end):
        """A subscription that was live before goes on after it, with no gap and no repeat."""
        stream, quiet = self.stream(), self.stream()
        client = self.client()
        before, after = numbered(300), numbered(300, first=300)
        subscription = self.subscribe(client, stream, "latest")
        nothing_yet = self.subscribe(client, quiet, "latest")
        for p in before:
            self.publish(client, stream, p)
        self.expect(subscription, 0, before[:250])  # the rest waits in the client
        end()
        self.broker.start()
        fresh = self.client()
        for p in after:
            self.publish(fresh, stream, p)
        self.publish(fresh, quiet, b"first")
        self.expect(subscription, 250, before[250:] + after, timeout=NOTICE)
        self.expect(nothing_yet, 0, [b"first"], timeout=NOTICE)

    def test_subscription_goes_on_after_kill(self):
        self.subscription_goes_on(self.kill)

    def test_subscription_goes_on_after_sigterm(self):
        self.subscription_goes_on(self.terminate)

    def test_publisher_goes_on(self):
        """The same client publishes again once the broker is back; what failed in between failed with a type."""
        client, stream = self.client(), self.stream()
        self.publish(client, stream, b"before")
        self.broker.kill()
        with self.assertRaises(felix.FelixError):
            self.publish(client, stream, b"lost")
        self.broker.start()

        def published():
            try:
                return self.publish(client, stream, b"after")
            except felix.FelixError:
                return None

        offset = wait_until(published, "the client publishes again", timeout=NOTICE)
        events = self.take_to(self.subscribe(client, stream, "earliest"), offset)
        self.assertEqual((bytes(events[0].payload), bytes(events[-1].payload)), (b"before", b"after"))

    def under_load(self, end):
        """What was acked before the broker ended is there afterwards, at the offset that the ack named; a reader
        sees every offset once."""
        stream = self.stream()
        acked, twice, lock = {}, [], threading.Lock()
        stop, published = threading.Event(), threading.Event()

        def work(number):
            client, i = self.broker.client(), 0
            while not stop.is_set():
                payload = b"%d:%d" % (number, i)
                i += 1
                try:
                    offset = self.publish(client, stream, payload)
                except felix.FelixError:
                    continue
                with lock:
                    if offset in acked:
                        twice.append(offset)
                    acked[offset] = payload

        seen = []
        reader = self.subscribe(self.client(), stream, "earliest")

        reader_failed = []

        def read():
            while True:
                try:
                    event = reader.next_event(timeout=0.2)
                except felix.FelixError as e:
                    reader_failed.append(e)
                    return
                if event is not None:
                    seen.append((event.offset, bytes(event.payload)))
                elif reader.closed or (published.is_set() and seen and seen[-1][0] >= max(acked)):
                    return

        threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
        reading = threading.Thread(target=read, daemon=True)
        threads.append(reading)
        for t in threads:
            t.start()
        wait_until(lambda: len(acked) > 200, "some records are acked")
        end()
        at_the_end = len(acked)
        self.broker.start()
        wait_until(lambda: len(acked) > at_the_end + 200, "records are acked again", timeout=NOTICE)
        stop.set()
        deadline = time.monotonic() + NOTICE
        for t in threads:
            if t is reading:
                published.set()  # no ack comes any more
            t.join(max(0.0, deadline - time.monotonic()))
        self.assertFalse(any(t.is_alive() for t in threads), "a publisher or the reader does not come to an end")

        end_of_log = self.broker.describe(NAMESPACE, stream)["shards"][0]["next_offset"]
        events = self.take_to(self.subscribe(self.client(), stream, "earliest"), end_of_log - 1, timeout=60)
        log = [(e.offset, bytes(e.payload)) for e in events]
        self.assertEqual(twice, [], "offsets that two acks named")
        self.assert_whole(events, 0)
        stored = dict(log)
        self.assertEqual({o: stored.get(o) for o in acked}, acked, "an acked record is not there")
        self.assertEqual(seen, log[: len(seen)], "the reader's view is another one")
        self.assertGreaterEqual(seen[-1][0], max(acked), f"the reader did not get all: {reader_failed}")

    def test_kill_under_load(self):
        self.under_load(self.kill)

    def test_sigterm_under_load(self):
        self.under_load(self.terminate)
