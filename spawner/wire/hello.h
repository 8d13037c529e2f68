/* SPDX-License-Identifier: BSD-3-Clause */
/* The payload of a guard's first frame: a description of its host and installation, from which the
 * head decides whether the job can run there. Owns nothing, takes no lock. */
#ifndef TRUNKLINE_SPAWNER_HELLO_H
#define TRUNKLINE_SPAWNER_HELLO_H

#include "spawner/util/byte_queue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hello_ports { HELLO_PORTS_UNKNOWN, HELLO_PORTS_ACTIVE, HELLO_PORTS_NONE };

struct hello {
    enum hello_ports ports; /* RDMA ports; unknown if the guard above forked this one */
    char build[160];        /* TK_BUILD of the launcher there */
    char machine[65];       /* processor architecture, as uname has it */
    char kernel[160]; /* names the running kernel and its network: two hosts with the same text are
                         one machine under two names, and share softhca's files */
    char node[65];    /* the host's own name for itself */
};

/* Fills `h` from this host. */
void hello_here(struct hello *h, enum hello_ports ports);

void hello_pack(const struct hello *h, struct bytes *out);

/* False when the payload is damaged. */
bool hello_unpack(struct hello *h, const uint8_t *payload, size_t length);

/* Whether a guard with `there` can serve a head with `here`; else a sentence about that host,
 * without its name. */
bool hello_fits(const struct hello *here, const struct hello *there, char *why, size_t size);

bool hello_same_machine(const struct hello *a, const struct hello *b);

#endif
