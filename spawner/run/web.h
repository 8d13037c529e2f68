/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnetrun_ibv --top --web: passes samples to gasnet_report --serve, a child of ours, by a pipe.
 */
#ifndef TRUNKLINE_SPAWNER_WEB_H
#define TRUNKLINE_SPAWNER_WEB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct web {
    FILE *to; /* an object on a line for each sample */
    pid_t pid;
};

/* Returns 0 or an exit status, after one line. */
int web_open(struct web *w, uint16_t port);

/* Waits until the next sample is due. False: the server has ended. */
bool web_wait(const struct web *w, int ms);

/* Ends the server. Returns its exit status; it has explained its errors. */
int web_close(struct web *w);

#endif
