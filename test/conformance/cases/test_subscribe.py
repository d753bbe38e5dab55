"""Subscribing, and where it starts."""

import felix

from harness import NAMESPACE, BrokerCase, numbered, wait_until


class Start(BrokerCase):
    def setUp(self):
        super().setUp()
        self.me = self.client()
        self.name = self.stream()
        self.old, self.new = numbered(20), numbered(20, first=20)
        for p in self.old:
            self.publish(self.me, self.name, p)

    def publish_new(self):
        for p in self.new:
            self.publish(self.me, self.name, p)

    def test_latest(self):
        subscription = self.subscribe(self.me, self.name, "latest")
        self.expect_nothing(subscription)
        self.publish_new()
        self.expect(subscription, 20, self.new)

    def test_default_is_latest(self):
        subscription = self.subscribe(self.me, self.name)
        self.publish_new()
        self.expect(subscription, 20, self.new)

    def test_earliest(self):
        subscription = self.subscribe(self.me, self.name, "earliest")
        self.expect(subscription, 0, self.old)
        self.expect_nothing(subscription)
        self.publish_new()
        self.expect(subscription, 20, self.new)

    def test_offset(self):
        for offset in (0, 1, 7, 19):
            with self.subTest(offset=offset):
                subscription = self.subscribe(self.me, self.name, offset)
                self.expect(subscription, offset, self.old[offset:])
        subscription = self.subscribe(self.me, self.name, 7)
        self.publish_new()
        self.expect(subscription, 7, self.old[7:] + self.new)

    def test_offset_at_the_end(self):
        """The readable end is a valid offset: live from here."""
        subscription = self.subscribe(self.me, self.name, 20)
        self.expect_nothing(subscription)
        self.publish_new()
        self.expect(subscription, 20, self.new)

    def test_offset_in_the_middle_of_a_batch(self):
        """Records that were stored as one batch can be entered at each of them."""
        payloads = numbered(64, first=20)
        for p in payloads:
            self.publish(self.me, self.name, p, ack="none")
        self.publish(self.me, self.name, b"last")
        for offset in range(20, 84, 9):
            subscription = self.subscribe(self.me, self.name, offset)
            self.expect(subscription, offset, [*payloads[offset - 20 :], b"last"])
            subscription.close()

    def test_names_and_holes(self):
        event = self.expect(self.subscribe(self.me, self.name, "earliest"), 0, self.old)[0]
        self.assertEqual((event.tenant_id, event.namespace, event.stream), (self.tenant, NAMESPACE, self.name))
        self.assertEqual(event.skipped_before, 0)

    def test_empty_stream(self):
        empty = self.stream()
        subscriptions = [self.subscribe(self.me, empty, start) for start in ("latest", "earliest", 0)]
        self.publish(self.me, empty, b"first")
        for s in subscriptions:
            self.expect(s, 0, [b"first"])


class Many(BrokerCase):
    def test_many_subscriptions_of_one_client(self):
        client, stream = self.client(), self.stream()
        subscriptions = [self.subscribe(client, stream, "latest") for _ in range(100)]
        payloads = numbered(50)
        for p in payloads:
            self.publish(client, stream, p)
        for s in subscriptions:
            self.expect(s, 0, payloads)


class End(BrokerCase):
    def test_unsubscribe(self):
        """There is no message for it: the client stops reading the event stream, and the broker must notice at once.

        This client does so only when it would have to hand over the next events (up to two frames of them).
        """
        client, stream = self.client(), self.stream()
        kept = self.subscribe(client, stream, "latest")
        dropped = [self.subscribe(client, stream, "latest") for _ in range(5)]
        self.assertEqual(len(self.broker.subscriptions(NAMESPACE, stream)), 6)
        for s in dropped:
            s.close()
        published = []

        def gone():
            published.append(b"%d" % len(published))
            self.publish(client, stream, published[-1])
            return len(self.broker.subscriptions(NAMESPACE, stream)) == 1

        wait_until(gone, "five subscriptions are gone", timeout=5)
        self.expect(kept, 0, published)

    def test_stream_deleted(self):
        """What was there is still delivered, and then the subscription is over: it is not resumed."""
        client, stream = self.client(), self.stream()
        payloads = numbered(10)
        for p in payloads:
            self.publish(client, stream, p)
        subscription = self.subscribe(client, stream, "earliest")
        self.expect(subscription, 0, payloads[:1])
        self.broker.delete(NAMESPACE, stream)
        self.expect(subscription, 1, payloads[1:])
        self.assertIsNone(subscription.next_event(timeout=10))
        self.assertTrue(subscription.closed)
        with self.refused(felix.NotFoundError, "not_found"):
            self.publish(client, stream, b"x")
