#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kv, short: every transport passes all its checks over the network and between neighbours, every fault makes the run fail
# with the name of its check, what is no parameter is refused in one line, and a dead rank ends the job.
# shellcheck disable=SC2086 # lists of words
workload=kv
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
few="--ops 1500 --verify full"
small="--keys 400 --put 30"
faults="$small --timeout-ms 700"

transports()
{
    good_run 2 $small --layer api --transport all --store exact --json "$scratch/all.json" --csv "$scratch/all.csv"
    [ "$(grep -c '^ *\(am-medium\|am-long\|put-am\) .*PASS$' "$scratch/out")" -eq 3 ] || failed "not three transports in the table"
    [ "$(sed -n 's/^verify  *store_digest  *//p' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || failed "digests differ"
    json_holds "$scratch/all.json" '[run["status"] for run in r] == ["PASS"] * 3'
    [ "$(wc -l <"$scratch/all.csv")" -eq 4 ] || failed "not a header and three rows"
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good_run 4 $small --layer api --transport all --window 32 --servers 2
    job 3 "$program" --duration 0.2 --warmup 0.1 --keys 500 --ycsb D --verify full --json "$scratch/time.json"
    passes "kv by time"
    json_holds "$scratch/time.json" 'len(r["intervals"]) > 1 and sum(i["rate_mops"] for i in r["intervals"]) > 0'
}

# Together read is what is packed together, and is the same for those that pack nothing.
multi_gets()
{
    good_run 2 $small --layer api --transport all --store exact --mget 8 --window 16
    [ "$(value_of gets_per_pack | cut -d. -f1)" -gt 2 ] || failed "am-medium packed $(value_of gets_per_pack) GETs together"
    [ "$(sed -n 's/^verify  *results_digest  *//p' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || failed "answers differ"
    good_run 4 $small --layer api --transport all --order any --servers 3 --window 8
    good_run 3 --keys 400 --servers 2 --ycsb E --scan-emulate --mget 4 --value 1-64
    [ "$(value_of puts_new)" -gt 400 ] || failed "nothing was inserted"
    faulty K4 --inject flip-bit --mget 4
    faulty K7 --inject drop-answer --mget 4
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
    refused "both is for swarm and sharing" --layer both
    alone
}

# K20: who is killed takes the others along, in time.
killed()
{
    printf '#!/bin/sh\nif [ "$PMIX_RANK" = %s ]; then (sleep 1; kill -9 $$) & fi\nexec %s "$@"\n' 2 "$program" >"$scratch/killed"
    chmod 755 "$scratch/killed"
    job 3 "$scratch/killed" --duration 60 --keys 1000
    [ "$status" -ne 0 ] || failed "a killed client: status 0"
    within 10
}

lane transports transports
lane faults faults
lane stores stores
lane many multi_gets
lane rest refusals killed
finish
