/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 enters the last barrier last, and so leaves it at once, with its own message still in
 * flight. For tests in which that message is lost: the other ranks get out of the barrier only if a
 * rank that is leaving sends it again. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <unistd.h>

enum { late_us = 60000 };

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 0);
    job_barrier();
    if (job.rank == 0)
        usleep(late_us);
    job_end();
}
