/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The counters of this process, appended as one line to the file that SOFTHCA_STATS names (or to
 * the descriptor, when it is a number) when the process ends by exit or _exit. Owns nothing. */
#include "config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs/verbs.h"
#include "wire/udp/udp.h"

static int open_sink(const char *where, bool *ours)
{
    char *end;
    long fd = strtol(where, &end, 10);

    *ours = *end != 0;
    return *ours ? open(where, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : (int)fd;
}

static int udp_line(char *out, size_t room)
{
    int n = snprintf(out, room, " sent %llu received %llu lost %llu repeated %llu deadlines %llu",
                     (unsigned long long)shca_udp.sent, (unsigned long long)shca_udp.received,
                     (unsigned long long)shca_udp.lost, (unsigned long long)shca_udp.repeated,
                     (unsigned long long)shca_udp.deadlines);

    return n + shca_udp_report(out + n, room - (size_t)n);
}

static void report(void)
{
    static _Atomic int done;
    const char *where = shca_config.stats;
    struct shca_stats *s = &shca_stats;
    bool ours;
    char line[1024];
    int n, fd;

    /* Only members of a fabric have counters; a child of vfork shares our memory. */
    if (!where || !shca.seg || shca.pid != (uint32_t)getpid() || atomic_exchange(&done, 1))
        return;
    n = snprintf(line, sizeof line,
                 "softhca: pid %d rnr %llu retries %llu sends %llu writes %llu reads %llu "
                 "atomics %llu",
                 (int)getpid(), (unsigned long long)s->rnr, (unsigned long long)s->retries,
                 (unsigned long long)s->sends, (unsigned long long)s->writes,
                 (unsigned long long)s->reads, (unsigned long long)s->atomics);
    if (shca_config.odp)
        n += snprintf(line + n, sizeof line - (size_t)n, " paged %llu",
                      (unsigned long long)s->paged);
    if (shca_config.udp)
        n += udp_line(line + n, sizeof line - (size_t)n);
    n += snprintf(line + n, sizeof line - (size_t)n, "\n");
    fd = open_sink(where, &ours);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        shca_log("cannot write SOFTHCA_STATS=%s: %s", where, strerror(errno));
    if (ours && fd >= 0 && close(fd) != 0)
        shca_log("cannot write SOFTHCA_STATS=%s: %s", where, strerror(errno));
}

__attribute__((destructor)) static void stats_finish(void)
{
    report();
}

/* Programs that leave by _exit run no destructors. */
SHCA_PUBLIC void _exit(int code)
{
    void (*real)(int) = (void (*)(int))shca_real("_exit");

    report();
    shca_early_end();
    shca_udp_early_end();
    shca_udp_held_end();
    if (real)
        real(code);
    syscall(SYS_exit_group, code);
    __builtin_unreachable();
}
