/* SPDX-License-Identifier: BSD-3-Clause */
/* See flood.h. Owns the slots of the window. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flood.h"

enum { sequence_most = 1000, sample_one_in = 16, polls_a_look = 64 };

static void fail(struct rma_flood *f, enum rma_check check, const char *format, ...)
{
    struct rma_verdict *verdict = &f->verdicts[check];
    va_list args;
    va_start(args, format);
    if (verdict->failures++ == 0)
        vsnprintf(verdict->first, sizeof(verdict->first), format, args);
    va_end(args);
}

static struct rma_slot *slot_of(struct rma_flood *f, uint64_t number)
{
    return &f->slots[number % f->ground->window];
}

static char *local_of(struct rma_flood *f, uint64_t number)
{
    return wl_job.segment +
           rma_at_local(f->ground, f->thread, (size_t)(number % f->ground->window));
}

static char *remote(const struct rma_target *target, size_t at)
{
    return (char *)wl_job.segments[target->rank] + at;
}

/* ---- Completion */

static void judge_read(struct rma_flood *f, const struct rma_slot *slot, char *data)
{
    if (wl_inject(&f->injection, rma_corrupt))
        data[f->ground->size / 2] ^= 1;
    if (f->verify == wl_verify_none ||
        (f->verify == wl_verify_sample && f->retired % sample_one_in))
        return;
    f->checked++;
    if (!rma_pattern_holds(f->ground, slot->target->source_id, slot->offset, data, f->ground->size))
        fail(f, rma_data, "rank %u thread %u: read of rank %u at %zu is not what lies there",
             (unsigned)wl_job.me, f->thread, (unsigned)slot->target->rank, slot->offset);
}

/* False when it does not come in time or the job is stopped. */
static bool await(struct rma_flood *f, struct rma_slot *slot)
{
    unsigned polls = 0;
    while (gex_Event_Test(slot->event) != GASNET_OK) {
        f->empty_polls++;
        gasnet_AMPoll();
        if (++polls % polls_a_look)
            continue;
        if (wl_now() - slot->posted > f->timeout_ns) {
            fail(f, rma_late, "rank %u thread %u: a %s of rank %u is not complete in %llu ms",
                 (unsigned)wl_job.me, f->thread, slot->write ? "write" : "read",
                 (unsigned)slot->target->rank, (unsigned long long)(f->timeout_ns / 1000000));
            f->broken = true;
            wl_stop();
        }
        if (f->broken)
            return false;
    }
    return true;
}

/* Returns when the oldest slot became free; 0 when it does not. */
static uint64_t retire(struct rma_flood *f)
{
    struct rma_slot *slot = slot_of(f, f->retired);
    if (!await(f, slot))
        return 0;
    if (!slot->write)
        judge_read(f, slot, local_of(f, f->retired));
    uint64_t now = wl_now();
    if (f->span.phase == wl_measuring) {
        wl_histogram_add(&f->times, now - slot->posted);
        f->measured++;
        f->measured_writes += slot->write;
    }
    f->retired++;
    f->completed += !wl_inject(&f->injection, rma_dropcqe);
    return now;
}

/* ---- Posting */

static void post_read(struct rma_flood *f, struct rma_slot *slot, char *local)
{
    const struct rma_ground *g = f->ground;
    size_t room = (g->source_size - g->size) / f->align + 1, skew = 0;
    slot->offset = (size_t)wl_below(&f->random, room) * f->align;
    if (wl_inject(&f->injection, rma_misread))
        skew = slot->offset + 2 * g->size <= g->source_size ? g->size : (size_t)-g->size;
    if (f->verify == wl_verify_full)
        memset(local, 0, g->size);
    slot->event = gex_RMA_GetNB(
        wl_job.tm, local, slot->target->rank,
        remote(slot->target, rma_at_source(g, slot->target->source) + slot->offset + skew), g->size,
        0);
}

