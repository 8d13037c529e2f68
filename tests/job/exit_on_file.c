/* SPDX-License-Identifier: BSD-3-Clause */
/* A job that prints "ready" and leaves when a file appears: exit_on_file FILE [CODE]. For tests
 * that do something to the launcher in between. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    job_start(&argc, &argv, GASNET_PAGESIZE);
    job_barrier();
    CHECK(argc > 1);
    puts("ready");
    fflush(stdout);
    while (access(argv[1], F_OK) != 0) {
        usleep(2000);
        gasnet_AMPoll();
    }
    gasnet_exit(argc > 2 ? atoi(argv[2]) : 0);
}
