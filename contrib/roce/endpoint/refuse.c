/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a responder: a request broke the rules or its memory is invalid. Owns nothing. */
#include "config.h"

#include "endpoint/private.h"

static enum roce_event event_of(uint8_t nak)
{
    switch (nak) {
    case ROCE_NAK_ACCESS:
        return ROCE_EVENT_ACCESS_ERROR;
    case ROCE_NAK_OPERATION:
        return ROCE_EVENT_FATAL;
    default:
        return ROCE_EVENT_REQUEST_ERROR;
    }
}

void roce_responder_fail(struct roce_endpoint *e, uint8_t nak, uint32_t psn)
{
    struct roce_responder *rx = &e->rx;

    rx->failed = true;
    rx->final = nak;
    rx->expected = psn; /* the executed part of a later read no longer counts */
    rx->reply = ROCE_REPLY_FINAL;
    rx->message = ROCE_KIND_NONE;
    e->failed = true;
    if (e->calls.event)
        e->calls.event(e->context, event_of(nak));
    roce_queue_flush(e, ROCE_FLUSHED);
}
