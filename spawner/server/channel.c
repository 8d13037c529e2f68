/* SPDX-License-Identifier: BSD-3-Clause */
/* The channel from the PMIx server process to the guard. Owns the socket; guard_lock protects
 * writing to it, as up-calls come from the thread of libpmix. */
#include "config.h"

#include "server_private.h"
#include "spawner/util/launcher_clock.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

/* One for each direction, because two threads use them. */
static struct wire_channel guard_channel, orders;
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;

void server_open_channel(int fd)
{
    wire_open(&guard_channel, fd, 0);
    wire_open(&orders, fd, 0);
}

void server_send(enum wire_type type, uint32_t rank, const void *payload, size_t length)
{
    pthread_mutex_lock(&guard_lock);
    wire_send_now(&guard_channel, type, 0, rank, payload, length);
    pthread_mutex_unlock(&guard_lock);
}

bool server_receive(struct wire_frame *frame, int64_t deadline)
{
    while (!wire_next(&orders, frame)) {
        struct pollfd p = {.fd = orders.fd, .events = POLLIN};
        if (orders.ended)
            pause(); /* the guard is gone, so this process ends too */
        if (poll(&p, 1, clock_poll_timeout(deadline)) > 0)
            wire_fill(&orders);
        else if (clock_ms() >= deadline)
            return false;
    }
    return true;
}
