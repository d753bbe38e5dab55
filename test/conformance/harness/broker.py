"""A broker process, started as a user would start one for development."""

import atexit
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

import felix

from .wait import wait_until

_running = set()


def _kill_all():
    for broker in list(_running):
        broker.kill()


atexit.register(_kill_all)


class BrokerError(Exception):
    """The broker, or the command line, did not do what was asked."""


def clean_environment():
    """A broker that runs for the suite must not be told where another one is."""
    return {k: v for k, v in os.environ.items() if not k.startswith("FELIX_")}


class Broker:
    """`felix serve --dev` on free loopback ports, with a data directory of its own.

    A restart keeps ports and data. Processes are ended by their pid, at the latest when Python ends.
    """

    binary = os.environ.get("FELIX_BIN", "")
    # holes is how many offsets may be skipped where a record is the first after another broker began to lead.
    holes = 0

    def __init__(self, *flags):
        self.dir = tempfile.mkdtemp(prefix="felix-conformance-")
        atexit.register(shutil.rmtree, self.dir, ignore_errors=True)
        self.data = os.path.join(self.dir, "data")
        self.log = os.path.join(self.dir, "broker.log")
        self.context_file = os.path.join(self.data, "dev", "context.yaml")
        self.signing_key = os.path.join(self.data, "dev", "key.pem")
        self.flags = flags
        self.process = None
        self.context = {}
        self.listen = self.admin_listen = "127.0.0.1:0"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    # Life and death

    def start(self):
        assert self.process is None
        command = [self.binary, "serve", "--dev", "--data", self.data, "--listen", self.listen, "--admin", self.admin_listen]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_environment()
            )
        _running.add(self)
        try:
            wait_until(self._ready, lambda: f"{' '.join(command)} is ready; its log ends:\n{self.log_tail()}", timeout=30)
        except BaseException:
            self.kill()
            raise
        self.listen, self.admin_listen = self.context["addr"], self.context["admin"]
        return self

    def _ready(self):
        if self.process.poll() is not None:
            raise BrokerError(f"the broker ended with status {self.process.returncode}; its log ends:\n{self.log_tail()}")
        try:
            self.context = read_context(self.context_file)
            with urllib.request.urlopen(f"http://{self.context['admin']}/readyz", timeout=2) as answer:
                return answer.status == 200
        except (OSError, KeyError):
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

    def _reap(self):
        status = self.process.wait()
        self.process = None
        _running.discard(self)
        return status

    def log_tail(self, lines=30):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return "".join(f.readlines()[-lines:])
        except OSError:
            return "(none)"

    # Clients

    @property
    def tenant(self):
        return self.context["tenant"]

    def connect_options(self, **changes):
        options = {"tenant_id": self.tenant, "token": self.context["token"], "ca_file": self.context["ca_file"]}
        options.update(changes)
        return options

    def client(self, addrs=None, **changes):
        return felix.Client(addrs or self.context["addr"], **self.connect_options(**changes))

    def cli(self, *args, timeout=30):
        """Runs `felix ARGS` for this broker and returns what it printed."""
        env = {**clean_environment(), "FELIX_CONTEXT": self.context_file}
        done = subprocess.run(
            [self.binary, *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, env=env, check=False
        )
        if done.returncode:
            raise BrokerError(f"felix {' '.join(args)}: status {done.returncode}: {done.stderr}")
        return done.stdout

    # The admin

    def admin(self, method, path, body=None, at=None):
        request = urllib.request.Request(
            f"http://{at or self.context['admin']}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.context['token']}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                text = answer.read()
        except urllib.error.HTTPError as e:
            raise BrokerError(f"{method} {path}: {e.code}: {e.read().decode(errors='replace')}") from e
        return json.loads(text) if text.strip() else None

    def create(self, namespace, stream, **settings):
        spec = {"tenant": self.tenant, "namespace": namespace, "stream": stream, **settings}
        return self.admin("POST", "/v1/streams", {"spec": spec})

    def place(self, namespace, stream, **settings):
        """Makes a stream where a case wants it, and returns its name."""
        self.create(namespace, stream, **settings)
        return stream

    def describe(self, namespace, stream):
        return self.admin("GET", f"/v1/streams/{self.tenant}/{namespace}/{stream}")

    def delete(self, namespace, stream):
        self.admin("DELETE", f"/v1/streams/{self.tenant}/{namespace}/{stream}")

    def subscriptions(self, namespace, stream):
        found = self.admin("GET", f"/v1/subscriptions?stream={self.tenant}/{namespace}/{stream}")
        return found.get("subscriptions") or []

    def metric(self, name, at=None):
        """The samples of a metric, as labels and value."""
        with urllib.request.urlopen(f"http://{at or self.context['admin']}/metrics", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        found = [line[len(name) :].rpartition(" ") for line in lines if line.startswith((name + "{", name + " "))]
        return [(labels, float(value)) for labels, _, value in found]


def read_context(path):
    """Reads the flat YAML that a development broker writes."""
    found = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            key, colon, value = line.partition(":")
            if colon and not line.startswith(("#", " ")):
                found[key.strip()] = value.strip().strip("\"'")
    ca = found.get("ca_file", "")
    if ca and not os.path.isabs(ca):
        found["ca_file"] = os.path.join(os.path.dirname(path), ca)
    return found
