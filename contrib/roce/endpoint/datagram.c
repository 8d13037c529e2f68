/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receivers without responses: unreliable connections and datagrams. Packets that cannot be
 * executed are lost; only an error of the receive's own buffers ends the queue pair. Owns nothing;
 * the caller serializes. */
#include "config.h"

#include "endpoint/private.h"

static void fail_silently(struct roce_endpoint *e)
{
    e->failed = true;
    roce_silence(e);
    if (e->calls.event)
        e->calls.event(e->context, ROCE_EVENT_FATAL);
    roce_queue_flush(e, ROCE_FLUSHED);
}

/* A message continues only with the packet in order; a new one may begin with any PSN
 * (specification 9.8.2.2.1). */
static bool continues(struct roce_endpoint *e, const struct roce_packet *p)
{
    struct roce_responder *rx = &e->rx;
    bool expected = p->psn == rx->expected;

    if (roce_opcode(p->opcode).first) {
        roce_execute_abort(e);
        expected = true;
    } else if (!expected) {
        e->counters.gaps++;
        roce_execute_abort(e);
    }
    rx->expected = roce_psn_add(p->psn, 1);
    return expected && (roce_opcode(p->opcode).first || rx->message != ROCE_KIND_NONE);
}

void roce_unreliable_input(struct roce_endpoint *e, const struct roce_packet *p)
{
    if (!continues(e, p)) {
        e->counters.drop_receive++;
        return;
    }
    if (roce_execute(e, p) == ROCE_DONE)
        return;
    e->counters.drop_receive++;
    roce_execute_abort(e);
    if (e->rx.spoiled)
        fail_silently(e);
}

void roce_datagram_input(struct roce_endpoint *e, const struct roce_packet *p)
{
    if (p->qkey != e->a.qkey) {
        e->counters.drop_qkey++;
        return;
    }
    roce_execute_abort(e);
    if (roce_execute(e, p) == ROCE_DONE)
        return;
    e->counters.drop_receive++;
    if (e->rx.spoiled)
        fail_silently(e);
}
