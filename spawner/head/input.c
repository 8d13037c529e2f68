/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard input; see input.h. No lock. */
#include "config.h"

#include "input.h"
#include "spawner/util/launcher_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* How often a job in the background checks whether it is in the foreground; there is no event for
 * it. */
enum { TERMINAL_MS = 500 };

enum { INPUT_CHUNK = 64 << 10 };

void input_init(struct input *i)
{
    *i = (struct input){.terminal = isatty(STDIN_FILENO), .ask_again = CLOCK_NEVER};
}

/* Closes this process's copy, so that a writer notices when rank 0 has closed its own. */
void input_hand_over(struct input *i)
{
    if (i->terminal)
        return;
    i->ended = true;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    close(null);
}

static bool in_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

int input_waits_for(struct input *i, const struct wire_channel *guard)
{
    i->ask_again = CLOCK_NEVER;
    if (i->ended || guard->out.length)
        return -1;
    if (i->terminal && !in_foreground()) {
        i->ask_again = clock_ms() + TERMINAL_MS;
        return -1;
    }
    return STDIN_FILENO;
}

void input_forward(struct input *i, struct wire_channel *guard)
{
    uint8_t chunk[INPUT_CHUNK];
    ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0 && i->terminal && errno == EIO && !in_foreground())
        return;
    i->ended = n <= 0;
    wire_send(guard, WIRE_STDIN, 0, 0, chunk, n > 0 ? (size_t)n : 0);
}
