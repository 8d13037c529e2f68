/* SPDX-License-Identifier: BSD-3-Clause */
/* The sorted tables come to rank 0 as streams of bytes: asked by a Short, a rank fills the window
 * in its segment and answers how much is there, and rank 0 gets it. So a result may be larger than
 * any segment, and a word longer than the window. Owns our stream and, on rank 0, the ends of all
 * streams. Takes no lock: handlers run in this thread's polls. */
#include "config.h"

#include "table.h"
#include "wordcount.h"

#include <stdlib.h>
#include <string.h>

/* Before each word of a stream. */
struct head {
    uint64_t count, length;
};

/* How far our own stream has been sent. */
static const struct entry *sorted;
static size_t entry, offset; /* offset into head and word */

/* One stream on rank 0, and the word it stands at. */
struct source {
    gex_Rank_t rank;
    char *window;
    size_t at, have;
    int ended;
    struct head head;
    char *word;
    size_t room;
};

static int32_t filled; /* the answer that rank 0 waits for; -1: none yet */
static gex_AM_Index_t fill_index, filled_index;

/* ---- the side that has the table ---- */

static size_t copy_part(char *to, size_t room, const char *from, size_t size)
{
    size_t part = size < room ? size : room;

    memcpy(to, from, part);
    return part;
}

static size_t fill_window(void)
{
    char *window = job.board->window;
    size_t at = 0;

    while (at < WINDOW && entry < table_size()) {
        const struct entry *e = &sorted[entry];
        struct head head = {e->count, e->length};
        size_t part;

        if (offset < sizeof head)
            part =
                copy_part(window + at, WINDOW - at, (char *)&head + offset, sizeof head - offset);
        else
            part = copy_part(window + at, WINDOW - at, e->word + offset - sizeof head,
                             e->length - (offset - sizeof head));
        at += part;
        offset += part;
        if (offset == sizeof head + e->length) {
            entry++;
            offset = 0;
        }
    }
    return at;
}

static void on_fill(gex_Token_t token)
{
    gex_AM_ReplyShort1(token, filled_index, 0, (gex_AM_Arg_t)fill_window());
}

static void on_filled(gex_Token_t token, gex_AM_Arg_t bytes)
{
    (void)token;
    filled = bytes;
}

void gather_register(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_fill, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "fill"},
        {0, (gex_AM_Fn_t)on_filled, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "filled"},
    };

    if (gex_EP_RegisterHandlers(job.ep, table, 2) != GASNET_OK)
        die(FAILED, "cannot register handlers");
    fill_index = table[0].gex_index;
    filled_index = table[1].gex_index;
}

void gather_publish(void)
{
    sorted = table_sorted();
}

/* ---- rank 0 ---- */

static void refill(struct source *source)
{
    filled = -1;
    gex_AM_RequestShort0(job.tm, source->rank, fill_index, 0);
    GASNET_BLOCKUNTIL(filled >= 0);
    source->at = 0;
    source->have = (size_t)filled;
    gex_RMA_GetBlocking(job.tm, source->window, source->rank, board_of(source->rank)->window,
                        source->have, 0);
}

/* Non-zero when the stream ended before `size` bytes. */
static int take(struct source *source, void *memory, size_t size)
{
    char *to = memory;

    while (size) {
        size_t part;

        if (source->at == source->have)
            refill(source);
        if (source->have == 0)
            return -1;
        part = copy_part(to, size, source->window + source->at, source->have - source->at);
        source->at += part;
        to += part;
        size -= part;
    }
    return 0;
}

static void next_word(struct source *source)
{
    if (take(source, &source->head, sizeof source->head) != 0) {
        source->ended = 1;
        return;
    }
    if (source->head.length > source->room) {
        source->room = source->head.length;
        free(source->word);
        source->word = malloc(source->room);
    }
    if (!source->word || take(source, source->word, source->head.length) != 0)
        die(FAILED, "cannot take a word of %llu letters from rank %u",
            (unsigned long long)source->head.length, (unsigned)source->rank);
}

static int compare(const struct source *a, const struct source *b)
{
    return word_compare(a->word, a->head.length, b->word, b->head.length);
}

static struct source *open_sources(void)
{
    struct source *sources = calloc(job.size, sizeof *sources);

    for (gex_Rank_t i = 0; sources && i < job.size; i++) {
        sources[i].rank = i;
        sources[i].room = 64;
        sources[i].word = malloc(sources[i].room);
        sources[i].window = malloc(WINDOW);
        if (!sources[i].word || !sources[i].window)
            die(FAILED, "no memory for the result of rank %u", (unsigned)i);
        next_word(&sources[i]);
    }
    if (!sources)
        die(FAILED, "no memory for %u results", (unsigned)job.size);
    return sources;
}

static struct source *least(struct source *sources)
{
    struct source *best = NULL;

    for (gex_Rank_t i = 0; i < job.size; i++)
        if (!sources[i].ended && (!best || compare(&sources[i], best) < 0))
            best = &sources[i];
    return best;
}

/* Adds up what the other ranks have of the word that `best` stands at. */
static uint64_t add_up(struct source *sources, struct source *best)
{
    uint64_t count = best->head.count;

    for (struct source *other = sources; other < sources + job.size; other++)
        if (other != best && !other->ended && compare(other, best) == 0) {
            count += other->head.count;
            next_word(other);
        }
    return count;
}

void gather_all(result_fn *each)
{
    struct source *sources = open_sources(), *best;

    while ((best = least(sources))) {
        uint64_t count = add_up(sources, best);

        each(best->word, best->head.length, count);
        next_word(best);
    }
    for (gex_Rank_t i = 0; i < job.size; i++) {
        free(sources[i].word);
        free(sources[i].window);
    }
    free(sources);
}
