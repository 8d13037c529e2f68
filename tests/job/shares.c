/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shares NUMBER BYTES [attach]: exchanges so many times through the launcher, perhaps after an
 * attach. */
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "trunkline_rails.h"

int main(int argc, char **argv)
{
    job_start(&argc, &argv, argc > 3 ? GASNET_PAGESIZE : 0);
    CHECK(argc > 2);
    size_t size = (size_t)atoi(argv[2]);
    char *mine = malloc(size), *all = malloc(job.size * size);
    for (int i = 0; i < atoi(argv[1]); i++) {
        job_fill(mine, size, job.rank + (uint64_t)i);
        CHECK(trunkline_rails_share(mine, all, size) == GASNET_OK);
        for (gex_Rank_t r = 0; r < job.size; r++)
            CHECK_PATTERN(all + r * size, size, r + (uint64_t)i);
    }
    free(mine);
    free(all);
    job_end();
}
