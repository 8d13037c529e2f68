/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gathers a few bytes of every rank at every rank, through the bootstrap, after start-up. Owns the
 * number of the exchange. No lock: one thread at a time, like all of the bootstrap. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "bootstrap/gather.h"
#include "peer/peer.h"

static enum tk_status share_take(uint32_t rank, char *place, size_t size)
{
    size_t theirs;
    const void *blob = tk_gathered(rank, &theirs);
    if (!blob)
        return TK_FAIL;
    if (theirs == size)
        memcpy(place, blob, size);
    else
        tk_log_error("rank %u shares %zu bytes, this rank %zu: all must give the same size", rank,
                     theirs, size);
    return theirs == size ? TK_OK : TK_FAIL;
}

/* A bootstrap may cache the value of a key on the way, so each exchange uses a new key. */
static void name_share(unsigned number, char key[32])
{
    snprintf(key, 32, "tk.share.%u", number);
}

/* All ranks that have come to this exchange have what the one before gathered. */
static void withdraw_before(unsigned number)
{
    char key[32];
    name_share(number - 1, key);
    if (number > 0)
        tk_gather_withdraw(key);
}

enum tk_status tk_share(const void *mine, void *all, size_t size, void (*poll)(void))
{
    static unsigned times;
    char key[32];
    name_share(times, key);
    enum tk_status status = tk_gather(key, mine, size, poll);
    if (status == TK_OK)
        withdraw_before(times);
    times++;
    for (uint32_t r = 0; status == TK_OK && r < tk_peers.size; r++)
        status = share_take(r, (char *)all + r * size, size);
    tk_gather_drop();
    return status;
}
