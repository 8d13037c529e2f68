/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The corner cases of doc/multicast.md, each as frames that go in and frames that must come out. */
#ifndef MCSW_CASES_H
#define MCSW_CASES_H

#include "rig.h"

struct mcsw_case {
    unsigned number;
    const char *row;
    void (*run)(struct rig *r);
    struct rig_options o;
};

extern const struct mcsw_case cases_order[], cases_control[], cases_frame[];
extern const unsigned cases_of_order, cases_of_control, cases_of_frame;

/* Gives sender 0 the lock with this set; all receivers have the control. Its next PSN is its second
 * one. */
void case_begin(struct rig *r, uint32_t mask);
/* A write of one packet, PSN n. */
void case_write(struct rig *r, uint32_t n);
/* Also sends a write, whose copies no receiver has acknowledged. */
void case_sent(struct rig *r);

#define SQ(n)    rig_sq(r, 0, n)
#define RQ(m, n) rig_rq(r, m, n)

enum { OTHERS = 0xe, EVERY_ACK = ROCE_CREDITS_NONE };

#endif
