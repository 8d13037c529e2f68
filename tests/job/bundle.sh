#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# trunkline_info --bundle writes one file with all sections, without secrets, and with a test of each port whose failure is its status;
# softhca run --profile FILE behaves like the devices in it, so that a bundle written there is equal. A file that is not a bundle is refused
# with one line.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
[ "$sanitizer" = no ] || skip "the program is the plain one"
info=$top_builddir/contrib/info/trunkline_info
softhca=$top_builddir/contrib/softhca/softhca
unset "${!GASNET_@}" # make check has settings of its own
fabric=bundle-$$

# bundle STATUS FILE [NAME=VALUE...] [-- ARGS OF softhca run]
bundle()
{
    local expected=$1 file=$2 settings=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    [ $# -eq 0 ] || shift
    command="${settings[*]} softhca run $* trunkline_info --bundle ${options-}"
    # shellcheck disable=SC2086 # options are words
    env "${settings[@]}" "$softhca" run --only --fabric "$fabric" "$@" -- "$info" --bundle "$file" ${options-} \
        >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    [ "$status" -eq "$expected" ] || failed "status $status, not $expected"
}

has() { grep -qE -- "$2" "$1" || failed "$1 has no line like '$2'"; }
has_not() { ! grep -qE -- "$2" "$1" || failed "$1 has: $(grep -E -- "$2" "$1")"; }

# What softhca reads.
device_part() { sed -n '/^\[device/,/^\[findings/p' "$1"; }

section() { sed -n "/^\[$2\]/,/^\[/p" "$1"; }

# again NAME: its bundle, read back, gives the same bundle
again()
{
    bundle "$2" "$scratch/first" SOFTHCA_PROFILE="$1"
    bundle "$2" "$scratch/second" -- --profile "$scratch/first"
    diff <(device_part "$scratch/first") <(device_part "$scratch/second") >"$scratch/err" ||
        failed "$1: what its bundle says is not what a device made of it says"
}

for name in softhca connectx-5 e810-iwarp bnxt hfi1; do
    again $name 0
done
again qedr,connectx-5 0
[ "$(grep -c '^\[device' "$scratch/second")" -eq 2 ] || failed "not both devices"
again efa 1
has "$scratch/first" '^line = .*EFA is used by'
# A profile that matches no other is visible.
bundle 0 "$scratch/first" SOFTHCA_PROFILE=qedr
bundle 0 "$scratch/second" -- --profile "$scratch/first"
for line in 'max_sge = 4' 'type UC = errno 95' 'create RC 1 1 5 1 0 = errno 22' 'resize_cq = errno 95' 'fw_ver = 8.37.7.0' 'inline RC = 128'; do
    has "$scratch/second" "^$line"
done
# Jobs run on these devices.
SETTINGS="SOFTHCA_PROFILE=$scratch/first GASNET_SUPERNODE_MAXSIZE=1" good 2 "$jobs/am-seq"
SETTINGS="SOFTHCA_PROFILE=connectx-5,$scratch/first,siw" job 1 "$top_builddir/contrib/info/trunkline_info" --devices
grep -q 'qedr0:1' "$scratch/out" && grep -q 'siw0:1' "$scratch/out" || failed "a file among names"

# The kernel's siw has no P_Keys: softhca has one then.
bundle 0 "$scratch/good" SOFTHCA_PROFILE=siw
sed 's/^max_pkeys = .*/max_pkeys = 0/' "$scratch/good" >"$scratch/first"
bundle 0 "$scratch/second" -- --profile "$scratch/first"

# Sections, in a fixed form.
bundle 0 "$scratch/first" SOFTHCA_HCAS=2 SOFTHCA_DOWN=softhca1:1 GASNET_NUM_QPS=1 GASNET_FOO_TOKEN=abcdef GASNET_MCAST_KEY=ghijkl
[ "$(head -1 "$scratch/first")" = 'trunkline-bundle 1' ] && [ "$(tail -1 "$scratch/first")" = '[end]' ] || failed "first and last line"
[ -z "$(grep -vE '^(trunkline-bundle 1|\[[a-z]+( [^] ]+)?\]|[^=]+ = .*|)$' "$scratch/first")" ] || failed "a line has another form"
for name in environment settings choice library limits topology findings kernel 'device softhca0' 'port softhca0:1' 'gids softhca1:1' \
    'pkeys softhca0:1' 'sizes softhca0' 'test shared-memory' 'test softhca0:1' 'test softhca1:1'; do
    grep -qxF "[$name]" "$scratch/first" || failed "no section [$name]"
done
section "$scratch/first" 'test softhca1:1' >"$scratch/part"
has "$scratch/part" '^result = not tested'
section "$scratch/first" 'test softhca0:1' >"$scratch/part"
has "$scratch/part" '^result = passed'
[ "$(grep -c ': good$' "$scratch/part")" -eq 9 ] || failed "not nine tests of a port"
has "$scratch/first" '^GASNET_NUM_QPS = 1$'
has "$scratch/first" '^libibverbs.so = .*libibverbs'

# Secrets are hidden.
has "$scratch/first" '^GASNET_FOO_TOKEN = \(hidden\)$'
has_not "$scratch/first" 'abcdef|ghijkl'
host=$(uname -n)
case $host in
localhost*) ;;
*)
    grep -qwF -- "$host" "$scratch/first" && failed "the name of the host is there"
    options=--host-names bundle 0 "$scratch/first"
    grep -qwF -- "$host" "$scratch/first" || failed "--host-names does not show it"
    ;;
