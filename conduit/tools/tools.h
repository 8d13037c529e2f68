/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the tools' files, and for the rooms above them. The tools live in a job
 * (env_backend_job.c) or alone (env_backend_process.c); all that they know of that is in the first
 * part here. */
#ifndef TK_TOOLS_H
#define TK_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A variable of the job, or of the process. NULL when unset. */
const char *tk_tools_lookup(const char *name);

/* -1: in a job, but not started yet; alone 0. */
int64_t tk_tools_rank(void);

/* Is there a rank to name in what is printed? */
bool tk_tools_in_job(void);

/* From here on the rank is known: shows what could not be shown before, starts to wait for a
 * debugger if GASNET_FREEZE says so, and prepares backtraces. */
void tk_tools_join_job(void);

/* After a fatal signal or message: freezes and prints a backtrace, as the environment says. For
 * signal handlers too, as far as that can be. */
void tk_tools_post_mortem(void);

/* "*** NAME: text" or "*** NAME (proc N): text", one write to standard error. */
void tk_tools_log(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Values ---- */

/* Truth of a variable of the tools' own, in all spellings that settings have: quiet, because the
 * first use may be in a crash; what is no truth counts as unset (a job has refused it at start). */
bool tk_tools_is_on(const char *name, bool otherwise);

/* The whole of `text` as a number; false when it is none or too large. See gasnett_parse_int(). */
bool tk_tools_whole_number(const char *text, uint64_t unit, int64_t *value);
bool tk_tools_truth(const char *text, bool *value);
bool tk_tools_real(const char *text, double *value);

/* Is `item` in a list with commas? Letters of both cases are one. */
bool tk_tools_list_has(const char *list, const char *item);

/* Is `number` in a list as "0,3-5"? */
bool tk_tools_ranges_have(const char *ranges, int64_t number);

/* "SIGSEGV", "SEGV" or a number; 0 when it is none. */
int tk_tools_signal_number(const char *text);

/* Shows what gasnett_env*_display() had to keep back while the rank was not known. */
void tk_tools_display_kept(void);

/* ---- Backtraces ---- */

/* gdb on this process, with its output to `fd`; 0 when it printed something. */
int tk_tools_backtrace_gdb(int fd);

#endif
