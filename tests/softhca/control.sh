#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The softhca command: starting programs, showing and changing running programs, and one line and status 2 for mistakes.
# shellcheck source=tests/softhca/tools_common.sh
. "${top_srcdir:?}/tests/softhca/tools_common.sh"
prepare ibverbs-utils ibv_devinfo ibv_asyncwatch ibv_rc_pingpong
softhca=${top_builddir:?}/contrib/softhca/softhca
started=

# Ends the background processes of this script.
end()
{
    local pid
    for pid in $started; do
        kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    started=
}
trap 'end; rm -rf "$work"' EXIT

# says STATUS TEXT ARGS...: softhca ARGS exits with STATUS and prints TEXT (a regular expression), as one line if STATUS
# is not 0
says()
{
    local status=$1 text=$2
    shift 2
    timeout 120 "$softhca" "$@" >"$work/out" 2>&1
    [ $? = "$status" ] || fail "softhca $* did not end with $status: $(cat "$work/out")"
    grep -Eq -- "$text" "$work/out" || fail "softhca $*: no line like '$text' but: $(cat "$work/out")"
    [ "$status" = 0 ] || [ "$(wc -l <"$work/out")" = 1 ] ||
        fail "softhca $*: not one line: $(cat "$work/out")"
}

# watch_events FILE ARGS...: starts ibv_asyncwatch in the background, and returns when it has joined the fabric
watch_events()
{
    local file=$1 pid deadline=$((SECONDS + 60))
    shift
    # Line by line: the tool's output is read while it runs.
    "$softhca" run "$@" stdbuf -oL ibv_asyncwatch -d softhca0 >"$file" 2>&1 &
    pid=$!
    started="$started $pid"
    until "$softhca" list --interval 0.01 2>/dev/null | grep -q "^$pid "; do
        [ $SECONDS -lt $deadline ] || {
            fail "ibv_asyncwatch is not on the fabric: $(cat "$file")"
            return
        }
    done
    watcher=$pid
}

# appears TEXT FILE
appears()
{
    local deadline=$((SECONDS + 60))
    until grep -q -- "$1" "$2"; do
        [ $SECONDS -lt $deadline ] || {
            fail "no '$1' but: $(cat "$2")"
            return
        }
        sleep 0.02
    done
}

test_usage()
{
    local sub
    says 0 '^usage: softhca SUBCOMMAND' --help
    says 0 '^softhca .* [0-9]' --version
    says 2 'a subcommand is missing'
    says 2 "'lost' is none of run, list, link, plug, gid, fault, fatal, topology" lost
    for sub in run list link plug gid fault fatal topology; do
        says 0 "^usage: softhca $sub" $sub --help
        says 2 "$sub: there is no option '--bogus'" $sub --bogus
        says 2 "$sub: there is no option '-x'" $sub -x
    done
    says 2 -- '--hcas needs a value' run --hcas
    says 2 -- '--only takes no value' run --only=1 true
    says 2 'a program is missing' run --only
    says 2 "takes no argument, but there is 'x'" list x
    says 2 -- '--interval 0: not a number of seconds' list --interval 0
    says 2 -- '--all and --fabric exclude' list --all --fabric x
    says 2 -- '--user me: not a number' list --user me
    says 2 'link takes a port' link softhca0:1
    says 2 'link takes a port' link softhca0:1 off
    says 2 'link takes a port' link softhca0 up
    says 2 'plug takes a port, softhcaN:P, and in or out' plug softhca0:1 up
    says 2 'gid takes a port, softhcaN:P, and remove ROW or add ADDRESS' gid softhca0:1 remove
    says 2 'gid takes a port' gid softhca0:1 add x
    says 2 'fatal takes one HCA' fatal
    says 2 'fatal takes one HCA' fatal softhca0:1
    says 2 'fault takes set SPEC' fault
    says 2 'fault takes set SPEC' fault set
    says 2 -- '--pid 0: not a number' fault list --pid 0
}

test_run()
{
    says 2 'SOFTHCA_HCAS=17 is not' run --hcas 17 true
    says 2 'SOFTHCA_LINK=fddi' run --link fddi true
    says 2 'SOFTHCA_DOWN=softhca1:1' run --down softhca1:1 true
    says 2 "SOFTHCA_FAULT: 'bad' is not a fault" run --fault bad true
    says 2 -- '--topology /nonexistent: No such file' run --topology /nonexistent true
    says 127 'cannot run /nonexistent/program' run /nonexistent/program
    says 126 'cannot run /etc/passwd' run -- /etc/passwd
    timeout 120 "$softhca" run sh -c 'exit 7'
    [ $? = 7 ] || fail "run does not end as its program does"
    says 0 '^one --two$' run -- echo one --two
    # shellcheck disable=SC2016 # the inner shell expands
    says 0 "^$(realpath "$lib"):$(realpath "$lib")\$" run "$softhca" run sh -c 'echo $LD_PRELOAD'
    # shellcheck disable=SC2016
    says 0 '^3 2 roce 5 1 drop:nth=1$' run --hcas 3 --ports=2 --link roce --seed 5 --only \
        --fault drop:nth=1 sh -c 'echo $SOFTHCA_HCAS $SOFTHCA_PORTS $SOFTHCA_LINK $SOFTHCA_SEED \
        $SOFTHCA_ONLY $SOFTHCA_FAULT'
    says 0 'softhca1' run --hcas 2 --only ibv_devinfo
    [ "$(grep -c PORT_ACTIVE "$work/out")" = 2 ] || fail "2 HCAs do not make 2 active ports"
    "$softhca" run --down softhca0:1 ibv_devinfo | grep -q PORT_DOWN || fail "--down is not obeyed"
}

