#!/usr/bin/env bash
# Runs go test through gotestsum, whose last line counts what ran. Arguments are go test's.
#
#   hack/test.sh ./broker/...           what `make test` does, for some packages
#   RACE=0 hack/test.sh -short ./...    without the race detector
set -euo pipefail
cd "$(dirname "$0")/.."

flags=()
if [ "${RACE:-1}" = 1 ]; then
	if hack/need.sh cc; then
		flags+=(-race)
		export CGO_ENABLED=1
	else
		echo "WARNING: no C compiler, so the tests run WITHOUT the race detector" >&2
	fi
fi
gotestsum=$(hack/tool.sh gotestsum)
exec "$gotestsum" --format "${TEST_FORMAT:-pkgname-and-test-fails}" --format-hide-empty-pkg --hide-summary=skipped,output -- "${flags[@]}" "$@"
