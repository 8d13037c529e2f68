#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank that exits in a handler ends the job at once also while others wait for values of an attach that never come, on one host and on
# virtual hosts: leaders wait for the launcher's server, the others for their leader. Without an exit the attach fails with one line.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
limit=30 # a hang is over after a few seconds, or never

for hosts in "" "-H =a:2,=b:2" "-H =a:1,=b:3"; do
    SETTINGS="EXIT_ATTACH_LEAVES=1 GASNET_EXITTIMEOUT=20" RUN=$hosts job 4 "$jobs/exit_attach-seq"
    fails_with 64 "${hosts:-one host}"
    within 8 # not by the limit of time
    says 'aborted the job' 0
    says 'has not published' 0
done

for hosts in "" "-H =a:1,=b:1"; do
    SETTINGS="GASNET_CONNECT_TIMEOUT=1" RUN=$hosts job 2 "$jobs/exit_attach-seq"
    fails_with 1 "${hosts:-one host}"
    within 6
    says "rank [01] has not published 'tk\.segments\.0' in 1 s (GASNET_CONNECT_TIMEOUT)"
done
finish
