#!/bin/sh
# Makes ./configure out of configure.ac. Needs autoconf, automake and pkg-config.
set -eu
cd "$(dirname "$0")"
for tool in autoreconf automake pkg-config; do
    command -v "$tool" >/dev/null 2>&1 && continue
    case $tool in
    autoreconf) package=autoconf ;;
    *) package=$tool ;;
    esac
    echo "autogen.sh: $tool is missing; install the Debian package $package" >&2
    exit 1
done
mkdir -p m4
exec autoreconf --install --force --warnings=all,no-obsolete
