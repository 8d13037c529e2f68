#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Low limits of resources that neighbours need: open files, memory of a cgroup, /dev/shm, huge pages. The job works, or a line names
# the limit and the remedy; the kernel kills no process.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=0
fill=$jobs/fill_segment-seq

# ---- open files: the number needed does not depend on the number of ranks
# Closes inherited files, which would count.
exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
limited=0
for files in 10 11 12 13 14; do
    job 3 sh -c "ulimit -n $files"'; exec "$@"' sh "$fill"
    [ "$status" -ne 0 ] || continue
    limited=$((limited + 1))
    fails_with 1 "$files open files"
    says '^trunkline.*Too many open files.*(ulimit -n)'
done
[ $limited -gt 0 ] || failed "10 open files are enough?"
good 32 sh -c 'ulimit -n 20; exec "$@"' sh "$jobs/many_ranks-seq"

# ---- address space for a device and its mappings of peers: the shortage is reported, not mistaken for a silent peer
told=0
for kib in 200000 450000 600000; do
    [ "$sanitizer" = no ] || continue # a sanitizer maps terabytes
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=1 job 2 sh -c "ulimit -v $kib"'; exec "$@"' sh "$jobs/hello-seq"
    [ "$status" -ne 0 ] || continue
    [ "$status" -lt 124 ] || failed "$kib KiB of address space: it hangs"
    told=$((told + 1))
    says 'Cannot allocate memory;.*ulimit -v'
    says 'is gone\|permission' 0
done
[ "$sanitizer" != no ] || [ $told -gt 0 ] || failed "200 MB of address space are enough?"

