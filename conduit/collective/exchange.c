/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bruck's allgather (1997): in round k each member sends the min(2^k, n - 2^k) records that it has,
 * beginning with its own, to the member 2^k below, and receives as many from the member 2^k above:
 * ceil(log2 n) rounds for any n. Without records it is a dissemination barrier.
 *
 * Owns the exchanges in progress, keyed by team, our rank in it and number. One is opened by our
 * call or by the first message, because other members may be ahead of us by some rounds, or by a
 * whole exchange, and may have created a team before us. One lock guards the list and all that
 * handlers write; no lock is held while sending or polling. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "base/thread_own.h"
#include "base/wait_record.h"
#include "collective/exchange.h"
#include "message/message.h"
#include "progress/progress.h"

enum { rounds_max = 32 };

struct exchange {
    struct exchange *next;
    uint64_t team;
    uint32_t rank, number;
    uint32_t count;                   /* of members */
    size_t size;                      /* of a record */
    char *records;                    /* ours first, then the next rank's, and so on */
    tk_counter_t missing[rounds_max]; /* messages of each round still to come */
};

/* The arguments of a message. Its payload belongs at `offset` of the receiver's records. */
enum { TEAM_LOW, TEAM_HIGH, RANK, NUMBER, ROUND, COUNT, SIZE, OFFSET_LOW, OFFSET_HIGH, args_count };

static tk_lock_t exchanges_lock = TK_LOCK_INIT;
static struct exchange *exchanges;

/* Records that travel in a round. */
static uint32_t exchange_width(uint32_t count, unsigned round)
{
    uint32_t distance = UINT32_C(1) << round;
    return (uint32_t)tk_min(distance, count - distance);
}

static size_t chunk_max(void)
{
    return tk_medium_max(args_count);
}

/* A round without payload is a message too. */
static uint32_t exchange_messages(const struct exchange *x, unsigned round)
{
    size_t bytes = exchange_width(x->count, round) * x->size;
    return bytes == 0 ? 1 : (uint32_t)((bytes + chunk_max() - 1) / chunk_max());
}

static bool has_round(uint32_t count, unsigned round)
{
    return round < rounds_max && UINT64_C(1) << round < count;
}

/* With the lock held. */
static struct exchange *exchange_find(const struct exchange *key)
{
    struct exchange *x = exchanges;
    while (x && (x->team != key->team || x->rank != key->rank || x->number != key->number))
        x = x->next;
    return x;
}

/* With the lock held. */
static struct exchange *exchange_add(const struct exchange *key)
{
    struct exchange *x = malloc(sizeof(*x));
    size_t bytes = key->count * key->size;
    if (!x || !(x->records = malloc(tk_max(bytes, 1))))
        tk_panic("out of memory for an exchange of %u records of %zu bytes", key->count, key->size);
    char *records = x->records;
    *x = *key;
    x->records = records;
    for (unsigned round = 0; has_round(x->count, round); round++)
        tk_counter_set(&x->missing[round], (int32_t)exchange_messages(x, round));
    x->next = exchanges;
    exchanges = x;
    return x;
}

static void exchange_remove(struct exchange *x)
{
    tk_lock(&exchanges_lock);
    struct exchange **at = &exchanges;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    tk_unlock(&exchanges_lock);
    free(x->records);
    free(x);
}