esac

# Tests that fail: wrong data, an error, a time-out. Nothing is left behind.
bundle 1 "$scratch/first" SOFTHCA_FAULT=error:status=rem_access,op=write
section "$scratch/first" 'test softhca0:1' >"$scratch/part"
has "$scratch/part" '^result = failed'
has "$scratch/first" '^\[end\]'
began=$SECONDS
options="--seconds 1" bundle 1 "$scratch/first" SOFTHCA_FAULT=delay:ms=10000,op=read
[ $((SECONDS - began)) -lt 30 ] || failed "it took $((SECONDS - began)) s"
has "$scratch/first" '^reason = not done after 1 s'
"$softhca" list --fabric "$fabric" >"$scratch/out" 2>&1
has_not "$scratch/out" 'trunkline_info'

# wrong KIND TEXT: one damaged byte of this kind, at each of three sizes, is seen
wrong()
{
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=1 job 2 "$info" --bundle-job "$1"
    fails_with 1 "damaged data ($1)"
    [ "$(grep -c "^$2 of .*: WRONG DATA$" "$scratch/out")" -eq 3 ] || failed "$1: $(cat "$scratch/out")"
    [ "$(grep -c ': good$' "$scratch/out")" -eq 6 ] || failed "$1: not six good ones"
}
wrong segment 'put from and get to the segment'
wrong memory 'put from and get to other memory'
wrong message 'message and answer'
wrong answer 'message and answer'

# An output that can't be written gives one line and a failure; wrong options give status 2.
refused() { [ "$(wc -l <"$scratch/err")" -eq 1 ] || failed "not one line: $(cat "$scratch/err")"; }
bundle 1 "$scratch/none/file"
refused
for options in '--seconds 0' '--seconds x' '--seconds -3' '--frob' 'more'; do
    bundle 2 "$scratch/first"
    refused
done
options=

# no TEXT [NAME]: the file "bad" is refused
no()
{
    command="softhca run --profile FILE, which is to say '$1'"
    "$softhca" run --only --profile "$scratch/bad" true >"$scratch/out" 2>"$scratch/err"
    status=$?
    [ $status -eq 2 ] || failed "status $status, not 2"
    refused
    grep -q "$scratch/${2:-bad}: $1" "$scratch/err" || failed "it does not say '$1'"
}
bundle 0 "$scratch/good" SOFTHCA_PROFILE=qedr
change() { sed "$1" "$scratch/good" >"$scratch/bad"; }
: >"$scratch/bad"
no 'line 1: it is not'
head -c 3000 /dev/urandom >"$scratch/bad"
no ''
head -c 2000000 /dev/zero | tr '\0' x >"$scratch/bad"
no 'not a text of at most'
printf 'trunkline-bundle 1\n[device a]\0\n[end]\n' >"$scratch/bad"
no 'not a text'
change '/^\[end\]/d'
no 'line [0-9]*: the file ends without \[end\]'
change '/^\[device/,/^\[findings/d'
no 'line [0-9]*: the file has no device'
change 's/^max_qp_wr = .*/max_qp_wr = 99999999999/'
no 'line [0-9]*: max_qp_wr is not a number from 1 to'
change 's/^max_mtu = .*/max_mtu = -1/'
no 'line [0-9]*: max_mtu is not a number from 1 to 5'
change '/^max_cqe/d'
no 'line [0-9]*: device qedr0 has no max_cqe'
change 's/^\[device qedr0\]/[device ..\/qedr0]/'
no 'line [0-9]*: the name of a device'
change 's/^inline RC = .*/inline RC = 5000/'
no 'line [0-9]*: inline data'
change 's/^create RC 1 1 1 1 0 = .*/create RC 1 1 1 1 0 = many/'
no 'line [0-9]*: not five numbers'
change 's/^max_sge = .*/&\nwords/'
no 'line [0-9]*: neither'
change 's/^\[device qedr0\]/&!/'
no 'line [0-9]*: a section does not end'
mkfifo "$scratch/pipe"
rm "$scratch/bad" && ln -s "$scratch/pipe" "$scratch/bad"
no 'not a file' pipe
rm "$scratch/bad" && mkdir "$scratch/bad"
no 'not a file'
# A file from mail, with other line endings, is accepted too.
rmdir "$scratch/bad" && sed 's/$/\r/' "$scratch/good" >"$scratch/bad"
bundle 0 "$scratch/second" -- --profile "$scratch/bad"
diff <(device_part "$scratch/good") <(device_part "$scratch/second") >"$scratch/err" || failed "CR LF"
finish
