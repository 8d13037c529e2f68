/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A ring of messages in a memfd of its own, its payload mapped twice in a row, shared by threads
 * and child processes. Messages contain their sender, number and length. */
#ifndef RING_MEMORY_H
#define RING_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "ring_take.h"

struct ring_memory {
    struct tk_ring_shared *shared;
    char *payload;
    uint32_t slots, lines;
    size_t shared_size, payload_size;
};

/* Fails the test when there is no memory. lines: at least a page of them. */
void ring_memory_open(struct ring_memory *memory, uint32_t slots, uint32_t lines, uint64_t start);
void ring_memory_close(struct ring_memory *memory);

void ring_memory_out(const struct ring_memory *memory, struct tk_ring_out *out, uint16_t from);
void ring_memory_in(const struct ring_memory *memory, struct tk_ring_in *in);

enum { ring_text_min = 16 };

/* nbytes >= ring_text_min bytes that follow from the three numbers alone. */
void ring_text(char *text, uint32_t from, uint32_t number, size_t nbytes);

/* Is it the text of `from` with its own length? Its number is in *number. */
bool ring_text_is(const char *text, uint32_t from, uint32_t *number, size_t nbytes);

/* A message as it was sent, head and payload one behind the other. Returns its size; 0: it is
 * malformed or has more than `most` bytes. */
size_t ring_item_text(const struct tk_ring_item *item, char *text, size_t most);

#endif
