/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters of dropped packets by reason: before the end points (counted in shca_udp) and by them
 * (counted in each). Owns nothing. */
#include "config.h"

#include <sched.h>
#include <stdio.h>

#include "wire/udp/udp.h"

static const char *const names[SHCA_UDP_DROPS] = {
    [SHCA_DROP_SHORT] = "short", [SHCA_DROP_OPCODE] = "opcode",   [SHCA_DROP_VERSION] = "version",
    [SHCA_DROP_PAD] = "pad",     [SHCA_DROP_PAYLOAD] = "payload", [SHCA_DROP_ICRC] = "icrc",
    [SHCA_DROP_QUEUE] = "queue", [SHCA_DROP_ADDRESS] = "address", [SHCA_DROP_PORT] = "port",
};

/* Of struct roce_counters. */
static const struct {
    const char *name;
    size_t at;
    bool stranger;
} inner[] = {
    {"partition", offsetof(struct roce_counters, drop_pkey), true},
    {"transport", offsetof(struct roce_counters, drop_transport), true},
    {"key", offsetof(struct roce_counters, drop_qkey), false},
    {"state", offsetof(struct roce_counters, drop_state), false},
    {"unasked", offsetof(struct roce_counters, stale), false},
    {"early", offsetof(struct roce_counters, gaps), false},
    {"again", offsetof(struct roce_counters, duplicates), false},
    {"unfit", offsetof(struct roce_counters, drop_receive), false},
    {"reserved", offsetof(struct roce_counters, drop_invalid), false},
};
enum {
    inners = sizeof inner / sizeof inner[0],
    tries_at_end = 1000,
};

enum shca_udp_drop shca_udp_drop_of(enum roce_verdict v)
{
    switch (v) {
    case ROCE_BAD_OPCODE:
        return SHCA_DROP_OPCODE;
    case ROCE_BAD_VERSION:
        return SHCA_DROP_VERSION;
    case ROCE_BAD_PAD:
        return SHCA_DROP_PAD;
    case ROCE_BAD_PAYLOAD:
        return SHCA_DROP_PAYLOAD;
    default:
        return SHCA_DROP_SHORT;
    }
}

static uint64_t value_at(const struct roce_counters *c, unsigned i)
{
    uint64_t value;

    memcpy(&value, (const char *)c + inner[i].at, sizeof value);
    return value;
}

/* The sum of one counter over all end points: closed ones and, with the lock held, open ones. */
static uint64_t inner_sum(unsigned i, bool locked)
{
    uint64_t sum = value_at(&shca_udp.gone, i);

    for (uint32_t at = 0; locked && at < shca.qp_high; at++) {
        struct shca_qp *qp = atomic_load_explicit(&shca_udp.qps[at], memory_order_acquire);

        if (qp)
            sum += value_at(roce_counters(qp->udp->e), i);
    }
    return sum;
}

void shca_udp_keep_counters(const struct roce_endpoint *e)
{
    char *to = (char *)&shca_udp.gone;

    for (unsigned i = 0; i < inners; i++) {
        uint64_t sum = value_at(&shca_udp.gone, i) + value_at(roce_counters(e), i);

        memcpy(to + inner[i].at, &sum, sizeof sum);
    }
}

static uint64_t outer_sum(unsigned first, unsigned end)
{
    uint64_t sum = 0;

    for (unsigned i = first; i < end; i++)
        sum += atomic_load_explicit(&shca_udp.drops[i], memory_order_relaxed);
    return sum;
}

uint64_t shca_udp_damaged(void)
{
    return outer_sum(0, SHCA_DROP_ICRC + 1);
}

static uint64_t strangers(bool locked)
{
    uint64_t sum = outer_sum(SHCA_DROP_ICRC + 1, SHCA_UDP_DROPS);

    for (unsigned i = 0; i < inners; i++)
        if (inner[i].stranger)
            sum += inner_sum(i, locked);
    return sum;
}

uint64_t shca_udp_strangers(void)
{
    uint64_t sum;

    shca_lock(&shca_udp.lock);
    sum = strangers(true);
    shca_unlock(&shca_udp.lock);
    return sum;
}

/* A process may end in a signal handler, over a thread that holds the lock. */
static bool lock_at_end(void)
{
    for (int i = 0; i < tries_at_end; i++) {
        if (shca_trylock(&shca_udp.lock))
            return true;
        sched_yield();
    }
    return false;
}

int shca_udp_report(char *out, size_t room)
{
    bool locked = lock_at_end();
    size_t n = (size_t)snprintf(out, room, " damaged %llu strangers %llu",
                                (unsigned long long)shca_udp_damaged(),
                                (unsigned long long)strangers(locked));

    for (unsigned i = 0; i < SHCA_UDP_DROPS && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, " %s %llu", names[i],
                              (unsigned long long)outer_sum(i, i + 1));
    for (unsigned i = 0; i < inners && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, " %s %llu", inner[i].name,
                              (unsigned long long)inner_sum(i, locked));
    if (locked)
        shca_unlock(&shca_udp.lock);
    return (int)n;
}

void shca_udp_drops_inherited(void)
{
    atomic_store(&shca_udp.sent, 0);
    atomic_store(&shca_udp.received, 0);
    atomic_store(&shca_udp.lost, 0);
    atomic_store(&shca_udp.repeated, 0);
    atomic_store(&shca_udp.deadlines, 0);
    for (unsigned i = 0; i < SHCA_UDP_DROPS; i++)
        atomic_store(&shca_udp.drops[i], 0);
    memset(&shca_udp.gone, 0, sizeof shca_udp.gone);
}
