#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# GASNET_IBV_PORTS_TYPE=auto: all ranks of a host agree on a distribution of its ports, depending on where each is bound. The
# machine is synthetic: two packages of one CPU; each has two of the four devices, or the first has all ranks.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1 SOFTHCA_HCAS=4 GASNET_IBV_PORTS_VERBOSE=2
hello=$jobs/hello-seq

taskset -c 0 true 2>/dev/null && taskset -c 1 true 2>/dev/null || skip "this process may not use CPUs 0 and 1"
"$top_builddir/contrib/softhca/softhca" topology --synthetic "pack:2 core:1 pu:1" --hca softhca0=pack:0 --hca softhca1=pack:0 \
    --hca softhca2=pack:1 --hca softhca3=pack:1 -o "$scratch/machine.xml" || exit 1
export HWLOC_XMLFILE=$scratch/machine.xml

# Each rank is bound to its entry in the list.
cat >"$scratch/bound" <<'END_OF_BOUND'
#!/bin/bash
read -r -a cpus <<<"$CPUS"
[ "$PMIX_RANK" != "$FILTERED" ] || export GASNET_IBV_PORTS=softhca3+softhca2
[[ ,$APART, != *,$PMIX_RANK,* ]] || export GASNET_IBV_PORTS_TYPE=Socket
exec taskset -c "${cpus[$PMIX_RANK]}" "$@"
END_OF_BOUND
chmod 755 "$scratch/bound"

# on "CPUS OF EACH RANK" "PORTS OF EACH RANK" SETTING...
on()
{
    local cpus=$1 ports=$2 rank=0 port
    shift 2
    CPUS=$cpus SETTINGS="$*" good "$(wc -w <<<"$cpus")" "$scratch/bound" "$hello"
    for port in $ports; do
        for device in ${port//,/ }; do
            says "^trunkline.$rank@.*port softhca$device:1 is used" 1
        done
        rank=$((rank + 1))
    done
    says "is used: " "$(wc -w <<<"${ports//,/ }")"
}

# Ranks are bound to packages alternately: a distribution by their numbers would leave two devices idle.
on "0 1 0 1" "0 2 1 3" GASNET_IBV_PORTS_TYPE=Auto
says 'is used: nearest of 4 usable ports of this host, shared by GASNET_IBV_PORTS_TYPE=auto' 4
on "0,1 0 0 1" "2 1 0 2" GASNET_IBV_PORTS_TYPE=auto GASNET_IBV_PORTS=softhca0+softhca1+softhca2 GASNET_IBV_PORTS_0=softhca0
on "0 1 0 1" "0,1 2,3 0,1 2,3" GASNET_IBV_PORTS_TYPE=auto:2
on "0 1" "0,1,2,3 0,1,2,3" GASNET_IBV_PORTS_TYPE=auto:all
# One has a filter of its own, and only that port is near to it.
on "0 0 0 0" "0 1 0 2" GASNET_IBV_PORTS_TYPE=auto GASNET_IBV_PORTS=softhca0+softhca1 FILTERED=3
# All on one package.
on "1 1 1 1" "2 3 1 0" GASNET_IBV_PORTS_TYPE=auto
says 'is used: nearest to no rank of this host, and nearer ones have as many ranks' 2

# Some ranks have other settings: no rank waits for them, and the others share the ports.
mixed()
{
    on "$@" GASNET_IBV_PORTS_TYPE=auto
    within 10
    says 'did not say within' 0
}
mixed "0 0 0 0" "0 1 2 1" APART=3
mixed "0 0 0 0 0" "0 0 0 1 2" APART=0,2

[ "$sanitizer" = no ] || finish
# Traffic over all of them.
CPUS="0 1 0 1" SETTINGS="GASNET_IBV_PORTS_TYPE=auto" good 4 "$scratch/bound" "$jobs/putget-seq"
finish
