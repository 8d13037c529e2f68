#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# From a fresh clone to a running job: installs packages (see install-packages.sh), builds in ./build what the demo needs (one
# threading mode of the library, the launcher, the software device), and runs it on four processes. May be run again; it then only
# does the remaining steps. `make` in ./build builds the rest.
# usage: contrib/quickstart.sh [options for configure]        BUILD=directory to build somewhere else
set -eu -o pipefail
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
    # Of the debug information no more than lines: compiling takes a sixth less. Options of yours come behind and win.
    "$top/configure" --quiet CFLAGS="${CFLAGS--g1 -O2}" "$@"
fi
# What is left to do, counted first: a line for each object would be five hundred.
steps=$(make -n -o config.h -o conduit/include/gasnet_config.h --no-print-directory demo V=0 | grep -cE '^  +[A-Z]+  ' || :)
step "make demo ($steps steps)"
progress()
{
    awk -v total="$steps" -v terminal="$([ -t 2 ] && echo 1 || echo 0)" '
        !/^  *[A-Z]+  / && !/^\[[0-9]+\/[0-9]+\]/ { print; next }
        { done++ }
        terminal { printf "\r    %d of %d", done, total >"/dev/stderr"; next }
        done * 10 >= shown * total { printf "    %d of %d\n", done, total; shown = int(done * 10 / total) + 1; fflush() }
        END { if (terminal && done) printf "\n" >"/dev/stderr" }'
}
make -j"$(nproc)" --no-print-directory demo V=0 TK_STEPS="$steps" | progress
# Two by two the processes share memory; the rest goes over the network, as between hosts.
step "GASNET_SUPERNODE_MAXSIZE=2 gasnetrun_ibv -n 4 wordcount /usr/share/common-licenses/*"
export GASNET_SUPERNODE_MAXSIZE=2
spawner/gasnetrun_ibv -n 4 tests/demo/wordcount /usr/share/common-licenses/*
echo
echo "Next: make -j -C ${build#"$PWD/"} builds all modes of the library, make install installs them; see README, Installing."