static void post_write(struct rma_flood *f, struct rma_slot *slot, char *local)
{
    const struct rma_ground *g = f->ground;
    struct rma_target *target = slot->target;
    uint64_t seq = ++target->writes;
    size_t at = rma_at_cell(g, target->ring, seq);
    rma_cell_fill(g, target->writer, seq, local);
    target->broken |= wl_inject(&f->injection, rma_lost_write);
    if (wl_inject(&f->injection, rma_stray))
        at = rma_at_source(g, target->source);
    slot->event = target->broken ? GEX_EVENT_INVALID
                                 : gex_RMA_PutNB(wl_job.tm, target->rank, remote(target, at), local,
                                                 g->size, GEX_EVENT_DEFER, 0);
}

static void post(struct rma_flood *f, uint64_t now)
{
    struct rma_slot *slot = slot_of(f, f->posted);
    uint64_t choice = wl_below(&f->random, f->target_count);
    slot->target = &f->targets[choice];
    slot->target->posts++;
    slot->posted = now;
    slot->offset = 0;
    slot->write = f->write_percent && wl_below(&f->random, 100) < f->write_percent;
    if (slot->write)
        post_write(f, slot, local_of(f, f->posted));
    else
        post_read(f, slot, local_of(f, f->posted));
    if (f->posted < sequence_most)
        f->sequence = wl_mix(f->sequence + choice * WL_GOLDEN + slot->offset);
    f->posted++;
    uint64_t outstanding = f->posted - f->retired;
    if (outstanding > f->most_outstanding)
        f->most_outstanding = outstanding;
}

/* ---- The run */

static double under_way(struct rma_flood *f, uint64_t now)
{
    double sum = 0;
    for (uint64_t i = f->retired; i < f->posted; i++)
        sum += (double)(now - slot_of(f, i)->posted);
    return sum;
}

/* Little's law, exact but for the clock: what is under way at either end counts in part. */
static void check_little(struct rma_flood *f)
{
    double window = (double)f->ground->window, ns = (double)(f->span.ended - f->span.began);
    double seen = ((double)f->times.sum - f->before + under_way(f, f->span.ended)) / ns;
    if (f->times.count < 1000 || f->broken || wl_stopped())
        return;
    if (seen < 0.95 * window || seen > 1.05 * window)
        fail(f, rma_little, "rank %u thread %u: rate times mean time is %.3f, the window %.0f",
             (unsigned)wl_job.me, f->thread, seen, window);
}

static bool wanted(const struct rma_flood *f)
{
    if (wl_stopped() || f->broken)
        return false;
    return f->ops ? f->posted < f->ops : f->span.phase != wl_over;
}

static void drain(struct rma_flood *f)
{
    while (f->retired < f->posted && !f->broken)
        if (!retire(f))
            break;
}

static void flow(struct rma_flood *f)
{
    uint64_t now = wl_now();
    f->span = wl_span_start(now, f->ops ? 0 : f->warmup_ns, f->ops ? 0 : f->duration_ns);
    while (wanted(f)) {
        if (f->posted - f->retired == f->ground->window) {
            now = retire(f);
            if (!now)
                break;
            if (wl_span_step(&f->span, now))
                f->before = under_way(f, now);
        } else {
            now = wl_now();
        }
        post(f, now);
    }
    wl_span_end(&f->span, now);
}

void rma_flood_run(struct rma_flood *f, uint64_t seed, uint64_t stream)
{
    f->random = wl_random(seed, stream);
    f->slots = calloc(f->ground->window, sizeof(*f->slots));
    wl_histogram_clear(&f->times);
    if (!f->slots)
        wl_job_die("no memory for a window of %zu", f->ground->window);
    flow(f);
    check_little(f);
    drain(f);
    if (f->posted != f->completed && !f->broken)
        fail(f, rma_account, "rank %u thread %u: %llu posted, %llu complete", (unsigned)wl_job.me,
             f->thread, (unsigned long long)f->posted, (unsigned long long)f->completed);
    if (f->most_outstanding > f->ground->window)
        fail(f, rma_window, "rank %u thread %u: %llu were outstanding at once", (unsigned)wl_job.me,
             f->thread, (unsigned long long)f->most_outstanding);
    free(f->slots);
}

double rma_flood_mops(const struct rma_flood *f)
{
    uint64_t ns = f->span.ended - f->span.began;
    return ns ? (double)f->measured * 1e3 / (double)ns : 0;
}
