#!/usr/bin/env bash
# Makes sure that this machine has what a target needs beyond Go, make and git. As root on a Debian machine
# it installs what is missing; anybody else is told what to install. Exit status 1: it is not there.
#
#   hack/need.sh cc        a C compiler, for the race detector
#   hack/need.sh python    python3 with venv, for the published Python client
set -euo pipefail

has() {
	case $1 in
	cc) command -v "$(go env CC)" ;;
	python) command -v python3 && python3 -c 'import ensurepip, venv' ;;
	esac >/dev/null 2>&1
}

what=${1:?usage: hack/need.sh cc|python}
case $what in
cc) packages=(gcc libc6-dev) ;;
python) packages=(python3 python3-venv) ;;
*) echo "hack/need.sh: I know nothing of '$what'" >&2; exit 2 ;;
esac
has "$what" && exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
	echo "this needs: ${packages[*]} (I am not root on a Debian machine and cannot install it)" >&2
	exit 1
fi
echo "installing ${packages[*]}" >&2
{
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q && apt-get install -q -y --no-install-recommends "${packages[@]}"
} >&2 </dev/null || { echo "could not install ${packages[*]}" >&2; exit 1; }
has "$what"
