"""A reader that stalls harms nobody but itself."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from harness import NAMESPACE, BrokerCase, numbered, wait_until

READER = """
import json, sys, felix
o = json.loads(sys.argv[1])
c = felix.Client(o.pop("addr"), **o)
s = c.subscribe(o["tenant_id"], "default", sys.argv[2], start="latest")
print("ready", flush=True)
for want in range(int(sys.argv[3])):
    e = s.next_event(timeout=60)
    if e is None or e.offset != want or int(bytes(e.payload)[:8]) != want:
        sys.exit("want %d, got %s" % (want, e and (e.offset, bytes(e.payload)[:8])))
print("all", flush=True)
s.next_event(timeout=60)
"""


class Stalled(BrokerCase):
    def test_one_of_two_subscriptions_of_a_client(self):
        """The application does not read one of them: the other gets everything at once, and the one that waited
        gets everything afterwards."""
        client, stream = self.client(), self.stream()
        stalled = self.subscribe(client, stream, "latest")
        healthy = self.subscribe(client, stream, "latest")
        payloads = numbered(4000, size=4 << 10)
        got = []
        for begin in range(0, len(payloads), 200):
            part = payloads[begin : begin + 200]
            for p in part:
                self.publish(client, stream, p, ack="none")
            got += self.take(healthy, len(part))
        self.assertEqual([(e.offset, bytes(e.payload)) for e in got], list(enumerate(payloads)))
        self.expect(stalled, 0, payloads, timeout=60)

    def freeze(self, stream, count):
        """A reader in another process that is stopped as soon as it has subscribed; also its subscription's id."""
        options = json.dumps({"addr": self.broker.context["addr"], **self.broker.connect_options()})
        before = {s["id"] for s in self.broker.subscriptions(NAMESPACE, stream)}
        process = subprocess.Popen(
            [sys.executable, "-c", READER, options, stream, str(count)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline().strip(), "ready", process.stderr.read() if process.poll() else "")
        (new,) = {s["id"] for s in self.broker.subscriptions(NAMESPACE, stream)} - before
        os.kill(process.pid, signal.SIGSTOP)
        return process, new

    def wake(self, process):
        os.kill(process.pid, signal.SIGCONT)

    def everything(self, process):
        """The reader has read all, in order, each record once."""
        self.assertEqual(process.stdout.readline().strip(), "all", process.poll() and process.stderr.read())

    def others_are_not_harmed(self, **settings):
        """One process takes nothing any more once its socket is full; another reader gets everything meanwhile. The
        frozen one is woken up later and misses nothing."""
        client, stream = self.client(), self.stream(**settings)
        healthy = self.subscribe(client, stream, "latest")
        count = 3000
        frozen, subscription = self.freeze(stream, count)
        payloads = numbered(count, size=8 << 10)
        for begin in range(0, count, 50):
            for p in payloads[begin : begin + 50]:
                self.publish(client, stream, p, ack="none")
            self.expect(healthy, begin, payloads[begin : begin + 50])
        lag = next(s["lag_records"] for s in self.broker.subscriptions(NAMESPACE, stream) if s["id"] == subscription)
        self.assertGreater(lag, 1000, "the frozen process is not behind")
        self.wake(frozen)
        self.everything(frozen)

    def test_frozen_process(self):
        """Its lag stays within the queue of the stream."""
        self.others_are_not_harmed()

    def test_frozen_process_drop_new(self):
        """Its lag passes the bound: it is told where it ended (subscription_lagged) and resumes from the log."""
        before = self.lagged()
        self.others_are_not_harmed(queue={"entries": 100, "on_full": "DropNew"})
        self.assertGreater(self.lagged(), before, "the broker did not end the subscription")

    def lagged(self):
        """How many subscriptions the broker has ended because they were too far behind."""
        return sum(value for labels, value in self.broker.metric("felix_subscriptions_ended_total") if 'reason="lagged"' in labels)

    def test_frozen_process_catch_up(self):
        """Its lag passes the bound, and it goes on from the log."""
        self.others_are_not_harmed(queue={"entries": 100, "on_full": "CatchUp"})

    def test_frozen_process_block(self):
        """Its lag reaches the bound: the publisher waits for it, and goes on when it does."""
        client, stream = self.client(), self.stream(queue={"entries": 100, "on_full": "Block"})
        count = 600
        frozen, _ = self.freeze(stream, count)
        payloads = numbered(count, size=8 << 10)
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(lambda: [self.publish(client, stream, p) for p in payloads])
            wait_until(
                lambda: any(s["lag_entries"] >= 100 for s in self.broker.subscriptions(NAMESPACE, stream)) or done.done(),
                "the queue of the subscription is full",
            )
            end = self.broker.describe(NAMESPACE, stream)["shards"][0]["next_offset"]
            self.assertLess(end, count, "the publisher did not wait")
            self.assertFalse(done.done(), "the publisher did not wait")
            self.wake(frozen)
            self.assertEqual(done.result(timeout=30), list(range(count)))
        self.everything(frozen)
