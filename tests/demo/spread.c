/* SPDX-License-Identifier: BSD-3-Clause */
/* Each word goes to the rank that its hash names, many of them in one Medium message; an answer
 * says that they are counted. A word too long for a message is counted where it was read: the merge
 * adds such words up. Owns one batch for each rank. Takes no lock: handlers run in this thread's
 * polls. */
#include "config.h"

#include "table.h"
#include "wordcount.h"

#include <stdlib.h>
#include <string.h>

/* Enough to hide the cost of a message, little enough for a thousand ranks. */
enum { BATCH = 4000 };

struct batch {
    size_t used;
    char bytes[BATCH]; /* words, each behind its length as uint16_t */
};

static struct batch *batches;
static uint64_t sent, counted;
static gex_AM_Index_t batch_index, counted_index;

static void add(const char *word, size_t length)
{
    if (table_add(word, length) != 0)
        die(FAILED, "rank %u has no memory for another word", (unsigned)job.rank);
}

static void on_batch(gex_Token_t token, void *memory, size_t size)
{
    const char *at = memory, *end = at + size;
    uint16_t length;

    while (at < end) {
        memcpy(&length, at, sizeof length);
        add(at + sizeof length, length);
        at += sizeof length + length;
    }
    gex_AM_ReplyShort0(token, counted_index, 0);
}

static void on_counted(gex_Token_t token)
{
    (void)token;
    counted++;
}

void spread_register(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_batch, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "batch"},
        {0, (gex_AM_Fn_t)on_counted, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "counted"},
    };

    if (gex_EP_RegisterHandlers(job.ep, table, 2) != GASNET_OK)
        die(FAILED, "cannot register handlers");
    batch_index = table[0].gex_index;
    counted_index = table[1].gex_index;
    batches = calloc(job.size, sizeof *batches);
    if (!batches)
        die(FAILED, "no memory for %u batches", (unsigned)job.size);
}

static void flush(gex_Rank_t to)
{
    struct batch *batch = &batches[to];

    if (batch->used == 0)
        return;
    gex_AM_RequestMedium0(job.tm, to, batch_index, batch->bytes, batch->used, GEX_EVENT_NOW, 0);
    batch->used = 0;
    sent++;
}

void spread_word(const char *word, size_t length)
{
    gex_Rank_t owner = (gex_Rank_t)(word_hash(word, length) % job.size);
    struct batch *batch = &batches[owner];
    uint16_t short_length = (uint16_t)length;

    if (length > BATCH - sizeof short_length) {
        add(word, length);
        return;
    }
    if (batch->used + sizeof short_length + length > BATCH)
        flush(owner);
    memcpy(batch->bytes + batch->used, &short_length, sizeof short_length);
    memcpy(batch->bytes + batch->used + sizeof short_length, word, length);
    batch->used += sizeof short_length + length;
}

uint64_t spread_finish(void)
{
    for (gex_Rank_t i = 0; i < job.size; i++)
        flush((job.rank + i) % job.size); /* not everybody to rank 0 first */
    GASNET_BLOCKUNTIL(counted == sent);
    return sent;
}
