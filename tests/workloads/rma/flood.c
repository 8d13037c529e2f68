/* SPDX-License-Identifier: BSD-3-Clause */
/* See flood.h. Owns the slots of the window. */
#include "config.h"

#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flood.h"
#include "cpu_binding.h"

enum { sample_one_in = 16, looks_a_turn = 64, turns_a_show = 256 };

void rma_flood_fail(struct rma_flood *f, enum rma_check check, const char *format, ...)
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
    return &f->slots[number % f->memory->window];
}

static char *local_of(struct rma_flood *f, uint64_t number)
{
    return wl_job.segment +
           rma_at_local(f->memory, f->thread, (size_t)(number % f->memory->window));
}

/* ---- Completion */

static void judge_read(struct rma_flood *f, const struct rma_slot *slot, char *data)
{
    if (wl_inject(&f->injection, rma_corrupt))
        data[f->memory->size / 2] ^= 1;
    if (f->verify == wl_verify_none ||
        (f->verify == wl_verify_sample && f->retired % sample_one_in))
        return;
    f->checked++;
    if (!rma_pattern_holds(f->memory, slot->target->source_id, slot->offset, data, f->memory->size))
        rma_flood_fail(f, rma_data,
                       "rank %u thread %u: read of rank %u at %zu is not what lies there",
                       (unsigned)wl_job.me, f->thread, (unsigned)slot->target->rank, slot->offset);
}

/* More ranks than CPUs: the rank that we wait for needs our CPU. */
static void give_way(void)
{
    gasnet_AMPoll();
    if (wl_job.host_ranks > wl_job.cpus)
        sched_yield();
}

bool rma_flood_wait(struct rma_flood *f, struct rma_patience *patience, const char *what,
                    const struct rma_target *target)
{
    f->empty_polls++;
    if (++patience->looks % looks_a_turn == 0) {
        uint64_t now = wl_now();
        give_way();
        patience->since = patience->since ? patience->since : now;
        if (now - patience->since > f->timeout_ns) {
            rma_flood_fail(f, rma_late,
                           "rank %u thread %u: a %s of rank %u is not complete in %llu ms",
                           (unsigned)wl_job.me, f->thread, what, (unsigned)target->rank,
                           (unsigned long long)(f->timeout_ns / 1000000));
            f->broken = true;
            wl_stop();
        }
    }
    return !f->broken;
}

/* False if it does not complete in time or the job is stopped. */
static bool await(struct rma_flood *f, struct rma_slot *slot)
{
    struct rma_patience patience = {slot->posted, 0};
    if (slot->lost || f->path->done(f, slot))
        return true;
    if (f->path->flush)
        f->path->flush(f);
    while (!f->path->done(f, slot))
        if (!rma_flood_wait(f, &patience, slot->write ? "write" : "read", slot->target))
            return false;
    return true;
}

static bool is_due(struct rma_sampler *sampler, uint64_t every)
{
    if (sampler->left > 1) {
        sampler->left--;
        return false;
    }
    bool is_first = sampler->left == 0;
    sampler->left = 1 + wl_mix(++sampler->drawn) % (2 * every - 1);
    return !is_first || every == 1;
}

static void measure_latency(struct rma_flood *f, uint64_t ns)
{
    if (f->is_untimed)
        return;
    f->latency_ns += ns;
    if (!is_due(&f->lat_sampler, f->lat_every))
        return;
    wl_histogram_add(&f->times, ns);
    f->timed++;
}

/* Returns the time at which the oldest slot became free; 0 if it does not become free. */
static uint64_t retire(struct rma_flood *f)
{
    struct rma_slot *slot = slot_of(f, f->retired);
    if (!await(f, slot))
        return 0;
    uint64_t since = rma_lap_begin(f), now;
    if (!slot->write)
        judge_read(f, slot, slot->local);
    rma_lap(f, rma_verifying, since);
    now = wl_now();
    if (f->span.phase == wl_measuring) {
        measure_latency(f, now - slot->posted);
        f->measured += 1 + wl_inject(&f->injection, rma_miscount);
        f->measured_writes += slot->write;
        slot->target->measured++;
    }
    f->retired++;
    __atomic_store_n(&f->shown, f->retired, __ATOMIC_RELAXED);
    f->completed += !wl_inject(&f->injection, rma_dropcqe);
    return now;
}

