#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The common environment of all programs: each variable has its documented effect, a client can't change what the spawner set
# (item 51), rank 0 prints the settings, each once (item 79), and settings without effect are no error.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
seq=$jobs/environment-seq
par=$jobs/environment-par

# sees PATTERN TIMES: that many ranks print a line like this.
sees()
{
    seen=$(grep -c -e "$1" "$scratch/out")
    [ "$seen" -eq "$2" ] || {
        failed "'$1' was seen by $seen ranks, not $2"
        sed 's/^/    > /' "$scratch/out"
    }
}

# What the launcher says about softhca aside
lines()
{
    counted=$(grep -vc 'using softhca' "$scratch/err")
    [ "$counted" -eq "$1" ] || failed "$counted lines instead of $1"
}

# Item 51: for names that the spawner set all ranks use its values, also the library's own settings; other names are the
# client's.
SETTINGS='' good 3 "$par"
sees ' word=after own=after$' 3
sees ' threads=77 ' 3
sees ' maps=1 stack=[0-9]\{1,2\} neighbours=1 hosts=1 hup=1 int=1 ' 3
lines 0
SETTINGS="JOB_WORD=given GASNET_MAX_THREADS=33" good 3 "$par"
sees ' word=given own=after$' 3
sees ' threads=33 ' 3
SETTINGS="JOB_WORD=given GASNET_MAX_THREADS=33" good 2 "$seq"
sees ' word=given own=after$' 2
sees ' threads=1 ' 2

# Escapes in values are decoded, unless that is switched off; %00 and incomplete escapes stay.
SETTINGS='JOB_WORD=%41%7e%2B%00%4%zz%' good 2 "$seq"
sees ' word=A~+%00%4%zz% own=after$' 2
SETTINGS='JOB_WORD=a%0Ab' good 1 "$seq"
sees '^b own=after$' 1
SETTINGS='JOB_WORD=%41%7e GASNET_DISABLE_ENVDECODE=1' good 2 "$par"
sees ' word=%41%7e own=after$' 2

# Arguments are never decoded, with and without the setting for it.
SETTINGS='' good 2 "$seq" argument 'a%41%0Ab%'
sees '^argument=a%41%0Ab%$' 2
SETTINGS='GASNET_DISABLE_ARGDECODE=0' good 2 "$par" argument 'a%41'
sees '^argument=a%41$' 2

# Names of the conduit that this one replaces
SETTINGS='GASNET_SUPERNODE_MAXSIZE=0 GASNET_PSHM_ENABLED=1' good 2 "$seq"
sees ' neighbours=2 ' 2
SETTINGS='GASNET_SUPERNODE_MAXSIZE=0 GASNET_PSHM_ENABLED=0' good 2 "$seq"
sees ' neighbours=1 ' 2
SETTINGS='GASNET_HWLOC_QUERY=core' job 1 "$seq"
fails_with 2 "GASNET_HWLOC_QUERY=core"

# Each of these changes something in the process. 200 MiB is more than its other memory.
SETTINGS="GASNET_THREAD_STACK_MIN=200M GASNET_THREAD_STACK_PAD=20M GASNET_DISABLE_MUNMAP=1 GASNET_MAX_SEGSIZE=64MB
    GASNET_NO_CATCH_SIGNAL=HUP,2"
good 1 "$par"
sees ' segment=67108864 least=67108864 .* maps=0 stack=22[0-9] .* hup=0 int=0 ' 1
SETTINGS="GASNET_MAX_SEGSIZE=128m/h GASNET_THREAD_STACK_PAD=200M GASNET_NO_CATCH_SIGNAL=*" good 2 "$seq"
sees ' segment=50331648 least=50331648 .* stack=20[0-9] .* hup=0 int=0 ' 2

printf '#!/bin/sh\nulimit -S -l 64\nexec "$@"\n' >"$scratch/locked"
chmod 755 "$scratch/locked"
if [ "$(ulimit -H -l)" = unlimited ] || [ "$(ulimit -H -l)" -gt 64 ]; then
    SETTINGS=GASNET_MAXIMIZE_MEMLOCK=0 good 1 "$scratch/locked" "$seq"
    sees ' memlock=65536 ' 1
    SETTINGS='' good 1 "$scratch/locked" "$seq"
    sees ' memlock=65536 ' 0
