/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gathers a few bytes of every rank at every rank, through the bootstrap, after start-up. No lock:
 * one thread at a time, like all of the bootstrap. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "peer/peer.h"

static enum tk_status share_collect(uint32_t rank, const char *key, char *place, size_t size)
{
    void *blob;
    size_t theirs;
    if (tk_bootstrap_get(rank, key, &blob, &theirs) != TK_OK)
        return TK_FAIL;
    if (theirs == size)
        memcpy(place, blob, size);
    else
        tk_log_error("rank %u shares %zu bytes, this rank %zu: all must give the same size", rank,
                     theirs, size);
    free(blob);
    return theirs == size ? TK_OK : TK_FAIL;
}

enum tk_status tk_share(const void *mine, void *all, size_t size, void (*poll)(void))
{
    /* A bootstrap may cache the value of a key on the way, so each exchange uses a new key. */
    static unsigned times;
    char key[32];
    snprintf(key, sizeof(key), "tk.share.%u", times++);
    memcpy((char *)all + tk_peers.me * size, mine, size);
    enum tk_status status = tk_bootstrap_put(key, mine, size);
    if (status == TK_OK)
        status = tk_bootstrap_fence(poll, 0);
    for (uint32_t r = 0; status == TK_OK && r < tk_peers.size; r++)
        if (r != tk_peers.me)
            status = share_collect(r, key, (char *)all + r * size, size);
    return status;
}
