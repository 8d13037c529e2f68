/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See gather.h. Owns the table of the last gathering, in memory of its own or on the host's board.
 * Without a board each rank asks the server itself. The blobs of a host travel as one
 * (host_blob.h). No lock: one thread at a time. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "bootstrap/board.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/gather.h"
#include "bootstrap/host_blob.h"

static const char board_key[] = "tk.board";

enum { unit = 8 /* bytes, that any record may lie there */ };

/* The table: one of these for each rank, then the blobs of the ranks. */
struct place {
    uint64_t at, size; /* in bytes from the beginning of the table */
};

static struct {
    void *own, *table; /* own: allocated by us, else it is on the board */
    size_t size;       /* of the table */
} last;

/* Whether there is a board to be used, decided with the first gathering. */
static enum { UNDECIDED, ALONE, LEADS, FOLLOWS } role;

/* The ranks whose blobs are asked for: all of one host, or the lowest of each of several. The first
 * gathering learns them. */
static struct {
    uint32_t *ranks, count;
} sources;

/* What the leader, or a rank without a board, has received: the blobs of the ranks, or of the
 * hosts, and the size of each rank's. */
struct blobs {
    struct tk_bootstrap_blob *at;
    uint64_t *sizes;
    uint32_t count;
    size_t total; /* bytes of a table of them */
};

void tk_gather_drop(void)
{
    tk_board_drop();
    free(last.own);
    last.own = last.table = NULL;
    last.size = 0;
}

void *tk_gathered(uint32_t rank, size_t *size)
{
    struct place place = {0};
    size_t front = tk_bootstrap.size * sizeof(place);
    if (front <= last.size)
        place = ((struct place *)last.table)[rank];
    if (place.at < front || place.at % unit || place.at > last.size ||
        place.size > last.size - place.at) {
        tk_log_error("what was gathered of rank %u is not where it should be: has a process of "
                     "this host written to memory of the library?",
                     rank);
        return NULL;
    }
    *size = (size_t)place.size;
    return (char *)last.table + place.at;
}

/* ---- the leader, or a rank that asks the server itself */

static bool has_neighbours(void)
{
    return tk_bootstrap.local && tk_bootstrap.local_size > 1;
}

/* With several hosts, one rank of each puts the blobs of its host as one: less goes through the
 * launcher, and its servers keep, and are asked for, one value of a host in place of one of each
 * rank. On one host a fence moves no data. */
static bool is_packed(void)
{
    return tk_bootstrap.local_size < tk_bootstrap.size;
}

static void blobs_free(struct blobs *blobs)
{
    for (uint32_t i = 0; blobs->at && i < blobs->count; i++)
        free(blobs->at[i].at);
    free(blobs->at);
    free(blobs->sizes);
}

static enum tk_status get_of_ranks(const char *key, struct blobs *blobs, void (*poll)(void))
{
    sources.count = blobs->count = tk_bootstrap.size;
    for (uint32_t r = 0; r < tk_bootstrap.size; r++)
        sources.ranks[r] = r;
    if (tk_bootstrap_get_many(key, sources.ranks, sources.count, blobs->at, poll) != TK_OK)
        return TK_FAIL;
    for (uint32_t r = 0; r < blobs->count; r++)
        blobs->sizes[r] = blobs->at[r].size;
    return TK_OK;
}

static enum tk_status refuse_blob(uint32_t rank)
{
    tk_log_error("rank %u has sent data of its host in another form, or of ranks of other hosts: "
                 "link all programs of a job with the same version",
                 rank);
    return TK_FAIL;
}

/* The blobs of the hosts whose lowest ranks these are. */
static enum tk_status add_hosts(const char *key, const uint32_t *ranks, uint32_t count,
                                struct blobs *blobs, void (*poll)(void))
{
    struct tk_bootstrap_blob *at = blobs->at + blobs->count;
    blobs->count += count;
    if (tk_bootstrap_get_many(key, ranks, count, at, poll) != TK_OK)
        return TK_FAIL;
    for (uint32_t i = 0; i < count; i++)
        if (!tk_host_read_sizes(&at[i], blobs->sizes, tk_bootstrap.size) ||
            blobs->sizes[ranks[i]] == tk_host_no_size)
            return refuse_blob(ranks[i]);
    return TK_OK;
}

/* Of the ranks from `from` on, those to be asked now. Where the launcher tells this rank nothing
 * about hosts, and rank 0 shows nobody else either, each rank has put a blob of its own. */
