/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The switch as an object: parses a frame and takes it from pass to pass, in a loop or through the
 * queue of recirculating packets. Owns the queue. */
#include "config.h"

#include <string.h>

#include "core/private.h"
#include "packet/bytes.h"

#ifdef MCSW_MUTANTS
int mcsw_mutant;
#endif

enum { default_senders = 32, default_slots = 4, default_rnr = 10 };
static const uint64_t default_lease = 2000000000;

static struct mcsw_config filled(const struct mcsw_config *config)
{
    struct mcsw_config c = *config;

    if (c.senders == 0)
        c.senders = default_senders;
    if (c.slots == 0)
        c.slots = default_slots;
    if (c.mode == MCSW_FAST)
        c.slots = 0;
    if (c.lease == 0)
        c.lease = default_lease;
    if (c.rnr_timer == 0)
        c.rnr_timer = default_rnr;
    if (c.mode == MCSW_STRICT && c.aggregate == MCSW_EXACT)
        c.aggregate = MCSW_SCAN;
    return c;
}

static bool good(const struct mcsw_config *c)
{
    return c->groups >= 1 && c->groups <= 65535 && c->senders < NOBODY && c->calls.emit &&
           c->rnr_timer < 32 && c->aggregate <= MCSW_ROUNDS &&
           (c->mode == MCSW_STRICT || (c->mode == MCSW_FAST && !c->deferred));
}

size_t mcsw_bytes(const struct mcsw_config *config)
{
    struct mcsw_config c = filled(config);

    if (!good(&c))
        return 0;
    return mcsw_up(sizeof(struct mcsw)) + c.groups * mcsw_group_bytes(&c) +
           c.slots * sizeof(struct slot);
}

/* Time in units of a hundredth of the lease, so that 32 bits last for a year. */
static void set_lease(struct mcsw *w)
{
    while (w->c.lease >> w->tick > 128)
        w->tick++;
    w->lease_ticks = (uint32_t)(w->c.lease >> w->tick);
}

struct mcsw *mcsw_open(void *memory, const struct mcsw_config *config)
{
    size_t bytes = mcsw_bytes(config);
    struct mcsw *w = memory;

    if (bytes == 0)
        return NULL;
    memset(memory, 0, bytes);
    w->c = filled(config);
    w->group_bytes = mcsw_group_bytes(&w->c);
    w->groups_at = mcsw_up(sizeof *w);
    w->slots_at = w->groups_at + w->c.groups * w->group_bytes;
    set_lease(w);
    return w;
}

/* ---- passes ---- */

static bool run_pass(struct mcsw *w, struct work *k)
{
    static mcsw_pass_way *const ways[PASSES] = {
        [PASS_CHECK] = mcsw_pass_check,       [PASS_REQUEST] = mcsw_pass_request,
        [PASS_STEAL] = mcsw_pass_steal,       [PASS_LOSS] = mcsw_pass_loss,
        [PASS_FREE] = mcsw_pass_free,         [PASS_LOCK] = mcsw_pass_lock,
        [PASS_LINK] = mcsw_pass_link,         [PASS_COPY] = mcsw_pass_copy,
        [PASS_RELEASE] = mcsw_pass_release,   [PASS_UNLOCK] = mcsw_pass_unlock,
        [PASS_RESPONSE] = mcsw_pass_response, [PASS_EXACT] = mcsw_pass_exact,
        [PASS_SCAN] = mcsw_pass_scan,         [PASS_PUBLISH] = mcsw_pass_publish,
        [PASS_VERIFY] = mcsw_pass_verify,     [PASS_RESULT] = mcsw_pass_result,
    };
    struct group *g = mcsw_group(w, k->b.group);

    w->touched = 0;
    w->stage = 0;
    w->count.passes++;
    /* The group was destroyed while the packet recirculated. */
    if (!g || !ways[k->b.pass](w, g, k))
        return false;
    w->count.recirculations++;
    return true;
}

static struct slot *slot(struct mcsw *w, uint32_t i)
{
    return (struct slot *)mcsw_at(w, w->slots_at) + (w->first + i) % w->c.slots;
}

static void go_round(struct mcsw *w, const struct work *k, const uint8_t *frame, size_t length)
{
    struct slot *s;

    if (w->used == w->c.slots) {
        w->count.drop_full++;
        return;
    }
    s = slot(w, w->used++);
    s->work = *k;
    s->length = (uint16_t)length;
    memcpy(s->frame, frame, length);
}

bool mcsw_pass(struct mcsw *w, uint64_t now)
{
    struct slot *s;

    if (w->c.slots == 0 || w->used == 0)
        return false;
    w->now = now;
    s = slot(w, 0);
    s->work.frame = s->frame;
    if (run_pass(w, &s->work)) {
        struct work k = s->work;
        struct slot *last = slot(w, w->used);

        /* Moves the packet to the end of the queue, which has space: its own slot is free. */
        if (last != s) {
            last->work = k;
            last->length = s->length;
            memcpy(last->frame, s->frame, s->length);
        }
        w->used++;
    }
    w->first = (w->first + 1) % w->c.slots;
    w->used--;
    return true;
}

static void drive(struct mcsw *w, struct work *k, size_t length)
{
    if (w->c.mode == MCSW_FAST) {
        while (run_pass(w, k))
            continue;
        return;
    }
    if (run_pass(w, k))
        go_round(w, k, k->frame, length);
    while (!w->c.deferred && mcsw_pass(w, w->now))
        continue;
}

bool mcsw_frame(struct mcsw *w, unsigned port, uint64_t now, uint8_t *frame, size_t length)
{
    struct work k;

    if (!mcsw_for_us(w, frame, length))
        return mcsw_neighbour(w, port, frame, length);
    w->now = now;
    if (length > MCSW_FRAME_MAX || !mcsw_parse(w, frame, length, &k.p)) {
        w->count.drop_form += length > MCSW_FRAME_MAX;
        return true;
    }
    k.p.port = (uint16_t)port;
    k.frame = frame;
    memset(&k.b, 0, sizeof k.b);
    k.b.group = k.p.qpn >> 8;
    k.b.rank = (uint8_t)k.p.qpn;
    k.b.pass = !k.p.to_requests         ? PASS_RESPONSE
               : k.p.kind == IS_CONTROL ? PASS_CHECK
                                        : PASS_REQUEST;
    if (!mcsw_group(w, k.b.group)) {
        w->count.drop_stranger++;
        return true;
    }
    w->count.requests_in += k.p.to_requests;
    w->count.responses_in += !k.p.to_requests;
    memcpy(k.head, frame, length < head_max ? length : head_max);
    k.icrc = roce_get_icrc(frame + k.p.icrc_at);
    drive(w, &k, length);
    return true;
}

/* ---- the rest of the interface ---- */

const struct mcsw_counters *mcsw_counters(const struct mcsw *w)
{
    return &w->count;
}

const char *mcsw_counter(const struct mcsw *w, unsigned i, const char **meaning, uint64_t *value)
{
    static const struct {
        const char *name, *meaning;
        size_t at;
    } rows[] = {
#define X(name, text) {#name, text, offsetof(struct mcsw_counters, name)},
        MCSW_COUNTERS(X)
#undef X
    };

    if (i >= sizeof rows / sizeof rows[0])
        return NULL;
    *meaning = rows[i].meaning;
    memcpy(value, (const uint8_t *)&w->count + rows[i].at, sizeof *value);
    return rows[i].name;
}
