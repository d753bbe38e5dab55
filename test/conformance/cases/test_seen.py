"""What the client really sends: the facts that docs/format/wire.md records and the broker relies on.

The client talks through framelog here. A new version that does something else fails a case, and the document wants
another look.
"""

import json
import os
import re
import subprocess
import tempfile

from harness import NAMESPACE, BrokerCase, wait_until


class Seen(BrokerCase):
    def setUp(self):
        super().setUp()
        # What the broker shows to its clients, it shows to the logger's.
        ca = self.broker.context["ca_file"]
        key = find_key(self.broker.data, ca)
        self.lines = []
        log = tempfile.NamedTemporaryFile("r", suffix=".frames", delete=True)
        self.addCleanup(log.close)
        self.log = log
        with open(log.name, "wb") as out:
            logger = subprocess.Popen(
                [os.environ["FELIX_FRAMELOG"], "--to", self.broker.context["addr"], "--cert", ca, "--key", key],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip
        self.addCleanup(logger.wait)
        self.addCleanup(logger.kill)
        first = wait_until(lambda: self.grep(r"listening on (\S+) "), "the frame logger listens")
        self.through = first[0]

    def grep(self, pattern):
        """The first group, or all of them, of each line of the log that matches."""
        self.lines += self.log.readlines()
        return [found.group(1) if found.re.groups == 1 else found.groups() for found in (re.search(pattern, line) for line in self.lines) if found]

    def test_offer_and_first_frames(self):
        stream = self.stream()
        client = self.client(addrs=self.through)
        auths = [json.loads(a) for a in self.grep(r' b\d+ > (\{"type":"auth",.*\}) \(')]
        streams = len(auths)
        self.publish(client, stream, b"hello")
        self.expect(self.subscribe(client, stream, "earliest"), 0, [b"hello"])

        flags = {a.get("client_flags") for a in auths}
        low = {a.get("client_features") for a in auths}
        high = {a.get("client_features_hi") for a in auths}
        self.assertEqual((len(flags), len(low), len(high)), (1, 1, 1), "the offer differs between streams")
        flags, low, high = flags.pop(), low.pop(), high.pop()
        published = wait_until(lambda: self.grep(r" > publish, flags (0x[0-9a-f]+), \d+ bytes: (.*)$"), "a publish frame")[0]
        print(
            f"\n    {streams} streams at connect; offers flags {flags:#06x}, features {low:#010x}, second word {high:#x}; "
            f"first publish {published[0]}: {published[1]} ... ",
            end="",
        )
        # Offsets and holes on events; code, detail and offset on acks: without them no resume and no typed error.
        self.assertEqual(flags & 0x1E3F, 0x1E3F)
        # Error codes, shard_moved, unsupported, subscription_lagged.
        self.assertEqual(low & 0x00203800, 0x00203800)
        self.assertLessEqual(streams, 1024)

        name = b"".join(len(s).to_bytes(2, "big") + s for s in (self.tenant.encode(), NAMESPACE.encode(), stream.encode()))
        want = (1).to_bytes(8, "big") + b"\x01" + name + (1).to_bytes(4, "big") + (5).to_bytes(4, "big") + b"hello"
        self.assertEqual(published[0], "0x0009")
        self.assertEqual(bytes.fromhex(published[1]), want[: len(bytes.fromhex(published[1]))])

        # The client ends its side of the control stream, and the subscription lives on.
        subscribe = self.grep(r'(b\d+) > \{"type":"subscribe",')[0]
        wait_until(lambda: self.grep(rf"({subscribe}) > FIN"), "the client's FIN after subscribe")
        self.publish(client, stream, b"again")

    def test_alpn(self):
        for offered, want in ((False, '""'), (True, '"felix/1"')):
            with self.subTest(offered=offered):
                self.client(addrs=self.through, offer_alpn=offered)
                wait_until(lambda want=want: want in self.grep(r'client \S+, ALPN ("[^"]*")'), f"a connection with ALPN {want}")


def find_key(data, cert):
    """The private key beside the broker's certificate, which may have been copied elsewhere for clients."""
    with open(cert, encoding="ascii") as f:
        text = f.read()
    for folder, _, names in os.walk(data):
        for name in names:
            path = os.path.join(folder, name)
            key = os.path.splitext(path)[0] + ".key"
            if name.endswith((".crt", ".pem")) and os.path.exists(key):
                with open(path, encoding="ascii", errors="replace") as f:
                    if f.read() == text:
                        return key
    raise AssertionError(f"no key for {cert} below {data}")
