/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of start/ only. */
#ifndef TK_START_PRIVATE_H
#define TK_START_PRIVATE_H

/* Warns of GASNET_* names that are no settings; for rank 0. */
void tk_start_report_unknown(void);

/* GASNET_VERBOSEENV: logs the settings in force, those without effect, and the choices made; for
 * rank 0. */
void tk_start_report(void);

#endif
