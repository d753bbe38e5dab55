"""Large records."""

import os

import felix

from harness import BrokerCase

MIB = 1 << 20
# The largest record that fits every frame the broker may have to send it in: 16 MiB of payload, less what stands
# in front of a record in the largest of them.
LARGEST = 16 * MIB - 24


class Sizes(BrokerCase):
    def there_and_back(self, size):
        client, stream = self.client(), self.stream()
        payload = os.urandom(size)
        live = self.subscribe(client, stream, "latest")
        self.assertEqual(self.publish(client, stream, payload), 0)
        self.assertEqual(self.publish(client, stream, b"after"), 1)
        for subscription in (live, self.subscribe(client, stream, "earliest")):
            first, second = self.take(subscription, 2, timeout=30)
            self.assertEqual((first.offset, len(first.payload)), (0, size))
            self.assertTrue(bytes(first.payload) == payload, "the bytes differ")
            self.assertEqual((second.offset, bytes(second.payload)), (1, b"after"))

    def test_one_mebibyte(self):
        self.there_and_back(MIB - 7)

    def test_fifteen_mebibytes(self):
        self.there_and_back(15 * MIB)

    def test_too_large(self):
        """Refused with an error, at once or by the client itself; nothing is stored and the client goes on."""
        client, stream = self.client(), self.stream()
        for size in (LARGEST + 1, 17 * MIB):
            with self.subTest(size=size):
                with self.assertRaises(felix.FelixError) as caught:
                    self.publish(client, stream, bytes(size))
                self.assertNotIsInstance(caught.exception, felix.OutcomeUnknownError)
        self.assertEqual(self.publish(client, stream, b"small"), 0)
