/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules in force, and which of them apply to an operation. Owns the rules, their counters and
 * their random numbers; rules_lock protects them and is the innermost lock. Nothing here runs
 * before the first rule is set. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/support.h"
#include "fault/fault.h"

enum { place_rules = 0x666c74 /* a random stream that no CQ uses */ };

struct shca_fault_flags shca_fault_flags;
_Atomic bool shca_detour;
_Atomic uint32_t shca_fault_polls;

static struct shca_lock rules_lock;
static struct shca_fault_rules fault_rules;
static struct shca_random random_of_rules;
static uint64_t set_at;

int shca_fault_set(const char *spec, char *why, size_t n)
{
    struct shca_fault_rules *fresh = malloc(sizeof *fresh);

    if (!fresh) {
        snprintf(why, n, "out of memory");
        return EINVAL;
    }
    if (!shca_fault_parse(spec, fresh, why, n)) {
        free(fresh);
        return EINVAL;
    }
    shca_lock(&rules_lock);
    fault_rules = *fresh;
    set_at = tk_now();
    shca_random_start(&random_of_rules, shca_config.seed, place_rules);
    shca_unlock(&rules_lock);
    free(fresh);
    atomic_store(&shca_fault_flags.on, true);
    atomic_store(&shca_detour, true);
    return 0;
}

void shca_fault_clear(void)
{
    shca_lock(&rules_lock);
    fault_rules.n = 0;
    shca_unlock(&rules_lock);
}

void shca_fault_list(char *out, size_t n)
{
    size_t at = 0;

    if (n > 0)
        out[0] = 0;
    shca_lock(&rules_lock);
    for (unsigned i = 0; i < fault_rules.n && at < n; i++) {
        const struct shca_fault_rule *r = &fault_rules.rule[i];

        at += (size_t)snprintf(out + at, n - at, "%.*s matched %llu acted %llu\n", (int)r->length,
                               fault_rules.text + r->at, (unsigned long long)r->seen,
                               (unsigned long long)r->fired);
    }
    shca_unlock(&rules_lock);
}

void shca_fault_inherited(void)
{
    atomic_store(&rules_lock.word, 0);
}

/* ---- matching; the caller holds rules_lock ---- */

static bool about(const struct shca_fault_rule *r, const struct shca_fault_subject *subject)
{
    return (r->dev < 0 || r->dev == subject->dev) && (r->port == 0 || r->port == subject->port) &&
           (r->qpn == 0 || r->qpn == subject->qpn) && (r->over == 0 || subject->packet > r->over) &&
           (r->op == SHCA_OP_ANY || r->op == subject->op) &&
           (r->call == SHCA_CALL_ANY || r->call == subject->call);
}

/* Counts the operation; true when the rule fires on it. */
static bool acts(struct shca_fault_rule *r, const struct shca_fault_subject *subject)
{
    if (!about(r, subject) || (r->for_ns && tk_now() - set_at > r->for_ns))
        return false;
    r->seen++;
    if ((r->nth && r->seen != r->nth) || r->seen <= r->after ||
        (r->every && (r->seen - r->after) % r->every != 0) || (r->count && r->fired >= r->count))
        return false;
    if (r->ppb < 1000000000 && shca_random_below(&random_of_rules, 1000000000) >= r->ppb)
        return false;
    r->fired++;
    return true;
}

static uint64_t length_of(const struct shca_fault_rule *r)
{
    uint64_t span = r->high - r->low;

    return span == 0 ? r->low : r->low + shca_random(&random_of_rules) % (span + 1);
}

static void fault_add(const struct shca_fault_rule *r, struct shca_verdict *v)
{
    switch (r->kind) {
    case SHCA_FAULT_DELAY:
        v->delay += length_of(r);
        break;
    case SHCA_FAULT_LATE:
    case SHCA_FAULT_REORDER:
        *(r->polls ? &v->late_polls : &v->late) += length_of(r);
        break;
    case SHCA_FAULT_EARLY:
        v->early += length_of(r);
        break;
    case SHCA_FAULT_RNR:
        v->rnr += length_of(r);
        break;
    case SHCA_FAULT_ERROR:
        v->status = r->status;
        break;
    case SHCA_FAULT_UNPLUG:
        v->unplug = r->lost;
        v->unplug_ns = length_of(r);
        break;
    case SHCA_FAULT_KILL:
        v->kill = true;
        break;
    default:
        v->overrun = true;
        break;
    }
}

bool shca_fault_hits(enum shca_fault_kind kind, const struct shca_fault_subject *subject)
{
    bool hit = false;

    shca_lock(&rules_lock);
    for (unsigned i = 0; i < fault_rules.n; i++)
        if (fault_rules.rule[i].kind == kind && acts(&fault_rules.rule[i], subject))
            hit = true;
    shca_unlock(&rules_lock);
    return hit;
}

enum shca_lost shca_fault_lost(const struct shca_fault_subject *subject)
{
    enum shca_lost lost = SHCA_LOST_NOTHING;

    shca_lock(&rules_lock);
    for (unsigned i = 0; i < fault_rules.n; i++)
        if (fault_rules.rule[i].kind == SHCA_FAULT_DROP && acts(&fault_rules.rule[i], subject) &&
            fault_rules.rule[i].lost > lost)
            lost = fault_rules.rule[i].lost;
    shca_unlock(&rules_lock);
    return lost;
}

void shca_fault_judge(const struct shca_fault_subject *subject, unsigned kinds,
                      struct shca_verdict *out)
{
    memset(out, 0, sizeof *out);
    shca_lock(&rules_lock);
    for (unsigned i = 0; i < fault_rules.n; i++)
        if ((kinds & SHCA_FAULT_BIT(fault_rules.rule[i].kind)) &&
            acts(&fault_rules.rule[i], subject))
            fault_add(&fault_rules.rule[i], out);
    shca_unlock(&rules_lock);
}

static void packet_add(const struct shca_fault_rule *r, struct shca_packet_verdict *v)
{
    if (r->kind == SHCA_FAULT_DROP) {
        v->lost = true;
    } else if (r->kind == SHCA_FAULT_DELAY) {
        v->delay += length_of(r);
    } else if (r->kind == SHCA_FAULT_REORDER) {
        *(r->polls ? &v->behind_polls : &v->behind) += length_of(r);
    } else {
        v->twice = true;
        v->again += length_of(r);
    }
}

void shca_fault_packet(const struct shca_fault_subject *subject, bool response,
                       struct shca_packet_verdict *out)
{
    memset(out, 0, sizeof *out);
    shca_lock(&rules_lock);
    for (unsigned i = 0; i < fault_rules.n; i++) {
        struct shca_fault_rule *r = &fault_rules.rule[i];

        if (!(SHCA_FAULTS_OF_PACKETS & SHCA_FAULT_BIT(r->kind)) ||
            (r->kind == SHCA_FAULT_DROP && r->lost == SHCA_LOST_ACK && !response))
            continue;
        if (acts(r, subject))
            packet_add(r, out);
    }
    shca_unlock(&rules_lock);
}

void shca_fault_die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}
