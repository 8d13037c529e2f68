/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See queue.h. A binary heap; without memory it aborts, as a test does. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "sim/options.h"
#include "sim/queue.h"

enum { first_room = 256 };

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

void sim_queue_start(struct sim_queue *q, uint64_t seed)
{
    memset(q, 0, sizeof *q);
    q->room = first_room;
    q->heap = must(calloc(q->room, sizeof *q->heap));
    q->random = seed * 2 + 1;
    for (int i = 0; i < 8; i++) /* close seeds give similar numbers at first */
        sim_random(q);
}

void sim_queue_end(struct sim_queue *q)
{
    for (uint32_t i = 0; i < q->count; i++)
        free(q->heap[i].frame);
    while (q->spare) {
        struct sim_frame *f = q->spare;

        q->spare = f->next;
        free(f);
    }
    free(q->heap);
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->due != b->due ? a->due < b->due : a->serial < b->serial;
}

void sim_queue_post(struct sim_queue *q, struct sim_event e)
{
    uint32_t i = q->count++;

    if (q->count > q->room)
        q->heap = must(realloc(q->heap, (q->room *= 2) * sizeof *q->heap));
    e.serial = q->serial++;
    if (e.due < q->now)
        e.due = q->now;
    for (; i && before(&e, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
        q->heap[i] = q->heap[(i - 1) / 2];
    q->heap[i] = e;
}

bool sim_queue_next(struct sim_queue *q, struct sim_event *e)
{
    struct sim_event last;
    uint32_t i = 0;

    if (q->count == 0)
        return false;
    *e = q->heap[0];
    last = q->heap[--q->count];
    for (;;) {
        uint32_t child = 2 * i + 1;

        if (child >= q->count)
            break;
        if (child + 1 < q->count && before(&q->heap[child + 1], &q->heap[child]))
            child++;
        if (!before(&q->heap[child], &last))
            break;
        q->heap[i] = q->heap[child];
        i = child;
    }
    if (q->count)
        q->heap[i] = last;
    q->now = e->due;
    return true;
}

struct sim_frame *sim_frame_new(struct sim_queue *q, const uint8_t *bytes, size_t length)
{
    struct sim_frame *f = q->spare;

    if (length > sizeof f->bytes)
        abort();
    if (f)
        q->spare = f->next;
    else
        f = must(malloc(sizeof *f));
    f->next = NULL;
    f->length = (uint32_t)length;
    if (bytes)
        memcpy(f->bytes, bytes, length);
    return f;
}

void sim_frame_free(struct sim_queue *q, struct sim_frame *f)
{
    if (!f)
        return;
    f->next = q->spare;
    q->spare = f;
}

/* xorshift64* */
uint32_t sim_random(struct sim_queue *q)
{
    q->random ^= q->random >> 12;
    q->random ^= q->random << 25;
    q->random ^= q->random >> 27;
    return (uint32_t)((q->random * UINT64_C(2685821657736338717)) >> 32);
}

uint32_t sim_below(struct sim_queue *q, uint32_t n)
{
    return (uint32_t)(((uint64_t)sim_random(q) * n) >> 32);
}

bool sim_chance(struct sim_queue *q, uint32_t millionths)
{
    return millionths && sim_below(q, SIM_ALWAYS) < millionths;
}