/* ---- Posting */

static void post_read(struct rma_flood *f, struct rma_slot *slot, uint64_t since)
{
    const struct rma_memory *g = f->memory;
    size_t room = (g->source_size - g->size) / f->align + 1, skew = 0;
    slot->offset = (size_t)wl_below(&f->random, room) * f->align;
    if (wl_inject(&f->injection, rma_misread))
        skew = slot->offset + 2 * g->size <= g->source_size ? g->size : (size_t)-g->size;
    if (f->verify == wl_verify_full)
        memset(slot->local, 0, g->size);
    rma_lap(f, rma_choosing, since);
    f->path->read(f, slot, rma_at_source(g, slot->target->source) + slot->offset + skew);
}

static void post_write(struct rma_flood *f, struct rma_slot *slot, uint64_t since)
{
    const struct rma_memory *g = f->memory;
    struct rma_target *target = slot->target;
    uint64_t seq = ++target->writes;
    size_t at = rma_at_cell(g, target->ring, seq);
    rma_cell_fill(g, target->writer, seq, slot->local);
    target->broken |= wl_inject(&f->injection, rma_lost_write);
    if (wl_inject(&f->injection, rma_stray))
        at = rma_at_source(g, target->source);
    slot->lost = target->broken;
    rma_lap(f, rma_choosing, since);
    if (!slot->lost)
        f->path->write(f, slot, at);
}

static void choose(struct rma_flood *f)
{
    f->choice = wl_below(&f->random, f->target_count);
    if (f->biased || wl_inject(&f->injection, rma_bias)) {
        f->biased = true;
        f->choice = 0;
    }
    f->target = &f->targets[f->choice];
}

/* Operations posted before the measurement are not counted, nor is an injected false time. */
static bool is_mistimed(struct rma_flood *f)
{
    return f->span.phase == wl_measuring && wl_inject(&f->injection, rma_mistime);
}

