/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clock of a simulation: pending events, ordered by time and, at equal times, by posting. Also
 * the frames that events carry, which are reused, and the random numbers. Single-threaded. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include "endpoint/endpoint.h"
#include "packet/frame.h"

struct sim_frame {
    struct sim_frame *next;
    uint32_t length;
    uint8_t bytes[ROCE_FRAME_MAX];
};

enum sim_event_kind {
    SIM_AT_SWITCH, /* a frame; node: switch, port */
    SIM_AT_MEMBER, /* a frame; node: member */
    SIM_TIMER,     /* node: member; port: which of its two queue pairs */
    SIM_ACT,       /* node: member; its next action is due */
    SIM_CONTROL,   /* the controller's; it defines node, port and value */
};

struct sim_event {
    roce_time due;
    uint64_t serial;
    uint8_t kind;
    uint16_t node, port;
    uint32_t value;
    struct sim_frame *frame;
};

struct sim_queue {
    struct sim_event *heap;
    uint32_t count, room;
    uint64_t serial;
    roce_time now;
    struct sim_frame *spare;
    uint64_t random;
};

void sim_queue_start(struct sim_queue *q, uint64_t seed);
void sim_queue_end(struct sim_queue *q);
void sim_queue_post(struct sim_queue *q, struct sim_event e);
/* Takes the next event and sets the clock; false: no event is left. */
bool sim_queue_next(struct sim_queue *q, struct sim_event *e);

/* Makes a frame for the caller with these bytes (NULL: none). */
struct sim_frame *sim_frame_new(struct sim_queue *q, const uint8_t *bytes, size_t length);
void sim_frame_free(struct sim_queue *q, struct sim_frame *f);

uint32_t sim_random(struct sim_queue *q);
/* A random number of 0 .. n - 1; 0 if n is 0. */
uint32_t sim_below(struct sim_queue *q, uint32_t n);
/* True with this probability, in parts per million. */
bool sim_chance(struct sim_queue *q, uint32_t millionths);

#endif
