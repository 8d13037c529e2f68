/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Locality: how near devices of this host are to the CPUs of the calling thread, by hwloc. Looking
 * at a machine takes hwloc tens of milliseconds, so it is only done when somebody asks, and kept
 * until tk_locality_drop(). Single-threaded: start-up only. */
#ifndef TK_LOCALITY_H
#define TK_LOCALITY_H

#include "base/status.h"

enum { tk_distance_unknown = 1 << 20 /* farther than any device that hwloc knows */ };

/* Larger is farther: how many levels of the machine's tree lie between the CPUs that this thread
 * may use and the least part of the machine that holds these and the device. 0: the device is
 * inside or around a part that this thread has to itself or shares. tk_distance_unknown: hwloc does
 * not know the device. */
int tk_locality_distance(const char *device);

/* Number of the one object of a type ("Socket", "Package", "NUMANode", "Core", ...: hwloc's names)
 * that holds all CPUs of this thread, by hwloc's logical order; -1: they lie across several, or
 * there is none of that type. TK_FAIL: there is no such type; nothing is told. */
enum tk_status tk_locality_index(const char *type, int *index);

void tk_locality_drop(void);

#endif
