#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kv over raw verbs: write-send, write-write, write-imm and send-send pass all checks with several servers, clients and sizes,
# leave the same store as the transports over GASNet-EX, and every fault makes the run fail with the name of its check; the
# rules of the queues are kept; a dead rank ends the job.
# shellcheck disable=SC2086 # lists of words
workload=kv
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
few="--ops 1500 --verify full --probe 500"
small="--keys 400 --put 30"
faults="$small --timeout-ms 700"
raw="write-send write-write write-imm send-send"

transports()
{
    good_run 2 $small --delete 5 --transport all --store exact --json "$scratch/all.json"
    [ "$(sed -n 's/^verify  *store_digest  *//p' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || failed "digests differ"
    json_holds "$scratch/all.json" '[run["params"]["layer"] for run in r] == ["raw"] * 4 + ["api"] * 4'
    json_holds "$scratch/all.json" 'r[0]["summary"]["doorbells_per_op"] >= 2 and r[4]["summary"]["doorbells_per_op"] is None'
    good_run 4 $small --layer raw --transport all --window 32 --servers 2 --store exact
    good_run 4 $small --layer raw --transport all --servers 3 --uc 0 --inline 0 --pipeline 0
    # More than rails, and the smallest queues: every post meets a limit.
    good_run 4 $small --layer raw --transport all --servers 1 --window 1 --s-depth 1 --q-depth 2 --ws-server 1 --cl-batch 2 \
        --cl-semi 1 --fail-lim 1
    good_run 4 $small --layer raw --transport all --order any --servers 3 --window 8
    good_run 4 $small --layer raw --transport all --window 16 --value 1-1024 --postlist 2 --ws-server 2 --ports 1
    job 3 "$program" --layer raw --duration 0.2 --warmup 0.1 --keys 500 --ycsb A --verify full --probe 100
    passes "kv by time"
}

# The slots of Ib-KV; one queue pair for datagrams; completions instead of polling, asked for or because K3 found no order.
ways()
{
    for one in write-send write-imm; do
        good_run 4 $small --compat --servers 2 --window 16 --transport $one
        [ "$(value_of not_seen verify)" ] || failed "--compat does not say what it cannot see"
        faulty K4 --inject flip-bit --compat --transport $one
        faulty K7 --inject drop-answer --compat --transport $one
        faulty K8 --inject stale-len --compat --transport $one
    done
    # All PUTs: 50 bytes there, 1 back. All GETs: 16 there, 34 back; preloaded requests count, too.
    job 2 "$program" --compat --layer raw --probe 0 --put 0 --keys 10 --preload server --ops 1000 --verify full
    passes "GETs of Ib-KV"
    [ "$(value_of wire_bytes_per_op)" = 50 ] || failed "a GET and its answer have $(value_of wire_bytes_per_op) bytes"
    job 2 "$program" --compat --layer raw --probe 0 --put 100 --keys 10 --preload server --ops 1000 --verify full
    passes "PUTs of Ib-KV"
    [ "$(value_of wire_bytes_per_op)" = 51 ] || failed "a PUT and its answer have $(value_of wire_bytes_per_op) bytes"
    # A single request leaves the pipeline when two dummies have pushed it out.
    good_run 2 $small --layer raw --window 1 --preload server
    [ "$(value_of dummies_per_op)" = 2 ] || failed "$(value_of dummies_per_op) dummies for a request"
    good_run 2 $small --layer raw --window 1 --preload server --pipeline 0
    [ "$(value_of dummies_per_op)" = 0 ] || failed "$(value_of dummies_per_op) dummies without a pipeline"
    good_run 2 $small --layer raw --inline 0
    [ "$(value_of inlined_percent)" = 0 ] || failed "$(value_of inlined_percent) % inline, which was not to be"
    good_run 4 $small --layer raw --transport all --ud shared --servers 2
    good_run 4 $small --layer raw --notify imm --servers 2
    [ "$(value_of notified_by)" = completions ] || failed "--notify imm polls"
    good_run 4 $small --layer raw --notify auto --servers 2
    [ "$(value_of notified_by)" = polling ] || failed "--notify auto does not poll"
    good_run 4 $small --layer raw --notify auto --servers 2 --inject poll-early
    [ "$(value_of notified_by)" = completions ] || failed "--notify auto polls without an order"
    says "^kv: write-send goes on with completions: server [01]: write .* was seen before" 1
}

faults()
{
    for one in $raw; do
        faulty K7 --inject drop-answer --transport $one
        faulty K4 --inject flip-bit --transport $one
        faulty K4 --inject swap-answers --transport $one
        faulty K7 --inject lose-request --transport $one
        faults="--keys 4 --put 30 --delete 30 --store exact" faulty K10 --inject newer-first --transport $one
    done
}

more_faults()
{
    for one in write-send write-write; do
        faulty K3 --inject poll-early --transport $one
        faulty K6 --inject keep-mark --transport $one
        faulty K8 --inject stale-len --transport $one
    done
    for one in write-send write-imm send-send; do
        faulty K15 --inject starve:3 --transport $one
        faulty K7 --inject dup-answer:3 --transport $one
    done
    faulty K15 --inject starve-server --transport send-send
    faulty K6 --inject dup-request --transport write-imm
    faulty K15 --inject starve:3 --ud shared --transport write-send
    faulty K6 --inject dup-request --transport send-send
    ranks=4 faulty K9 --inject wrong-server --servers 2 --transport send-send
}

rules()
{
    refused "s-depth may be at most half of --q-depth" --layer raw --s-depth 1024
    refused "cl-batch must be a multiple of --cl-semi" --layer raw --cl-batch 100
    refused "cl-semi must be a multiple of --window" --layer raw --window 32 --cl-semi 16 --cl-batch 64
    refused "must leave a --window of receives" --layer raw --cl-batch 64 --cl-semi 64
    refused "postlist may be at most --ws-server" --layer raw --postlist 4 --ws-server 2
    refused "postlist may be at most the number of clients" --layer raw --postlist 2
    refused "'3' is not a whole number and a power of 2" --layer raw --ws-server 3
    refused "am-medium is not of --layer raw" --layer raw --transport am-medium
    refused "keep-mark needs one --transport of write-send write-write" --inject keep-mark --verify full
    refused "q-depth is more than the device allows (softhca0:1: " --layer raw --q-depth 32768
    refused "twice --ws-server is more than the device allows" --layer raw --ws-server 16384
    refused "key is 16 but for am-medium" --layer raw --key 24
    refused "compat is the layout of slots" --compat
    refused "compat is the layout of slots" --compat --transport write-write
    refused "compat has values of 32 bytes" --compat --transport write-send --value 64
    refused "compat has no DELETE" --compat --transport write-send --delete 5
    refused "compat has no marks" --compat --transport write-send --inject keep-mark --verify full
    refused "notify is for write-send" --layer raw --transport write-write --notify imm
    refused "newer-first needs --pipeline 1" --transport write-send --inject newer-first --verify full
}

# K20, both roles: when a rank is killed the others end in time.
killed()
{
    for victim in 0 2; do
        printf '#!/bin/sh\nif [ "$PMIX_RANK" = %s ]; then (sleep 1; kill -9 $$) & fi\nexec %s "$@"\n' \
            $victim "$program" >"$scratch/killed"
        chmod 755 "$scratch/killed"
        job 3 "$scratch/killed" --duration 60 --keys 1000 --layer raw --probe 100
        [ "$status" -ne 0 ] || failed "rank $victim was killed: status 0"
        within 10
    done
}

no_port()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 GASNET_SOFTHCA=never" job 2 "$program" --layer raw
    fails_with 77 "no port"
    says "^kv: write-send is left out: " 1
}

lane transports transports
lane faults faults
lane more more_faults
lane ways ways
lane rest rules no_port
lane killed killed
finish
