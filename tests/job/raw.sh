#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Raw rails (trunkline_rails.h): over the ports of the job's own network and in jobs that need no device; and the messages
# without a port or with invalid settings.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
near="GASNET_SUPERNODE_MAXSIZE=0 GASNET_SOFTHCA=always"

SETTINGS="SOFTHCA_HCAS=2 GASNET_NUM_QPS=2" good 3 "$jobs/raw-par" 2
SETTINGS="SOFTHCA_PORTS=2 GASNET_IBV_PORTS=softhca0:1,2" good 2 "$jobs/raw-seq" 2
SETTINGS="$near SOFTHCA_HCAS=2 GASNET_NUM_QPS=2" good 3 "$jobs/raw-seq" 2
SETTINGS="$near SOFTHCA_HCAS=2 GASNET_IBV_PORTS=softhca1" good 2 "$jobs/raw-par" 1
SETTINGS="$near SOFTHCA_PORTS=2 SOFTHCA_DOWN=softhca0:1" good 1 "$jobs/raw-par" 1

SETTINGS="$near GASNET_IBV_PORTS=softhca0:x" job 2 "$jobs/raw-seq"
fails_with 2 "a setting that makes no sense"
says "^gasnetrun_ibv: GASNET_IBV_PORTS='softhca0:x': 'softhca0:x' is not device or device:port,port" 1
SETTINGS="$near GASNET_IBV_PORTS=mlx7" job 2 "$jobs/raw-seq"
fails_with 77 "no port of that name"
says "^raw: no usable RDMA port: softhca0:1 is not in GASNET_IBV_PORTS" 1
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 GASNET_SOFTHCA=never" job 2 "$jobs/raw-seq"
    fails_with 77 "no device"
    says "^raw: no RDMA device on this host" 1
fi
finish
