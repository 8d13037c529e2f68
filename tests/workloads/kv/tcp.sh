#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# kv's load mode for others: memcached and Redis pass the same checks, with the same answers, by
# socket and loopback; their counters agree with the requests; they end with the run, also when
# ranks are killed; a server that is not installed leaves a gap in the table and a line.
# shellcheck disable=SC2086 # lists of words
workload=kv
. "${top_srcdir:?run through make check}/tests/workloads/common/judge.sh"
few="--ops 1500 --verify full"
small="--keys 400 --put 30"
faults="$small --timeout-ms 700"
for server in memcached redis-server setpriv; do
    command -v $server >/dev/null || skip "$server is not installed (contrib/install-packages.sh test)"
done

same_answers()
{
    good_run 2 $small --delete 5 --transport am-medium,memcached,redis --store exact
    [ "$(grep -c '^ *\(am-medium\|memcached\|redis\) .*PASS$' "$scratch/out")" -eq 3 ] || failed "not three in the table"
    [ "$(sed -n 's/^verify  *results_digest  *//p' "$scratch/out" | sort -u | wc -l)" -eq 1 ] || failed "answers differ"
    good_run 4 $small --servers 2 --window 32 --transport memcached,redis --socket unix
    grep -q '^env  *provider  *Unix sockets$' "$scratch/out" || failed "the report does not say what carries it"
    job 3 "$program" --transport memcached,redis --duration 1 --warmup 0.1 --keys 500 --json "$scratch/time.json"
    passes "by time"
    json_holds "$scratch/time.json" 'all(len(x["intervals"]) > 1 and 0.5 < sum(i["servers"][0] for i in x["intervals"]) / sum(sum(i["clients"]) for i in x["intervals"]) < 2 for x in r)'
    json_holds "$scratch/time.json" 'all(sum(i["clients"][1] for i in x["intervals"]) > 0 for x in r)'
    refused "key is 16 but for" --key 8 --transport redis
    # Space for 4 MB: memcached evicts entries; the run counts these misses and does not fail.
    good_run 2 --keys 12000 --value 1024 --log 1M --transport memcached
    [ "$(value_of evictions)" -gt 0 ] || failed "memcached forgot nothing in 4 MB"
}

wrong_ones()
{
    faulty K7 --inject lose-request --transport memcached
    faulty K4 --inject flip-bit --transport redis --socket unix
    refused "drop-answer needs one --transport of write-send" --transport redis --inject drop-answer --verify full
    refused "not for memcached and redis" --transport redis --save "$scratch/x"
    refused "'memcache' is not one of all|write-send|" --transport memcache
    SETTINGS="PATH=$scratch" job 2 "$program" --transport redis
    fails_with 77 "no server"
    says "^kv: redis is left out: it is not installed" 1
}

# A killed rank cannot stop its server: the kernel does. The launcher is frozen meanwhile, for it would end the server, too.
killed()
{
    cat >"$scratch/killed" <<END
#!/bin/sh
if [ "\$PMIX_RANK" = 0 ]; then
    launcher=\$PPID
    (until pgrep -P \$\$ -x memcached >$scratch/server; do sleep 0.05; done; sleep 0.5; kill -STOP \$launcher; kill -9 \$\$; sleep 0.5
     grep -q '^State:.[^ZX]' /proc/\$(cat $scratch/server)/status && touch $scratch/outlived; kill -CONT \$launcher) &
fi
exec $program "\$@"
END
    chmod 755 "$scratch/killed"
    job 2 "$scratch/killed" --duration 60 --keys 1000 --transport memcached --socket unix
    [ "$status" -ne 0 ] || failed "a killed rank: status 0"
    within 10
    if ! [ -s "$scratch/server" ]; then
        failed "no memcached was seen"
    elif [ -e "$scratch/outlived" ] || kill -0 "$(cat "$scratch/server")" 2>/dev/null; then
        failed "memcached outlived its rank"
    fi
}

lane same same_answers
lane wrong wrong_ones
lane killed killed
finish
