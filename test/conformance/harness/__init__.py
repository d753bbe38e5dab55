"""What the conformance cases share: a broker to talk to, and ways to say what is expected.

Nothing here knows what the broker promises; the cases do.
"""

from .broker import Broker, BrokerError
from .case import BrokerCase, NAMESPACE, UNKNOWN, numbered
from .cluster import Cluster
from .wait import wait_until

__all__ = ["Broker", "BrokerCase", "BrokerError", "Cluster", "NAMESPACE", "UNKNOWN", "numbered", "wait_until"]
