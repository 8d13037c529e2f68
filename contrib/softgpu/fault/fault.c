/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules in force. Owns them and their counters; the caller holds the lock of the library. */
#include "config.h"

#include "contrib/softgpu/fault/fault.h"
#include "contrib/softgpu/support/draw.h"

static struct sgpu_fault_rules rules;
static uint64_t draws;

void sgpu_fault_set(const struct sgpu_fault_rules *r, uint64_t seed)
{
    rules = *r;
    draws = seed;
}

static bool fires(struct sgpu_fault_rule *r, enum sgpu_fault_kind kind, int device)
{
    if (r->kind != kind || (r->device >= 0 && r->device != device))
        return false;
    r->seen++;
    if ((r->nth && r->seen != r->nth) || r->seen <= r->after ||
        (r->every && (r->seen - r->after) % r->every != 0) || (r->count && r->fired >= r->count))
        return false;
    if (r->ppb < 1000000000 && sgpu_draw_below(&draws, 1000000000) >= r->ppb)
        return false;
    r->fired++;
    return true;
}

struct sgpu_verdict sgpu_fault_judge(enum sgpu_fault_kind kind, int device)
{
    struct sgpu_verdict v = {SGPU_OK, false, 0};

    for (unsigned i = 0; i < rules.n; i++) {
        struct sgpu_fault_rule *r = &rules.rule[i];

        if (!fires(r, kind, device))
            continue;
        if (v.error == SGPU_OK && r->error != SGPU_OK) {
            v.error = r->error;
            v.run = r->run;
        }
        v.delay += r->low + (r->high > r->low ? sgpu_draw_below(&draws, r->high - r->low + 1) : 0);
    }
    return v;
}
