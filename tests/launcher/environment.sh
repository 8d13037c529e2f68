#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What a job inherits (environment, limits, directories), and what it must not inherit.
. "$(dirname "$0")/lib.sh"

# show ARGS...: what rank 0 of 2 sees of an expression of the shell
show()
{
    GASNET_SOFTHCA=${GASNET_SOFTHCA-always} job -n 2 sh -c "[ \$PMIX_RANK != 0 ] || echo \"$1\""
    status_is 0
}

promise "the environment is passed, with the number of ranks"
OWN_VARIABLE='a b' show '$OWN_VARIABLE $TRUNKLINE_LAUNCHED'
out_is 'a b 2'

promise "another PMIx server's variables are not, parameters of the library are"
PMIX_NAMESPACE=foreign PMIX_LAUNCHER_RNDZ_URI=foreign PMIX_MCA_own_param=x show \
    '$PMIX_NAMESPACE,$PMIX_LAUNCHER_RNDZ_URI,$PMIX_MCA_own_param'
out_has '^trunkline-[^,]*,,x$' || fail "$(cat "$work/out")"
PMIX_NAMESPACE=foreign PMIX_RANK=7 PMIX_SERVER_URI41='x;tcp4://127.0.0.1:1' job -n 2 "$probe"
status_is 0

promise "softhca stands first in LD_PRELOAD, and each job has its own fabric"
show '$LD_PRELOAD $SOFTHCA_FABRIC'
out_has '^/.*libsofthca.so trunkline-' || fail "not preloaded"
first=$(cat "$work/out")
show '$LD_PRELOAD $SOFTHCA_FABRIC'
[ "$first" != "$(cat "$work/out")" ] || fail "the same fabric twice"
SOFTHCA_FABRIC=mine show '$SOFTHCA_FABRIC'
out_is mine

promise "a job inside a job is a job of its own, on its own fabric"
GASNET_SOFTHCA=always job -n 2 "$GASNETRUN" -n 2 sh -c 'echo "$SOFTHCA_FABRIC"'
status_is 0
[ "$(sort -u "$work/out" | wc -l)" -eq 2 ] || fail "shared fabric"
job -n 2 "$GASNETRUN" -n 3 "$probe"
status_is 0
out_count 'of 3' 6 || fail "wrong size"

if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    promise "the choice of softhca is told once, first, and at a terminal only"
    GASNET_QUIET=0 job -n 2 "$probe"
    status_is 0
    err_lines 0
    if command -v script >/dev/null; then
        for quiet in 0 1; do
            TRUNKLINE_TEST_MARK=$mark GASNET_QUIET=$quiet timeout -k 1 "$limit" \
                script -qec "$GASNETRUN -n 2 $probe" /dev/null </dev/null >"$work/out" 2>"$work/err"
            told=$(grep -c 'using softhca' "$work/out")
            [ "$told" -eq $((1 - quiet)) ] || fail "told $told times with GASNET_QUIET=$quiet"
            [ $quiet = 1 ] || head -1 "$work/out" | grep -q '^gasnetrun_ibv: no active RDMA port, using softhca ' || fail "not the first line"
        done
    fi

    promise "ranks that share memory find softhca when they open a device, and none of it before"
    GASNET_SUPERNODE_MAXSIZE=0 SOFTHCA_STATS=$work/stats GASNET_SOFTHCA=auto show \
        '$LD_PRELOAD $SOFTHCA_FABRIC $(ls -A /dev/shm | grep -c softhca) $(grep -c "softhca.*$SOFTHCA_FABRIC" /proc/net/unix)'
    out_has '^/.*libsofthca.so trunkline-.* 0 0$' || fail "not provided, or joined"
    GASNET_SUPERNODE_MAXSIZE=0 SOFTHCA_STATS=$work/stats job -n 2 "$probe"
    status_is 0
    err_lines 0
    [ ! -e "$work/stats" ] || fail "a device was opened"
    for broken in /no/such.so "/tmp/a b"; do
        TRUNKLINE_SOFTHCA_LIB=$broken GASNET_SUPERNODE_MAXSIZE=0 job -n 2 "$probe"
        status_is 0
        err_lines 0
    done
    GASNET_SUPERNODE_MAXSIZE=0 GASNET_SOFTHCA=never show 'x$LD_PRELOAD'
    out_is "x${LD_PRELOAD-}"

    promise "programs of the address sanitizer run with softhca before them"
    printf '#include <stdlib.h>\nint main(void) { return atoi("0"); }\n' >"$work/x.c"
    if ${CC:-cc} -fsanitize=address "$work/x.c" -o "$work/x" 2>/dev/null && ASAN_OPTIONS= "$work/x"; then
        (unset ASAN_OPTIONS && GASNET_SUPERNODE_MAXSIZE=0 job -n 1 "$work/x" && status_is 0 && err_lines 0) || exit 1
        ASAN_OPTIONS=verbosity=0 GASNET_SUPERNODE_MAXSIZE=1 job -n 2 "$work/x"
        status_is 0
    fi

    promise "without it two processes cannot run, one can"
    GASNET_SOFTHCA=never job -n 2 "$probe"
    status_is 1
    err_lines 1
    err_has 'no active RDMA port, and GASNET_SOFTHCA=never'
    GASNET_SOFTHCA=never job -n 1 "$probe"
    status_is 0
