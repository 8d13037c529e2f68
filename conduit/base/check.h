/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of debug builds only (--enable-debug, and the debug twins): a promise that other code has
 * to keep, and the message that ends the job when it is broken, with the client's source line. */
#ifndef TK_BASE_CHECK_H
#define TK_BASE_CHECK_H

/* A call of the interface, as the headers of a debug library note it before they make it
 * (TRUNKLINE_AT). No file: the call was made without a macro, such as through a pointer to the
 * function. */
struct tk_call {
    const char *name, *file;
    unsigned line;
};

/* The calling thread's last call. In a handler: the handler's own last call, or else the call that
 * runs it. */
struct tk_call tk_call_last(void);

/* The handler that ran within that call has returned. */
void tk_call_resume(const struct tk_call *call);

/* As tk_panic() and tk_verbose_error(), with the place of that call. */
_Noreturn void tk_check_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
void tk_check_refused(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef TK_DEBUG
#    define TK_IS_DEBUG      1
#    define TK_IF_DEBUG(...) __VA_ARGS__
#    define TK_CHECK(condition, ...)                                                               \
        do {                                                                                       \
            if (!(condition))                                                                      \
                tk_check_failed(__VA_ARGS__);                                                      \
        } while (0)
/* For checks that release builds have too, there without the place: ends the job, or precedes an
 * error status. */
#    define tk_misused(...) tk_check_failed(__VA_ARGS__)
#    define tk_refused(...) tk_check_refused(__VA_ARGS__)
#else
#    define tk_misused(...) tk_panic(__VA_ARGS__)
#    define tk_refused(...) tk_verbose_error(__VA_ARGS__)
#    define TK_IS_DEBUG     0
#    define TK_IF_DEBUG(...)
#    define TK_CHECK(condition, ...)                                                               \
        do {                                                                                       \
        } while (0)
#endif

#endif
