/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clock of a simulation: pending events, in order of time and, at one time, of posting. With it
 * the frames that events carry, which are used again and again, and the random numbers.
 * Single-threaded. */
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
    SIM_ACT,       /* node: member: it has something to do */
    SIM_CONTROL,   /* the controller has; node, port and value are its own */
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
/* Takes the next one and sets the clock; false: nothing is left. */
bool sim_queue_next(struct sim_queue *q, struct sim_event *e);

/* A frame of the caller's, with these bytes (none: NULL). */
struct sim_frame *sim_frame_new(struct sim_queue *q, const uint8_t *bytes, size_t length);
void sim_frame_free(struct sim_queue *q, struct sim_frame *f);

uint32_t sim_random(struct sim_queue *q);
/* 0 .. n - 1; n 0: 0. */
uint32_t sim_below(struct sim_queue *q, uint32_t n);
/* With this probability, in parts of a million. */
bool sim_chance(struct sim_queue *q, uint32_t millionths);

#endif