static uint32_t number_to_ask(const struct blobs *blobs, uint32_t from)
{
    bool each_its_own = !tk_bootstrap.local && from == 1;
    for (uint32_t r = from; r < tk_bootstrap.size && each_its_own; r++)
        each_its_own = blobs->sizes[r] == tk_host_no_size;
    return each_its_own ? tk_bootstrap.size - from : 1;
}

/* The lowest rank of each host has put the host's blob, so the lowest rank that is in no blob yet
 * is such a rank. Which ones these are a rank knows only by asking for one after another. */
static enum tk_status find_hosts(const char *key, struct blobs *blobs, void (*poll)(void))
{
    enum tk_status status = TK_OK;
    for (uint32_t r = 0; r < tk_bootstrap.size && status == TK_OK; r++) {
        if (blobs->sizes[r] != tk_host_no_size)
            continue;
        uint32_t *ranks = sources.ranks + sources.count, count = number_to_ask(blobs, r);
        for (uint32_t i = 0; i < count; i++)
            ranks[i] = r + i;
        sources.count += count;
        status = add_hosts(key, ranks, count, blobs, poll);
    }
    if (status != TK_OK)
        sources.count = 0;
    return status;
}

static enum tk_status get_of_hosts(const char *key, struct blobs *blobs, void (*poll)(void))
{
    for (uint32_t r = 0; r < tk_bootstrap.size; r++)
        blobs->sizes[r] = tk_host_no_size;
    if (sources.count == 0)
        return find_hosts(key, blobs, poll);
    if (add_hosts(key, sources.ranks, sources.count, blobs, poll) != TK_OK)
        return TK_FAIL;
    for (uint32_t r = 0; r < tk_bootstrap.size; r++)
        if (blobs->sizes[r] == tk_host_no_size)
            return refuse_blob(r);
    return TK_OK;
}

static enum tk_status blobs_get(const char *key, struct blobs *blobs, void (*poll)(void))
{
    uint32_t size = tk_bootstrap.size;
    blobs->total = size * sizeof(struct place);
    blobs->at = calloc(size, sizeof(*blobs->at));
    blobs->sizes = calloc(size, sizeof(*blobs->sizes));
    if (!sources.ranks)
        sources.ranks = calloc(size, sizeof(*sources.ranks));
    if (!blobs->at || !blobs->sizes || !sources.ranks) {
        tk_log_error("out of memory for the data of %u ranks", size);
        return TK_FAIL;
    }
    if ((is_packed() ? get_of_hosts : get_of_ranks)(key, blobs, poll) != TK_OK)
        return TK_FAIL;
    for (uint32_t r = 0; r < size; r++)
        blobs->total += tk_align_up(blobs->sizes[r], unit);
    return TK_OK;
}

static void *place_in(uint32_t rank, void *table)
{
    return (char *)table + ((struct place *)table)[rank].at;
}

static void write_table(void *table, const void *what)
{
    const struct blobs *blobs = what;
    struct place *places = table;
    uint64_t at = tk_bootstrap.size * sizeof(*places);
    for (uint32_t r = 0; r < tk_bootstrap.size; r++) {
        places[r] = (struct place){.at = at, .size = blobs->sizes[r]};
        at += tk_align_up(blobs->sizes[r], unit);
    }
    for (uint32_t i = 0; i < blobs->count; i++)
        if (is_packed())
            tk_host_unpack(&blobs->at[i], place_in, table);
        else
            memcpy(place_in(i, table), blobs->at[i].at, blobs->at[i].size);
}

static enum tk_status keep_own(const struct blobs *blobs)
{
    last.own = last.table = malloc(blobs->total);
    last.size = blobs->total;
    if (!last.own) {
        tk_log_error("out of memory for the data of all ranks (%zu bytes)", blobs->total);
        return TK_FAIL;
    }
    write_table(last.own, blobs);
    return TK_OK;
}

static enum tk_status gather_lead(const char *key, void (*poll)(void))
{
    struct blobs blobs = {.at = NULL};
    enum tk_status status = blobs_get(key, &blobs, poll);
    if (status == TK_OK)
        status = keep_own(&blobs);
    if (role == LEADS)
        tk_board_publish(blobs.total, status == TK_OK ? write_table : NULL, &blobs);
    blobs_free(&blobs);
    return status;
}

/* ---- the others */