fi

# Hosts of different names: the query by name finds two. A host id does not depend on names.
printf '#!/bin/sh\nexec unshare -u sh -c "hostname other-\\$PMIX_RANK && exec \\"\\$@\\"" sh "$@"\n' >"$scratch/renamed"
chmod 755 "$scratch/renamed"
if PMIX_RANK=0 "$scratch/renamed" true 2>/dev/null; then
    for way in conduit hostname; do
        SETTINGS=GASNET_HOST_DETECT=$way good 2 "$scratch/renamed" "$seq"
        sees ' hosts=2 ' 2
    done
else
    echo "hosts cannot be given other names here; not tried"
fi

# The ranks that were asked list ports; the software device has two partitions, whose keys have the indices 0 and 1.
soft="GASNET_SOFTHCA=always SOFTHCA_ONLY=1"
SETTINGS="$soft GASNET_IBV_LIST_PORTS=1 GASNET_IBV_LIST_PORTS_NODES=1 GASNET_IBV_PKEY=1" good 2 "$seq"
says '^trunkline.1@.*port softhca0:1 is active: ' 1
lines 1
for wrong in GASNET_IBV_LIST_PORTS_NODES=all GASNET_IBV_LIST_PORTS_NODES=1- GASNET_BACKTRACE_NODES=5-3 GASNET_BACKTRACE_NODES=x; do
    SETTINGS="$soft $wrong" job 1 "$seq"
    fails_with 2 "$wrong"
    says "${wrong%=*}='${wrong#*=}': not ranks in the form 0,3-5" 1
done
SETTINGS="$soft GASNET_IBV_PKEY=0x30" job 2 "$seq"
fails_with 1 "a partition that is not there"
says 'no usable RDMA port: softhca0:1 is not in the partition of GASNET_IBV_PKEY' 1
lines 1

# Item 79: rank 0 prints all settings, each once, defaults marked, for each spelling of "yes".
SETTINGS="GASNET_VERBOSEENV=on GASNET_QP_TIMEOUT=17 GASNET_PHYSMEM_PROBE=0 GASNET_FREEZE=0 GASNET_QUIET=1 GASNET_IBV_PORTS="
good 3 "$seq"
says '^trunkline.[12]@' 0
says 'ENV parameter: GASNET_AM_CREDITS_PP = 12 (default)$' 1
says 'ENV parameter: GASNET_AM_CREDITS_PP' 1
says 'ENV parameter: GASNET_MAX_THREADS = 77$' 1
says 'ENV parameter: GASNET_QP_TIMEOUT = 17$' 1
says 'ENV parameter: GASNET_NONBULKPUT_BOUNCE_LIMIT = 64 KB (default)$' 1
says 'ENV parameter: GASNET_CATCH_EXIT = YES (default)$' 1
says 'ENV parameter: GASNET_IBV_PORTS = \*empty\* (default)$' 1
says 'ENV parameter: GASNET_FREEZE = 0$' 1
says 'GASNET_PHYSMEM_PROBE has no effect here: no limit on registered memory is probed for$' 1
twice=$(grep -o 'ENV parameter: [A-Z_]* ' "$scratch/err" | sort | uniq -d)
[ -z "$twice" ] || failed "told twice: $twice"

# Every name that is accepted without effect, with a value that other conduits understand: no message, or one for each.
"$GASNETRUN" --settings >"$scratch/settings"
sed -n '/^GASNET/,/^    (/H;/^    (accepted/{x;p};/^    /{s/.*//;h}' "$scratch/settings" | grep -o 'GASNET_[A-Z_]*' >"$scratch/old"
[ "$(wc -l <"$scratch/old")" -gt 15 ] || failed "only $(wc -l <"$scratch/old") names without effect"
SETTINGS="$(sed 's/$/=1/' "$scratch/old" | paste -sd" ") GASNET_IBV_PORTS_99=mlx5_0"
good 2 "$seq"
says 'GASNET_\(HCA_ID\|PORT_NUM\) is not supported any more and is ignored' 2
lines 2
SETTINGS="$SETTINGS GASNET_VERBOSEENV=1"
good 2 "$seq"
says ' has no effect here: ' "$(wc -l <"$scratch/old")"

