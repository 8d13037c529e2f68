#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Several rails: one device with two ports, two with one, four with two; their entries in the log, and how a job runs whose
# ranks found different numbers. What happens when one dies is in failover.sh.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
export GASNET_SUPERNODE_MAXSIZE=1
hello=$jobs/hello-seq

two_ports="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2"
two_devices="SOFTHCA_HCAS=2 GASNET_NUM_QPS=2"
four_of_eight="SOFTHCA_HCAS=4 SOFTHCA_PORTS=2 GASNET_NUM_QPS=4"

SETTINGS=$two_ports good 4 "$jobs/putget-seq"
SETTINGS=$two_devices good 4 "$jobs/putget-par" 65536
SETTINGS=$four_of_eight good 5 "$jobs/putget-seq" 65536
SETTINGS=$two_ports good 3 "$jobs/am-par"
SETTINGS=$four_of_eight good 5 "$jobs/am-seq"
SETTINGS=$two_ports good 3 "$jobs/random_mix-par" --seconds 1 --seed 7
SETTINGS=$two_devices good 2 "$jobs/random_mix-seq" --seconds 1 --seed 8
! is_cheap 6 || SETTINGS=$four_of_eight good 6 "$jobs/random_mix-par" --seconds 1 --threads 2 --seed 9
# Some by shared memory, and all four ports.
SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 SOFTHCA_HCAS=4 SOFTHCA_PORTS=2 GASNET_NUM_QPS=11 \
    GASNET_IBV_PORTS=softhca0:1,2+softhca1:1,2+softhca2:1,2+softhca3:1,2" good 5 "$jobs/random_mix-par" --seconds 1 --threads 2 --seed 10
# Several queue pairs over one port, and minimal queues.
SETTINGS="GASNET_NUM_QPS=3" good 4 "$jobs/am-seq"
SETTINGS="$two_devices GASNET_AM_CREDITS_TOTAL=1 GASNET_NETWORKDEPTH_TOTAL=1 GASNET_PACKEDLONG_LIMIT=0" good 3 "$jobs/random_mix-par" --seconds 1 --seed 11

# Cut in pieces, by rails of different speeds.
stripes="GASNET_PUT_STRIPE_SZ=16 GASNET_GET_STRIPE_SZ=8K"
SETTINGS="$two_ports $stripes SOFTHCA_SPEED=softhca0:1=1xqdr,softhca0:2=4xqdr" good 2 "$jobs/putget-seq"
SETTINGS="$four_of_eight $stripes" good 3 "$jobs/putget-par" 1048576
SETTINGS="$two_devices $stripes GASNET_NETWORKDEPTH_PP=2" good 2 "$jobs/random_mix-par" --seconds 1 --seed 12

# A write that a device has acknowledged may not be in memory yet: the notification must not overtake it, whichever device is
# late.
for late in softhca0 softhca1; do
    SETTINGS="$two_devices $stripes SOFTHCA_FAULT=early:us=30000,dev=$late" good 3 "$jobs/put_visibility-seq"
    SETTINGS="$two_devices SOFTHCA_FAULT=early:us=30000,dev=$late" good 2 "$jobs/put_visibility-seq"
done
# A Long's payload takes longer over both ports than its head, and longer over one port than over the other.
SETTINGS="$two_ports SOFTHCA_RATE=20" good 2 "$jobs/put_visibility-seq"
SETTINGS="$two_ports SOFTHCA_RATE=softhca0:1=20,softhca0:2=60 GASNET_PUT_STRIPE_SZ=16 GASNET_IBV_FAILOVER=0" good 2 "$jobs/put_visibility-seq"
# Each rank has one device, not all the same.
SETTINGS="SOFTHCA_HCAS=2 SOFTHCA_FAULT=early:us=30000" good 3 "$jobs/put_visibility-seq"

# The output below is the same in a sanitizer's tree, so that skips it.
[ "$sanitizer" = no ] || finish

SETTINGS="$two_devices GASNET_VERBOSEENV=1" good 2 "$hello"
says 'network: rail 0 of 2: softhca0:1 (InfiniBand, .*; one of all 2 usable ports of this host)' 1
says 'network: rail 1 of 2: softhca1:1 (InfiniBand, .*; one of all 2 usable ports of this host)' 1
# Duplicates and missing ports are ignored; ports that are down are not used.
SETTINGS="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:2,7,2+mlx5_0+softhca0:1 SOFTHCA_DOWN=softhca0:1 GASNET_VERBOSEENV=1" good 2 "$hello"
says 'network: softhca0:2 (InfiniBand, .*; only usable device of GASNET_IBV_PORTS)' 1
SETTINGS="SOFTHCA_PORTS=2 GASNET_IBV_PORTS_VERBOSE=2" good 2 "$hello"
says 'port softhca0:1 is used: only usable device of this host' 2
says 'port softhca0:2 is not used: it is not named, and another of its device is used' 2
SETTINGS="SOFTHCA_HCAS=4" good 2 "$hello"
says 'softhca1' 0
# The first rank of a host prints for each port whether it is used and why not.
SETTINGS="SOFTHCA_HCAS=4 SOFTHCA_DOWN=softhca3:1 GASNET_IBV_PORTS=softhca0+softhca1+softhca3 GASNET_NUM_QPS=1 \
    GASNET_IBV_PORTS_VERBOSE=1" good 2 "$hello"
