/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much may be in flight: few packets at first and after a pause, because the receiver may have
 * many senders; twice as many with each round trip until congestion was met, then one more; half
 * when a packet was lost or the network reports congestion, one after a timeout. Owns the window of
 * the end point. */
#include "config.h"

#include "endpoint/private.h"

enum { window_least = 2 };

void roce_window_start(struct roce_endpoint *e)
{
    struct roce_window *w = &e->tx.window;

    memset(w, 0, sizeof *w);
    w->packets = e->a.window_first;
    w->slow_start = e->a.window_packets;
}

/* What the sender knows about the network becomes stale after an idle time: it grows back to the
 * same window step by step. */
void roce_window_rest(struct roce_endpoint *e)
{
    struct roce_window *w = &e->tx.window;

    if (w->packets <= e->a.window_first)
        return;
    if (w->slow_start < w->packets)
        w->slow_start = w->packets;
    w->packets = e->a.window_first;
    w->partial = 0;
}

void roce_window_acked(struct roce_endpoint *e, uint64_t packets)
{
    struct roce_window *w = &e->tx.window;

    if (w->packets < w->slow_start) {
        w->packets += (uint32_t)(packets < w->packets ? packets : w->packets);
    } else {
        w->partial += (uint32_t)(packets < e->a.window_packets ? packets : e->a.window_packets);
        if (w->partial >= w->packets) {
            w->partial = 0;
            w->packets++;
        }
    }
    if (w->packets > e->a.window_packets)
        w->packets = e->a.window_packets;
}

static void reduce(struct roce_endpoint *e, uint32_t floor)
{
    struct roce_window *w = &e->tx.window;
    uint32_t half = w->packets / 2;

    w->slow_start = half > window_least ? half : window_least;
    w->packets = floor ? floor : w->slow_start;
    if (w->packets > e->a.window_packets)
        w->packets = e->a.window_packets;
    w->partial = 0;
    w->halved = e->tx.q.high;
    e->counters.halvings++;
}

/* Once for all packets in flight: the loss of ten packets of one window is one event. */
void roce_window_halve(struct roce_endpoint *e)
{
    if (e->tx.q.una >= e->tx.window.halved)
        reduce(e, 0);
}

void roce_window_collapse(struct roce_endpoint *e)
{
    reduce(e, 1);
}

bool roce_window_open(struct roce_endpoint *e, uint64_t n, uint64_t bytes)
{
    struct roce_queue *q = &e->tx.q;
    uint64_t flying = q->next - q->una, now, then;

    if (flying == 0)
        return true;
    if (flying + n > e->tx.window.packets)
        return false;
    now = roce_bytes_at(e, roce_entry_at(q, q->send), q->next);
    then = roce_bytes_at(e, roce_entry_at(q, q->head), q->una);
    return now - then + bytes <= e->a.window_bytes;
}