# The man pages have every subcommand and every kind of fault that the parser knows, and are clean.
test_man_page()
{
    local word option page=$top_srcdir/contrib/softhca/softhca.1 faults=$top_srcdir/man/softhca-fault.7
    "$softhca" run --fault bad true 2>&1 | sed 's/.*known are //; s/,//g' >"$work/kinds"
    [ "$(wc -w <"$work/kinds")" -ge 10 ] || fail "kinds of faults: $(cat "$work/kinds")"
    for word in $(cat "$work/kinds"); do
        grep -q "^\.B $word\$" "$faults" || fail "the man page lacks the fault $word"
    done
    for word in run list link plug gid fault fatal topology; do
        grep -q "^\.SS $word\$" "$page" || fail "the man page lacks $word"
        "$softhca" $word --help | grep -o -- '--[a-z]*' | sort -u >"$work/options"
        for option in $(cat "$work/options"); do
            grep -q -- "\\\\-\\\\-${option#--}" "$page" || fail "the man page lacks $word $option"
        done
    done
    command -v man >/dev/null || return
    for page in "$page" "$faults"; do
        man --warnings -l "$page" 2>&1 >/dev/null | grep . && fail "man has warnings: $page"
    done
}

test_nobody()
{
    says 1 "no process is on fabric '$SOFTHCA_FABRIC' .*SOFTHCA_DOWN" list
    says 1 "no process is on fabric 'empty-$$'" link softhca0:1 down --fabric "empty-$$"
    says 1 'no process is on fabric' fault list
    says 2 "'nonsense' is not a fault" fault set nonsense
    says 1 'no process is on fabric' fatal softhca0
}

# Every member refuses requests for devices that the fabric does not have.
end_of_range()
{
    timeout 120 "$softhca" link softhca0:3 up >"$work/out" 2>&1
    [ $? = 1 ] || fail "link softhca0:3 did not end with 1"
    [ "$(grep -c "'softhca0:3 up' does not begin with" "$work/out")" = 2 ] || fail "$(cat "$work/out")"
}

test_links()
{
    watch_events "$work/first" --hcas 2 --ports 2
    local first=$watcher
    says 0 'softhca1:2 is down for 1 process$' link softhca1:2 down
    says 0 'softhca0:2 is down for 1 process$' link softhca0:2 down
    appears 'event_type IBV_EVENT_PORT_ERR .*port 2' "$work/first"
    # A program that joins now sees earlier changes, even against its own settings.
    watch_events "$work/second" --hcas 2 --ports 2 --down softhca0:1
    says 0 'softhca0:2 is up for 2 processes$' link softhca0:2 up
    appears 'event_type IBV_EVENT_PORT_ACTIVE .*port 2' "$work/first"
    appears 'event_type IBV_EVENT_PORT_ACTIVE .*port 2' "$work/second"
    says 0 '^ *softhca0: port 1 active, port 2 active' list --interval 0.01
    [ "$(grep -c 'softhca1: port 1 active, port 2 down' "$work/out")" = 2 ] ||
        fail "the second process does not see that softhca1:2 is down: $(cat "$work/out")"
    [ "$(grep -c ibv_asyncwatch "$work/out")" = 2 ] || fail "list does not show both processes"
    says 2 "there is no option '--pid'" link softhca0:1 up --pid 1
    # A cable belongs to one process.
    says 0 'softhca0:1 is out for 1 process$' plug softhca0:1 out --pid "$first"
    appears 'event_type IBV_EVENT_PORT_ERR .*port 1' "$work/first"
    says 0 'softhca0: port 1 active, port 2 active' list --interval 0.01
    [ "$(grep -c 'softhca0: port 1 down, port 2 active' "$work/out")" = 1 ] ||
        fail "a cable that is out is not that of one process: $(cat "$work/out")"
    grep -q 'PORT_ERR .*port 1' "$work/second" && fail "plug did not keep the other process out"
    says 0 'softhca0:1 is in for 2 processes$' plug softhca0:1 in
    appears 'event_type IBV_EVENT_PORT_ACTIVE .*port 1' "$work/first"
    end_of_range
    says 0 'is broken for 1 process$' fatal softhca0 --pid "$first"
    appears 'event_type IBV_EVENT_DEVICE_FATAL' "$work/first"
    grep -q FATAL "$work/second" && fail "--pid did not keep the other process out"
    says 1 'process 1 is not on fabric' fatal softhca0 --pid 1
}

