/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stacks of this process for the launcher, for hosts where a debugger may not attach. The guard of
 * this host sends a signal to each thread; the signal handler appends the return addresses of that
 * thread to a file that the guard has created, and the guard finds the function names. The handler
 * does not allocate or take a lock, and does nothing if the file does not exist. It calls the
 * unwinder itself: libc's backtrace() loads a library at its first call, so each rank would have to
 * call backtrace() once at start-up. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "bootstrap/bootstrap.h"
#include "exit/exit_private.h"

enum {
    frames_most = 32,
    own_frames = 2, /* the handler, and the kernel's return trampoline */
    text_most = 64 + 32 * frames_most
};

struct walk {
    uintptr_t frames[frames_most];
    int count;
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *frame, void *object)
{
    struct walk *walk = object;
    uintptr_t at = _Unwind_GetIP(frame);
    if (at == 0 || walk->count == frames_most)
        return _URC_END_OF_STACK;
    walk->frames[walk->count++] = at;
    return _URC_NO_REASON;
}

/* In one write(), so that the lines of threads that append at the same time do not mix. */
static void append_stack(int file, const struct walk *walk)
{
    char text[text_most];
    int length = snprintf(text, sizeof(text), "Thread %ld\n", syscall(SYS_gettid));
    for (int i = own_frames; i < walk->count; i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "#%d 0x%lx\n",
                           i - own_frames, (unsigned long)walk->frames[i]);
    ssize_t ignored = write(file, text, (size_t)length);
    (void)ignored;
}

void tk_on_stack_signal(int number)
{
    struct walk walk = {.count = 0};
    int error = errno;
    (void)number;
    int file = tk_bootstrap_stack_file();
    if (file >= 0) {
        _Unwind_Backtrace(add_frame, &walk);
        append_stack(file, &walk);
        close(file);
    }
    errno = error;
}

void tk_stack_offer(int number)
{
    tk_bootstrap_show_stacks((uint32_t)number);
}
