/* SPDX-License-Identifier: BSD-3-Clause */
/* The first message of a connection to the PMIx server. libpmix 4.2 trusts the lengths in it (a
 * credential longer than the message crashes it), and does not recover from a message that it
 * refuses late: for an unknown module its only thread was seen to loop for ever. So a message is
 * handed on only if libpmix will accept it: it is whole, each field ends inside of it, and it names
 * a rank of this host and modules that the rank was given. Pure: owns nothing, takes no lock. */
#ifndef TRUNKLINE_SPAWNER_HANDSHAKE_H
#define TRUNKLINE_SPAWNER_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The header is two numbers that a first message does not use, then its length; the compiler pads
 * that to the size of a pointer. No message of a client has more than a few hundred bytes: names,
 * and a credential. */
enum { HANDSHAKE_HEADER = 8 + sizeof(size_t), HANDSHAKE_MAX = 16384 };

/* Values that a message must match. The lists are those in the environment of the ranks, separated
 * by commas. */
struct handshake_rules {
    const char *nspace;
    uint32_t first, count; /* ranks of this host */
    uid_t uid;
    gid_t gid;
    const char *security; /* PMIX_SECURITY_MODE */
    const char *storage;  /* PMIX_GDS_MODULE */
};

/* The length of the message behind the header; 0 if no client sends that length. */
size_t handshake_length(const uint8_t header[HANDSHAKE_HEADER]);

/* NULL if the message is valid, else a readable text that says what is wrong with it. */
const char *handshake_flaw(const struct handshake_rules *rules, const uint8_t *message,
                           size_t length);

#endif
