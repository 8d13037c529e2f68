/* SPDX-License-Identifier: BSD-3-Clause */
/* The first bytes of a connection between hosts: each end proves that it knows the secret of the
 * job, without showing it, before the other end sends or takes a frame.
 *
 *     accepting end   greeting  magic, wire version, nonce
 *     dialing end     claim     magic, wire version, host, stream, nonce, code of all before
 *     accepting end   answer    code of all before
 * A code is an HMAC-SHA-256 with the secret, and begins with the role of its end, so that nothing
 * can be reflected; both nonces are new, so that nothing can be replayed. The dialing end proves
 * itself first: a foreign process that connects gets only a random number. An end of another wire
 * version is recognized by the first 12 bytes, which never change. The number of bytes and the time
 * are bounded; nothing here waits. What follows the proof is neither encrypted nor signed.
 *
 * Owns nothing but the struct: the socket is the caller's. No lock. */
#ifndef TRUNKLINE_SPAWNER_AUTH_H
#define TRUNKLINE_SPAWNER_AUTH_H

#include "common/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AUTH_SECRET_SIZE = SHA256_SIZE, AUTH_SECRET_TEXT = 2 * AUTH_SECRET_SIZE + 1 };

enum {
    AUTH_NONCE = 32,
    AUTH_HEADER = 12, /* magic and version */
    AUTH_GREETING_SIZE = AUTH_HEADER + AUTH_NONCE,
    AUTH_CLAIM_SIZE = AUTH_HEADER + 8 + AUTH_NONCE + SHA256_SIZE,
    AUTH_TALK_SIZE = AUTH_GREETING_SIZE + AUTH_CLAIM_SIZE + SHA256_SIZE
};

struct auth_secret {
    uint8_t bytes[AUTH_SECRET_SIZE];
};

enum auth_state { AUTH_GOING, AUTH_DONE, AUTH_REFUSED };

/* The two sockets of a guard. */
enum auth_stream { AUTH_CONTROL, AUTH_OUTPUT, AUTH_STREAMS };

struct auth {
    int fd; /* non-blocking */
    bool accepts;
    enum auth_state state;
    const struct auth_secret *secret;
    uint32_t host, stream; /* dialing: what is claimed; accepting: what was proved */
    uint32_t version;      /* of the other end, once its header is there; else 0 */
    int64_t deadline;      /* clock_ms */
    char why[128];         /* when refused */
    size_t at;             /* bytes of `talk` sent or received */
    uint8_t talk[AUTH_TALK_SIZE];
};

/* A new secret; false when the kernel has no random bytes. */
bool auth_secret_make(struct auth_secret *s);
void auth_secret_print(const struct auth_secret *s, char text[AUTH_SECRET_TEXT]);
/* From 64 hexadecimal digits, which end there. */
bool auth_secret_parse(struct auth_secret *s, const char *text);

/* Both take a connected, non-blocking socket and `ms`, the time that the whole exchange may take.
 */
void auth_accept(struct auth *a, int fd, const struct auth_secret *secret, uint32_t ms);
void auth_dial(struct auth *a, int fd, const struct auth_secret *secret, uint32_t host,
               enum auth_stream stream, uint32_t ms);

/* Continues the exchange as far as possible without waiting. Never reads a byte that follows the
 * exchange. */
enum auth_state auth_step(struct auth *a);

/* Events to poll for while the state is AUTH_GOING. */
short auth_poll_events(const struct auth *a);

#endif
