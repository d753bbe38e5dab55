#!/usr/bin/env bash
# The published Python client against our broker: `make conformance`.
#
#   test/conformance/run.sh [-k PATTERN] [--on broker|cluster]    # only cases with PATTERN in their name, only against one
#
# Makes a virtual environment with the newest felix-client that installs (once; it lives outside the checkout, in
# $FELIX_CONFORMANCE_CACHE or the user's cache folder, and is looked after once a day), builds the broker, and runs
# the cases against one broker and against a cluster of three. The last line is 'N passed, N failed'. FELIX_BIN tests another binary, PYTHON is another Python.
#
# Exit status: 0 all cases passed; 1 some did not, or something does not build; 3 no version of the client could be
# installed, so that nothing was checked; 4 there is no Python that can make an environment.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-python3}

say() { echo "conformance: $*" >&2; }

"$root/hack/need.sh" python || { say "NOT RUN: python3 with venv is needed"; exit 4; }

# One environment for each Python and each text of the requirements, so that none is ever changed under another run.
cache=${FELIX_CONFORMANCE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/felix/conformance}
key=$("$python" -c 'import hashlib, sys, sysconfig
what = sys.version + sysconfig.get_platform() + open(sys.argv[1]).read()
print(hashlib.sha256(what.encode()).hexdigest()[:16])' "$here/requirements.txt") || { say "NOT RUN: $python does not run"; exit 4; }
venv=$cache/$key
mkdir -p "$cache"

install() {
	"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
		--upgrade --requirement "$here/requirements.txt" >&2
}

prepare() {
	if "$venv/bin/python" -c 'import felix' 2>/dev/null; then
		# A newer version may have been published. Where nothing can be downloaded, the one that is there will do.
		if [ -z "$(find "$venv/.checked" -mmin -1440 2>/dev/null)" ]; then
			install || say "could not look for a newer felix-client; using the one that is installed"
			touch "$venv/.checked"
		fi
		return
	fi
	say "making a virtual environment in $venv"
	rm -rf "$venv"
	"$python" -m venv "$venv" || { rm -rf "$venv"; say "NOT RUN: $python cannot make a virtual environment"; return 4; }
	if ! install || ! "$venv/bin/python" -c 'import felix'; then
		rm -rf "$venv"
		say "NOT RUN: no version of felix-client could be installed; nothing was checked"
		return 3
	fi
	touch "$venv/.checked"
}
(
	if command -v flock >/dev/null; then flock 9; fi # two runs at once prepare it once
	prepare
) 9>"$cache/.lock" || exit

cd "$root"
if [ -z "${FELIX_BIN:-}" ]; then
	make build >&2 || { say "the broker does not build"; exit 1; }
	FELIX_BIN=$root/bin/felix
fi
go build -buildvcs=false -o bin/framelog ./test/conformance/framelog || { say "the frame logger does not build"; exit 1; }
go test ./test/conformance/... || { say "the frame logger does not work"; exit 1; }

export FELIX_BIN FELIX_FRAMELOG=$root/bin/framelog PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" -u "$here/main.py" "$@" </dev/null
