/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stacks of this process for the launcher, where no debugger may look at it. The guard of this host
 * sends a signal to each thread, whose handler appends the addresses of that thread's calls to a
 * file that the guard has made; the guard finds the names. The handler allocates nothing, takes no
 * lock, and does nothing if there is no such file. */
#include "config.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "exit/exit_private.h"

enum {
    frames_most = 32,
    own_frames = 2, /* the handler, and what the kernel returns by */
    text_most = 64 + 32 * frames_most
};

/* In one write, so that what threads append at once does not mix. */
static void append_stack(int file, void *const *frames, int count)
{
    char text[text_most];
    int length = snprintf(text, sizeof(text), "Thread %ld\n", syscall(SYS_gettid));
    for (int i = own_frames; i < count; i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "#%d 0x%lx\n",
                           i - own_frames, (unsigned long)frames[i]);
    ssize_t ignored = write(file, text, (size_t)length);
    (void)ignored;
}

void tk_on_stack_signal(int number)
{
    void *frames[frames_most];
    int error = errno;
    (void)number;
    int file = tk_bootstrap_stack_file();
    if (file >= 0) {
        append_stack(file, frames, backtrace(frames, frames_most));
        close(file);
    }
    errno = error;
}

void tk_stack_offer(int number)
{
    void *frame;
    backtrace(&frame, 1); /* its first call may load a library, which no handler may */
    tk_bootstrap_show_stacks((uint32_t)number);
}
