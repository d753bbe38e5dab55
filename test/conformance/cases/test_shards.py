"""Streams of several shards."""

import json
import os

import felix

from harness import NAMESPACE, UNKNOWN, BrokerCase, numbered, wait_until

_MASK = (1 << 64) - 1
_VECTORS = os.path.join(os.path.dirname(__file__), "..", "..", "..", "broker", "wire", "testdata", "wire-vectors.json")


def key_hash(key):
    h = 0xCBF29CE484222325
    for byte in key:
        h = ((h ^ byte) * 0x100000001B3) & _MASK
    h = ((h ^ h >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    h = ((h ^ h >> 27) * 0x94D049BB133111EB) & _MASK
    return h ^ h >> 31


def modulo(key, shards):
    return key_hash(key) % shards


def jump_hash(key, shards):
    k, b, j = key_hash(key), -1, 0
    while j < shards:
        b = j
        k = (k * 2862933555777941757 + 1) & _MASK
        j = int((b + 1) * (float(1 << 31) / float((k >> 33) + 1)))
    return b


KEYS = [b"key-%d" % i for i in range(60)] + [b"", b"\0\xff", "schlüssel".encode()]


class Shards(BrokerCase):
    def test_the_rule_itself(self):
        with open(_VECTORS, encoding="utf-8") as f:
            routing = json.load(f)["routing"]
        self.assertTrue(routing)
        for v in routing:
            key = bytes.fromhex(v["key_hex"])
            self.assertEqual(key_hash(key), int(v["finalized"], 16), key)
            for n, shard in v["modulo"].items():
                self.assertEqual(modulo(key, int(n)), shard, (key, n))
            for n, shard in v["jump_hash"].items():
                self.assertEqual(jump_hash(key, int(n)), shard, (key, n))

    def keyed(self, rule, **settings):
        client, stream = self.client(), self.stream(shards=4, **settings)
        want = {n: [] for n in range(4)}
        for key in KEYS:
            shard = rule(key, 4)
            self.assertEqual(self.publish(client, stream, b"to " + key, key=key), len(want[shard]), key)
            want[shard].append(b"to " + key)
        self.assertTrue(all(want.values()), "the keys do not reach every shard")
        self.assertEqual(self.sharded(client, stream, len(KEYS), "earliest"), want)
        ends = [s["next_offset"] for s in self.broker.describe(NAMESPACE, stream)["shards"]]
        self.assertEqual(ends, [len(want[n]) for n in range(4)])

    def sharded(self, client, stream, count, start, resume=None):
        """Payloads by shard, each in the order of its offsets."""
        got = {n: [] for n in range(4)}
        with client.subscribe_sharded(self.tenant, NAMESPACE, stream, start=start, resume=resume) as merged:
            self.assertEqual(merged.shards, 4)
            for _ in range(count):
                record = merged.next_event(timeout=10)
                self.assertIsInstance(record, felix.ShardRecord)
                got[record.shard].append(bytes(record.event.payload))
            self.positions = merged.positions()
        return got

    def test_keyed_modulo(self):
        self.keyed(modulo)

    def test_keyed_jump_hash(self):
        self.keyed(jump_hash, routing="jump_hash")

    def test_without_a_key_shard_0(self):
        client, stream = self.client(), self.stream(shards=4)
        for p in numbered(10):
            self.publish(client, stream, p)
        self.expect(self.subscribe(client, stream, "earliest"), 0, numbered(10))

    def test_resume_sharded(self):
        client, stream = self.client(), self.stream(shards=4)
        for key in KEYS:
            self.publish(client, stream, b"1", key=key)
        self.sharded(client, stream, len(KEYS), "earliest")
        for key in KEYS:
            self.publish(client, stream, b"2" + key, key=key)
        got = self.sharded(client, stream, len(KEYS), "earliest", resume=self.positions)
        self.assertEqual(got, {n: [b"2" + k for k in KEYS if modulo(k, 4) == n] for n in range(4)})

    def test_stream_shards(self):
        client = self.client()
        for n in (1, 4, 16):
            self.assertEqual(client.stream_shards(self.tenant, NAMESPACE, self.stream(shards=n)), n)
        self.assertEqual(client.stream_shards(self.tenant, NAMESPACE, UNKNOWN), 0)

    def test_unsubscribe_sharded(self):
        client, stream = self.client(), self.stream(shards=4)
        merged = client.subscribe_sharded(self.tenant, NAMESPACE, stream, start="latest")
        self.assertEqual(sorted(s["shard"] for s in self.broker.subscriptions(NAMESPACE, stream)), [0, 1, 2, 3])
        merged.close()

        def gone():  # the client looks at it only when events come
            for key in KEYS:
                self.publish(client, stream, b"x", key=key, ack="none")
            return not self.broker.subscriptions(NAMESPACE, stream)

        wait_until(gone, "all four subscriptions are gone", timeout=5)
