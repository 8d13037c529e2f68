/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SIGBUS. Pages of segments are allocated when first touched; if the kernel has no page left, it
 * sends SIGBUS, and this handler logs the limit that was hit. It passes any other SIGBUS to the
 * handler that was installed before, so it runs before a client's own handler. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/ranges.h"
#include "exit/exit_private.h"
#include "memory/memory.h"

static struct sigaction previous;

enum { plenty = 16 << 20 /* bytes; with more available, lack of memory was not the cause */ };

/* snprintf() of numbers and strings is async-signal-safe in practice in all C libraries that this
 * one is built with; and the fault is a load or store of this library, not one in malloc(). */
static void bus_describe_owner(const struct tk_range *range, char *text, size_t size)
{
    if (range->rank < 0)
        snprintf(text, size, "its %s", range->what);
    else
        snprintf(text, size, "the %s of rank %lld", range->what, (long long)range->rank);
}

static bool is_cut(const struct tk_range *range, size_t offset)
{
    struct stat file;
    return range->fd >= 0 && fstat(range->fd, &file) == 0 && (uint64_t)file.st_size <= offset;
}

static void bus_describe_cause(const struct tk_range *range, size_t offset, int code, char *text,
                               size_t size)
{
    char what[256];
    uint64_t left = tk_memory_available(what, sizeof(what));
    if (code == BUS_MCEERR_AR || code == BUS_MCEERR_AO)
        snprintf(text, size, "the host's memory is broken there (see dmesg)");
    else if (is_cut(range, offset))
        snprintf(text, size, "its file was truncated");
    else if (left < plenty)
        snprintf(text, size,
                 "memory is full: %s leaves %llu bytes; ask for less, or for more memory", what,
                 (unsigned long long)left);
    else
        snprintf(text, size,
                 "the kernel has no page for it, though %s leaves %llu bytes: its file may have "
                 "been truncated, or huge "
                 "pages or a memory policy (numactl) may be what is used up",
                 what, (unsigned long long)left);
}

static void bus_report(const struct tk_range *range, const siginfo_t *info)
{
    char text[640], owner[64], cause[512];
    size_t offset = (uintptr_t)info->si_addr - (uintptr_t)range->base;
    bus_describe_owner(range, owner, sizeof(owner));
    bus_describe_cause(range, offset, info->si_code, cause, sizeof(cause));
    snprintf(text, sizeof(text), " died of SIGBUS at byte %zu of %s (%zu bytes): %s", offset, owner,
             range->size, cause);
    tk_report_death(text);
}

/* If the signal was ignored, the same byte would fault for ever, so the default is restored. It is
 * also restored for a handler that asked to be called once, as the kernel does. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    if (previous.sa_flags & (int)SA_RESETHAND)
        signal(number, SIG_DFL);
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
    } else {
        signal(number, SIG_DFL);
        raise(number);
    }
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    struct tk_range range;
    bool is_of_kernel = info->si_code > 0; /* else it was sent by a process */
    if (!is_of_kernel || !tk_range_of(info->si_addr, &range)) {
        pass_on(number, info, context);
        return;
    }
    bus_report(&range, info);
    tk_die_of(number);
}

/* Keeps the stack and the mask that the previous handler asked for. */
void tk_bus_open(void)
{
    struct sigaction ours;
    if (sigaction(SIGBUS, NULL, &previous) != 0 || previous.sa_handler == SIG_IGN)
        return;
    ours = previous;
    ours.sa_sigaction = on_bus;
    ours.sa_flags = (previous.sa_flags & SA_NODEFER) | SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGBUS, &ours, NULL);
}