/* The leader has logged why it failed. */
static enum tk_status gather_follow(const char *key, void (*poll)(void))
{
    bool failed;
    last.table = tk_board_wait(&last.size, &failed, poll);
    if (failed)
        return TK_FAIL;
    return last.table ? TK_OK : gather_lead(key, poll);
}

/* ---- */

/* Ranks on several hosts have their leaders; the lowest rank of a host leads. */
static enum tk_status offer_board(void)
{
    struct tk_board_place place;
    if (role != UNDECIDED || !has_neighbours() || tk_bootstrap.local[0] != tk_bootstrap.rank)
        return TK_OK;
    tk_board_open(&place);
    role = place.fd >= 0 ? LEADS : ALONE;
    return tk_bootstrap_put_local(board_key, &place, sizeof(place));
}

/* After the first fence. */
static enum tk_status choose_role(void)
{
    void *place;
    size_t size;
    if (role != UNDECIDED)
        return TK_OK;
    role = ALONE;
    if (!has_neighbours())
        return TK_OK;
    if (tk_bootstrap_get(tk_bootstrap.local[0], board_key, &place, &size) != TK_OK)
        return TK_FAIL;
    if (size == sizeof(struct tk_board_place) && tk_board_join(place))
        role = FOLLOWS;
    free(place);
    return TK_OK;
}

/* The leader, with the blobs of the ranks behind it. */
static enum tk_status put_host(const char *key, const void *mine, size_t size, void (*poll)(void))
{
    uint32_t count = has_neighbours() ? tk_bootstrap.local_size : 1;
    const uint32_t *ranks = has_neighbours() ? tk_bootstrap.local : &tk_bootstrap.rank;
    struct tk_bootstrap_blob *blobs = calloc(count, sizeof(*blobs));
    void *packed = NULL;
    size_t bytes;
    enum tk_status status = TK_FAIL;
    if (!blobs) {
        tk_log_error("out of memory for the data of %u ranks", count);
        return TK_FAIL;
    }
    blobs[0] = (struct tk_bootstrap_blob){.at = (void *)mine, .size = size};
    bool have_all =
        count == 1 || tk_bootstrap_get_local(key, ranks + 1, count - 1, blobs + 1, poll) == TK_OK;
    if (have_all)
        packed = tk_host_pack(ranks, blobs, count, &bytes);
    if (packed)
        status = tk_bootstrap_put(key, packed, bytes);
    else if (have_all)
        tk_log_error("out of memory for the data of this host");
    free(packed);
    for (uint32_t i = 1; i < count; i++)
        free(blobs[i].at);
    free(blobs);
    return status;
}

static bool leads_host(void)
{
    return !has_neighbours() || tk_bootstrap.local[0] == tk_bootstrap.rank;
}

static enum tk_status put_mine(const char *key, const void *mine, size_t size, void (*poll)(void))
{
    if (!is_packed())
        return tk_bootstrap_put(key, mine, size);
    return leads_host() ? put_host(key, mine, size, poll) : tk_bootstrap_put_local(key, mine, size);
}

void tk_gather_withdraw(const char *key)
{
    if (!tk_bootstrap.alone && is_packed() && leads_host())
        tk_bootstrap_withdraw(key);
}

enum tk_status tk_gather_meet(void)
{
    bool shares = role == LEADS || role == FOLLOWS;
    if (shares && !is_packed() && tk_board_meet(tk_bootstrap.size))
        return TK_OK;
    return tk_bootstrap_fence(NULL, 0);
}

/* Without a launcher no server would answer. */
static enum tk_status gather_alone(const void *mine, size_t size)
{
    struct tk_bootstrap_blob only = {.at = (void *)mine, .size = size};
    uint64_t sizes[] = {size};
    struct blobs blobs = {.at = &only,
                          .sizes = sizes,
                          .count = 1,
                          .total = sizeof(struct place) + tk_align_up(size, unit)};
    return keep_own(&blobs);
}

enum tk_status tk_gather(const char *key, const void *mine, size_t size, void (*poll)(void))
{
    tk_gather_drop();
    if (tk_bootstrap.alone)
        return gather_alone(mine, size);
    if (offer_board() != TK_OK || put_mine(key, mine, size, poll) != TK_OK ||
        tk_bootstrap_fence_data(poll, 0) != TK_OK || choose_role() != TK_OK)
        return TK_FAIL;
    return (role == FOLLOWS ? gather_follow : gather_lead)(key, poll);
}
