#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kv, short: every transport passes all its checks over the network and between neighbours, every fault makes the run fail
# with the name of its check, invalid parameters are refused in one line, and a dead rank ends the
# job.
# shellcheck disable=SC2086 # lists of words
workload=kv
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
few="--ops 1500 --verify full"
small="--keys 400 --put 30"
faults="$small --timeout-ms 700"

transports()
{
    good_run 2 $small --layer api --transport all --store exact --json "$scratch/all.json" --csv "$scratch/all.csv"
    [ "$(grep -c '^ *\(am-medium\|am-long\|put-am\|get\) .*PASS$' "$scratch/out")" -eq 4 ] || failed "not four transports in the table"
    [ "$(sed -n 's/^verify  *store_digest  *//p' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || failed "digests differ"
    json_holds "$scratch/all.json" '[run["status"] for run in r] == ["PASS"] * 4'
    json_holds "$scratch/all.json" '1.5 < r[3]["summary"]["reads_per_get"] < 3 and r[2]["summary"]["reads_per_get"] == 0'
    [ "$(sed -n 's/^verify  *results_digest  *//p' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || failed "answers differ"
    [ "$(wc -l <"$scratch/all.csv")" -eq 5 ] || failed "not a header and four rows"
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good_run 4 $small --layer api --transport all --window 32 --servers 2
    job 3 "$program" --duration 0.2 --warmup 0.1 --keys 500 --ycsb D --verify full --json "$scratch/time.json"
    passes "kv by time"
    json_holds "$scratch/time.json" 'len(r["intervals"]) > 1 and sum(i["rate_mops"] for i in r["intervals"]) > 0'
    # For each interval and each rank: servers served as many requests as clients took answers,
    # except for those under way.
    json_holds "$scratch/time.json" 'all(len(i["servers"]) == 1 and len(i["clients"]) == 2 for i in r["intervals"])'
    json_holds "$scratch/time.json" '0.5 < sum(i["servers"][0] for i in r["intervals"]) / sum(sum(i["clients"]) for i in r["intervals"]) < 2'
    grep -q '^interval 0.100 s  .* Mops  servers [0-9.]*  clients [0-9.]* [0-9.]*$' "$scratch/out" || failed "no line for an interval"
}

# The server takes no part in a GET; the client reads again if the server wrote meanwhile.
gets()
{
    good_run 4 $small --transport get --servers 2 --window 16 --value 1-1024 --delete 5
    good_run 3 --keys 400 --ycsb F --transport get --order any --mget 4 --window 8
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good_run 4 --keys 2 --put 40 --value 1024 --transport get --window 16
    for fault in flip-bit flip-entry half-entry lost-put; do
        faults="--keys 40 --put 30 --timeout-ms 700" faulty K4 --inject $fault --transport get
    done
    faulty K7 --inject drop-answer --transport get
    faulty K7 --inject lose-request --transport get
    # No server thread takes part in these reads.
    job 2 "$program" --transport get --put 0 --ops 2000 --keys 400 --preload server --verify full
    passes "reads only"
    [ "$(value_of ops_total)" -eq 2000 ] || failed "GETs were not counted"
    refused "get reads an exact store" --transport get --store lossy
    job 2 "$program" --layer api --transport all $few $small
    passes "all with a lossy store"
    says "^kv: get is left out: it reads an exact store" 1
}

keys()
{
    for size in 8 24 64; do
        good_run 3 $small --layer api --transport all --store exact --key $size --servers 2 --mget 2
    done
    good_run 3 $small --key 40 --servers 2 --save "$scratch/long"
    good_run 3 $small --key 40 --servers 2 --load "$scratch/long"
    ranks=3 refused "long.0 was saved with keys of another length" --servers 2 --load "$scratch/long"
    ranks=4 refused "long.0 was saved by another number of servers" --servers 3 --key 40 --load "$scratch/long"
    refused "'7' is not a whole number from 8 to 64" --key 7
    refused "'65' is not a whole number from 8 to 64" --key 65
}

# The keys of a multi-get are those that are packed together; they are the same for transports that
# pack nothing.
multi_gets()
{
    good_run 2 $small --layer api --transport all --store exact --mget 8 --window 16
    [ "$(value_of gets_per_pack | cut -d. -f1)" -ge 7 ] || failed "am-medium packed $(value_of gets_per_pack) GETs together"
    [ "$(sed -n 's/^verify  *results_digest  *//p' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || failed "answers differ"
    good_run 4 $small --layer api --transport all --order any --servers 3 --window 8
    good_run 3 --keys 400 --servers 2 --ycsb E --scan-emulate --mget 4 --value 1-64
    [ "$(value_of puts_new)" -gt 400 ] || failed "nothing was inserted"
    faulty K4 --inject flip-bit --mget 4
    # Requests of all kinds that leave in one pack are served in order; no request waits for a full
    # pack.
    good_run 2 $small --delete 5 --transport am-medium,put-am --store exact --pack 16 --window 16 --value 1-300
    [ "$(value_of gets_per_pack | cut -d. -f1)" -gt 1 ] || failed "am-medium packed $(value_of gets_per_pack) requests together"
    [ "$(sed -n 's/^verify  *results_digest  *//p' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || failed "answers differ"
    good_run 4 $small --order any --servers 2 --window 64 --pack 64 --key 40 --mget 2
    faulty K6 --inject dup-request --pack 4
    faulty K7 --inject drop-answer --pack 4
    refused "pack may be at most --window" --pack 8
    faulty K7 --inject drop-answer --mget 4
}

# K1: roles do not depend on the order of arrival.
order_of_start()
{
    run_of='--ops 500 --keys 300 --put 30 --store exact --verify full --servers 2 --layer'
    for layer in api raw; do
        job 4 "$program" $run_of $layer --probe 0
        passes "in any order"
        digest=$(value_of store_digest verify)
        for delays in "0.6 0.4 0.2 0" "0 0.2 0.4 0.6" "0.4 0 0.5 0"; do
            printf '#!/bin/sh\nset -- %s "$@"\nshift "$PMIX_RANK"; sleep "$1"; shift $((4 - PMIX_RANK))\nexec %s "$@"\n' \
                "$delays" "$program" >"$scratch/late"
            chmod 755 "$scratch/late"
            job 4 "$scratch/late" $run_of $layer --probe 0
            passes "delays $delays"
            [ "$(value_of store_digest verify)" = "$digest" ] || failed "delays $delays: another store"
        done
    done
    faulty K1 --inject wrong-hello
}

stores()
{
    good_run 3 --put 30 --keys 5000 --index-bkts 256
    [ "$(value_of miss_index)" -gt 0 ] || failed "a small index forgot nothing"
    good_run 3 --log 1M --keys 2000 --value 200-1024 --put 50 --delete 5 --window 16
    [ "$(value_of miss_log)" -gt 0 ] || failed "a small log forgot nothing"
    good_run 2 --log 1M --keys 2000 --value 1024 --store exact
    [ "$(value_of puts_refused)" -gt 0 ] || failed "a full store refused nothing"
    good_run 3 $small --servers 2 --preload server --save "$scratch/saved"
    good_run 3 $small --servers 2 --load "$scratch/saved" --transport put-am
    printf x | dd of="$scratch/saved.1" bs=1 seek=100 conv=notrunc 2>/dev/null
    job 3 "$program" --servers 2 --load "$scratch/saved"
    fails_with 1 "a damaged file"
    says "saved.1 is damaged" 1
    # A full disk is reported, and no file is left.
    for number in 8 400; do
        ln -s /dev/full "$scratch/full.0.part"
        job 2 "$program" $few --keys $number --save "$scratch/full"
        fails_with 1 "a full disk"
        says "^kv: K18 failed 1 times, first: $scratch/full.0 can't be written: No space left" 1
        [ -z "$(ls "$scratch"/full.* 2>/dev/null)" ] || failed "left behind: $(ls "$scratch"/full.*)"
    done
}

faults()
{
    faulty K7 --inject drop-answer
    faulty K7 --inject dup-answer:3 --transport am-long
    faulty K4 --inject swap-answers --transport put-am
    ranks=3 faulty K4 --inject flip-bit --servers 2
    faulty K6 --inject dup-request
    faulty K7 --inject lose-request --transport put-am
    faulty K8 --inject stale-len --transport am-long
    faults="--keys 40 --put 30" faulty K4 --inject lost-put
    faulty K16 --inject skew
    idle_fault drop-answer:1000000
    ranks=4 faulty K16 --inject skew:1 --servers 3
    ranks=3 faulty K9 --inject wrong-server --servers 2
}

refusals()
{
    refused "leaves no client among 2 ranks" --servers 2
    refused "--window '3' is not a whole number and a power of 2" --window 3
    refused "'0' is not a length" --value 0
    refused "'9-8' is not a length" --value 9-8
    refused "more than 100 %" --put 60 --delete 41
    refused "is not one of uniform" --dist zipf:1
    refused "hash store has none" --ycsb E
    refused "scan-emulate is for --ycsb E" --scan-emulate
    refused "mget may be at most --window" --mget 8
    refused "values of 1024 bytes do not fit into an answer" --mget 256 --window 256 --value 1024
    refused "one of none|drop-answer" --inject drop
    refused "stale-len needs one --transport of .*am-long" --inject stale-len --verify full
    refused "write-send is not of --layer api" --layer api --transport write-send
    refused "save /dev/full can't be written: it is a device" --save /dev/full
    refused "save $scratch can't be written: it is a directory" --save "$scratch"
    refused "save /nowhere/x.0 can't be written: No such file" --save /nowhere/x
    refused "/nowhere/x.0 can't be read: No such file" --load /nowhere/x
    refused "a segment of [0-9]* bytes is needed" --window 256 --value 1024 --keys 8 --log 1024G --transport get
    refused "both is for swarm and sharing" --layer both
    alone
}

# K20: when a rank is killed the others end in time.
killed()
{
    for victim in 0 2; do
        printf '#!/bin/sh\nif [ "$PMIX_RANK" = %s ]; then (sleep 1; kill -9 $$) & fi\nexec %s "$@"\n' \
            $victim "$program" >"$scratch/killed"
        chmod 755 "$scratch/killed"
        for transport in am-medium get; do
            job 3 "$scratch/killed" --duration 60 --keys 1000 --transport $transport
            [ "$status" -ne 0 ] || failed "$transport: rank $victim was killed: status 0"
            within 10
        done
    done
}

lane transports transports
lane faults faults
lane stores stores
lane many multi_gets
lane gets gets keys
lane order order_of_start
lane rest refusals
lane killed killed
finish
