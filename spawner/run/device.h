/* SPDX-License-Identifier: BSD-3-Clause */
/* Which RDMA device the ranks get: the machine's own, or softhca, the one made of software. */
#ifndef TRUNKLINE_SPAWNER_DEVICE_H
#define TRUNKLINE_SPAWNER_DEVICE_H

#include "spawner/util/job.h"
#include "settings/settings.h"

/* Decides by GASNET_SOFTHCA and prepares this process's environment, which the ranks inherit:
 * LD_PRELOAD and SOFTHCA_FABRIC. Prints the choice of softhca once if standard error is a terminal,
 * and why a job cannot run. On failure returns the exit status, else 0. */
int device_choose(const struct job *job, const struct tk_settings *s);

/* For a job with other hosts: fills the data by which the head decides once they have answered
 * (head/devices.h), and leaves this process's environment alone. Returns as device_choose(). */
int device_prepare(struct job *job, const struct tk_settings *s);

#endif
