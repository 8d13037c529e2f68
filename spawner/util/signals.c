/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals to the launcher; see signals.h. Owns the pipe the handler writes to. No lock. */
#include "config.h"

#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static int pipe_ends[2] = {-1, -1};

static void signals_handler(int signal)
{
    int error = errno;
    unsigned char byte = (unsigned char)signal;
    /* A full pipe already holds enough signals, so this one may be dropped. */
    if (write(pipe_ends[1], &byte, 1) < 0)
        errno = error;
    errno = error;
}

int signals_catch(int *ignored)
{
    const int caught[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                          SIGUSR1, SIGUSR2, SIGTSTP, SIGNAL_EXPLAIN};
    static const int refused[] = {SIGPIPE, SIGTTIN, SIGTTOU};
    struct sigaction old, ours = {.sa_handler = signals_handler};

    if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++) {
        sigaction(caught[i], &ours, &old);
        if (old.sa_handler != SIG_IGN)
            continue;
        *ignored++ = caught[i];
        if (caught[i] == SIGHUP || caught[i] == SIGTSTP)
            signal(caught[i], SIG_IGN);
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        if (signal(refused[i], SIG_IGN) == SIG_IGN && refused[i] == SIGPIPE)
            *ignored++ = SIGPIPE;
    *ignored = 0;
    return pipe_ends[0];
}

void signals_forget(void)
{
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    pipe_ends[0] = pipe_ends[1] = -1;
}

int signals_next(int fd)
{
    unsigned char byte;
    return read(fd, &byte, 1) == 1 ? byte : 0;
}
