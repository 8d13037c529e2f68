/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's standard input on its way to rank 0. If rank 0 is on this host, it inherits a file
 * or pipe and reads it itself. Otherwise it is relayed: read only when the channel is empty, and
 * never from the terminal while in the background. Owns its state but not the files; one thread, no
 * lock. */
#ifndef TRUNKLINE_SPAWNER_INPUT_H
#define TRUNKLINE_SPAWNER_INPUT_H

#include "spawner/wire/wire.h"

struct input {
    bool ended;
    bool terminal;
    int64_t ask_again; /* clock_ms of the next check of a terminal that is not ours now */
};

void input_init(struct input *i);

/* Call when the guard of rank 0 has been forked, and has inherited the files that it may inherit,
 * and no other guard will be forked. */
void input_hand_over(struct input *i);

/* The file to poll for input now, -1 for none. */
int input_waits_for(struct input *i, const struct wire_channel *guard);

/* Reads the available input and sends it on; an empty frame at end of file. */
void input_forward(struct input *i, struct wire_channel *guard);

#endif