fi

promise "a library that is not there is named"
TRUNKLINE_SOFTHCA_LIB=/no/such.so GASNET_SOFTHCA=always job -n 2 "$probe"
status_is 1
err_lines 1
err_has '/no/such.so: no such file'

promise "two jobs at once"
start -n 4 "$probe" init get say=ready hang
eventually 10 out_count ready 4 || fail "first did not start"
TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 4 "$probe" >"$work/second" 2>&1 || fail "second failed"
kill "$job_pid"
finish
status_is 143
clean

promise "directory and umask are kept"
(cd "$work" && umask 027 && TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 1 sh -c 'pwd; umask' >"$work/out")
[ "$(tr '\n' ' ' <"$work/out")" = "$work 0027 " ] || fail "$(cat "$work/out")"

promise "a session directory that cannot be made is named"
GASNET_TMPDIR=/no/such/dir job -n 2 "$probe"
status_is 1
err_lines 1
err_has 'cannot make the session directory /no/such/dir/.*: No such file.*GASNET_TMPDIR'
long=$work/$(head -c 100 /dev/zero | tr '\0' d)/$(head -c 100 /dev/zero | tr '\0' e)
mkdir -p "$long"
GASNET_TMPDIR=$long job -n 2 "$probe"
status_is 0
[ -z "$(ls "$long")" ] || fail "left in $long"

promise "the user's limit of open files is kept for the ranks, and raised for us"
(ulimit -Sn 60 && TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 40 sh -c 'ulimit -Sn' >"$work/out" 2>"$work/err") ||
    fail "40 ranks with 60 files"
[ "$(sort -u "$work/out")" = 60 ] || fail "limit changed"
status=$( (ulimit -n 60 && TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 40 "$probe" >"$work/out" 2>"$work/err"; echo $?))
status_is 1
err_lines 1
err_has 'need [0-9]* open files, the hard limit is 60'