says '^trunkline.0@.*port softhca0:1 is used: one of the 2 nearest' 1
says '^trunkline.0@.*port softhca1:1 is not used: it would do, but is not needed: as near' 1
says '^trunkline.0@.*port softhca2:1 is not used: it is not in GASNET_IBV_PORTS$' 1
says '^trunkline.0@.*port softhca3:1 is not used: it is down$' 1
says 'port softhca' 4

# Ranks 2 and 3 are given one port, the others two.
cat >"$scratch/rank" <<'END'
#!/bin/sh
[ $((PMIX_RANK / 2)) -eq 1 ] && export GASNET_IBV_PORTS=softhca1
exec "$@"
END
chmod 755 "$scratch/rank"
SETTINGS="SOFTHCA_HCAS=2 GASNET_IBV_PORTS=softhca0+softhca1" job 5 "$scratch/rank" "$hello"
passes "ranks with different numbers of ports"
says '^trunkline.0@.*all ranks use 1 of the ports that they found, up to 2, because rank 2 (.*) has no more' 1

# Ranks without a usable port are in the table as well, for each reason and each rank.
cat >"$scratch/rank" <<'END'
#!/bin/sh
case $PMIX_RANK in
    "$NAMELESS") export GASNET_IBV_PORTS=mlx5_7 ;;
    "$UNPLUGGED") export SOFTHCA_FABRIC=$SOFTHCA_FABRIC-other SOFTHCA_DOWN=$DOWN ;;
    "$DEVICELESS") unset LD_PRELOAD ;;
esac
exec "$@"
END
SETTINGS="SOFTHCA_HCAS=2 DOWN=softhca0:1,softhca1:1 GASNET_NUM_QPS=2 NAMELESS=1 UNPLUGGED=2 DEVICELESS=" job 4 "$scratch/rank" "$hello"
fails_with 1 "ranks without a port"
says '2 of 4 ranks found no RDMA port to use' 1
says 'rank 0 *[^ ]* *2: softhca0:1+softhca1:1 (InfiniBand)$' 1
says 'rank 1 *[^ ]* *0: none: softhca0:1 is not in GASNET_IBV_PORTS, softhca1:1 is not in GASNET_IBV_PORTS$' 1
says 'rank 2 *[^ ]* *0: none: softhca0:1 is down, softhca1:1 is down$' 1
says 'rank 3 *[^ ]* *2: softhca0:1+softhca1:1 (InfiniBand)$' 1
within 10
SETTINGS="DOWN=softhca0:1 NAMELESS= UNPLUGGED=0 DEVICELESS=" job 3 "$scratch/rank" "$hello"
fails_with 1 "a first rank without a port"
says '1 of 3 ranks found no RDMA port to use' 1
says 'rank 0 *[^ ]* *0: none: softhca0:1 is down$' 1
says 'ranks 1-2 *[^ ]* *1: softhca0:1 (InfiniBand)$' 1
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    SETTINGS="NAMELESS= UNPLUGGED= DEVICELESS=2" job 3 "$scratch/rank" "$hello"
    fails_with 1 "a rank without a device"
    says 'rank 2 *[^ ]* *0: none: no RDMA device on this host$' 1
fi

# One rank has Ethernet where the others have InfiniBand.
cat >"$scratch/rank" <<'END'
#!/bin/sh
[ "$PMIX_RANK" -eq 1 ] && export SOFTHCA_FABRIC=$SOFTHCA_FABRIC-other SOFTHCA_LINK=roce
exec "$@"
END
SETTINGS="" job 3 "$scratch/rank" "$hello"
fails_with 1 "ranks with different kinds of ports"
says 'the ranks found different kinds of ports to use, and InfiniBand does not reach Ethernet; choose them with' 1
says 'rank 1 *[^ ]* *1: softhca0:1 (Ethernet)$' 1
says 'rank 2 *[^ ]* *1: softhca0:1 (InfiniBand)$' 1
finish
