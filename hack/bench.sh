#!/usr/bin/env bash
# Runs the Go benchmarks beside the hot paths and prints benchstat's summary. With a file to compare with, it
# prints the difference. What `felix bench` measures is another thing: the whole broker (see hack/ab.sh).
#
#   hack/bench.sh                            -> dist/bench.txt
#   OLD=dist/before.txt hack/bench.sh        compare
#   BENCH=Ring COUNT=10 hack/bench.sh ./broker/stream
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# -gt 0 ] || set -- ./broker/... ./client/...
benchstat=$(hack/tool.sh benchstat)
mkdir -p dist
out=${OUT:-dist/bench.txt}
go test -run '^$' -bench "${BENCH:-.}" -benchmem -count "${COUNT:-6}" -timeout 30m "$@" | tee "$out"
"$benchstat" ${OLD:+"$OLD"} "$out"
