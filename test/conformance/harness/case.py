"""A test case with a broker."""

import contextlib
import itertools
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from .broker import Broker, BrokerError

NAMESPACE = "default"
UNKNOWN = "no-such-stream"

_numbers = itertools.count(1)
_kind = Broker  # or what is like one
_shared = None  # one of that kind, or why there is none
_shared_lock = threading.Lock()


def use(kind):
    """From now on cases get brokers of that kind. The one that they shared until now is ended."""
    global _kind, _shared
    with _shared_lock:
        if isinstance(_shared, Broker):
            _shared.kill()
        _kind, _shared = kind, None


def shared_broker():
    """The broker of all cases that do not hurt it."""
    global _shared
    with _shared_lock:
        if _shared is None:
            try:
                _shared = _kind().start()
            except Exception as e:
                _shared = f"{e}"
                raise
        if isinstance(_shared, str):  # it would take every case as long to find out
            raise BrokerError(f"there is no broker: {_shared}")
        return _shared


class BrokerCase(unittest.TestCase):
    """Cases share one broker; each makes its own streams. Those that end a broker set own_broker."""

    own_broker = False

    def setUp(self):
        if self.own_broker:
            self.broker = _kind().start()
            self.addCleanup(self.broker.kill)
        else:
            self.broker = shared_broker()
        self.tenant = self.broker.tenant

    # Streams

    def stream(self, **settings):
        """Makes a stream and returns its name."""
        name = f"{self._testMethodName.replace('_', '-')}-{next(_numbers)}"[-100:].lstrip("-")
        return self.broker.place(NAMESPACE, name, **settings)

    def client(self, **changes):
        """A client. It has no close that closes: its connection goes when nobody holds it any more."""
        return self.broker.client(**changes)

    def subscribe(self, client, stream, start=None):
        subscription = client.subscribe(self.tenant, NAMESPACE, stream, start=start)
        self.addCleanup(subscription.close)
        return subscription

    def publish(self, client, stream, payload, **options):
        return client.publish(self.tenant, NAMESPACE, stream, payload, **options)

    def publish_all(self, client, stream, payloads, workers=16, **options):
        """Publishes with acks, many at a time; returns payload by offset. Order among them is any."""
        with ThreadPoolExecutor(workers) as pool:
            offsets = list(pool.map(lambda p: self.publish(client, stream, p, **options), payloads))
        found = dict(zip(offsets, payloads))
        self.assertEqual(len(found), len(payloads), "an offset was given to two records")
        return found

    # Expectations

    def take(self, subscription, count, timeout=20.0):
        """The next events, exactly so many."""
        events = []
        deadline = time.monotonic() + timeout
        while len(events) < count:
            event = subscription.next_event(timeout=max(0.0, deadline - time.monotonic()))
            if event is None:
                self.fail(
                    f"{len(events)} of {count} events within {timeout:g} s (closed: {subscription.closed}); "
                    f"the last has offset {events[-1].offset if events else None}"
                )
            events.append(event)
        return events

    def take_to(self, subscription, offset, timeout=20.0):
        """The next events up to that offset."""
        deadline = time.monotonic() + timeout
        events = self.take(subscription, 1, timeout)
        while events[-1].offset < offset:
            events += self.take(subscription, 1, deadline - time.monotonic())
        return events

    def expect(self, subscription, first, payloads, timeout=20.0):
        """The next events are these payloads at offsets from first on."""
        events = self.take(subscription, len(payloads), timeout)
        self.assert_whole(events, first, payloads)
        return events

    def assert_whole(self, events, first, payloads=None):
        """Offsets from first on, without a hole but for those that a cluster has, and tells."""
        want = first
        for i, event in enumerate(events):
            skipped = event.skipped_before if self.broker.holes else 0
            have = (event.offset - skipped, bytes(event.payload))
            if have[0] != want or payloads is not None and have[1] != payloads[i] or skipped > self.broker.holes:
                expected = "anything" if payloads is None else payloads[i][:40]
                self.fail(f"got offset {event.offset} ({skipped} skipped before) {have[1][:40]!r}, want offset {want} {expected!r}")
            want = event.offset + 1

    def expect_nothing(self, subscription, seconds=0.3):
        event = subscription.next_event(timeout=seconds)
        self.assertIsNone(event, f"an event that should not be there: offset {getattr(event, 'offset', None)}")

    @contextlib.contextmanager
    def refused(self, kind, code=None, within=10.0):
        """The block raises an error of that class with that code."""
        start = time.monotonic()
        with self.assertRaises(kind) as caught:
            yield caught
        self.assertIs(type(caught.exception), kind, f"{caught.exception!r}")
        if code is not None:
            self.assertEqual(caught.exception.code, code)
        self.assertLess(time.monotonic() - start, within, "the error took too long")


def numbered(count, first=0, size=0):
    """Payloads that say which they are, padded to a size."""
    return [(b"%08d" % i).ljust(size, b".") for i in range(first, first + count)]
