#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Inlined puts and gets to neighbours; and that the same program works without neighbours.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
SETTINGS=GASNET_SUPERNODE_MAXSIZE=0
good 2 "$jobs/shm_rma-seq" near
good 4 "$jobs/shm_rma-par" near
SETTINGS=GASNET_SUPERNODE_MAXSIZE=2 good 3 "$jobs/shm_rma-seq"
SETTINGS=GASNET_SUPERNODE_MAXSIZE=1 good 2 "$jobs/shm_rma-par" far
SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 good 1 "$jobs/stores-seq"
finish
