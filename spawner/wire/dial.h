/* SPDX-License-Identifier: BSD-3-Clause */
/* Calling back the launcher, or the guard above, from another host: tries all addresses at once and
 * takes the first that proves to know the secret of the job. Owns nothing but the struct; waits,
 * and stops early when its lifeline ends. No lock. */
#ifndef TRUNKLINE_SPAWNER_DIAL_H
#define TRUNKLINE_SPAWNER_DIAL_H

#include "auth.h"

#include <sys/socket.h>

enum { DIAL_ADDRESSES = 32 };

struct dial {
    const struct auth_secret *secret;
    uint32_t host;    /* our number in the job */
    int lifeline;     /* a descriptor whose end means that our caller is gone; or -1 */
    int64_t deadline; /* clock_ms */
    size_t count;
    struct sockaddr_storage address[DIAL_ADDRESSES];
};

/* Takes the addresses in `text`, "A,B,...:PORT" as listen_addresses() writes them; a name may stand
 * for an address, and "@" for the one that ssh came from: `origin`, NULL if that is not known.
 * False with one sentence in `why`. */
bool dial_parse(struct dial *d, const char *text, const char *origin, char *why, size_t size);

/* Returns a connected, proven socket, or -1 with a sentence in `why`, which is empty when the
 * lifeline has ended. The address that was reached is the only one that later calls try. */
int dial_connect(struct dial *d, enum auth_stream stream, char *why, size_t size);

#endif
