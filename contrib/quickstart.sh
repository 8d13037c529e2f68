#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# From a fresh clone to a running job: installs packages (see install-packages.sh), builds in ./build, and runs the demo on
# four processes. May be run again; it then only does what is left to do.
# usage: contrib/quickstart.sh [options for configure]        BUILD=directory to build somewhere else
set -eu
cd "$(dirname "$0")/.."
top=$PWD
build=${BUILD:-$top/build}

step()
{
    echo "==> $*"
}

step "packages"
contrib/install-packages.sh build
if [ ! -x configure ]; then
    step "autogen.sh"
    ./autogen.sh >autogen.log 2>&1 || { cat autogen.log; exit 1; }
    rm -f autogen.log
fi
mkdir -p "$build"
cd "$build"
if [ ! -f Makefile ]; then
    step "configure in $build"
    "$top/configure" --quiet "$@"
fi
step "make"
make -j"$(nproc)" --no-print-directory
# Two by two the processes share memory; the rest goes over the network, as between hosts.
step "GASNET_SUPERNODE_MAXSIZE=2 gasnetrun_ibv -n 4 wordcount /usr/share/common-licenses/*"
export GASNET_SUPERNODE_MAXSIZE=2
exec spawner/gasnetrun_ibv -n 4 tests/demo/wordcount /usr/share/common-licenses/*
