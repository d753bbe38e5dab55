#!/usr/bin/env bash
# Prints the path of a tool that hack/tools/go.mod pins, and builds it first when this machine has not
# got it yet. Tools live outside the checkout, in a folder named by the pins and the Go version, so that
# a clean clone on a warm machine builds nothing and a changed pin never meets an old binary.
#
#   hack/tool.sh golangci-lint
set -euo pipefail
cd "$(dirname "$0")/tools"

name=${1:?usage: hack/tool.sh NAME}
package=$(sed -n -E "s#^(tool)?[[:space:]]+([^ ]+/${name})\$#\2#p" go.mod | grep .) ||
	{ echo "hack/tool.sh: hack/tools/go.mod has no tool named $name" >&2; exit 1; }

pins=$(cat go.mod go.sum | sha256sum | cut -c 1-16)
dir=${FELIX_TOOLS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/felix/tools}/$pins-$(go env GOVERSION)
binary=$dir/$name

if [ ! -x "$binary" ]; then
	mkdir -p "$dir"
	(
		# Two makes at once build a tool once: the second waits here and finds it done.
		if command -v flock >/dev/null; then flock 9; fi
		if [ ! -x "$binary" ]; then
			echo "building $name (once for these pins; golangci-lint takes some minutes)" >&2
			# Built beside its place and moved there, so that a build that was interrupted leaves nothing
			# that looks like a tool.
			GOFLAGS='' CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w' -o "$binary.$$" "$package" >&2
			mv "$binary.$$" "$binary"
		fi
	) 9>"$dir/.lock"
fi
echo "$binary"
