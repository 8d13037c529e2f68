/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fault language: kind[:key=value[,key=value...]] for each rule, rules separated by semicolons,
 * as softhca's. Pure functions over text; an unknown word is refused by name, together with the
 * known ones. Owns nothing, takes no lock. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "contrib/softgpu/fault/fault.h"

enum { rule_max = 200 };
/* Longer than any program needs, short enough that a mistake does not look like a hang */
static const uint64_t wait_max = UINT64_C(10000000000);
static const int64_t many = INT64_C(1000000000000);
static const char keys[] = "dev, nth, every, after, count, p, us, ms, error, when";

struct complaint {
    char *why;
    size_t n;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct complaint *c, const char *format,
                                                         ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(c->why, c->n, format, ap);
    va_end(ap);
    return false;
}

static const char *const kinds[SGPU_FAULT_KINDS] = {
    [SGPU_FAULT_COPY] = "copy", [SGPU_FAULT_ALLOC] = "alloc",   [SGPU_FAULT_EXPORT] = "export",
    [SGPU_FAULT_IPC] = "ipc",   [SGPU_FAULT_STREAM] = "stream", [SGPU_FAULT_LOST] = "lost",
};

/* The effect of a rule with neither error= nor a delay */
static const enum sgpu_status usual[SGPU_FAULT_KINDS] = {
    [SGPU_FAULT_COPY] = SGPU_UNKNOWN,         [SGPU_FAULT_ALLOC] = SGPU_OUT_OF_MEMORY,
    [SGPU_FAULT_EXPORT] = SGPU_OUT_OF_MEMORY, [SGPU_FAULT_IPC] = SGPU_MAP_FAILED,
    [SGPU_FAULT_STREAM] = SGPU_OUT_OF_MEMORY, [SGPU_FAULT_LOST] = SGPU_LAUNCH_FAILED,
};

/* ---- values ---- */

static bool take_number(const char *key, const char *value, int64_t low, int64_t high,
                        uint64_t *out, struct complaint *c)
{
    int64_t number;

    if (!tk_number_whole(value, 1, &number) || number < low || number > high)
        return refuse(c, "%s=%s is not a number from %lld to %lld", key, value, (long long)low,
                      (long long)high);
    *out = (uint64_t)number;
    return true;
}

static bool take_probability(const char *value, uint32_t *ppb, struct complaint *c)
{
    double p;

    if (!tk_number_real(value, &p) || p <= 0 || p > 1)
        return refuse(c, "p=%s is not a probability above 0 and up to 1 (0.01)", value);
    *ppb = (uint32_t)(p * 1e9);
    return true;
}

/* "100" or "10-500" */
static bool take_delay(const char *key, char *value, uint64_t unit, struct sgpu_fault_rule *r,
                       struct complaint *c)
{
    char *dash = strchr(value, '-');

    if (dash)
        *dash++ = 0;
    if (!take_number(key, value, 0, (int64_t)(wait_max / unit), &r->low, c) ||
        !take_number(key, dash ? dash : value, (int64_t)r->low, (int64_t)(wait_max / unit),
                     &r->high, c))
        return false;
    r->low *= unit;
    r->high *= unit;
    return true;
}

static bool take_error(const char *value, struct sgpu_fault_rule *r, struct complaint *c)
{
    if (sgpu_status_named(value, &r->error))
        return true;
    return refuse(c,
                  "error=%s is not an error of CUDA or HIP that softgpu has, such as "
                  "CUDA_ERROR_UNKNOWN or hipErrorUnknown (softgpu(1))",
                  value);
}

static bool take_when(const char *value, struct sgpu_fault_rule *r, struct complaint *c)
{
    r->run = strcmp(value, "run") == 0;
    if (r->kind != SGPU_FAULT_COPY)
        return refuse(c, "when= goes with copy only");
    return r->run || strcmp(value, "call") == 0 || refuse(c, "when=%s: known are call, run", value);
}

static bool take_key(struct sgpu_fault_rule *r, const char *kind, const char *key, char *value,
                     struct complaint *c)
{
    uint64_t device = 0;

    if (strcmp(key, "dev") == 0) {
        bool good = take_number(key, value, 0, 15, &device, c);

        r->device = good ? (int)device : -1;
        return good;
    }
    if (strcmp(key, "nth") == 0)
        return take_number(key, value, 1, many, &r->nth, c);
    if (strcmp(key, "every") == 0)
        return take_number(key, value, 1, many, &r->every, c);
    if (strcmp(key, "after") == 0)
        return take_number(key, value, 1, many, &r->after, c);
    if (strcmp(key, "count") == 0)
        return take_number(key, value, 1, many, &r->count, c);
    if (strcmp(key, "p") == 0)
        return take_probability(value, &r->ppb, c);
    if (strcmp(key, "us") == 0)
        return take_delay(key, value, 1000, r, c);
    if (strcmp(key, "ms") == 0)
        return take_delay(key, value, 1000000, r, c);
    if (strcmp(key, "error") == 0)
        return take_error(value, r, c);
    if (strcmp(key, "when") == 0)
        return take_when(value, r, c);
    return refuse(c, "%s takes no '%s'; it takes %s", kind, key, keys);
}

/* ---- rules ---- */

static bool find_kind(const char *text, enum sgpu_fault_kind *out, struct complaint *c)
{
    for (unsigned k = 0; k < SGPU_FAULT_KINDS; k++)
        if (strcmp(kinds[k], text) == 0) {
            *out = (enum sgpu_fault_kind)k;
            return true;
        }
    return refuse(c, "'%s' is not a fault; known are copy, alloc, export, ipc, stream, lost", text);
}

static bool parse_rule(char *text, struct sgpu_fault_rule *r, struct complaint *c)
{
    char *kind = text, *key = strchr(text, ':'), *next, *value;

    if (key)
        *key++ = 0;
    *r = (struct sgpu_fault_rule){.device = -1, .ppb = 1000000000};
    if (!find_kind(kind, &r->kind, c))
        return false;
    r->run = r->kind == SGPU_FAULT_COPY;
    for (; key; key = next) {
        next = strchr(key, ',');
        if (next)
            *next++ = 0;
        value = strchr(key, '=');
        if (value)
            *value++ = 0;
        if (!value || !*value)
            return refuse(c, "%s: '%s' is not key=value; it takes %s", kind, key, keys);
        if (!take_key(r, kind, key, value, c))
            return false;
    }
    if (r->nth && (r->every || r->after || r->count))
        return refuse(c, "%s: nth names one operation; every, after and count do not go with it",
                      kind);
    if (r->error == SGPU_OK && r->high == 0)
        r->error = usual[r->kind];
    return true;
}

bool sgpu_fault_parse(const char *text, struct sgpu_fault_rules *out, char *why, size_t n)
{
    struct complaint c = {why, n};
    char rule[rule_max];

    out->n = 0;
    while (text && *text) {
        size_t length = strcspn(text, ";");

        if (length >= sizeof rule)
            return refuse(&c, "the rule '%.20s...' is longer than %d characters", text,
                          rule_max - 1);
        if (out->n == SGPU_FAULT_RULES)
            return refuse(&c, "more than %d rules", SGPU_FAULT_RULES);
        memcpy(rule, text, length);
        rule[length] = 0;
        if (length > 0 && !parse_rule(rule, &out->rule[out->n++], &c))
            return false;
        text += length + (text[length] == ';');
    }
    return true;
}
