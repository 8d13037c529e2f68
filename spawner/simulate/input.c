/* SPDX-License-Identifier: BSD-3-Clause */
/* See input.h. */
#include "config.h"

#include "input.h"

#include "common/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const fabric_names[] = {"switch", "fattree", "dragonfly"};
static const char *const call_names[] = {"barrier", "broadcast", "reduce", "reduce_all"};

const char *sim_fabric_name(enum sim_fabric_kind kind)
{
    return fabric_names[kind];
}

const char *sim_call_name(enum sim_call_kind kind)
{
    return call_names[kind];
}

struct reader {
    struct sim_input *in;
    char *why;
    size_t size;
    bool has_failure, has_code; /* given */
};

static int place_in(const char *const *names, size_t count, const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], word))
            return (int)i;
    return -1;
}

static bool take_number(struct reader *r, const char *key, const char *text, uint64_t least,
                        uint64_t most, uint64_t *number)
{
    if (tk_number_digits(text, least, most, number))
        return true;
    snprintf(r->why, r->size, "--simulate: %s=%s: not a number between %" PRIu64 " and %" PRIu64,
             key, text, least, most);
    return false;
}

/* A number of a collective: `name` is the word up to it, as the user wrote it. */
static bool take_part(struct reader *r, const char *name, const char *text, uint64_t most,
                      uint64_t *number)
{
    if (tk_number_digits(text, 1, most, number))
        return true;
    if (!*text)
        snprintf(r->why, r->size, "--simulate: %s lacks its number of bytes: %s:BYTES", name, name);
    else
        snprintf(r->why, r->size, "--simulate: %s:%s: not a number between 1 and %" PRIu64, name,
                 text, most);
    return false;
}

/* barrier[:TIMES], or KIND:BYTES[:TIMES] */
static bool take_call(struct reader *r, const char *key, char *value)
{
    int kind = place_in(call_names, sizeof(call_names) / sizeof(*call_names), key);
    struct sim_call *call = &r->in->calls[r->in->call_count];
    uint64_t times = 1, nbytes = 0;
    char name[64], *more = value;
    if (kind < 0)
        return false;
    if (r->in->call_count == SIM_CALLS_MAX) {
        snprintf(r->why, r->size, "--simulate: more than %d collectives", SIM_CALLS_MAX);
        return false;
    }
    snprintf(name, sizeof(name), "%s", key);
    if (kind != SIM_BARRIER) {
        more = strchr(value, ':');
        if (more)
            *more++ = 0;
        if (!take_part(r, key, value, UINT64_C(1) << 30, &nbytes))
            return false;
        snprintf(name, sizeof(name), "%s:%s", key, value);
    }
    if (more && *more && !take_part(r, name, more, 1000000, &times))
        return false;
    *call = (struct sim_call){(enum sim_call_kind)kind, (uint32_t)times, nbytes};
    r->in->call_count++;
    return true;
}

static bool take_plant(struct reader *r, const char *value)
{
    static const char *const names[] = {"gather", "connect", "notify", "ask"};
    bool *const plants[] = {&r->in->plants_gather, &r->in->plants_connect, &r->in->plants_notify,
                            &r->in->plants_ask};
    int which = place_in(names, sizeof(names) / sizeof(*names), value);
    if (which >= 0)
        return *plants[which] = true;
    snprintf(r->why, r->size, "--simulate: plant=%s: not one of gather, connect, notify, ask",
             value);
    return false;
}

static bool take_failure(struct reader *r, const char *value)
{
    r->in->is_silent = !strcmp(value, "silent");
    r->has_failure = true;
    if (r->in->is_silent || !strcmp(value, "closed"))
        return true;
    snprintf(r->why, r->size, "--simulate: failure=%s: not one of closed, silent", value);
    return false;
}

static bool take_fabric(struct reader *r, const char *value)
{
    int kind = place_in(fabric_names, sizeof(fabric_names) / sizeof(*fabric_names), value);
    if (kind >= 0)
        r->in->fabric = (enum sim_fabric_kind)kind;
    else
        snprintf(r->why, r->size, "--simulate: fabric=%s: not one of switch, fattree, dragonfly",
                 value);
    return kind >= 0;
}

static bool take_start(struct reader *r, const char *value)
{
    r->in->forks = !strcmp(value, "fork");
    if (r->in->forks || !strcmp(value, "ssh"))
        return true;
    snprintf(r->why, r->size, "--simulate: start=%s: not one of fork, ssh", value);
    return false;
}

static bool take_costs(struct reader *r, const char *value)
{
    size_t size = sizeof(r->in->costs);
    if (*value && (size_t)snprintf(r->in->costs, size, "%s", value) < size)
        return true;
    snprintf(r->why, r->size, "--simulate: costs=%.40s: not the name of a file", value);
    return false;
}

static bool take_text(struct reader *r, const char *key, const char *value, bool *is_known)
{
    *is_known = true;
    if (!strcmp(key, "fabric"))
        return take_fabric(r, value);
    if (!strcmp(key, "start"))
        return take_start(r, value);
    if (!strcmp(key, "costs"))
        return take_costs(r, value);
    if (!strcmp(key, "plant"))
        return take_plant(r, value);
    if (!strcmp(key, "failure"))
        return take_failure(r, value);
    return *is_known = false;
}

