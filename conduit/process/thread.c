/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The library's own threads. No state. */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/report.h"
#include "process/alone.h"
#include "process/thread.h"

static void size_stack(pthread_attr_t *attr, uint64_t least, uint64_t pad)
{
    size_t size, page = (size_t)sysconf(_SC_PAGESIZE);
    pthread_attr_getstacksize(attr, &size); /* `ulimit -s`, in a fresh attribute */
    if (size < least)
        size = least;
    pthread_attr_setstacksize(attr, tk_align_up(size + pad, page));
}

enum tk_status tk_thread_start_with(void *(*fn)(void *), void *argument, uint64_t stack_min,
                                    uint64_t stack_pad)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    size_stack(&attr, stack_min, stack_pad);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_alone = tk_is_alone();
    int error = pthread_create(&thread, &attr, fn, argument);
    if (is_alone)
        tk_alone_accept();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!error)
        return TK_OK;
    tk_log_error("cannot start a thread: %s; look at ulimit -u and ulimit -v, or lower "
                 "GASNET_THREAD_STACK_MIN and GASNET_THREAD_STACK_PAD",
                 strerror(error));
    return TK_FAIL;
}

enum tk_status tk_thread_start(void *(*fn)(void *), uint64_t stack_min, uint64_t stack_pad)
{
    return tk_thread_start_with(fn, NULL, stack_min, stack_pad);
}