static uint64_t from_halves(int32_t low, int32_t high)
{
    return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

/* A message must not make us write outside of our records. */
static void check_message(const struct tk_arrival *arrival, const struct exchange *x,
                          const struct exchange *key, uint32_t round, uint64_t offset)
{
    bool fits = x->count == key->count && x->size == key->size && has_round(x->count, round);
    uint64_t all = (uint64_t)x->count * x->size;
    if (fits && offset <= all && arrival->nbytes <= all - offset &&
        tk_counter_read(&x->missing[round]) > 0)
        return;
    tk_panic("rank %u (%s) sent %zu bytes at %llu in round %u of an exchange of %u records of %zu "
             "bytes, here of %u records of %zu bytes: members of a team must make the same "
             "collective calls in the same order",
             arrival->peer->rank, arrival->peer->host, arrival->nbytes, (unsigned long long)offset,
             round, key->count, key->size, x->count, x->size);
}

/* The handler of exchanges. The payload is copied with the lock held: a record may be needed by the
 * thread in tk_exchange() as soon as it is counted. */
static void exchange_deliver(struct tk_arrival *arrival)
{
    const int32_t *args = (const int32_t *)(arrival->head + 1);
    struct exchange key = {.team = from_halves(args[TEAM_LOW], args[TEAM_HIGH]),
                           .rank = (uint32_t)args[RANK],
                           .number = (uint32_t)args[NUMBER],
                           .count = (uint32_t)args[COUNT],
                           .size = (uint32_t)args[SIZE]};
    uint32_t round = (uint32_t)args[ROUND];
    uint64_t offset = from_halves(args[OFFSET_LOW], args[OFFSET_HIGH]);
    tk_lock(&exchanges_lock);
    struct exchange *x = exchange_find(&key);
    if (!x)
        x = exchange_add(&key);
    check_message(arrival, x, &key, round, offset);
    if (arrival->nbytes > 0)
        memcpy(x->records + offset, arrival->payload, arrival->nbytes);
    tk_counter_add(&x->missing[round], -1);
    tk_unlock(&exchanges_lock);
}

/* What this thread waits for in tk_exchange(). */
struct exchange_wait {
    bool is_on;
    uint32_t peer;
    uint64_t number, team;
};

static void exchange_describe(struct tk_wait_rows *rows)
{
    const struct exchange_wait *wait = tk_thread_owned(TK_OWN_EXCHANGE);
    if (wait && wait->is_on)
        tk_wait_row_add(rows, TK_REASON_TEAM, wait->peer, wait->number, wait->team);
}

static void exchange_await(struct trunkline_tm *tm, enum tk_wait_call call,
                           const struct exchange *x, unsigned round)
{
    uint32_t source = (uint32_t)((x->rank + (UINT64_C(1) << round)) % x->count);
    struct exchange_wait *wait = tk_thread_own(TK_OWN_EXCHANGE, sizeof(*wait));
    *wait = (struct exchange_wait){
        .is_on = true, .peer = tk_peer_of(tm, source)->rank, .number = call, .team = x->team};
    tk_wait_served(&x->missing[round]);
    wait->is_on = false;
}

void tk_exchange_open(void)
{
    tk_wait_describe_add(exchange_describe);
    tk_internal_register_whole(TK_HANDLER_EXCHANGE, exchange_deliver);
}

static void exchange_send(struct tk_peer *to, const struct tk_internal_medium *medium)
{
    unsigned empty = 0;
    while (tk_internal_request(to, medium) != TK_OK)
        tk_wait_step(&empty);
    tk_wait_over();
}

/* Our records follow those that the receiver has in this round: at index 2^k of its own. */
static void exchange_send_round(struct trunkline_tm *tm, const struct exchange *x, unsigned round)
{
    uint32_t distance = UINT32_C(1) << round;
    uint32_t target = (uint32_t)((x->rank + (uint64_t)x->count - distance) % x->count);
    size_t bytes = exchange_width(x->count, round) * x->size, done = 0;
    struct tk_peer *to = tk_peer_of(tm, target);
    do {
        uint64_t offset = (uint64_t)distance * x->size + done;
        const int32_t args[args_count] = {[TEAM_LOW] = (int32_t)x->team,
                                          [TEAM_HIGH] = (int32_t)(x->team >> 32),
                                          [RANK] = (int32_t)target,
                                          [NUMBER] = (int32_t)x->number,
                                          [ROUND] = (int32_t)round,
                                          [COUNT] = (int32_t)x->count,
                                          [SIZE] = (int32_t)x->size,
                                          [OFFSET_LOW] = (int32_t)offset,
                                          [OFFSET_HIGH] = (int32_t)(offset >> 32)};
        struct tk_internal_medium medium = {.handler = TK_HANDLER_EXCHANGE,
                                            .nargs = args_count,
                                            .args = args,
                                            .payload = x->records + done,
                                            .nbytes = tk_min(bytes - done, chunk_max())};
        exchange_send(to, &medium);
        done += medium.nbytes;
    } while (done < bytes);
}

static struct exchange *exchange_begin(struct trunkline_tm *tm, const void *mine, size_t size)
{
    struct exchange key = {.team = tm->id,
                           .rank = tm->rank,
                           .number = tm->exchanges++,
                           .count = tm->jobranks.count,
                           .size = size};
    tk_lock(&exchanges_lock);
    struct exchange *x = exchange_find(&key);
    if (!x)
        x = exchange_add(&key);
    tk_unlock(&exchanges_lock);
    if (x->count != key.count || x->size != size)
        tk_panic("another member of a team of %u exchanges records of %zu bytes, this rank of %zu: "
                 "members of a team must make the same collective calls in the same order",
                 key.count, x->size, size);
    if (size > 0)
        memcpy(x->records, mine, size);
    return x;
}

void tk_exchange(struct trunkline_tm *tm, enum tk_wait_call call, const void *mine, void *all,
                 size_t size)
{
    struct exchange *x = exchange_begin(tm, mine, size);
    for (unsigned round = 0; has_round(x->count, round); round++) {
        exchange_send_round(tm, x, round);
        exchange_await(tm, call, x, round);
    }
    size_t behind = (x->count - x->rank) * size; /* bytes of our record and those of higher ranks */
    if (size > 0) {
        memcpy((char *)all + x->rank * size, x->records, behind);
        memcpy(all, x->records + behind, x->rank * size);
    }
    exchange_remove(x);
}
