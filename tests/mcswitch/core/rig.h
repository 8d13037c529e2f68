/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A switch core with simulated members: frames are built by hand and passed in, and output is
 * compared with the expected frames. Owns its switch; single-threaded. */
#ifndef MCSW_RIG_H
#define MCSW_RIG_H

#include "core/core.h"
#include "packet/frame.h"

enum { RIG_MEMBERS = 32, RIG_OUTS = 512, RIG_GROUP = 3, RIG_LATE = 100 };
#define RIG_KEY 0x0123456789abcdefull

struct rig_out {
    unsigned port;
    bool roce, matched;
    enum roce_verdict verdict;
    size_t length;
    struct roce_frame f;
    uint8_t bytes[ROCE_FRAME_MAX];
};

struct rig_options {
    enum mcsw_mode mode;
    enum mcsw_aggregate aggregate;
    unsigned members; /* 0: 4 */
    bool v6, believe_icrc, deferred, near_wrap;
    int vlan; /* tag of all frames; 0: none */
};

struct rig {
    struct rig_options o;
    struct mcsw_config config;
    struct mcsw *w;
    struct mcsw_cache *cache;
    struct mcsw_sender sender[RIG_MEMBERS];
    struct mcsw_receiver receiver[RIG_MEMBERS];
    uint32_t write_rkey; /* of rig_write; 0: 1 */
    uint64_t now;
    unsigned outs;
    struct rig_out out[RIG_OUTS];
    unsigned failures, violations, fenced, dirtied;
    /* Also sees each frame that goes in, before the switch does. */
    void (*record)(void *context, unsigned port, uint64_t now, const uint8_t *frame, size_t length);
    void *context;
};

void rig_open(struct rig *r, const struct rig_options *o);
void rig_close(struct rig *r);

/* ---- in ---- */

/* A frame as member m would send it, to the first address (its SQP) or the second (its RQP). */
struct roce_frame rig_frame(const struct rig *r, unsigned m, bool to_requests);
void rig_put(struct rig *r, unsigned port, const struct roce_frame *f);
void rig_put_bytes(struct rig *r, unsigned port, const uint8_t *frame, size_t length);

/* A request with `length` bytes of a pattern that depends on its PSN. */
void rig_request(struct rig *r, unsigned sender, unsigned operation, uint32_t psn, uint32_t length);
/* A write to offset, which `length` says is the whole message's. */
void rig_write(struct rig *r, unsigned sender, unsigned operation, uint32_t psn, uint64_t offset,
               uint32_t length);
void rig_control(struct rig *r, unsigned sender, uint32_t psn, const struct mcsw_control *c);
/* A control with the usual contents. */
struct mcsw_control rig_set(const struct rig *r, uint8_t flags, uint32_t psn, uint32_t mask);
void rig_acquire(struct rig *r, unsigned sender, uint32_t psn, uint32_t mask);
void rig_release(struct rig *r, unsigned sender, uint32_t psn);
/* psn: in the receiver's numbers. */
void rig_response(struct rig *r, unsigned receiver, uint8_t syndrome, uint32_t psn, uint32_t msn);
void rig_congestion(struct rig *r, unsigned receiver);

/* First PSNs of queue pairs, plus n. */
uint32_t rig_sq(const struct rig *r, unsigned sender, uint32_t n);
uint32_t rig_rq(const struct rig *r, unsigned receiver, uint32_t n);

/* ---- out; each frame is matched once ---- */

const struct rig_out *rig_expect(struct rig *r, unsigned port, unsigned opcode, uint32_t psn);
/* Expects a copy of `opcode` for a receiver; a forwarded control is a write of 0 bytes. */
void rig_expect_copies(struct rig *r, uint32_t mask, unsigned operation, uint32_t n);
void rig_expect_control(struct rig *r, uint32_t mask, uint32_t n);
void rig_expect_answer(struct rig *r, unsigned sender, uint8_t syndrome, uint32_t psn);
void rig_expect_msn(struct rig *r, unsigned sender, uint8_t syndrome, uint32_t psn, uint32_t msn);
/* All that came out was expected. */
void rig_expect_nothing(struct rig *r);
void rig_check(struct rig *r, bool holds, const char *what);
#define RIG_CHECK(r, holds) rig_check(r, holds, #holds)

/* Acknowledgements of all in mask, n packets behind their first PSN. */
void rig_all_acknowledge(struct rig *r, uint32_t mask, uint32_t n, uint32_t msn);
struct mcsw_view rig_view(const struct rig *r);

#endif
