#!/usr/bin/env bash
# Makes the table of docs/design.md: builds felix and the reference programs, runs all of them in turn, prints
# the table, and keeps every run in dist/. Arguments go to the table program: see `go run ./test/bench -h`.
#
#   REFERENCES=DIR test/bench/table.sh             DIR has quiclimit/ and natsbench/, each a Go module
#   QUICLIMIT=FILE NATSBENCH=FILE test/bench/table.sh -n 3 -only '10 x 4 KiB'
#
# Without the references their cells are left out. Nothing else should run on the machine meanwhile.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
mkdir -p dist

# What go build does by itself takes the version from git; that is what the report says.
version=$(git describe --tags --always --dirty 2>/dev/null || echo unknown)
CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w -X main.version=$version" -o dist/felix-bench ./cmd/felix
go build -buildvcs=false -o dist/bench-table ./test/bench

if [ -n "${REFERENCES:-}" ]; then
	for name in quiclimit natsbench; do
		(cd "$REFERENCES/$name" && go build -o "$root/dist/$name" .)
	done
	QUICLIMIT=${QUICLIMIT:-$root/dist/quiclimit}
	NATSBENCH=${NATSBENCH:-$root/dist/natsbench}
fi
export QUICLIMIT=${QUICLIMIT:-} NATSBENCH=${NATSBENCH:-}
[ -n "$QUICLIMIT" ] || echo "table.sh: no quiclimit (REFERENCES or QUICLIMIT): its cells are left out" >&2
[ -n "$NATSBENCH" ] || echo "table.sh: no natsbench (REFERENCES or NATSBENCH): its cells are left out" >&2

stamp=$(date +%Y%m%d-%H%M%S)
dist/bench-table -felix dist/felix-bench -raw "dist/bench-$stamp.jsonl" "$@" | tee "dist/bench-$stamp.md"
echo "kept: dist/bench-$stamp.md dist/bench-$stamp.jsonl" >&2
