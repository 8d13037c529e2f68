/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fatal errors, backtraces, and waiting for a debugger. The library owns the settings for them from
 * the environment. */
#ifndef GASNET_TOOLS_ERROR_H
#define GASNET_TOOLS_ERROR_H

GASNETT_BEGIN_EXTERNC

/* A line on standard error, then the actions of GASNET_FREEZE_ON_ERROR and GASNET_BACKTRACE, then
 * abort(). The first form adds the place of the call. */
#define gasnett_fatalerror(...) trunkline_fatalerror_at(__func__, __FILE__, __LINE__, __VA_ARGS__)
void trunkline_fatalerror_at(const char *function, const char *file, int line, const char *fmt, ...)
    __attribute__((__noreturn__, __format__(__printf__, 4, 5)));
void gasnett_fatalerror_nopos(const char *fmt, ...)
    __attribute__((__noreturn__, __format__(__printf__, 1, 2)));

/* "function() at file:line", in memory that the caller frees. */
#define gasnett_current_loc trunkline_current_loc(__func__, __FILE__, __LINE__)
char *trunkline_current_loc(const char *function, const char *file, int line);

/* Ends the process at once; flushes nothing and notifies no other process. */
void gasnett_killmyprocess(int exitcode) __attribute__((__noreturn__));

/* ---- Backtraces ---- */

/* A backtrace function of the client. It writes to the descriptor and returns 0 on success. The
 * client defines the variable; it is tried before the library's own methods. */
typedef struct {
    const char *name; /* for GASNET_BACKTRACE_TYPE; NULL: USER */
    int (*fnp)(int fd);
    int threadsupport; /* shows all threads */
} gasnett_backtrace_type_t;
extern gasnett_backtrace_type_t gasnett_backtrace_user;

/* Reads GASNET_BACKTRACE* and GASNET_FREEZE_SIGNAL and installs handlers for the signals that they
 * name. `exename` is argv[0], or NULL. gex_Client_Init() calls it for a job. */
void gasnett_backtrace_init(const char *exename);

/* 0 if a backtrace was printed. The other form prints only if the environment requests backtraces
 * of this process; otherwise it does nothing and returns 1. */
int gasnett_print_backtrace(int fd);
extern int (*gasnett_print_backtrace_ifenabled)(int fd);

/* ---- Waiting for a debugger ---- */

/* Sets *flag and waits until a debugger, which has to know its name, clears it. */
void gasnett_freezeForDebuggerNow(volatile int *flag, const char *flagsymname);

/* The same on gasnet_frozen, if GASNET_FREEZE_ON_ERROR is set. */
void gasnett_freezeForDebuggerErr(void);
extern volatile int gasnet_frozen;

/* ---- Signals ---- */

typedef void (*gasnett_sighandlerfn_t)(int);

/* Installs a handler and returns the previous one. */
gasnett_sighandlerfn_t gasnett_reghandler(int sigtocatch, gasnett_sighandlerfn_t fp);

/* "SIGSEGV"; NULL for an invalid signal number. */
const char *gasnett_signame_fromval(int sigval);

GASNETT_END_EXTERNC

#endif