test_faults()
{
    says 0 'faults are set for 2 processes' fault set 'drop:op=send,nth=3'
    says 0 ': drop:op=send,nth=3 ' fault list
    says 2 "'nonsense' is not a fault" fault set nonsense --pid "$watcher"
    says 0 'faults are cleared for 2 processes' fault clear
    says 0 ': no faults' fault list
}

test_silent()
{
    local start=$SECONDS
    kill -STOP "$watcher"
    timeout 120 "$softhca" list --interval 0.01 >"$work/out" 2>"$work/err"
    [ $? = 1 ] || fail "list ends well though a process is silent"
    grep -q "process $watcher (slot [0-9]*) did not answer" "$work/err" || fail "nobody names the silent"
    [ "$(grep -c ibv_asyncwatch "$work/out")" = 1 ] || fail "list does not show the other process"
    says 1 "process $watcher .* did not answer" fault list --pid "$watcher"
    kill -CONT "$watcher"
    [ $((SECONDS - start)) -lt 60 ] || fail "silence takes for ever"
}

test_json()
{
    command -v jq >/dev/null || return
    "$softhca" list --json --interval 0.01 >"$work/out" || fail "list --json ended with $?"
    [ "$(jq '.processes | length' "$work/out")" = 2 ] || fail "list --json: $(cat "$work/out")"
    [ "$(jq -r '.processes[0].hcas[1].ports[1].state' "$work/out")" = down ] ||
        fail "list --json does not know the port that is down"
    [ "$(jq -r '.silent | length' "$work/out")" = 0 ] || fail "list --json: silent"
}

# A ping-pong whose port goes down continues when the port is up again, and the list shows rates while it runs.
test_traffic()
{
    local server client deadline=$((SECONDS + 60))
    next_port
    export SOFTHCA_FABRIC=traffic-$$
    "$softhca" run ibv_rc_pingpong -p $port -n 100000000 >"$work/server" 2>&1 &
    server=$!
    started="$started $server"
    await_server $server $port
    "$softhca" run ibv_rc_pingpong -p $port -n 100000000 localhost >"$work/client" 2>&1 &
    client=$!
    started="$started $client"
    until [ "$("$softhca" list --interval 0.01 | grep -c 'softhca0: port 1 active, 1 RC RTS')" = 2 ]; do
        [ $SECONDS -lt $deadline ] || {
            fail "the ping-pong does not begin: $(cat "$work/server" "$work/client")"
            return
        }
    done
    says 0 ibv_rc_pingpong list --interval 0.2
    moving || fail "no rate while messages go to and fro: $(cat "$work/out")"
    says 0 'is down for 2' link softhca0:1 down
    sleep 0.05
    says 0 ibv_rc_pingpong list --interval 0.1
    moving && fail "messages go over a port that is down: $(cat "$work/out")"
    says 0 'is up for 2' link softhca0:1 up
    says 0 ibv_rc_pingpong list --interval 0.2
    moving || fail "messages do not go on: $(cat "$work/out" "$work/client")"
    kill -0 $client 2>/dev/null || fail "the ping-pong has ended"
}

# Does the list in $work/out show a rate that is not 0?
moving()
{
    awk '$2 == "ibv_rc_pingpong" && $8 != "0" { found = 1 } END { exit !found }' "$work/out"
}

test_topology()
{
    local machine="pack:2 numa:1 core:2 pu:1"
    says 2 'topology needs --synthetic' topology --hca softhca0=numa:0
    says 2 'topology needs --hca' topology --synthetic "$machine"
    says 2 'not softhcaN=numa:K' topology --synthetic "$machine" --hca softhca0=core:1
    says 2 'not softhcaN=numa:K' topology --synthetic "$machine" --hca softhca16=numa:1
    says 2 'has a place already' topology --synthetic "$machine" --hca softhca0=numa:0 --hca softhca0=numa:1
    says 2 'the machine has 2 NUMA nodes, there is no number 2' topology --synthetic "$machine" --hca softhca0=numa:2
    says 2 'hwloc makes no machine' topology --synthetic "nonsense" --hca softhca0=numa:0
    says 1 '/nonexistent/x: No such file' topology --synthetic "$machine" --hca softhca0=numa:0 -o /nonexistent/x
    says 0 'name="softhca0"' topology --synthetic "$machine" --hca softhca0=numa:0
    "$softhca" topology --synthetic "$machine" --hca softhca0=numa:0 --hca softhca2=numa:1 \
        --hca softhca1=pack:1 -o "$work/machine.xml" || fail "topology ended with $?"
    # The program prints, for each HCA, the CPUs beside it.
    out=$("$softhca" run --topology "$work/machine.xml" "$top_builddir/tests/softhca/hwloc_devices" | sort)
    [ "$out" = $'softhca0 0-1\nsofthca1 2-3\nsofthca2 2-3' ] || fail "locality: $out"
}

test_usage
test_run
test_man_page
test_nobody
test_links
test_faults
test_json
test_silent
end
test_traffic
end
test_topology
finish
