/* SPDX-License-Identifier: BSD-3-Clause
 *
 * System calls of weak_memory.h: futex(2) and membarrier(2), the latter as the kernel's promise, as
 * its refusal, or as a promise not kept; poll(2) for a socket and a device. */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>

#include "weak_private.h"

enum weak_membarrier weak_membarrier;

static struct view fenced; /* stores that full fences have made visible to each other */

/* State of the kernel and of a device. */
static struct {
    unsigned datagrams, completions;
    bool is_armed, has_event;
} outside;

static const char pollers; /* its address is where they sleep */

void forget_fences(void)
{
    memset(&outside, 0, sizeof(outside));
    fenced = (struct view){{0}, {0}};
}

uint64_t mix_fences(uint64_t hash)
{
    hash = mix(hash, outside.datagrams + 16 * outside.completions + 256 * outside.is_armed +
                         512 * outside.has_event);
    return mix_view(hash, &fenced);
}

static void fence(int thread)
{
    struct view *view = &fibers[thread].view;
    for (unsigned w = 0; w < words_used; w++) {
        if (view->floor[w] < fenced.floor[w])
            view->floor[w] = fenced.floor[w];
        fenced.floor[w] = view->floor[w];
        fibers[thread].history = mix(fibers[thread].history, view->floor[w]);
    }
}

/* The other threads fence one after the other, while all continue. */
static long membarrier(int command)
{
    if (weak_membarrier == weak_membarrier_refused) {
        errno = EPERM;
        return -1;
    }
    if (running == nobody || weak_membarrier == weak_membarrier_lies ||
        command != MEMBARRIER_CMD_GLOBAL_EXPEDITED)
        return 0;
    fence(running);
    for (int i = 0; i < threads; i++) {
        let_anybody_run();
        fence(i);
    }
    fence(running);
    return 0;
}

/* Without a time-out: a sleep that nothing ends is the error to find. */
static long futex_wait(volatile uint32_t *at, uint32_t value)
{
    let_anybody_run();
    struct fiber *me = &fibers[running];
    if ((uint32_t)read_newest(at, sizeof(*at)) != value) {
        errno = EAGAIN;
        return -1;
    }
    me->state = sleeping;
    me->sleeps_at = at;
    let_anybody_run();
    return 0;
}

static long futex_wake(const volatile uint32_t *at)
{
    long n = 0;
    let_anybody_run();
    for (int i = 0; i < threads; i++)
        if (fibers[i].state == sleeping && fibers[i].sleeps_at == at) {
            fibers[i].state = runnable;
            n++;
        }
    return n;
}

/* ---- poll, a socket, and a device ---- */

static void wake_pollers(void)
{
    for (int i = 0; i < threads; i++)
        if (fibers[i].state == sleeping && fibers[i].sleeps_at == &pollers)
            fibers[i].state = runnable;
}

static int ready(struct pollfd *files, unsigned long count)
{
    int n = 0;
    for (unsigned long i = 0; i < count; i++) {
        bool is = files[i].fd == weak_socket ? outside.datagrams > 0 : outside.has_event;
        files[i].revents = is ? POLLIN : 0;
        n += is;
        fibers[running].history = mix(fibers[running].history, is);
    }
    return n;
}

int weak_poll(struct pollfd *files, unsigned long count)
{
    int n;
    let_anybody_run();
    while ((n = ready(files, count)) == 0) {
        fibers[running].state = sleeping;
        fibers[running].sleeps_at = &pollers;
        let_anybody_run();
    }
    return n;
}

int weak_bind(const struct sockaddr *address, size_t size)
{
    return address && size ? 0 : -1;
}

ssize_t weak_send(const struct sockaddr *to, size_t size)
{
    (void)to, (void)size;
    let_anybody_run();
    outside.datagrams = 1; /* the waiter does not distinguish one from more */
    wake_pollers();
    return 1;
}

ssize_t weak_receive(void *to)
{
    (void)to;
    let_anybody_run();
    outside.datagrams = 0;
    return -1;
}

void weak_device_completes(void)
{
    let_anybody_run();
    outside.completions++;
    outside.has_event |= outside.is_armed;
    if (outside.is_armed)
        wake_pollers();
    outside.is_armed = false;
}

void weak_device_arm(void)
{
    let_anybody_run();
    outside.is_armed = true;
}

bool weak_device_take(void)
{
    let_anybody_run();
    bool any = outside.completions > 0;
    outside.completions -= any;
    fibers[running].history = mix(fibers[running].history, any);
    return any;
}

void weak_device_take_event(void)
{
    let_anybody_run();
    outside.has_event = false;
}

long weak_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    volatile uint32_t *at = NULL;
    int operation;
    uint32_t value = 0;
    if (number == SYS_futex)
        at = va_arg(arguments, volatile uint32_t *);
    operation = va_arg(arguments, int);
    if (number == SYS_futex)
        value = va_arg(arguments, uint32_t);
    va_end(arguments);
    if (number == SYS_membarrier)
        return membarrier(operation);
    return operation == FUTEX_WAIT ? futex_wait(at, value) : futex_wake(at);
}
