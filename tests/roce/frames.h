/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The recorded frames, for tests. Owns the bytes of the file that is open. Include after cmocka. */
#ifndef ROCE_TEST_FRAMES_H
#define ROCE_TEST_FRAMES_H

#include "packet/frame.h"
#include "packet/pcap.h"

enum { frames_max = 100 };

struct frames {
    unsigned n;
    struct roce_pcap_packet raw[frames_max];
    struct roce_frame frame[frames_max]; /* parsed; every one must be good */
    uint8_t *bytes;
};

/* All names below tests/roce/frames, NULL at the end. */
extern const char *const frame_files[];

/* Reads one; asserts that every frame is good. */
void frames_load(struct frames *f, const char *name);
void frames_free(struct frames *f);

#endif
