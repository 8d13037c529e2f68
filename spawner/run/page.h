/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnetrun_ibv --report FILE: checks before the job that FILE can be written and that
 * gasnet_report is there, and runs it after the job on what the ranks wrote. */
#ifndef TRUNKLINE_SPAWNER_PAGE_H
#define TRUNKLINE_SPAWNER_PAGE_H

#include "samples.h"
#include "spawner/head/collect.h"

struct page {
    const char *name; /* FILE */
    int fd;           /* -1: there is none yet */
    bool is_new;      /* FILE did not exist */
    char tool[4096];
    struct collect collect;
    struct samples samples;
};

/* Opens FILE, and leaves its contents. Returns 0 or an exit status, after one line. */
int page_open(struct page *p, const char *name, const struct job *job, const char *parent);

/* Writes the page; `status` is that of the job. `signals`: what signals_catch() returned; a signal
 * ends the tool. Returns the exit status of the launcher. */
int page_write(struct page *p, int status, int signals);

#endif
