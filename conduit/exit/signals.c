/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signals. Terminating ones become SIGQUIT, the notification that clients may handle; its default
 * ends the job with 128 plus the number of the signal that arrived, as shells report it. Fatal ones
 * are logged with rank and host, then take their default effect. A client's own handlers, installed
 * before or after start-up, are never replaced. */
#include "config.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/client_mode.h"
#include "base/code.h"
#include "base/report.h"
#include "exit/exit.h"
#include "exit/exit_private.h"
#include "exit/state.h"
#include "exit/thread.h"
#include "progress/threads.h"
#include "settings/settings.h"

struct caught {
    int number;
    const char *name;
    const char *text; /* fatal: the text that is logged */
};

static const struct caught terminating[] = {{SIGINT, "SIGINT", NULL},
                                            {SIGTERM, "SIGTERM", NULL},
                                            {SIGHUP, "SIGHUP", NULL},
                                            {SIGPIPE, "SIGPIPE", NULL}};

static const struct caught fatal[] = {
    {SIGSEGV, "SIGSEGV", " died of SIGSEGV (bad memory access)"},
    {SIGBUS, "SIGBUS", " died of SIGBUS (memory that is not there)"},
    {SIGFPE, "SIGFPE", " died of SIGFPE (arithmetic)"},
    {SIGILL, "SIGILL", " died of SIGILL (illegal instruction)"},
    {SIGABRT, "SIGABRT", " died of SIGABRT (abort)"}};

static const struct caught bus = {SIGBUS, "SIGBUS", NULL};
static const struct caught quitting = {SIGQUIT, "SIGQUIT", NULL};

/* A child that the client forked inherits the handlers, but not the thread that ends the job for
 * them, and its end is not the job's. */
static bool left_to_default(int number)
{
    if (getpid() == tk_exit_state.pid)
        return false;
    signal(number, SIG_DFL);
    raise(number);
    return true;
}

/* Also nested in on_terminating(): the signal that arrived first is the reason. */
static void on_quit(int number)
{
    if (left_to_default(number))
        return;
    int first = tk_exit_thread.signal ? tk_exit_thread.signal : number;
    tk_exit_by_signal(tk_code_of_signal(first), first);
}

static void on_terminating(int number)
{
    if (left_to_default(number))
        return;
    if (number == SIGTERM)
        tk_state_ask(&tk_exit_state);
    if (tk_state_notify(&tk_exit_state)) {
        tk_exit_thread.signal = number;
        raise(SIGQUIT);
        tk_exit_thread.signal = 0;
    }
    tk_exit_by_signal(tk_code_of_signal(number), number); /* the client's handler has returned */
}

/* A release library does not check arguments: most faults inside it are client errors that the
 * debug twin reports. Without a twin tk_code_faulted() is always false. */
static void recommend_debug_twin(int number, const void *context)
{
    if (number == SIGSEGV && tk_code_faulted(context))
        tk_log_error_signal_safe("the fault is inside the library; to have calls checked, build "
                                 "with gasnet-ibv-" TK_MODE_NAME
                                 "-debug (pkg-config) or ibv-" TK_MODE_NAME "-debug.mak");
}

static void on_fatal(int number, siginfo_t *info, void *context)
{
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        if (fatal[i].number == number)
            tk_report_death(fatal[i].text);
    recommend_debug_twin(number, context);
    tk_die_of(number);
}

/* GASNET_NO_CATCH_SIGNAL: names with or without SIG, or numbers, separated by commas; * means
 * all of them. */
static bool is_excluded(const struct caught *signal)
{
    const char *at = tk_settings.no_catch_signal;
    while (*at) {
        size_t length = strcspn(at, ", ");
        bool by_number = isdigit((unsigned char)*at) && atoi(at) == signal->number;
        bool full = length == strlen(signal->name) && !strncmp(at, signal->name, length);
        bool bare = length == strlen(signal->name) - 3 && !strncmp(at, signal->name + 3, length);
        if ((length == 1 && *at == '*') || by_number || full || bare)
            return true;
        at += length + (at[length] != 0);
    }
    return false;
}

/* Alternate stack of the thread that starts the job, to report that its own stack is exhausted. A
 * backtrace by gdb takes some 30 KiB. */
static void open_stack(void)
{
    static char memory[128 << 10];
    stack_t now, ours = {.ss_sp = memory, .ss_size = sizeof(memory)};
    if (sigaltstack(NULL, &now) == 0 && now.ss_flags & SS_DISABLE)
        sigaltstack(&ours, NULL);
}

static bool install(const struct caught *signal, const struct sigaction *ours)
{
    struct sigaction now;
    return !is_excluded(signal) && sigaction(signal->number, NULL, &now) == 0 &&
           now.sa_handler == SIG_DFL && sigaction(signal->number, ours, NULL) == 0;
}

/* Tools such as valgrind need the last real-time signal, programs take the first ones. Calls that
 * it interrupts are restarted where the kernel can. */
static void offer_stacks(void)
{
    const struct caught asking = {SIGRTMAX - 2, "SIGRTMAX-2", NULL};
    if (install(&asking, &(struct sigaction){.sa_handler = tk_on_stack_signal,
                                             .sa_flags = SA_RESTART | SA_ONSTACK}))
        tk_stack_offer(asking.number);
}

static void watch(const struct caught *signal, void (*handler)(int))
{
    install(signal, &(struct sigaction){.sa_handler = handler});
}

static void watch_fatal(const struct caught *signal)
{
    install(signal,
            &(struct sigaction){.sa_sigaction = on_fatal, .sa_flags = SA_ONSTACK | SA_SIGINFO});
}

void tk_signals_open(void)
{
    open_stack();
    for (size_t i = 0; i < sizeof(terminating) / sizeof(terminating[0]); i++)
        watch(&terminating[i], on_terminating);
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
        watch_fatal(&fatal[i]);
    watch(&quitting, on_quit);
    offer_stacks();
    if (!is_excluded(&bus))
        tk_bus_open();
}

/* Raises SIGQUIT only for a client's handler; the library's handler would repeat what the caller
 * does next. */
void tk_signal_quit(void)
{
    struct sigaction now;
    if (tk_state_is_notified(&tk_exit_state) || sigaction(SIGQUIT, NULL, &now) != 0 ||
        now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN || now.sa_handler == on_quit)
        return;
    tk_state_notify(&tk_exit_state);
    if (tk_is_progress_thread()) { /* it holds all signals */
        sigset_t quit;
        sigemptyset(&quit);
        sigaddset(&quit, SIGQUIT);
        pthread_sigmask(SIG_UNBLOCK, &quit, NULL);
    }
    tk_exit_thread.raises_quit = 1;
    raise(SIGQUIT);
    tk_exit_thread.raises_quit = 0;
}
