#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# An ordinary user can do all that root can. Run by an ordinary user, the other tests have already
# shown this.
[ "$(id -u)" = 0 ] || {
    echo "not root: the other tests ran as an ordinary user"
    exit 77
}
here=$(cd "$(dirname "$0")" && pwd)
as="setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all"
$as true 2>/dev/null || {
    echo "setpriv cannot change the user here"
    exit 77
}
# The user "nobody" can test only a tree that it can read.
$as test -x "${GASNETRUN:-$top_builddir/spawner/gasnetrun_ibv}" -a -r "$here/lib.sh" || {
    echo "the build tree is not readable for an ordinary user"
    exit 77
}
TMPDIR=/tmp
export TMPDIR
for t in status killed environment; do
    echo "== $t"
    $as sh "$here/$t.sh" || exit 1
done
exit 0
