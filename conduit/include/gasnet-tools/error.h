/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a program that cannot go on, backtraces, and waiting for a debugger. The library owns
 * what the environment says about them. */
#ifndef GASNET_TOOLS_ERROR_H
#define GASNET_TOOLS_ERROR_H

GASNETT_BEGIN_EXTERNC

/* A line on standard error, then what GASNET_FREEZE_ON_ERROR and GASNET_BACKTRACE ask for, then
 * abort(). The first form says where it was called. */
#define gasnett_fatalerror(...) trunkline_fatalerror_at(__func__, __FILE__, __LINE__, __VA_ARGS__)
void trunkline_fatalerror_at(const char *function, const char *file, int line, const char *fmt, ...)
    __attribute__((__noreturn__, __format__(__printf__, 4, 5)));
void gasnett_fatalerror_nopos(const char *fmt, ...)
    __attribute__((__noreturn__, __format__(__printf__, 1, 2)));

/* "function() at file:line", in memory that the caller frees. */
#define gasnett_current_loc trunkline_current_loc(__func__, __FILE__, __LINE__)
char *trunkline_current_loc(const char *function, const char *file, int line);

/* Ends the process at once; nothing is flushed and nobody is told. */
void gasnett_killmyprocess(int exitcode) __attribute__((__noreturn__));

/* ---- Backtraces ---- */

/* A way of the client's own to print one. It writes to the descriptor and returns 0 when it could.
 * The client defines the variable; it comes before the library's own ways. */
typedef struct {
    const char *name; /* for GASNET_BACKTRACE_TYPE; NULL: USER */
    int (*fnp)(int fd);
    int threadsupport; /* shows all threads */
} gasnett_backtrace_type_t;
extern gasnett_backtrace_type_t gasnett_backtrace_user;

/* Reads GASNET_BACKTRACE* and GASNET_FREEZE_SIGNAL and installs the handlers of the signals that
 * they name. `exename` is argv[0], or NULL. gex_Client_Init() does it for a job. */
void gasnett_backtrace_init(const char *exename);

/* 0 when one was printed. The other form prints only when the environment asks for backtraces of
 * this process; else it does nothing and returns 1. */
int gasnett_print_backtrace(int fd);
extern int (*gasnett_print_backtrace_ifenabled)(int fd);

/* ---- Waiting for a debugger ---- */

/* Sets *flag and waits until somebody, who has to be told its name, clears it. */
void gasnett_freezeForDebuggerNow(volatile int *flag, const char *flagsymname);

/* The same on gasnet_frozen, if GASNET_FREEZE_ON_ERROR is set. */
void gasnett_freezeForDebuggerErr(void);
extern volatile int gasnet_frozen;

/* ---- Signals ---- */

typedef void (*gasnett_sighandlerfn_t)(int);

/* Installs a handler and returns the one before. */
gasnett_sighandlerfn_t gasnett_reghandler(int sigtocatch, gasnett_sighandlerfn_t fp);

/* "SIGSEGV"; NULL for what is no signal. */
const char *gasnett_signame_fromval(int sigval);

GASNETT_END_EXTERNC

#endif
