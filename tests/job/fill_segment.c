/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fill_segment MIB: all ranks attach so much, and each writes to its neighbours' whole segments:
 * attached memory must be available. */
#include <stdlib.h>
#include <string.h>

#include "job.h"

int main(int argc, char **argv)
{
    size_t size = (size_t)(argc > 1 ? atoi(argv[1]) : 1) << 20;
    job_start(&argc, &argv, size);
    void *owner, *local;
    gex_Rank_t next = (job.rank + 1) % job.size;
    CHECK(gex_Segment_QueryBound(job.tm, next, &owner, &local, NULL) == 0 && local);
    memset(local, (int)job.rank + 1, size);
    job_barrier();
    gex_Rank_t previous = (job.rank + job.size - 1) % job.size;
    CHECK(job.base[0] == (char)(previous + 1) && job.base[size - 1] == (char)(previous + 1));
    job_end();
}
