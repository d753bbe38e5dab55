"""Publishing."""

import threading

from harness import BrokerCase, numbered


class Publish(BrokerCase):
    def test_acked(self):
        """An ack carries the record's offset."""
        client, stream = self.client(), self.stream()
        payloads = numbered(50)
        self.assertEqual([self.publish(client, stream, p) for p in payloads], list(range(50)))
        self.expect(self.subscribe(client, stream, "earliest"), 0, payloads)

    def test_acked_per_batch(self):
        client, stream = self.client(), self.stream()
        payloads = numbered(50)
        self.assertEqual([self.publish(client, stream, p, ack="per_batch") for p in payloads], list(range(50)))
        self.expect(self.subscribe(client, stream, "earliest"), 0, payloads)

    def test_unacked_then_acked(self):
        """Records of one publisher keep their order, with and without acks."""
        client, stream = self.client(), self.stream()
        payloads = numbered(2000)
        for p in payloads:
            self.assertIsNone(self.publish(client, stream, p, ack="none"))
        self.assertEqual(self.publish(client, stream, b"last"), 2000)
        self.expect(self.subscribe(client, stream, "earliest"), 0, [*payloads, b"last"])

    def test_at_least_once(self):
        client, stream = self.client(), self.stream()
        self.assertEqual([self.publish(client, stream, p, at_least_once=True) for p in numbered(20)], list(range(20)))

    def test_any_bytes(self):
        client, stream = self.client(), self.stream()
        payloads = [b"", bytes(range(256)), b"\0", "é☃".encode(), b"FLX1\0\1\0\0\0\0\0\0"]
        self.assertEqual([self.publish(client, stream, p) for p in payloads], list(range(len(payloads))))
        self.expect(self.subscribe(client, stream, "earliest"), 0, payloads)

    def test_memory_stream(self):
        client, stream = self.client(), self.stream(durability="Memory")
        payloads = numbered(100)
        subscription = self.subscribe(client, stream, "latest")
        for p in payloads:
            self.publish(client, stream, p)
        events = self.take(subscription, 100)
        self.assertEqual([bytes(e.payload) for e in events], payloads)
        first = events[0].offset
        self.expect(self.subscribe(client, stream, first + 60), first + 60, payloads[60:])

    def test_concurrent_publishers(self):
        """Eight clients at once: every ack names the record's own offset, and each client's order is kept."""
        stream = self.stream()
        by_offset, lock, errors = {}, threading.Lock(), []

        def work(number):
            try:
                client = self.broker.client()
                for i in range(150):
                    payload = b"%d:%d" % (number, i)
                    offset = self.publish(client, stream, payload)
                    with lock:
                        by_offset[offset] = payload
            except Exception as e:  # reported below, in the test's own thread
                errors.append(e)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        live = self.subscribe(self.client(), stream, "latest")
        for t in threads:
            t.start()
        events = self.take(live, 1200, timeout=60)
        for t in threads:
            t.join()
        self.assertEqual(errors, [])
        self.assertEqual(sorted(by_offset), list(range(1200)))
        self.assertEqual([(e.offset, bytes(e.payload)) for e in events], sorted(by_offset.items()))
        for n in range(8):
            mine = [int(p.split(b":")[1]) for _, p in sorted(by_offset.items()) if p.startswith(b"%d:" % n)]
            self.assertEqual(mine, list(range(150)))

    def test_one_client_many_threads(self):
        """Hundreds of publishes of one client under way at once."""
        client, stream = self.client(), self.stream()
        by_offset = self.publish_all(client, stream, numbered(3000), workers=64)
        self.assertEqual(sorted(by_offset), list(range(3000)))
        self.expect(self.subscribe(client, stream, "earliest"), 0, [by_offset[i] for i in range(3000)])
