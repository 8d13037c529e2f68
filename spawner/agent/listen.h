/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP port that guards of other hosts call back. Owns the listening socket and every connection
 * on it until the other end has proved that it belongs to the job (wire/auth.h). Foreign
 * connections are dropped: at once if they break the protocol, after a few seconds if they are
 * silent, and the oldest one if the table is full, so that they never keep a guard out for long.
 * Nothing here waits. One thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_LISTEN_H
#define TRUNKLINE_SPAWNER_LISTEN_H

#include "spawner/wire/auth.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

enum { LISTEN_PENDING = 128, LISTEN_POLL_MAX = LISTEN_PENDING + 1 };

struct listener {
    int fd; /* -1: no port is open */
    unsigned port;
    const struct auth_secret *secret;
    struct auth pending[LISTEN_PENDING]; /* fd -1: free */
    unsigned foreign;                    /* connections that were dropped */
};

/* Opens a port that the kernel chooses, on the address `master` if that is an address of this host,
 * else on all of them. False with errno. */
bool listen_open(struct listener *l, const struct auth_secret *secret, const char *master);
void listen_close(struct listener *l);

/* Writes where to call back, "ADDRESS,ADDRESS,...:PORT", IPv6 addresses in brackets: `master` alone
 * unless it is empty, else all addresses of this host that others may reach, and loopback last, for
 * hosts that are this machine under another name. False when it does not fit. */
bool listen_addresses(const struct listener *l, const char *master, char *text, size_t size);

/* Fills what to poll for, at most LISTEN_POLL_MAX entries, and returns their number. */
nfds_t listen_poll_fds(const struct listener *l, struct pollfd *p);

/* The earliest time at which listen_serve() has something to do without any event; CLOCK_NEVER. */
int64_t listen_deadline(const struct listener *l);

/* Accepts connections, continues their authentication, drops foreign ones. Call it after poll(),
 * whatever poll() reports. */
void listen_serve(struct listener *l);

/* Hands out an authenticated connection, which the caller then owns. False when there is none. */
bool listen_next(struct listener *l, uint32_t *host, enum auth_stream *stream, int *fd);

#endif
