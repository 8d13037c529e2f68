/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the files of start/ only. */
#ifndef TK_START_PRIVATE_H
#define TK_START_PRIVATE_H

/* GASNET_* names that nobody knows; for rank 0. */
void tk_tell_unknown(void);

/* GASNET_VERBOSEENV: the settings in force, what has no effect, what was chosen; for rank 0. */
void tk_tell_start(void);

#endif