# Every setting that has a range, out of it: one line for each, status 2, no process left.
awk '/^GASNET/ { name = $0 }
    /^    \(default/ && (/one of/ || /; 0 or 1/ || /\.\./) { print name }' "$scratch/settings" >"$scratch/ranged"
[ "$(wc -l <"$scratch/ranged")" -gt 45 ] || failed "only $(wc -l <"$scratch/ranged") settings with a range"
SETTINGS="$(sed 's/$/=out_of_range/' "$scratch/ranged" | paste -sd" ")"
job 3 "$seq"
fails_with 2 "bad values"
while read -r name; do
    says "$name='out_of_range' is not " 1
done <"$scratch/ranged"
lines "$(wc -l <"$scratch/ranged")"
within 10
for setting in GASNET_SD_INITVAL GASNET_MAX_SEGSIZE GASNET_IBV_PORTS GASNET_NO_CATCH_SIGNAL; do
    SETTINGS=$setting=x:y job 2 "$seq"
    fails_with 2 "$setting"
    says "$setting='x:y'" 1
    lines 1
done
# One rule for all: blanks around values are ignored, and an empty value counts as unset.
printf '#!/bin/sh\nGASNET_MAX_SEGSIZE="" GASNET_QP_TIMEOUT=" 17 " GASNET_IBV_PORTS=" " exec "$@"\n' >"$scratch/blanks"
chmod 755 "$scratch/blanks"
SETTINGS=GASNET_VERBOSEENV=1 good 2 "$scratch/blanks" "$seq"
says 'ENV parameter: GASNET_MAX_SEGSIZE = 0.85/H (default)$' 1
says 'ENV parameter: GASNET_QP_TIMEOUT = 17$' 1
says 'ENV parameter: GASNET_IBV_PORTS = \*empty\* (default)$' 1
for setting in GASNET_NO_CATCH_SIGNAL=HUP,SIGFOO GASNET_MAX_MTU=1000; do
    SETTINGS=$setting job 2 "$seq"
    fails_with 2 "$setting"
    says "'\?${setting#*=}'.* is not " 1
    lines 1
done
SETTINGS='GASNET_SPAWN_VERBOSE=maybe' job 2 "$seq"
fails_with 2 "GASNET_SPAWN_VERBOSE"
says "GASNET_SPAWN_VERBOSE='maybe' is not one of 0, 1, no, yes" 1

# A process may end alone; the job waits for one that never reaches the exit as long as the setting says.
SETTINGS=GASNET_CATCH_EXIT=0 job 3 "$seq" leave
fails_with 0 "GASNET_CATCH_EXIT=0"
sees ' stayed$' 2
milliseconds()
{
    local began now
    began=$(date +%s%3N)
    job 2 "$seq" stay
    now=$(date +%s%3N)
    fails_with 3 "$SETTINGS"
    ms=$((now - began))
}
SETTINGS="GASNET_EXITTIMEOUT=0.2 GASNET_EXITTIMEOUT_MIN=9" milliseconds
short=$ms
[ "$short" -lt 5000 ] || is_busy || failed "GASNET_EXITTIMEOUT=0.2 took $short ms"
SETTINGS="GASNET_EXITTIMEOUT_FACTOR=9 GASNET_EXITTIMEOUT_MAX=1.5" milliseconds
[ "$ms" -ge 1500 ] || failed "a limit of 1.5 s was over after $ms ms"

# A negotiated buffer that the client did not write to is reported once, in debug builds.
told=0
[ "${TRUNKLINE_TEST_DEBUG:-no}" != yes ] || told=1
SETTINGS='' good 1 "$seq" lend
says 'gex_AM_Commit: 64 bytes are sent from the buffer that gex_AM_Prepare provided' $told
SETTINGS='GASNET_SD_INIT=0' good 1 "$seq" lend
lines 0
finish
