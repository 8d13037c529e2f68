/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connect files of a job: whether one says which ranks are connected at start-up, and the record of
 * those that were connected, for later runs. */
#ifndef TK_CONNECT_RECORD_H
#define TK_CONNECT_RECORD_H

#include <stdbool.h>

/* GASNET_CONNECTFILE_IN is given, and GASNET_CONNECT_STATIC=0 does not forbid connections at
 * start-up. */
bool tk_connect_is_listed(void);

/* All ranks are connected at start-up. With a connect file as input or output only the needed ones
 * are. */
bool tk_connect_is_static(void);

/* GASNET_CONNECTFILE_OUT is given, so connections are made only when they are needed. */
bool tk_connect_is_recorded(void);

/* At start-up, before any rank may end: removes the file of an unfinished run. Reports a file that
 * can't be written. */
void tk_connect_record_open(void);

/* At the end, while the network is still there. A failure is logged. */
void tk_connect_record_write(void);

#endif
