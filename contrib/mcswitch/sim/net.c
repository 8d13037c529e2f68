/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See net.h. */
#include "config.h"

#include "sim/net.h"

enum {
    late_links = 3,
    spacing = 500, /* ns from frame to frame: a KiB at 16 Gb/s */
};

static roce_time skewed(struct sim_net *n)
{
    uint32_t most = (uint32_t)(SIM_LINK * n->o->skew / SIM_ALWAYS);

    return n->q->now + SIM_LINK + sim_below(n->q, most + 1);
}

static void carry(struct sim_net *n, struct sim_link *l, struct sim_event to, const uint8_t *bytes,
                  size_t length)
{
    to.due = skewed(n);
    if (!n->calm && sim_chance(n->q, n->o->reorder)) {
        n->late++;
        to.due += sim_below(n->q, late_links * (uint32_t)SIM_LINK);
    } else {
        if (to.due < l->last + spacing)
            to.due = l->last + spacing;
        l->last = to.due;
    }
    to.frame = sim_frame_new(n->q, bytes, length);
    sim_queue_post(n->q, to);
}

void sim_net_send(struct sim_net *n, struct sim_link *l, struct sim_event to, const uint8_t *bytes,
                  size_t length)
{
    n->sent++;
    if (!n->calm && sim_chance(n->q, n->o->loss))
        n->lost++;
    else
        carry(n, l, to, bytes, length);
    if (!n->calm && sim_chance(n->q, n->o->dup)) {
        n->doubled++;
        carry(n, l, to, bytes, length);
    }
}
