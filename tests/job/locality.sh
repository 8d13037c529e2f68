#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Which port a rank takes on a machine with several: the nearest; equally near ones are distributed; the filter of its socket. The
# machine is synthetic: two packages of one CPU, each with a device.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1 GASNET_VERBOSEENV=1 SOFTHCA_HCAS=2
hello=$jobs/hello-seq

taskset -c 0 true 2>/dev/null && taskset -c 1 true 2>/dev/null || skip "this process may not use CPUs 0 and 1"
"$top_builddir/contrib/softhca/softhca" topology --synthetic "pack:2 core:1 pu:1" --hca softhca0=pack:0 --hca softhca1=pack:1 \
    -o "$scratch/machine.xml" || exit 1

# on CPUS SETTINGS: rank 0 prints which port it takes, bound to CPUS of the synthetic machine.
on()
{
    SETTINGS="HWLOC_XMLFILE=$scratch/machine.xml $2" good 2 taskset -c "$1" "$hello"
}

on 0 ""
says 'network: softhca0:1 .*; nearest of 2 usable devices of this host)' 1
on 1 ""
says 'network: softhca1:1 .*; nearest of 2 usable devices of this host)' 1
on 0,1 ""
says 'network: softhca0:1 .*; one of the 2 nearest of 2 usable devices of this host, dealt out among ranks)' 1

# A port that is down is none, however near.
on 1 "SOFTHCA_DOWN=softhca1:1"
says 'network: softhca0:1 .*; only usable device of this host)' 1

on 1 "GASNET_IBV_PORTS_1=softhca0 GASNET_IBV_PORTS=softhca1"
says 'network: softhca0:1 .*; only usable device of GASNET_IBV_PORTS_1)' 1
on 0 "GASNET_IBV_PORTS_1=softhca0 GASNET_IBV_PORTS=softhca1"
says 'network: softhca1:1 .*; only usable device of GASNET_IBV_PORTS)' 1
on 0,1 "GASNET_IBV_PORTS_0=softhca0 GASNET_IBV_PORTS_1=softhca0 GASNET_IBV_PORTS=softhca1"
says 'network: softhca1:1 .*; only usable device of GASNET_IBV_PORTS)' 1
on 1 "GASNET_IBV_PORTS_1=softhca0 GASNET_IBV_PORTS_TYPE=Machine GASNET_IBV_PORTS_0=softhca1"
says 'network: softhca1:1 .*; only usable device of GASNET_IBV_PORTS_0)' 1
# A rank that is bound to both uses a name with two numbers; kinds that count ranks of the host have one number, and
# None has none.
on 0,1 "GASNET_IBV_PORTS_0_1=softhca0 GASNET_IBV_PORTS=softhca1"
says 'is not a setting' 0
says 'network: softhca0:1 .*; only usable device of GASNET_IBV_PORTS_0_1)' 1
SETTINGS="GASNET_IBV_PORTS_VERBOSE=2 GASNET_IBV_PORTS_0=softhca1 GASNET_IBV_PORTS_1=softhca0" good 4 env "GASNET_IBV_PORTS_TYPE=HRank % 2" "$hello"
for rank in 0 1 2 3; do
    says "^trunkline.$rank@.*port softhca$((1 - rank % 2)):1 is used: only usable device of GASNET_IBV_PORTS_$((rank % 2))" 1
done
on 1 "GASNET_IBV_PORTS_1=softhca0 GASNET_IBV_PORTS=softhca1 GASNET_IBV_PORTS_TYPE=none"
says 'network: softhca1:1 .*; only usable device of GASNET_IBV_PORTS)' 1

SETTINGS="GASNET_IBV_PORTS_0=softhca0 GASNET_IBV_PORTS_TYPE=Shelf" job 2 "$hello"
fails_with 2 "a type that is none"
says "GASNET_IBV_PORTS_TYPE='Shelf' is no type"
finish
