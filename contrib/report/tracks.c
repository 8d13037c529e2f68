/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See tracks.h. What a call moves is spread evenly over its time. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/report/tracks.h"

void report_tracks_coarsen(struct report_tracks *tracks, uint64_t first)
{
    uint64_t wider = first >> 1;
    for (unsigned k = 0; k < report_tracks_count; k++) {
        uint64_t *values = tracks->values[k];
        for (unsigned i = 0; i < report_slices; i++) {
            uint64_t value = values[i];
            values[i] = 0;
            values[((first + i) >> 1) - wider] += value;
        }
    }
}

void report_tracks_move(struct report_tracks *tracks, size_t by)
{
    for (unsigned k = 0; k < report_tracks_count; k++) {
        uint64_t *values = tracks->values[k];
        memmove(values + by, values, (report_slices - by) * sizeof(*values));
        memset(values, 0, by * sizeof(*values));
    }
}

/* The sum of the parts is the amount. */
static void add_spread(uint64_t *values, unsigned shift, uint64_t first,
                       const struct trace_item *item, uint64_t amount)
{
    uint64_t at = item->begin, end = item->begin + item->ns, done = 0;
    for (uint64_t slice = at >> shift;; slice++) {
        uint64_t next = (slice + 1) << shift;
        if (next >= end)
            break;
        uint64_t until = (uint64_t)((double)amount * (double)(next - at) / (double)item->ns);
        until = until < amount ? until : amount;
        values[slice - first] += until - done;
        done = until;
    }
    values[((end > at ? end - 1 : at) >> shift) - first] += amount - done;
}

/* ---- connections ---- */

static void swap(struct report_connection *a, struct report_connection *b)
{
    struct report_connection kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_down(struct report_connection *heap, size_t count)
{
    for (size_t at = 0, least = 0;; at = least) {
        for (size_t i = 2 * at + 1; i < 2 * at + 3 && i < count; i++)
            if (heap[i].ns < heap[least].ns)
                least = i;
        if (least == at)
            return;
        swap(&heap[at], &heap[least]);
    }
}

static bool add_connection(struct report_tracks *tracks, const struct trace_item *item)
{
    const struct report_connection made = {.begin = item->begin,
                                           .ns = item->ns,
                                           .rank = item->rank,
                                           .peer = item->peer,
                                           .rail = item->rail};
    tracks->connections_seen++;
    if (!tracks->connections)
        tracks->connections = calloc(report_connections_max, sizeof(*tracks->connections));
    struct report_connection *heap = tracks->connections;
    if (!heap)
        return false;
    if (tracks->connection_count == report_connections_max) {
        if (heap[0].ns < made.ns) {
            heap[0] = made;
            sift_down(heap, tracks->connection_count);
        }
        return true;
    }
    size_t at = tracks->connection_count++;
    heap[at] = made;
    for (; at > 0 && heap[at].ns < heap[(at - 1) / 2].ns; at = (at - 1) / 2)
        swap(&heap[at], &heap[(at - 1) / 2]);
    return true;
}

bool report_tracks_add(struct report_tracks *tracks, unsigned shift, uint64_t first,
                       const struct trace_item *item)
{
    struct trace_rail rails[trace_rails_max];
    if (item->op == tk_trace_connect) {
        add_spread(tracks->values[REPORT_TRACK_CONNECTING], shift, first, item, item->ns);
        return add_connection(tracks, item);
    }
    if (item->op == tk_trace_memory_register || item->op == tk_trace_memory_deregister)
        add_spread(tracks->values[REPORT_TRACK_REGISTERING], shift, first, item, item->ns);
    unsigned count = trace_rails_of(item, rails);
    for (unsigned i = 0; i < count; i++) {
        unsigned rail = rails[i].rail < report_rails_max ? rails[i].rail : report_rails_max - 1;
        add_spread(tracks->values[REPORT_TRACK_RAILS + rail], shift, first, item, rails[i].bytes);
    }
    return true;
}

void report_tracks_free(struct report_tracks *tracks)
{
    free(tracks->connections);
    *tracks = (struct report_tracks){.connections = NULL};
}
