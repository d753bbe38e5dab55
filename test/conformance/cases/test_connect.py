"""Connecting."""

import asyncio
import json
import os
import socket
import subprocess
import sys

import felix

from harness import NAMESPACE, BrokerCase, numbered, wait_until


class Connect(BrokerCase):
    def publishes_and_reads(self, client):
        stream = self.stream()
        self.assertEqual(self.publish(client, stream, b"hello"), 0)
        self.expect(self.subscribe(client, stream, "earliest"), 0, [b"hello"])

    def test_without_alpn(self):
        """The default of the client: no protocol is offered."""
        self.publishes_and_reads(self.client())

    def test_with_alpn(self):
        self.publishes_and_reads(self.client(offer_alpn=True))

    def test_second_address(self):
        """The first address is dead: nobody listens there."""
        dead = "127.0.0.1:9"
        client = self.client(addrs=[dead, self.broker.context["addr"]])
        self.assertIn(self.broker.context["addr"], client.endpoints())
        self.publishes_and_reads(client)

    def test_certificate_is_checked(self):
        """Without the CA file the operating system's store decides, which does not know the broker."""
        with self.refused(felix.ConnectionError, within=30):
            self.client(ca_file=None)

    def test_certificate_is_for_localhost(self):
        with self.refused(felix.ConnectionError, within=30):
            self.client(server_name="elsewhere.example")

    def test_many_clients(self):
        """Each opens some forty streams and authenticates each of them."""
        stream = self.stream()
        clients = [self.client() for _ in range(12)]
        offsets = [self.publish(c, stream, b"x") for c in clients]
        self.assertEqual(offsets, list(range(12)))

    def test_not_a_felix_client(self):
        """Garbage on the port harms nobody."""
        host, port = self.broker.context["addr"].rsplit(":", 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for size in (1, 20, 1200):
                s.sendto(os.urandom(size), (host, int(port)))
        self.publishes_and_reads(self.client())

    def test_async_client(self):
        stream = self.stream()
        payloads = numbered(200)

        async def run():
            client = await felix.AsyncClient.connect(self.broker.context["addr"], **self.broker.connect_options())
            async with client:
                offsets = await asyncio.gather(*(client.publish(self.tenant, NAMESPACE, stream, p) for p in payloads))
                self.assertEqual(sorted(offsets), list(range(200)))
                by_offset = dict(zip(offsets, payloads))
                subscription = await client.subscribe(self.tenant, NAMESPACE, stream, start="earliest")
                async with subscription:
                    for offset in range(200):
                        event = await subscription.next_event(timeout=10)
                        self.assertEqual((event.offset, bytes(event.payload)), (offset, by_offset[offset]))

        asyncio.run(asyncio.wait_for(run(), 60))

    def other_process(self, script, *args, env=None):
        """Runs a script that has a client `c` and its options `o`."""
        options = json.dumps({"addr": self.broker.context["addr"], **self.broker.connect_options()})
        begin = "import felix, json, os, sys, time\no = json.loads(sys.argv[1])\nc = felix.Client(o.pop('addr'), **o)\n"
        command = [sys.executable, "-c", begin + script, options, *args]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=env, check=False)

    def test_datagrams_of_the_clients_choice(self):
        """With its own settings the client starts with datagrams that are too large for a broker on loopback."""
        stream = self.stream()
        env = {k: v for k, v in os.environ.items() if k != "FELIX_INITIAL_MTU"}
        done = self.other_process("print(c.publish(o['tenant_id'], 'default', sys.argv[2], b'x' * 100000))", stream, env=env)
        self.assertEqual((done.stdout.strip(), done.returncode), ("0", 0), done.stderr)
        self.expect(self.subscribe(self.client(), stream, "earliest"), 0, [b"x" * 100000])

    def test_a_process_that_dies(self):
        """A client that goes without a word holds nothing up, and its subscription is freed."""
        stream = self.stream()
        self.publish(self.client(), stream, b"x")
        done = self.other_process(
            "s = c.subscribe(o['tenant_id'], 'default', sys.argv[2], start='earliest')\n"
            "print(s.next_event(timeout=10).offset, flush=True)\n"
            "os.kill(os.getpid(), 9)\n",
            stream,
        )
        self.assertEqual((done.stdout.strip(), done.returncode), ("0", -9), done.stderr)
        self.publish(self.client(), stream, b"y")
        wait_until(lambda: not self.broker.subscriptions(NAMESPACE, stream), "the dead reader's subscription is gone", timeout=20)
