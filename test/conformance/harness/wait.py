"""Waiting for a condition."""

import time


def wait_until(condition, what, timeout=15.0, every=0.02):
    """Polls until condition() is true and returns what it returned; fails with `what` after the timeout."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what() if callable(what) else what}")
        time.sleep(every)
