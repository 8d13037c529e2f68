/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See ledger.h. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packet/bytes.h"
#include "sim/ledger.h"

enum {
    book_pages = 4096,    /* broadcasts that are remembered */
    pattern_room = 65536, /* a message begins somewhere in the first half */
};

static uint8_t patterns[pattern_room + 64 * ROCE_MTU_MAX];

void sim_ledger_start(struct sim_ledger *l, const struct sim_options *o, struct sim_queue *q)
{
    uint32_t x = 1;

    memset(l, 0, sizeof *l);
    l->o = o;
    l->q = q;
    l->book = calloc(book_pages, sizeof *l->book);
    l->life = calloc(o->members, sizeof *l->life);
    l->order = calloc(o->members, sizeof *l->order);
    if (!l->book || !l->life || !l->order)
        abort();
    l->begun = 1; /* 0 is the set-up: the bases that members joined with */
    for (size_t i = 0; i < sizeof patterns; i++) {
        x = x * 1664525 + 1013904223;
        patterns[i] = (uint8_t)(x >> 24);
    }
}

static void forget(struct sim_broadcast *b)
{
    if (b) {
        free(b->delivered);
        free(b->control);
    }
    free(b);
}

void sim_ledger_end(struct sim_ledger *l)
{
    for (uint32_t i = 0; i < book_pages; i++)
        forget(l->book[i]);
    free(l->book);
    free(l->life);
    free(l->order);
}

void sim_violation(struct sim_ledger *l, const char *format, ...)
{
    va_list args;
    int used;

    if (l->violations++ > 0)
        return;
    used = snprintf(l->first, sizeof l->first, "at %.1f links: ", (double)l->q->now / 10000);
    va_start(args, format);
    vsnprintf(l->first + used, sizeof l->first - (size_t)used, format, args);
    va_end(args);
}

struct sim_broadcast *sim_ledger_begin(struct sim_ledger *l, uint32_t root)
{
    struct sim_broadcast *b = calloc(1, sizeof *b), **page = &l->book[l->begun % book_pages];

    if (!b || !(b->delivered = calloc(l->o->members, 1)))
        abort();
    if (*page && (*page)->closed && *page != l->now)
        forget(*page);
    *page = b; /* an unclosed one leaks, in a run that hangs */
    b->id = l->begun++;
    b->root = root;
    b->life = l->life[root];
    b->began = l->q->now;
    return b;
}

void sim_ledger_posted(struct sim_ledger *l, struct sim_broadcast *b)
{
    b->receivers = 0;
    for (uint32_t i = 0; i < l->o->members; i++)
        b->receivers += sim_set_has(&b->to, i);
    b->missing = b->receivers * b->messages;
}

struct sim_broadcast *sim_ledger_find(struct sim_ledger *l, uint32_t serial)
{
    uint32_t id = serial / SIM_MESSAGES_MAX;
    struct sim_broadcast *b = l->book[id % book_pages];

    return b && b->id == id && serial % SIM_MESSAGES_MAX < b->messages ? b : NULL;
}

/* A broadcast begins to arrive: the one before it must be complete, unless its root lost the lock.
 * Packets of such a root may still reach receivers that the switch reports as dirty, but never
 * behind newer ones. */
static void begins(struct sim_ledger *l, struct sim_broadcast *b)
{
    struct sim_broadcast *before = l->now;

    if (before && before->missing && before->life == l->life[before->root])
        sim_violation(l,
                      "I5: broadcast %u of member %u arrives, but %u of member %u is not complete",
                      b->id, b->root, before->id, before->root);
    b->order = ++l->orders;
    l->now = b;
}

