/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Locality: distance between devices of this host and the CPUs of the calling thread, by hwloc.
 * Loading a topology takes hwloc tens of milliseconds, so it is done on first use, and kept until
 * tk_locality_drop(). Single-threaded: start-up only. */
#ifndef TK_LOCALITY_H
#define TK_LOCALITY_H

#include <stdint.h>

#include "base/status.h"

enum { tk_distance_unknown = 1 << 20 /* farther than any device that hwloc knows */ };

/* Larger is farther: the number of levels of the topology between the CPUs that this thread may use
 * and the smallest part of the machine that contains these and the device. 0: the device is inside
 * or around a part that this thread has to itself or shares. tk_distance_unknown: hwloc does not
 * know the device. */
int tk_locality_distance(const char *device);

/* Logical indices, ascending, of the objects of a type ("Socket", "Package", "NUMANode", "Core",
 * ...: hwloc's names) that contain CPUs of this thread; the first `most` of them if there are more.
 * TK_FAIL: there is no such type; nothing is printed. */
enum tk_status tk_locality_indices(const char *type, uint32_t *at, uint32_t most, uint32_t *count);

/* For tools: until tk_locality_drop() the two functions above answer for a thread that may use
 * these CPUs ("0-3,8"). TK_FAIL: the text is not a list of CPUs, or the machine does not have any
 * of them. */
enum tk_status tk_locality_stand(const char *cpus);

void tk_locality_drop(void);

#endif
