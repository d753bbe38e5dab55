#!/usr/bin/env bash
# `make verify`: everything about the source that can be checked without running the product. It goes through
# all checks, also after one has failed, and says at the end which did. Nothing in the checkout is changed.
set -uo pipefail
cd "$(dirname "$0")/.."

# Files behind these tags are part of the repository too.
tags=conformance,chaos
failed=()

check() { # NAME COMMAND...
	local name=$1 begin=$SECONDS
	shift
	echo "--- $name"
	if "$@"; then
		echo "    ok ($((SECONDS - begin)) s)"
	else
		echo "    FAILED: $name"
		failed+=("$name")
	fi
}

# Runs go generate on a copy and compares.
generated() {
	if ! git grep -q --untracked '^//go:generate ' -- '*.go'; then
		echo "    nothing is generated"
		return 0
	fi
	local copy result=0
	copy=$(mktemp -d "${TMPDIR:-/tmp}/felix-generate.XXXXXX")
	git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -cf - 2>/dev/null | tar -C "$copy" -xf -
	cp -a "$copy" "$copy.want"
	(cd "$copy" && go generate ./...) && diff -ru "$copy.want" "$copy" || result=1
	rm -rf "$copy" "$copy.want"
	[ $result -eq 0 ] || echo "    run 'make generate' and commit what it changes"
	return $result
}

formatted() {
	"$lint" fmt --diff || { echo "    run 'make fmt'"; return 1; }
}

shell() {
	local script
	for script in hack/*.sh .ci/run $(git ls-files --cached --others --exclude-standard 'test/*.sh'); do
		bash -n "$script" || return 1
	done
}

lint=$(hack/tool.sh golangci-lint) || exit 1

check "generated code is current" generated
check "go.mod is tidy" go mod tidy -diff
check "go vet" go vet -tags "$tags" ./...
check "house rules (arrows, dependencies, file length)" go test -count=1 ./hack/house
check "format (gofumpt, gci)" formatted
check "golangci-lint" "$lint" run ./...
check "shell scripts parse" shell

if [ ${#failed[@]} -gt 0 ]; then
	echo "verify: ${#failed[@]} failed:"
	printf '  %s\n' "${failed[@]}"
	exit 1
fi
echo "verify: clean"
