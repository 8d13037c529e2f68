/* SPDX-License-Identifier: BSD-3-Clause */
/* What start_crowd compares a job with: PMIx alone, by the same launcher, with as much data. Each
 * rank publishes the given number of bytes, the first one also 24 bytes for its host and 1325 of
 * settings, as the library does; one fence; finalize. Usage: pmix_start [BYTES] (569: a peer info
 * of one port). Owns nothing, locks nothing. */
#include "config.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 1 << 16, of_board = 24, of_settings = 1325 };

static void must(const char *what, pmix_status_t rc)
{
    if (rc == PMIX_SUCCESS)
        return;
    fprintf(stderr, "pmix_start: %s: %s\n", what, PMIx_Error_string(rc));
    exit(1);
}

static void put(const char *key, size_t size)
{
    static char bytes[most];
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    memset(bytes, 'x', size);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = bytes;
    value.data.bo.size = size;
    must("PMIx_Put", PMIx_Put(PMIX_GLOBAL, key, &value));
}

int main(int argc, char **argv)
{
    size_t size = argc > 1 ? (size_t)atoi(argv[1]) : 569;
    pmix_proc_t self;
    if (size > most)
        return 2;
    must("PMIx_Init", PMIx_Init(&self, NULL, 0));
    if (self.rank == 0) {
        put("board", of_board);
        put("settings", of_settings);
    }
    put("info", size);
    must("PMIx_Commit", PMIx_Commit());
    must("PMIx_Fence", PMIx_Fence(NULL, 0, NULL, 0));
    printf("hello from %u\n", self.rank);
    must("PMIx_Finalize", PMIx_Finalize(NULL, 0));
    return 0;
}
