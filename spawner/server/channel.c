/* SPDX-License-Identifier: BSD-3-Clause */
/* The channel from the PMIx server process to the guard. Owns the socket; guard_lock protects
 * writing to it, as up-calls come from the thread of libpmix. */
#include "config.h"

#include "server_private.h"

#include <pthread.h>

static struct wire_channel guard_channel;
static pthread_mutex_t guard_lock = PTHREAD_MUTEX_INITIALIZER;

void server_open_channel(int fd)
{
    wire_open(&guard_channel, fd, 0);
}

void server_send(enum wire_type type, uint32_t rank, const void *payload, size_t length)
{
    pthread_mutex_lock(&guard_lock);
    wire_send_now(&guard_channel, type, 0, rank, payload, length);
    pthread_mutex_unlock(&guard_lock);
}