void sim_ledger_deliver(struct sim_ledger *l, uint32_t member, uint32_t serial)
{
    struct sim_broadcast *b = sim_ledger_find(l, serial);
    uint32_t index = serial % SIM_MESSAGES_MAX;

    l->deliveries++;
    if (!b) {
        sim_violation(l, "I1: member %u gets message %u of an unknown broadcast", member, serial);
        return;
    }
    if (b->order == 0)
        begins(l, b);
    if (b->order < l->order[member])
        sim_violation(l, "I5: member %u gets broadcast %u of member %u after a later one", member,
                      b->id, b->root);
    l->order[member] = b->order;
    if (!sim_set_has(&b->to, member))
        sim_violation(l, "I3: member %u gets message %u of broadcast %u, which is not for it",
                      member, index, b->id);
    else if (b->delivered[member] != index)
        sim_violation(l, "I1: member %u gets message %u of broadcast %u, expected %u", member,
                      index, b->id, b->delivered[member]);
    else
        b->missing--;
    b->delivered[member] = (uint8_t)(index + 1);
}

void sim_ledger_complete(struct sim_ledger *l, struct sim_broadcast *b, uint32_t index)
{
    for (uint32_t i = 0; i < l->o->members; i++)
        if (sim_set_has(&b->to, i) && b->delivered[i] <= index)
            sim_violation(l, "I2: message %u of broadcast %u is complete, member %u lacks it",
                          index, b->id, i);
}

void sim_ledger_close(struct sim_ledger *l, struct sim_broadcast *b, bool failed)
{
    if (b->closed)
        return;
    b->closed = true;
    if (failed) {
        l->failed++;
        return;
    }
    l->done++;
    l->time += l->q->now - b->began;
}

/* ---- bytes and addresses ---- */

static uint32_t start_of(uint32_t serial)
{
    return serial * 2654435761u % pattern_room;
}

void sim_pattern(uint32_t serial, uint32_t at, uint8_t *to, uint32_t length)
{
    uint8_t number[4];

    memcpy(to, patterns + start_of(serial) + at, length);
    roce_put32(number, serial);
    for (; at < sizeof number && length; length--)
        *to++ = number[at++];
}

bool sim_is_pattern(uint32_t serial, uint32_t at, const uint8_t *bytes, uint32_t length)
{
    uint8_t number[4];

    roce_put32(number, serial);
    for (; at < sizeof number && length; length--)
        if (*bytes++ != number[at++])
            return false;
    return memcmp(bytes, patterns + start_of(serial) + at, length) == 0;
}

/* The low half is near its maximum, so that adding an offset carries into the upper half. */
uint64_t sim_base(uint32_t id, uint32_t member)
{
    return (uint64_t)(id & 0xffffff) << 40 | (uint64_t)member << 32 | (id & 1 ? 0xffffff00u : 0);
}

uint32_t sim_rkey(uint32_t id, uint32_t member)
{
    return (id * 2654435761u) ^ (member * 40503u + 1);
}

/* A member has the base of the last granted lock that came with addresses. Locks may be granted in
 * another order than they were requested, so the base of any broadcast that named one is right. */
static bool gave(struct sim_ledger *l, uint32_t id, uint32_t member)
{
    const struct sim_broadcast *giver = sim_ledger_find(l, id * SIM_MESSAGES_MAX);

    return id == 0 || !giver || (giver->addresses && sim_set_has(&giver->to, member));
}

void sim_ledger_address(struct sim_ledger *l, uint32_t member, uint32_t serial, uint64_t va,
                        uint32_t rkey)
{
    const struct sim_broadcast *b = sim_ledger_find(l, serial);
    uint64_t base;
    uint32_t id;

    if (!b)
        return; /* the delivery will report a violation */
    base = va - b->message[serial % SIM_MESSAGES_MAX].offset;
    id = (uint32_t)(base >> 40);
    if (base != sim_base(id, member) || rkey != sim_rkey(id, member) ||
        (b->addresses ? id != b->id : !gave(l, id, member)))
        sim_violation(l, "I1: broadcast %u writes to %#llx, rkey %#x at member %u", b->id,
                      (unsigned long long)va, rkey, member);
}
