"""Three broker processes that are one cluster, which cases use as if it were one broker."""

import os
import signal
import subprocess
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from .broker import Broker, BrokerError, _running, clean_environment, read_context
from .wait import wait_until

BROKERS = 3


class Cluster(Broker):
    """What `felix dev-cluster` would run, one process for each broker so that each can be killed.

    Clients come in through one broker, `entry`. A stream is kept by a majority unless a case says otherwise, and one of
    a single shard is led by another broker than that. To kill, to end and to start is to do it to all; the brokers
    themselves are in `members`.
    """

    durability = "Quorum"
    holes = 20  # one for each election that was followed by a publish

    def __init__(self):
        super().__init__()
        self.data = self.dir
        self.context_file = os.path.join(self.dir, "context.yaml")
        self.signing_key = os.path.join(self.dir, "key.pem")
        self.members = []

    def start(self):
        if not self.members:
            self._prepare()
        for member in self.members:
            member.launch()
        try:
            self.wait_ready()
            self._spread()
        except BaseException:
            self.kill()
            raise
        return self

    def _prepare(self):
        command = [self.binary, "dev-cluster", "--prepare", "--brokers", str(BROKERS), "--data", self.dir, "--free-ports"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, env=clean_environment(), check=False
        )
        if done.returncode:
            raise BrokerError(f"{' '.join(command)}: status {done.returncode}: {done.stderr}")
        found = read_context(self.context_file)
        self.addrs, self.admins = found["addr"].split(","), found["admin"].split(",")
        self.context = {**found, "addr": self.addrs[0], "admin": self.admins[0]}
        self.members = [Member(f"n{i + 1}", self.dir, self.addrs[i], self.admins[i]) for i in range(BROKERS)]
        self.entry = self.members[0]

    def wait_ready(self, timeout=60):
        """Every broker is ready and every group has its replicas."""
        wait_until(
            lambda: all(m.ready() for m in self.members), lambda: f"the brokers are ready; their logs end:\n{self.log_tail()}", timeout
        )
        wait_until(self._settled, lambda: f"the groups have their replicas: {self._status()}", timeout)

    def _status(self):
        try:
            return self.admin("GET", "/v1/cluster")
        except (OSError, BrokerError) as e:
            return {"problem": str(e)}

    def _settled(self):
        status = self._status()
        groups = status.get("groups") or []
        return (
            not status.get("problem")
            and len(groups) > 1
            and all(g.get("leader") and sum(bool(m.get("voter") and m.get("caught_up")) for m in g["members"]) == BROKERS for g in groups)
        )

    def _spread(self):
        """Every group is led by the broker that should lead it: at first one broker leads all. By themselves they take a while."""
        for group in self._status()["groups"]:
            if group["group"] != 0 and group["leader"] != group["target"][0]:
                self.admin("POST", f"/v1/cluster/groups/{group['group']}/transfer", {"to": group["target"][0]})

    def kill(self):
        for member in self.members:
            member.kill()

    def terminate(self, timeout=20):
        """SIGTERM to all at once; returns the worst exit status."""
        with ThreadPoolExecutor(BROKERS) as pool:
            return max(pool.map(lambda m: m.terminate(timeout), self.members), key=abs)

    def log_tail(self, lines=30):
        return "".join(f"{m.name}:\n{m.log_tail(lines)}" for m in self.members)

    # The admin: a case asks for what the cluster knows, whichever broker knows it

    def leader(self, namespace, stream, shard=0):
        """The broker that leads a shard, or owns it."""

        def found():
            place = self._describe(self.entry, namespace, stream)["shards"][shard]
            name = place.get("leader") or place.get("owner")
            return next((m for m in self.members if m.name == name), None)

        return wait_until(found, f"somebody leads {stream}")

    def _describe(self, member, namespace, stream):
        return self.admin("GET", f"/v1/streams/{self.tenant}/{namespace}/{stream}", at=member.admin)

    def create(self, namespace, stream, **settings):
        settings.setdefault("durability", self.durability)
        return super().create(namespace, stream, **settings)

    def place(self, namespace, stream, **settings):
        """A replicated stream of one shard is led by another broker than the entry. Its group follows from its name."""
        for i in range(30):
            name = f"{stream}-{i}"
            self.create(namespace, name, **settings)
            anywhere = settings.get("durability", self.durability) != "Quorum" or settings.get("shards", 1) > 1
            if anywhere or self.leader(namespace, name) is not self.entry:
                return name
            self.delete(namespace, name)
            if i % 5 == 4:  # elections may have left everything to one broker
                self._spread()
        raise BrokerError(f"broker {self.entry.name} leads every group")

    def describe(self, namespace, stream):
        """As its leaders, or owners, see each shard: a follower may not know yet what was committed last."""
        whole = self._describe(self.entry, namespace, stream)
        for i, shard in enumerate(whole["shards"]):
            name = shard.get("leader") or shard.get("owner")
            member = next((m for m in self.members if m.name == name), self.entry)
            whole["shards"][i] = self._describe(member, namespace, stream)["shards"][i]
        return whole

    def subscriptions(self, namespace, stream):
        found = []
        for m in self.members:
            answer = self.admin("GET", f"/v1/subscriptions?stream={self.tenant}/{namespace}/{stream}", at=m.admin)
            found += [{**s, "id": (m.name, s["id"])} for s in answer.get("subscriptions") or []]
        return found

    def metric(self, name):
        return [sample for m in self.members for sample in super(Cluster, self).metric(name, at=m.admin)]


class Member:
    """One broker of a cluster: a process, or none."""

    def __init__(self, name, cluster_dir, addr, admin):
        self.name, self.addr, self.admin = name, addr, admin
        self.dir = os.path.join(cluster_dir, name)
        self.log = os.path.join(self.dir, "broker.log")
        self.process = None

    def launch(self):
        assert self.process is None
        command = [Broker.binary, "serve", "--config", os.path.join(self.dir, "broker.yaml")]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment())
        _running.add(self)

    def ready(self):
        if self.process.poll() is not None:
            raise BrokerError(f"broker {self.name} ended with status {self.process.returncode}; its log ends:\n{self.log_tail()}")
        try:
            with urllib.request.urlopen(f"http://{self.admin}/readyz", timeout=2) as answer:
                return answer.status == 200
        except OSError:
            return False

    def kill(self):
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self._reap()

    def terminate(self, timeout=20):
        """SIGTERM; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout)
        return self._reap()

    _reap = Broker._reap
    log_tail = Broker.log_tail
