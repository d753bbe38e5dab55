"""Runs the conformance cases with unittest and ends with the line 'N passed, N failed'.

    main.py [-k PATTERN] [--seconds N]

Exit status 0 if all passed, 1 if not or if none ran. run.sh calls it with the environment that it has prepared:
FELIX_BIN is the broker under test, FELIX_FRAMELOG the frame logger.
"""

import argparse
import faulthandler
import os
import signal
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import felix  # noqa: E402

from harness import broker  # noqa: E402


class Result(unittest.TextTestResult):
    """Counts cases, not failures: a case with three failing subtests is one case that failed."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.bad = set()
        self.ran = set()
        self.seconds = {}

    def startTest(self, test):
        super().startTest(test)
        self.ran.add(test.id())
        self.seconds[test.id()] = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.seconds[test.id()] = time.monotonic() - self.seconds[test.id()]

    def _failed(self, test):
        # A subtest names its case; what fails outside a case (setUpClass, an import) has a name of its own.
        self.bad.add(getattr(test, "test_case", test).id())
        shared = getattr(getattr(test, "test_case", test), "broker", None)
        if shared is not None:
            self.stream.writeln(f"--- end of the broker's log\n{shared.log_tail(15)}---")

    def addError(self, test, err):
        super().addError(test, err)
        self._failed(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._failed(test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._failed(subtest)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._failed(test)


def watch(seconds):
    """Ends a run that hangs, with the stacks of all threads and without leaving a broker behind."""

    def over():
        print(f"\nconformance: not finished after {seconds} s; what each thread does:", file=sys.stderr, flush=True)
        faulthandler.dump_traceback(all_threads=True)
        broker._kill_all()
        os._exit(1)

    timer = threading.Timer(seconds, over)
    timer.daemon = True
    timer.start()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", metavar="PATTERN", action="append", help="only cases whose name has this in it")
    parser.add_argument("--seconds", type=int, default=480, help="end the run after so long (default 480)")
    options = parser.parse_args()

    if not os.access(broker.Broker.binary, os.X_OK):
        parser.error("FELIX_BIN must be the broker to test; run.sh sets it")
    # To a loopback address the client begins with datagrams of 4096 bytes, which no network would carry and our QUIC
    # library does not take: each connect would wait a second for the client to try smaller ones. One case leaves it.
    os.environ.setdefault("FELIX_INITIAL_MTU", "1200")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that brokers are ended as well
    watch(options.seconds)
    print(f"felix-client {felix.__version__} on Python {sys.version.split()[0]}, against {broker.Broker.binary}", flush=True)

    loader = unittest.TestLoader()
    if options.k:
        loader.testNamePatterns = [k if "*" in k else f"*{k}*" for k in options.k]
    suite = loader.discover(os.path.join(HERE, "cases"), top_level_dir=HERE)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)

    slowest = sorted(result.seconds.items(), key=lambda item: -item[1])[:5]
    print("slowest: " + ", ".join(f"{name.rpartition('.')[2]} {seconds:.1f} s" for name, seconds in slowest))
    failed = len(result.bad)
    passed = len(result.ran - result.bad) - len(result.skipped)
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}")
    sys.stdout.flush()
    print(f"{passed} passed, {failed} failed", flush=True)
    return 0 if passed > 0 and failed == 0 and not result.skipped else 1


if __name__ == "__main__":
    sys.exit(main())
