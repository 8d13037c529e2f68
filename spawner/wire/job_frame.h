/* SPDX-License-Identifier: BSD-3-Clause */
/* The payload of a JOB frame: everything that a guard must know about the job. The same for every
 * host; the frame names the host that it is for. Pure; no lock. */
#ifndef TRUNKLINE_SPAWNER_JOB_FRAME_H
#define TRUNKLINE_SPAWNER_JOB_FRAME_H

#include "spawner/util/byte_queue.h"
#include "spawner/util/job.h"

#include <stddef.h>

/* Appends the payload. `now`: clock_ms(); the clocks of two hosts have nothing in common, so the
 * age of the job is sent, not its starting time. */
void job_frame_pack(const struct job *job, int64_t now, struct bytes *out);

/* The job of host `host`, in memory of its own; NULL with a sentence in `why` when the payload is
 * not a whole and consistent job. `now`: clock_ms() of this host. */
struct job *job_frame_unpack(const uint8_t *payload, size_t length, uint32_t host, int64_t now,
                             char *why, size_t size);

void job_frame_free(struct job *job);

#endif
