/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The checker of strict mode: checks that a pass accesses each register once, in the order of
 * stages, with a program that a stateful unit supports. Each register has a stage of its own, in
 * the order of enum reg. Owns nothing. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/register.h"

static void report_error(struct mcsw *w, const char *what)
{
    w->count.violations++;
    if (w->c.calls.violation) {
        w->c.calls.violation(w->c.calls.context, what);
        return;
    }
    abort();
}

static bool unit(struct sum s)
{
    return s.lo >= -1 && s.lo <= 1 && s.hi >= -1 && s.hi <= 1;
}

void mcsw_check_access(struct mcsw *w, enum reg reg, const struct program *p)
{
    static const char *const names[REGS] = {
        [REG_HOLD] = "hold", [REG_TOPO] = "topo",     [REG_AGG] = "agg",     [REG_REL] = "rel",
        [REG_EPSN] = "epsn", [REG_INSIDE] = "inside", [REG_DIRTY] = "dirty", [REG_FLAG] = "flag",
        [REG_CNP] = "cnp",   [REG_LIST] = "list",     [REG_VER] = "ver",     [REG_OFF] = "off",
        [REG_MSN] = "msn",   [REG_VA] = "va",         [REG_RKEY] = "rkey",   [REG_ACKED] = "acked",
        [REG_MINH] = "minh", [REG_ROUND] = "round",
    };
    char text[96];

    if (w->touched >> reg & 1) {
        snprintf(text, sizeof text, "register %s is reached twice in a pass", names[reg]);
        report_error(w, text);
    }
    if (reg < w->stage) {
        snprintf(text, sizeof text, "register %s is in an earlier stage than the last one",
                 names[reg]);
        report_error(w, text);
    }
    if (p && !(unit(p->a.of) && unit(p->b.of) && unit(p->lo.to) && unit(p->hi.to))) {
        snprintf(text, sizeof text, "register %s: a factor that is not -1, 0 or 1", names[reg]);
        report_error(w, text);
    }
    w->touched |= 1u << reg;
    w->stage = (uint8_t)reg;
}
