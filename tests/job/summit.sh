#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A synthetic node of Summit, as the manual describes it: two sockets of 22 cores with four threads, four HCAs of two ports (the
# second without a cable), 0 and 1 on the bus of socket 0, 2 and 3 on that of socket 1. CPUs with even numbers are in socket 0,
# those with odd numbers in socket 1, so that two CPUs are enough to be bound to both. The manual's recommended settings give
# each bound rank the HCA of its socket, and a rank that is bound to both the choice of two that span the buses.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1 GASNET_VERBOSEENV=1
export SOFTHCA_HCAS=4 SOFTHCA_PORTS=2 SOFTHCA_DOWN=softhca0:2,softhca1:2,softhca2:2,softhca3:2
hello=$jobs/hello-seq

taskset -c 0 true 2>/dev/null && taskset -c 1 true 2>/dev/null || skip "this process may not use CPUs 0 and 1"
"$top_builddir/contrib/softhca/softhca" topology --synthetic 'pack:2 numa:1 core:22 pu:4(indexes=88*2:1*88)' \
    --hca softhca0=pack:0 --hca softhca1=pack:0 --hca softhca2=pack:1 --hca softhca3=pack:1 -o "$scratch/summit.xml" || exit 1
export HWLOC_XMLFILE=$scratch/summit.xml

# Each rank is bound to its entry in the list: socket 0, socket 1, both.
cat >"$scratch/bound" <<'END'
#!/bin/bash
read -r -a cpus <<<"$CPUS"
exec taskset -c "${cpus[$PMIX_RANK]}" "$@"
END
chmod 755 "$scratch/bound"

# on "CPUS OF EACH RANK" PATTERN SETTING...: rank 0 prints which port it takes.
on()
{
    local cpus=$1 pattern=$2
    shift 2
    CPUS=$cpus SETTINGS="$*" good "$(wc -w <<<"$cpus")" "$scratch/bound" "$hello"
    says "network: $pattern" 1
}

single=(GASNET_IBV_PORTS=softhca0+softhca3 GASNET_IBV_PORTS_0=softhca0 GASNET_IBV_PORTS_1=softhca3)
on "0 1" 'softhca0:1 ' "${single[@]}"
on "1 0" 'softhca3:1 ' "${single[@]}"
# Unbound ranks use both. Bound and unbound ranks in one job have different numbers of ports: all use one, and a line says so,
# unless a setting says that one is enough.
on "0,1 0,1" 'rail 0 of 2: softhca0:1 ' "${single[@]}"
says 'network: rail 1 of 2: softhca3:1 ' 1
CPUS="0 0,1" SETTINGS="${single[*]}" job 2 "$scratch/bound" "$hello"
passes "one port and two"
says 'all ranks use 1 of the ports that they found, up to 2, because rank 0 (.*) has no more' 1
on "0,1 0 1" 'softhca[03]:1 ' "${single[@]}" GASNET_NUM_QPS=1
# The other recommendation: two each, on both buses.
pairs=(GASNET_IBV_PORTS=softhca0+softhca3 GASNET_IBV_PORTS_1=softhca1+softhca2)
on "0 1" 'rail 0 of 2: softhca0:1 ' "${pairs[@]}"
says 'network: rail 1 of 2: softhca3:1 ' 1
on "1 0" 'rail 0 of 2: softhca1:1 ' "${pairs[@]}"
says 'network: rail 1 of 2: softhca2:1 ' 1
# The nearest without any settings.
on "0 1" 'softhca[01]:1 '
on "1 0" 'softhca[23]:1 '
finish
