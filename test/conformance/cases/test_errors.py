"""Refusals: each is a typed error, and the client goes on."""

import felix

from harness import NAMESPACE, UNKNOWN, BrokerCase, numbered, wait_until


class Tokens(BrokerCase):
    def mint(self, **permissions):
        """A token that may do the named actions on the given streams of the default namespace."""
        args = ["token", "mint", "--key", self.broker.signing_key, "--tenant", self.tenant, "--subject", "conformance"]
        for action, stream in permissions.items():
            args += [f"--{action}", stream]
        return self.broker.cli(*args).strip()

    def test_bad_tokens(self):
        good = self.broker.context["token"]
        head, body, signature = good.split(".")
        for name, token in {
            "garbage": "garbage",
            "empty": "",
            "signature": ".".join((head, body, signature[:-8] + "AAAAAAAA")),
            "no signature": ".".join((head, body, "")),
            "other tenant": good,
        }.items():
            with self.subTest(name):
                with self.refused(felix.AuthError, "unauthenticated"):
                    self.client(token=token, **({"tenant_id": "other"} if name == "other tenant" else {}))

    def test_refused_token_is_renewed(self):
        """A token provider is asked again when the broker refuses the token that the client holds."""
        asked = []

        def provide():
            asked.append(1)
            return self.broker.context["token"]

        stream = self.stream()
        client = self.client(token="garbage", token_provider=provide)
        self.assertEqual(self.publish(client, stream, b"x"), 0)
        self.assertTrue(asked)

    def test_forbidden(self):
        """A token without the permission, on a stream that is there."""
        open_, closed = self.stream(), self.stream()
        owner = self.client()
        self.publish(owner, closed, b"secret")
        client = self.client(token=self.mint(publish=open_, subscribe=open_))
        self.assertEqual(self.publish(client, open_, b"x"), 0)
        with self.refused(felix.AuthError, "forbidden"):
            self.publish(client, closed, b"x")
        with self.refused(felix.AuthError, "forbidden"):
            self.publish(client, closed, b"x", key=b"k")
        with self.refused(felix.AuthError, "forbidden"):
            client.subscribe(self.tenant, NAMESPACE, closed, start="earliest")
        self.assertEqual(self.publish(client, open_, b"y"), 1)
        self.assertEqual(self.publish(owner, closed, b"still alone"), 1)

    def test_reader_and_writer(self):
        stream = self.stream()
        reader = self.client(token=self.mint(subscribe=stream))
        writer = self.client(token=self.mint(publish=stream))
        subscription = self.subscribe(reader, stream, "latest")
        with self.refused(felix.AuthError, "forbidden"):
            self.publish(reader, stream, b"x")
        with self.refused(felix.AuthError, "forbidden"):
            writer.subscribe(self.tenant, NAMESPACE, stream)
        self.publish(writer, stream, b"x")
        self.expect(subscription, 0, [b"x"])

    def test_another_identity_on_the_same_connection(self):
        """Each stream of a connection has the permissions of its own token."""
        stream = self.stream()
        owner = self.client()
        guest = owner.with_identity(self.tenant, self.mint(subscribe=stream))
        with self.refused(felix.AuthError, "forbidden"):
            self.publish(guest, stream, b"x")
        subscription = self.subscribe(guest, stream, "latest")
        self.assertEqual(self.publish(owner, stream, b"x"), 0)
        self.expect(subscription, 0, [b"x"])
        with self.refused(felix.AuthError, "unauthenticated"):
            owner.with_identity(self.tenant, "garbage")

    def test_another_tenants_stream(self):
        client = self.client()
        with self.refused(felix.AuthError, "forbidden"):
            client.publish("other", NAMESPACE, "x", b"x")
        with self.refused(felix.FelixError):  # the client refuses this one itself
            client.subscribe("other", NAMESPACE, "x")


