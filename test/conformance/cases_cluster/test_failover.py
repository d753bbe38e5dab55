"""The broker that leads a stream is killed in the middle of it."""

import threading
import time

import felix

from harness import NAMESPACE, BrokerCase, numbered, wait_until

# What the client takes to notice a dead connection by itself, and to try again.
NOTICE = 30.0


class Failover(BrokerCase):
    own_broker = True

    def kill_leader(self, stream):
        """Kills the broker that leads a stream, and returns it."""
        leader = self.broker.leader(NAMESPACE, stream)
        leader.kill()
        return leader

    def connect(self, first):
        """A client that comes in through one broker and knows of the others."""
        addrs = [m.addr for m in self.broker.members]
        return self.client(addrs=addrs[first:] + addrs[:first])

    def end_of(self, stream):
        return self.broker.describe(NAMESPACE, stream)["shards"][0]["next_offset"]

    def test_leader_killed_under_load(self):
        """Publishers that ask for at least once go on by themselves, and so do subscriptions; what was acked is there,
        at its offset, and nothing comes twice or out of order."""
        stream = self.stream()
        lock = threading.Lock()
        acked, twice, failed = {}, [], []
        stop, published = threading.Event(), threading.Event()

        def work(number):
            client, i = self.connect(number % 3), 0
            while not stop.is_set():
                payload = b"%d:%d" % (number, i)
                i += 1
                try:
                    offset = self.publish(client, stream, payload, at_least_once=True)
                except felix.FelixError as e:
                    failed.append(e)
                    continue
                with lock:
                    if offset in acked:
                        twice.append(offset)
                    acked[offset] = payload

        seen = [[], []]
        readers = [self.subscribe(self.connect(n), stream, "earliest") for n in range(2)]
        reader_failed = []

        def read(number):
            while True:
                try:
                    event = readers[number].next_event(timeout=0.2)
                except felix.FelixError as e:
                    reader_failed.append(e)
                    return
                if event is not None:
                    seen[number].append((event.offset, bytes(event.payload)))
                elif readers[number].closed or (published.is_set() and seen[number] and seen[number][-1][0] >= max(acked)):
                    return

        publishers = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(4)]
        threads = publishers + [threading.Thread(target=read, args=(n,), daemon=True) for n in range(2)]
        for t in threads:
            t.start()
        wait_until(lambda: len(acked) > 200, "some records are acked", timeout=NOTICE)
        dead = self.kill_leader(stream)
        at_the_end = len(acked)
        wait_until(lambda: len(acked) > at_the_end + 200, lambda: f"records are acked again; {failed[-1:]}", timeout=NOTICE)
        dead.launch()
        wait_until(dead.ready, "the broker is back", timeout=60)
        back = len(acked)
        wait_until(lambda: len(acked) > back + 200, lambda: f"records are acked after its return; {failed[-1:]}", timeout=NOTICE)
        stop.set()
        deadline = time.monotonic() + NOTICE
        for t in threads:
            if t not in publishers:
                published.set()  # no ack comes any more
            t.join(max(0.0, deadline - time.monotonic()))
        self.assertFalse(
            any(t.is_alive() for t in threads),
            f"somebody does not come to an end; acked up to {max(acked)}, read {[s[-1:] for s in seen]}, {reader_failed}",
        )
        self.assertEqual(reader_failed, [])
        self.assertEqual(twice, [], "offsets that two acks named")

        # Offsets may leave a hole where a generation begins, and a record that was sent again may be there twice.
        for number, got in enumerate(seen):
            offsets = [o for o, _ in got]
            self.assertEqual(offsets, sorted(set(offsets)), f"reader {number} got something twice or out of order")
            stored = dict(got)
            self.assertEqual({o: stored.get(o) for o in acked}, acked, f"reader {number} missed what was acked")
        self.assertEqual(seen[0], seen[1][: len(seen[0])] if len(seen[0]) <= len(seen[1]) else seen[0], "two readers, two views")

    def test_subscription_goes_on(self):
        """A reader that only waits gets what is published after the leader's death, through any broker."""
        stream = self.stream()
        subscriptions = [self.subscribe(self.connect(n), stream, "latest") for n in range(3)]
        client = self.connect(0)
        for p in numbered(100):
            self.publish(client, stream, p)
        for s in subscriptions:
            self.expect(s, 0, numbered(100))
        self.kill_leader(stream)
        first = self.publish(self.connect(0), stream, b"after", at_least_once=True)
        for s in subscriptions:
            (event,) = self.take(s, 1, timeout=NOTICE)
            self.assertEqual((event.offset, bytes(event.payload)), (first, b"after"))
            self.assert_whole([event], 100)

    def test_plain_publish_never_repeats(self):
        """Without at least once a publish may fail around the death, and what it wrote is there once or not at all."""
        stream = self.stream()
        client = self.connect(0)
        acked, unknown = {}, []
        dead = None
        for i, p in enumerate(numbered(600)):
            if i == 300:
                dead = self.kill_leader(stream)
            try:
                acked[self.publish(client, stream, p)] = p
            except felix.FelixError:
                unknown.append(p)
                time.sleep(0.02)
        self.assertIsNotNone(dead)
        self.assertGreater(len(acked), 400, f"{len(unknown)} failed")
        end = self.end_of(stream)
        got = {}
        subscription = self.subscribe(self.connect(1), stream, "earliest")
        while max(got, default=-1) < end - 1:
            (event,) = self.take(subscription, 1)
            got[event.offset] = bytes(event.payload)
        self.assertEqual({o: got.get(o) for o in acked}, acked, "an acked record is not there")
        payloads = list(got.values())
        self.assertEqual(len(payloads), len(set(payloads)), "a record is there twice")