# ---- /proc, by which processes over softhca find each other
if [ "$sanitizer" = no ] && [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    # shellcheck disable=SC2016 # for the shell in between
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=1 job 2 unshare --mount sh -c 'mount -t tmpfs none /proc && exec "$@"' sh "$jobs/hello-seq"
    [ "$status" -ne 0 ] || failed "it works without /proc"
    says '^softhca: cannot join .*mount /proc'
    says 'is gone\|permission' 0
else
    echo "not tried: this user cannot make a place of its own (unshare)"
fi

# ---- PID namespaces: the memory of another one can't be opened, and softhca says so before anybody waits
# shellcheck disable=SC2209 # words of a command
apart="unshare --pid --fork --kill-child --mount-proc"
if [ "$sanitizer" = no ] && [ "$(id -u)" -eq 0 ] && $apart true 2>/dev/null; then
    # shellcheck disable=SC2086 # words
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=1 job 2 $apart "$jobs/hello-seq"
    fails_with 1 "ranks in two PID namespaces"
    within 10 # not by GASNET_CONNECT_TIMEOUT
    says '^softhca: process [0-9]* of the same fabric, .*, is in another PID namespace .*SOFTHCA_UDP=auto'
    # shellcheck disable=SC2086 # words
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 job 2 $apart "$jobs/hello-seq"
    fails_with 1 "neighbours in two PID namespaces"
    says 'GASNET_SUPERNODE_MAXSIZE=1 .*SOFTHCA_UDP=auto.*in another way$'
    # shellcheck disable=SC2086 # words
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=1 SOFTHCA_UDP=auto" job 2 $apart "$jobs/hello-seq"
    fails_with 0 "ranks in two PID namespaces that send packets"
else
    echo "not tried: this user cannot make PID namespaces (unshare)"
fi

# ---- memory of a cgroup, of either version
make_group()
{
    group= home=
    if [ -w /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
        home=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
        [ -d "$home" ] || home=/sys/fs/cgroup/memory
        knob=memory.limit_in_bytes
        group=/sys/fs/cgroup/memory/trunkline-test-$$
    elif grep -qs memory /sys/fs/cgroup/cgroup.subtree_control; then
        home=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
        knob=memory.max
        group=/sys/fs/cgroup/trunkline-test-$$
    fi
    [ -n "$group" ] && mkdir "$group" 2>/dev/null || return 1
    (echo $((96 << 20)) >"$group/$knob" && echo $$ >"$group/cgroup.procs") 2>/dev/null && return 0
    rmdir "$group"
    return 1
}

leave_group()
{
    echo $$ >"$home/cgroup.procs"
    for ((try = 0; try < 50; try++)); do
        rmdir "$group" 2>/dev/null && return
        sleep 0.1
    done
    echo "left: $group"
}

if make_group; then
    export GASNET_MAX_SEGSIZE=80M
    good 3 "$fill" 10
    # Untouched memory is not allocated. The kernel kills a process that takes too much, and only the cgroup's counter shows that.
    good 3 "$jobs/segment_cost-seq" max tenth
    SETTINGS="GASNET_MAX_SEGSIZE=1T" good 3 "$jobs/segment_cost-seq" max tenth
    job 3 "$jobs/segment_cost-seq" 80 all
    fails_with 137 "80 MiB each"
    says '^gasnetrun_ibv: rank [0-2] .*: out of memory: the kernel killed [1-3] process.* may use 100663296 bytes (.*trunkline-test' 1
    # More than one process may have; then more than all may have together, which each finds out while the others
    # allocate.
    for size in 79 40 30; do
        SETTINGS="GASNET_SEGMENT_RESERVE=1" job 3 "$fill" $size
        fails_with 1 "$size MiB each"
        says '^trunkline.*no memory for segment.*the limit of its cgroup, 100663296 bytes in .* leaves [0-9]* bytes.*ask for less'
    done
    unset GASNET_MAX_SEGSIZE
    leave_group
else
    echo "not tried: this user cannot make a cgroup with a limit on memory"
fi

# ---- /dev/shm, which is not needed
place()
{
    command="$1 /dev/shm, GASNET_SUPERNODE_MAXSIZE=$2"
    # shellcheck disable=SC2016 # for the shell in its own place
    GASNET_SUPERNODE_MAXSIZE=$2 unshare --mount sh -c "$3"' && exec "$@"' sh "$watchdog" "$limit" "$GASNETRUN" -n 3 \
        "$4" </dev/null >"$scratch/out" 2>"$scratch/err"
    status=$?
    fails_with 0 "$command"
}
full='mount -t tmpfs -o size=64k none /dev/shm && { cat /dev/zero >/dev/shm/all 2>/dev/null || :; }'
absent="mkdir -p $scratch/dev && mount -t tmpfs none $scratch/dev && cd $scratch/dev && mknod -m 666 null c 1 3 &&
    mknod -m 666 zero c 1 5 && mknod -m 666 urandom c 1 9 && mount --bind $scratch/dev /dev && [ ! -e /dev/shm ] && cd /"
if [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null; then
    place full 0 "$full" "$fill"
    place full 2 "$full" "$jobs/many_ranks-seq"
    place absent 0 "$absent" "$fill"
    place absent 2 "$absent" "$jobs/many_ranks-seq"
else
    echo "not tried: this user cannot make a place of its own (unshare)"
fi

# ---- huge pages, which the administrator sets aside
pool=/proc/sys/vm/nr_hugepages
free_pages() { awk '/^HugePages_Free:/ { print $2 }' /proc/meminfo; }
before=$(cat $pool 2>/dev/null)
if [ "$(id -u)" -eq 0 ] && [ "$before" = 0 ]; then
    job 2 env GASNET_USE_HUGEPAGES=1 "$fill" 4
    fails_with 1 "no huge pages"
    says '^trunkline.*no huge pages for segment.*sysctl vm.nr_hugepages'
    echo 16 >$pool 2>/dev/null
    if [ "$(free_pages)" -ge 8 ]; then
        SETTINGS="GASNET_USE_HUGEPAGES=1" good 2 "$fill" 4
        [ "$(free_pages)" = "$(cat $pool)" ] || failed "huge pages are left in use"
    else
        echo "not tried: this host has no memory for huge pages"
    fi
    echo "$before" >$pool
else
    echo "not tried: huge pages are somebody else's, or this user's not to set aside"
fi

# ---- copies by the kernel, which containers forbid
job 2 "$jobs/deny_syscalls" process_vm_readv process_vm_writev -- "$jobs/endpoints-seq"
if [ "$status" -eq 77 ]; then
    echo "not tried: filters for system calls are not allowed"
else
    [ "$status" -ne 0 ] || failed "memory of a client's own was reached without process_vm_readv"
    says "^trunkline.*segment of the client's own memory.*process_vm_readv: Operation not permitted.*GASNET_SUPERNODE_MAXSIZE=1"
    # What Docker's filter refuses of what the library asks for; memory of the client's own is registered on demand in putget.
    for program in am-seq putget-par; do
        for nbrhd in 0 1; do
            SETTINGS="GASNET_SUPERNODE_MAXSIZE=$nbrhd" job 2 "$jobs/deny_syscalls" perf_event_open userfaultfd process_vm_readv \
                process_vm_writev pidfd_open close_range unshare ENOSYS clone3 -- "$jobs/$program"
            fails_with 0 "$program in a container"
            says '^trunkline' 0
        done
    done
fi
finish
