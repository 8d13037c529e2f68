/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options of softgpu, as SOFTGPU gives them. No state. */
#ifndef SGPU_SETTINGS_H
#define SGPU_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SGPU_DEVICES_MAX = 16 };

struct sgpu_config {
    uint64_t devices;
    uint64_t memory;    /* bytes of a device, for each process */
    uint64_t bar;       /* bytes of a device that may be exported at a time; 0: all */
    uint64_t delay;     /* microseconds that an operation waits at most; 0: none */
    uint64_t bandwidth; /* MB/s of a device's copies; 0: no limit */
    uint64_t seed;
    bool no_dmabuf, no_peermem, no_ipc, no_uva, weak_order, ordered_streams;
};

/* Parses "devices=2,bar=64M,no-ipc"; NULL: the defaults. False: `why` has one line. */
bool sgpu_settings_parse(const char *text, struct sgpu_config *out, char *why, size_t n);

#endif
