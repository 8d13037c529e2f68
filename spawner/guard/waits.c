/* SPDX-License-Identifier: BSD-3-Clause */
/* See waits.h. Owns nothing, takes no lock. */
#include "config.h"

#include "waits.h"

#include "session.h"
#include "common/clock.h"
#include "spawner/util/procinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The letter of a thread; 0: it is gone. */
static char state_of(pid_t pid, pid_t tid)
{
    char path[64], content[512], state;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, content, sizeof(content) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return 0;
    content[n] = 0;
    const char *end = strrchr(content, ')');
    return end && sscanf(end + 1, " %c", &state) == 1 && state != 'Z' && state != 'X' ? state : 0;
}

bool waits_copy(pid_t pid, uint64_t address, void *to, size_t size)
{
    struct iovec here = {to, size}, there = {(void *)(uintptr_t)address, size};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static void read_record(uint32_t rank, uint64_t address, struct waits_rank *w)
{
    pid_t pid = (pid_t)w->pid;
    if (!waits_copy(pid, address, &w->page, sizeof(w->page))) {
        snprintf(w->why, sizeof(w->why), "its memory can't be read: %s", strerror(errno));
        return;
    }
    const struct tk_wait_page *p = &w->page;
    w->has_record = p->magic == tk_wait_magic && p->version == tk_wait_version &&
                    p->size == sizeof(*p) && p->rank == rank;
    if (!w->has_record)
        snprintf(w->why, sizeof(w->why), "its record is that of another build of the library");
    for (unsigned i = 0; w->has_record && i < tk_wait_threads; i++) {
        const struct tk_wait_thread *t = &p->threads[i];
        w->thread_state[i] = t->tid ? state_of(pid, (pid_t)t->tid) : 0;
        if (!w->thread_state[i] ||
            !waits_copy(pid, t->in_handler, &w->depth[i], sizeof(w->depth[i])))
            w->depth[i] = 0;
    }
}

/* `address` 0: it has no record yet. */
void waits_read_at(uint32_t rank, pid_t pid, uint64_t address, struct waits_rank *w)
{
    *w = (struct waits_rank){.pid = (uint32_t)pid, .now = tk_now()};
    w->state = pid ? state_of(pid, pid) : 0;
    if (!w->state) {
        snprintf(w->why, sizeof(w->why), "its process is gone");
        return;
    }
    procinfo_describe(pid, NULL, w->doing, sizeof(w->doing));
    w->doing[strcspn(w->doing, ",")] = 0; /* the first thread is the client's */
    if (address)
        read_record(rank, address, w);
    else
        snprintf(w->why, sizeof(w->why), "it has not come to gex_Client_Init");
    w->now = tk_now();
}

void waits_read(const char *session, uint32_t rank, pid_t pid, struct waits_rank *w)
{
    struct tk_rank_slot slot = session_slot(session, rank);
    /* The process may be a child of the one that was started: a program in a script. */
    if (pid && slot.pid)
        pid = (pid_t)slot.pid;
    waits_read_at(rank, pid, slot.pid ? slot.wait_page : 0, w);
}

/* Libraries preloaded into a job's processes must not be loaded into gdb. */
static char **environment_of_gdb(char **room, size_t most)
{
    extern char **environ;
    size_t used = 0;
    for (char **at = environ; *at && used < most - 1; at++)
        if (strncmp(*at, "LD_PRELOAD=", 11) != 0)
            room[used++] = *at;
    room[used] = NULL;
    return room;
}

int waits_start_stack(pid_t pid, pid_t *gdb, char *why, size_t size)
{
    enum { variables_max = 2048 };
    char *room[variables_max], text[20];
    char *arguments[] = {"gdb",
                         "-nx",
                         "-batch",
                         "-iex",
                         "set debuginfod enabled off",
                         "-ex",
                         "set print frame-arguments none",
                         "-ex",
                         "thread apply all backtrace 24",
                         "-p",
                         text,
                         NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;

    int file = memfd_create("stack", MFD_CLOEXEC);
    snprintf(text, sizeof(text), "%d", (int)pid);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, file, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, file, STDERR_FILENO);
    int error = file < 0 ? errno
                         : posix_spawnp(gdb, "gdb", &files, &attributes, arguments,
                                        environment_of_gdb(room, variables_max));
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (!error)
        return file;
    snprintf(why, size, "gdb can't be started: %s", strerror(error));
    if (file >= 0)
        close(file);
    return -1;
}