class Unknown(BrokerCase):
    def test_publish(self):
        client, stream = self.client(), self.stream()
        with self.refused(felix.NotFoundError, "not_found"):
            self.publish(client, UNKNOWN, b"x")
        with self.refused(felix.NotFoundError, "not_found"):
            self.publish(client, UNKNOWN, b"x", key=b"k")
        with self.refused(felix.NotFoundError, "not_found"):
            client.publish(self.tenant, "no-such-namespace", stream, b"x")
        self.assertIsNone(self.publish(client, UNKNOWN, b"x", ack="none"))  # dropped: nobody is told
        self.assertEqual(self.publish(client, stream, b"x"), 0)

    def test_subscribe(self):
        """The client asks five times before it gives up: the stream may be about to be made."""
        client = self.client()
        for start in ("latest", "earliest", 5):
            with self.refused(felix.NotFoundError, "not_found"):
                client.subscribe(self.tenant, NAMESPACE, UNKNOWN, start=start)

    def test_subscribe_sharded(self):
        with self.refused(felix.FelixError):
            self.client().subscribe_sharded(self.tenant, NAMESPACE, UNKNOWN)

    def test_requests_that_are_not_served(self):
        """They fail with an error that says so, and the client goes on."""
        client, stream = self.client(), self.stream()
        for name, request in {
            "cache": lambda: client.cache_get(self.tenant, NAMESPACE, "c", "k"),
            "counter": lambda: client.counter_get(self.tenant, NAMESPACE, "c", "k"),
            "group": lambda: client.group_poll(self.tenant, NAMESPACE, stream, 0, "g", wait=0),
            "commit": lambda: client.commit(self.tenant, NAMESPACE, b"e", [felix.CommitOp.publish(stream, b"x")]),
        }.items():
            with self.subTest(name), self.assertRaises(felix.FelixError):
                request()
        self.assertEqual(self.publish(client, stream, b"x"), 0)


class Cursors(BrokerCase):
    def test_in_the_future(self):
        client, stream = self.client(), self.stream()
        for p in numbered(3):
            self.publish(client, stream, p)
        for start in (4, 1000, (1 << 64) - 1):
            with self.refused(felix.CursorError) as caught:
                client.subscribe(self.tenant, NAMESPACE, stream, start=start)
            self.assertIn("3", str(caught.exception))
        self.expect(self.subscribe(client, stream, 2), 2, numbered(3)[2:])

    def test_too_old_after_retention(self):
        """What retention took is told with the offset that is available; earliest is never an error."""
        client = self.client()
        stream = self.stream(durability="Memory", tail_bytes=64 << 10, retention={"max_bytes": 64 << 10})
        first = self.publish(client, stream, b"first")
        for p in numbered(64, size=8 << 10):
            self.publish(client, stream, p)
        oldest = wait_until(
            lambda: next((s["oldest_offset"] for s in self.broker.describe(NAMESPACE, stream)["shards"] if s["oldest_offset"] > first), None),
            "the first record is gone",
        )
        with self.refused(felix.CursorError) as caught:
            client.subscribe(self.tenant, NAMESPACE, stream, start=first)
        self.assertIn(str(oldest), str(caught.exception))
        event = self.take(self.subscribe(client, stream, "earliest"), 1)[0]
        self.assertEqual(event.offset, oldest)

    def test_B17_too_old_after_recreation(self):
        """An offset of a stream that was deleted means nothing in the new one of that name: it is refused, never
        misread."""
        client, stream = self.client(), self.stream()
        for p in numbered(5):
            self.publish(client, stream, p)
        self.broker.delete(NAMESPACE, stream)
        self.broker.create(NAMESPACE, stream)
        for start in (0, 4, 5):
            with self.refused(felix.CursorError):
                client.subscribe(self.tenant, NAMESPACE, stream, start=start)
        first = self.publish(client, stream, b"new")
        self.assertGreater(first, 5)
        self.expect(self.subscribe(client, stream, "earliest"), first, [b"new"])
