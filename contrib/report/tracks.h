/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a time line has of all ranks together: bytes by rail, time in registrations, connections
 * that are being made, each by slice of time, and the connections themselves. */
#ifndef TRUNKLINE_REPORT_TRACKS_H
#define TRUNKLINE_REPORT_TRACKS_H

#include "contrib/trace/parse.h"

enum {
    report_slices = 512,
    report_rails_max = 8, /* the last one stands for all rails behind it too */
    report_connections_max = 4096
};

enum report_track {
    REPORT_TRACK_CONNECTING, /* ns, of all connections that are being made */
    REPORT_TRACK_REGISTERING,
    REPORT_TRACK_RAILS, /* bytes over the first rail; others follow */
    report_tracks_count = REPORT_TRACK_RAILS + report_rails_max
};

struct report_connection {
    uint64_t begin, ns;
    uint32_t rank, peer, rail;
};

struct report_tracks {
    uint64_t values[report_tracks_count][report_slices];
    struct report_connection *connections; /* the longest, a heap with the shortest first */
    size_t connection_count;
    uint64_t connections_seen;
};

/* Slices are numbered from `first`, of 2^shift ns each. False: no memory. */
bool report_tracks_add(struct report_tracks *tracks, unsigned shift, uint64_t first,
                       const struct trace_item *item);
/* Pairs of slices become one each, beginning with the number `first` of the wider ones. */
void report_tracks_coarsen(struct report_tracks *tracks, uint64_t first);
/* Slices begin `by` slices earlier; those at the end are known to be empty. */
void report_tracks_move(struct report_tracks *tracks, size_t by);
void report_tracks_free(struct report_tracks *tracks);

#endif
