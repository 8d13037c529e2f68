/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the tools' files and used by the rooms above them. The tools run in a job
 * (env_backend_job.c) or without one (env_backend_process.c); only the functions of the first part
 * differ. */
#ifndef TK_TOOLS_H
#define TK_TOOLS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A variable of the job, or of the process. NULL when unset. */
const char *tk_tools_lookup(const char *name);

/* The same for a client, in a job with its escapes decoded. */
const char *tk_tools_lookup_decoded(const char *name);

/* -1: in a job that has not started yet; 0 without a job. */
int64_t tk_tools_rank(void);

/* Whether lines should name the rank. */
bool tk_tools_in_job(void);

/* Whether the library is one for programs with several threads. */
extern const bool tk_tools_has_threads;

/* Called once the rank is known: displays the settings kept back until then, prepares backtraces,
 * and waits for a debugger if GASNET_FREEZE says so. */
void tk_tools_join_job(void);

/* After a fatal signal or message: freezes and prints a backtrace, as the environment says. Also
 * for signal handlers, as far as possible. */
void tk_tools_post_mortem(void);

/* A variable has an illegal value: prints one line and ends the process with status 2. It is a
 * mistake of the user, not of the program, so there is no backtrace and no core file. */
_Noreturn void tk_tools_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "*** NAME: text" or "*** NAME (proc N): text", one write to standard error. */
void tk_tools_log(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with a text between "NAME: " and the formatted one. */
void tk_tools_vlog(const char *name, const char *place, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* ---- Values ---- */

/* Truth of a variable of the tools, in all spellings that settings accept. Prints nothing, because
 * the first use may be in a crash; an invalid value counts as unset (a job has refused it at
 * start). */
bool tk_tools_is_on(const char *name, bool otherwise);

bool tk_tools_truth(const char *text, bool *value);

/* Whether `item` is in a comma-separated list. Case does not matter. */
bool tk_tools_list_has(const char *list, const char *item);

/* Displays what gasnett_env*_display() kept back until the rank was known. */
void tk_tools_display_kept(void);

/* ---- Backtraces ---- */

/* The list of types in order of preference, and whether there is a type of this name. */
const char *tk_tools_backtrace_types(void);
bool tk_tools_backtrace_has_type(const char *name, size_t length);

/* True: GASNET_BACKTRACE_TYPE names a type that does not exist; `why` gets the line. The client may
 * have added one, so that only its processes know. */
bool tk_tools_backtrace_is_wrong(char *why, size_t size);

/* Whether the settings request a backtrace of this rank. */
bool tk_tools_backtrace_is_wanted(void);

/* Runs gdb on this process, with its output to `fd`; 0: it printed a backtrace. */
int tk_tools_backtrace_gdb(int fd);

#endif
