#!/usr/bin/env bash
# Compares `felix bench` of two revisions: builds both, runs them in turn (A B, B A, ...), and prints Welch's
# and the paired t-test for each metric. A is BASE, B is this work tree as it is, uncommitted changes included.
#
#   hack/ab.sh main fanout --size 4096 --fanout 10 --duration 2s
#   PAIRS=20 METRICS=p50_us,p99_us hack/ab.sh HEAD~1 latency --size 256
#
# Both sides get the same arguments and --json. Nothing of the checkout is touched.
set -euo pipefail

usage() {
	echo "usage: [PAIRS=10] [METRICS=key,key] [TIMEOUT=2m] hack/ab.sh BASE BENCH-ARGUMENTS..." >&2
	exit 2
}
[ $# -ge 2 ] || usage
base=$1
shift

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
commit=$(git rev-parse --verify --quiet "$base^{commit}") || { echo "hack/ab.sh: no such revision: $base" >&2; exit 2; }

work=$(mktemp -d "${TMPDIR:-/tmp}/felix-ab.XXXXXX")
cleanup() {
	git -C "$root" worktree remove --force "$work/base" 2>/dev/null || true
	rm -rf "$work"
	git -C "$root" worktree prune
}
trap cleanup EXIT
trap 'exit 130' INT TERM

build() { # SOURCE OUTPUT; the same flags for both, or the flags would be compared
	(cd "$1" && CGO_ENABLED=0 go build -buildvcs=false -trimpath -o "$2" ./cmd/felix)
}
git worktree add --quiet --detach "$work/base" "$commit"
echo "building A: $(git log -1 --format='%h %s' "$commit")"
build "$work/base" "$work/felix-a"
echo "building B: work tree on $(git describe --always --dirty)"
build "$root" "$work/felix-b"
go build -buildvcs=false -o "$work/abtest" ./hack/abtest

# Brokers that the benchmark starts keep their data here, never in the checkout.
cd "$work"
"$work/abtest" -v \
	-n "${PAIRS:-10}" \
	-timeout "${TIMEOUT:-2m}" \
	-json "${METRICS:-msgs_per_s,broker_cpu_s_per_mdeliveries,p99_us}" \
	-a "$work/felix-a bench" -b "$work/felix-b bench" -- "$@" --json