static void post(struct rma_flood *f, uint64_t now)
{
    struct rma_slot *slot = slot_of(f, f->posted);
    uint64_t since = rma_lap_begin(f);
    if (f->posted % f->batch == 0)
        choose(f);
    slot->target = f->target;
    slot->target->posts++;
    slot->number = f->posted;
    slot->local = local_of(f, f->posted);
    slot->posted = now - (is_mistimed(f) ? WL_SECOND : 0);
    slot->offset = 0;
    slot->lost = false;
    slot->write = f->write_percent && wl_below(&f->random, 100) < f->write_percent;
    if (slot->write)
        post_write(f, slot, since);
    else
        post_read(f, slot, since);
    if (f->posted < rma_sequence_max)
        f->sequence = wl_mix(f->sequence + f->choice * WL_GOLDEN + slot->offset);
    f->posted++;
    uint64_t outstanding = f->posted - f->retired;
    if (outstanding == f->memory->window)
        outstanding += wl_inject(&f->injection, rma_overfill);
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

/* Little's law, exact except for the clock: operations under way at the start or end count in part.
 */
static void check_little(struct rma_flood *f)
{
    double window = (double)f->memory->window, ns = (double)(f->span.ended - f->span.began);
    double seen = ((double)f->latency_ns - f->before + under_way(f, f->span.ended)) / ns;
    if (f->measured < 1000 || f->broken || f->is_untimed || f->batch > 1 || wl_stopped())
        return;
    if (seen < 0.95 * window || seen > 1.05 * window)
        rma_flood_fail(f, rma_little,
                       "rank %u thread %u: rate times mean time is %.3f, the window %.0f",
                       (unsigned)wl_job.me, f->thread, seen, window);
}

/* Within 5 sigma of equal shares; a batch is one choice. */
static void check_shares(struct rma_flood *f)
{
    double p = 1 / (double)f->target_count, posts = (double)f->posted;
    double limit = 5 * sqrt(posts * f->batch * p * (1 - p)) + f->batch;
    for (size_t i = 0; i < f->target_count; i++)
        if (fabs((double)f->targets[i].posts - posts * p) > limit)
            rma_flood_fail(
                f, rma_shares, "rank %u thread %u: connection %zu was chosen %llu times of %.0f",
                (unsigned)wl_job.me, f->thread, i, (unsigned long long)f->targets[i].posts, posts);
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
    if (f->path->drain && !f->broken)
        f->path->drain(f);
}

static void begin_to_measure(struct rma_flood *f, uint64_t now)
{
    f->before = under_way(f, now);
    f->began_cycles = wl_cycles();
    memset(f->cycles, 0, sizeof(f->cycles));
    memset(f->samples, 0, sizeof(f->samples));
    rma_ticker_start(f, now);
}

/* Waits until there is space for a batch. Returns the time at which space was free, 0 if it never
 * is. */
static uint64_t make_room(struct rma_flood *f)
{
    uint64_t now = 0;
    while (f->posted - f->retired + f->batch > f->memory->window) {
        now = retire(f);
        if (!now)
            return 0;
        if (wl_span_step(&f->span, now))
            begin_to_measure(f, now);
        else if (f->span.phase == wl_measuring && now >= f->ticker.next)
            rma_tick(f, now);
    }
    return now ? now : wl_now();
}

/* A turn of the loop begins. */
static uint64_t turn(struct rma_flood *f, uint64_t now)
{
    f->turns++;
    f->is_sampled = f->cycles_every && is_due(&f->cycles_sampler, f->cycles_every);
    if (f->thread == 0 && f->group && f->group->is_watched && f->turns % turns_a_show == 0)
        rma_group_show(f->group, now);
    return rma_lap_begin(f);
}

static void flow(struct rma_flood *f)
{
    uint64_t now = wl_now();
    f->span = wl_span_start(now, f->ops ? 0 : f->warmup_ns, f->ops ? 0 : f->duration_ns);
    while (wanted(f)) {
        uint64_t since = turn(f, now), then = make_room(f);
        if (!then)
            break;
        now = then;
        for (unsigned i = 0; i < f->batch && wanted(f); i++)
            post(f, now);
        if (f->batch > 1 && f->path->flush)
            f->path->flush(f);
        rma_lap(f, rma_looping, since);
        f->samples[rma_looping] += f->is_sampled ? f->batch - 1 : 0;
    }
    f->is_sampled = false;
    wl_span_end(&f->span, now);
    f->cycles_per_ns = f->span.ended > f->span.began ? (double)(wl_cycles() - f->began_cycles) /
                                                           (double)(f->span.ended - f->span.began)
                                                     : 0;
}

void rma_flood_run(struct rma_flood *f, uint64_t seed, uint64_t stream)
{
    f->random = wl_random(seed, stream);
    f->batch = f->batch ? f->batch : 1;
    f->lat_every = f->lat_every ? f->lat_every : 1;
    if (f->is_bound)
        rma_bind_cpu(f->thread);
    f->slots = calloc(f->memory->window, sizeof(*f->slots));
    wl_histogram_clear(&f->times);
    if (!f->slots)
        wl_job_die("no memory for a window of %zu", f->memory->window);
    f->bound_to = rma_bound_cpu();
    flow(f);
    check_little(f);
    drain(f);
    check_shares(f);
    if (f->posted != f->completed && !f->broken)
        rma_flood_fail(f, rma_account, "rank %u thread %u: %llu posted, %llu complete",
                       (unsigned)wl_job.me, f->thread, (unsigned long long)f->posted,
                       (unsigned long long)f->completed);
    if (f->most_outstanding > f->memory->window)
        rma_flood_fail(f, rma_window, "rank %u thread %u: %llu were outstanding at once",
                       (unsigned)wl_job.me, f->thread, (unsigned long long)f->most_outstanding);
    free(f->slots);
}

double rma_flood_mops(const struct rma_flood *f)
{
    uint64_t ns = f->span.ended - f->span.began;
    return ns ? (double)f->measured * 1e3 / (double)ns : 0;
}