promise "64 open files are enough for 4 processes that share memory, and for 4 over softhca"
for how in auto 1; do
    (ulimit -n 64 && GASNET_SUPERNODE_MAXSIZE=${how#auto} TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" "$GASNETRUN" -n 4 \
        "$top_builddir/tests/job/hello-seq" >"$work/out" 2>"$work/err")
    status=$?
    status_is 0
    out_has '4 ranks over' || fail "output"
    clean
done

if [ -z "${TRUNKLINE_TEST_SANITIZER#no}" ]; then # a sanitizer needs terabytes
    promise "limits that end libpmix are named: of the stack, and of the size of files"
    for limited in "-s 160" "-f 1"; do
        # shellcheck disable=SC2086 # two words; the file is written by a process without the limit
        (ulimit $limited && TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 2 "$probe" 2>&1) | cat >"$work/err"
        err_has "the PMIx server process was killed by signal .*raise ulimit ${limited% *}\$"
        clean
    done

    promise "a guard that is out of memory leaves no session directory"
    (ulimit -d 1000; TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 2 "$probe" >"$work/out" 2>"$work/err")
    status=$?
    status_is 1
    err_has 'out of memory\|no memory'
    clean
fi

promise "what is needed counts what we were started with, and is enough"
(ulimit -n 30 && TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 4 "$probe" >"$work/out" 2>"$work/err" 8>&2 9>&2)
status=$?
status_is 1
needed=$(sed -n 's/.*4 processes need \([0-9]*\) open files, the hard limit is 30;.*/\1/p' "$work/err")
[ "${needed:-0}" -gt 30 ] && [ "$needed" -lt 64 ] || fail "$(cat "$work/err")"
(ulimit -n "$needed" && TRUNKLINE_TEST_MARK=$mark "$GASNETRUN" -n 4 "$probe" >"$work/out" 2>"$work/err" 8>&2 9>&2)
status=$?
status_is 0
err_lines 0
out_count 'of 4' 4 || fail "output"

promise "a loopback interface that is down is named"
if [ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null; then
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" unshare -n "$GASNETRUN" -n 2 "$probe" >"$work/out" 2>"$work/err"
    status=$?
    status_is 1
    err_has 'gasnetrun_ibv: the PMIx server cannot start: .*; the loopback interface is down or has no IPv4 address (ip link set lo up)$'
    clean
fi

promise "however few processes a user may have, the job runs or a line says why not, and root has no limit"
tasks() { find /proc -mindepth 3 -maxdepth 3 -path '/proc/[0-9]*/task/[0-9]*' -user "$(id -u)" 2>/dev/null | wc -l; }
for more in 1 2 3 4 5 6 7 9; do
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" prlimit --nproc=$(($(tasks) + more)) "$GASNETRUN" -n 4 "$probe" \
        >"$work/out" 2>"$work/err"
    status=$?
    [ $status -ne 124 ] || fail "not finished with $more processes more"
    # All ranks may fail at once: then the launcher's status is their status.
    [ $status -eq 0 ] || grep -q '^gasnetrun_ibv: .....\|PMIx_Init: ' "$work/err" || fail "status $status without a word, with $more"
    clean
done

promise "a tiny file system is enough"
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" unshare -m sh -c \
        'mount -t tmpfs -o size=256k none "$GASNET_TMPDIR" && exec "$@"' sh "$GASNETRUN" -n 4 "$probe" >"$work/out" 2>"$work/err"
    status=$?
    status_is 0
    out_count 'of 4' 4 || fail "output"
    clean
fi

# Containers may have the /proc of their host, where processes have other pids. A process that is no part of the job gets the one that
# /proc has for a process that a rank leaves behind.
promise "with the /proc of other pids, what ranks leave behind is ended, and nothing else"
cat >"$work/inside" <<'END'
"$GASNETRUN" -n 1 sh -c 'setsid sh -c "read -r pid rest </proc/self/stat && echo \$pid >$0/left; exec sleep 1000" &
    read -r line <"$0/fifo"' "$1" &
launcher=$!
until [ -s "$1/left" ]; do sleep 0.02; done
left=$(cat "$1/left")
for try in 1 2 3 4 5; do # others may take the pid first
    echo $((left - 1)) 2>/dev/null >/proc/sys/kernel/ns_last_pid || break
    sleep 1000 &
    [ $! -ne "$left" ] || { other=$! && break; }
done
echo go >"$1/fifo"
wait $launcher
status=$?
if [ -z "${other-}" ]; then
    echo "not tried: pids cannot be chosen"
elif ! kill -0 "$other"; then
    exit 98
fi
[ $status -eq 0 ] || exit $status
! grep -qs "$TRUNKLINE_TEST_MARK" "/proc/$left/environ" || exit 97
END
if [ "$(id -u)" = 0 ] && unshare -pf true 2>/dev/null; then
    mkfifo "$work/fifo"
    TRUNKLINE_TEST_MARK=$mark timeout -k 1 "$limit" unshare -pf sh "$work/inside" "$work" >"$work/out" 2>"$work/err"
    status=$?
    status_is 0
    err_lines 0
    cat "$work/out"
    clean
fi
exit 0
