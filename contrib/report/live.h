/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnet_report --serve: the model of a running job, made of records of gasnetrun_ibv --top --json
 * on standard input. */
#ifndef TRUNKLINE_REPORT_LIVE_H
#define TRUNKLINE_REPORT_LIVE_H

/* `port`: a number, 0 for any; NULL: any. Returns the exit status. */
int report_live(const char *port);

#endif