static bool take_value(struct reader *r, const char *key, char *value)
{
    struct sim_input *in = r->in;
    bool is_known;
    uint64_t n;
    if (take_text(r, key, value, &is_known) || is_known)
        return r->why[0] == 0;
    if (!strcmp(key, "ports"))
        return take_number(r, key, value, 4, 4096, &n) && (in->ports = (uint32_t)n, true);
    if (!strcmp(key, "latency"))
        return take_number(r, key, value, 0, 1000000000, &in->latency);
    if (!strcmp(key, "rate"))
        return take_number(r, key, value, 1, 100000, &in->gbits);
    if (!strcmp(key, "cpus"))
        return take_number(r, key, value, 1, 65536, &n) && (in->cpus = (uint32_t)n, true);
    if (!strcmp(key, "srq"))
        return take_number(r, key, value, 1, INT32_MAX, &n) && (in->srq = (uint32_t)n, true);
    if (!strcmp(key, "qps"))
        return take_number(r, key, value, 1, UINT32_MAX, &n) && (in->qps = (uint32_t)n, true);
    if (!strcmp(key, "memory"))
        return take_number(r, key, value, 1, 1048576, &n) && (in->memory = n << 30, true);
    if (!strcmp(key, "seed"))
        return take_number(r, key, value, 0, UINT64_MAX, &in->seed);
    if (!strcmp(key, "jitter"))
        return take_number(r, key, value, 0, 100, &n) && (in->jitter = (uint32_t)n, true);
    if (!strcmp(key, "fail"))
        return take_number(r, key, value, 0, in->hosts - 1, &n) && (in->fails = (int64_t)n, true);
    if (!strcmp(key, "exits"))
        return take_number(r, key, value, 0, in->ranks - 1, &n) && (in->exits = (int64_t)n, true);
    if (!strcmp(key, "late"))
        return take_number(r, key, value, 0, in->ranks - 1, &n) && (in->late = (int64_t)n, true);
    if (!strcmp(key, "code"))
        return take_number(r, key, value, 0, 255, &n) &&
               (in->code = (uint32_t)n, r->has_code = true);
    if (take_call(r, key, value) || r->why[0])
        return r->why[0] == 0;
    snprintf(
        r->why, r->size,
        "--simulate: unknown word %s; see gasnetrun_ibv(1) for fabric, ports, latency, rate, "
        "cpus, seed, jitter, start, costs, fail, failure, exits, late, code, srq, qps, memory, and "
        "collectives",
        key);
    return false;
}

static bool take_word(struct reader *r, char *word)
{
    char none[1] = "", *value = strpbrk(word, "=:");
    if (!strcmp(word, "costs"))
        return r->in->prints_costs = true;
    if (value)
        *value++ = 0;
    return take_value(r, word, value ? value : none);
}

/* As many as the hosts need, but at least those of a usual switch. */
static void choose_ports(struct sim_input *in)
{
    in->ports = 64;
    if (in->fabric == SIM_ONE_SWITCH && in->ports < in->hosts)
        in->ports = in->hosts;
    while (in->fabric == SIM_FAT_TREE && (uint64_t)in->ports * (in->ports / 2) < in->hosts)
        in->ports *= 2;
}

/* The words for the end of the job agree with each other. */
static bool end_is_possible(const struct reader *r)
{
    const struct sim_input *in = r->in;
    const char *flaw = NULL;
    if ((in->fails >= 0) + (in->exits >= 0) + (in->late >= 0) > 1)
        flaw = "--simulate: more than one of fail, exits and late";
    else if (r->has_failure && in->fails < 0)
        flaw = "--simulate: failure says how a host fails, and fail=HOST is missing";
    else if (r->has_code && in->fails >= 0)
        flaw = "--simulate: code is that of an exit, and with fail a host fails before";
    else if (in->late >= 0 && in->ranks == 1)
        flaw = "--simulate: late: there is no other process that exits";
    if (flaw)
        snprintf(r->why, r->size, "%s", flaw);
    return !flaw;
}

bool sim_input_parse(struct sim_input *in, uint32_t ranks, uint32_t hosts, const char *words,
                     char *why, size_t size)
{
    char copy[2048];
    struct reader r = {.in = in, .why = why, .size = size};
    *in = (struct sim_input){.ranks = ranks,
                             .hosts = hosts,
                             .cpus = (ranks - 1) / hosts + 1,
                             .fabric = SIM_FAT_TREE,
                             .latency = 300,
                             .gbits = 200,
                             .seed = 1,
                             .jitter = 10,
                             .srq = 32767, /* of most devices: doc/limitations.md */
                             .fails = -1,
                             .exits = -1,
                             .late = -1};
    why[0] = 0;
    if ((size_t)snprintf(copy, sizeof(copy), "%s", words ? words : "") >= sizeof(copy)) {
        snprintf(why, size, "--simulate: more than %zu characters", sizeof(copy) - 1);
        return false;
    }
    for (char *rest = copy, *word; (word = strsep(&rest, ",")) != NULL;)
        if (*word && !take_word(&r, word))
            return false;
    if (!in->ports)
        choose_ports(in);
    if (!r.has_code)
        in->code = in->exits >= 0;
    if (!r.has_failure)
        in->is_silent = !in->forks; /* a host that is switched off; a guard that is killed */
    return end_is_possible(&r);
}
