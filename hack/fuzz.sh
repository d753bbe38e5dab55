#!/usr/bin/env bash
# Runs every fuzz target for a short, bounded time. What a target finds is kept in its package's testdata/fuzz
# and fails `make test` from then on.
#
#   FUZZTIME=5m hack/fuzz.sh                        longer
#   hack/fuzz.sh ./broker/wire                      one package
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-10s}
[ $# -gt 0 ] || set -- ./...

count=0
for package in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "$@"); do
	# The names come from the source, so that a package is compiled only when it has a target.
	dir=$(go list -f '{{.Dir}}' "$package")
	for target in $(sed -n -E 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$dir"/*_test.go); do
		echo "--- $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10s "$package"
		count=$((count + 1))
	done
done
echo "fuzz: $count targets, $time each, nothing found"
