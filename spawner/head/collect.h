/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks wrote for gasnetrun_ibv --report, as it comes from the guards: appended to files of
 * this process that have no name, so that nothing is left however it ends. One file for each host
 * and kind: a guard sends its files one after the other, but guards send at the same time. Owns the
 * files; one thread. */
#ifndef TRUNKLINE_SPAWNER_COLLECT_H
#define TRUNKLINE_SPAWNER_COLLECT_H

#include "spawner/util/job.h"
#include "spawner/wire/wire.h"

struct collect {
    const struct job *job;
    const char *parent; /* where the files are made */
    struct collect_host {
        int fd[JOB_FILES]; /* -1: nothing has come */
    } * hosts;
    bool *has_stats; /* of each rank */
    bool has_trace;
    bool failed; /* a file could not be written, which was reported */
    /* Where counters go while the job runs, as view.h has it. */
    int64_t (*sample)(void *samples, const uint8_t *answer);
    void *samples;
};

/* False: out of memory. */
bool collect_open(struct collect *c, const struct job *job, const char *parent);
void collect_close(struct collect *c);

/* Opens a file without a name, to append to and to read; -1 with errno. */
int collect_file(const char *parent);

/* Takes a WIRE_FILE. */
void collect_add(struct collect *c, const struct wire_frame *f);

#endif
