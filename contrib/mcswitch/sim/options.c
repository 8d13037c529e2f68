/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See options.h. One table has each option, its legal values and its text in --help. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/options.h"

#ifdef MCSW_MUTANTS
#    define MUTANTS 1
#else
#    define MUTANTS 0
#endif

enum { control_bytes = 32, section_bytes = 48 }; /* of a control; of a leaf's section */

enum kind { NUMBER, LONG, PERCENT, CHOICE, FLAG };

struct option_row {
    const char *name;
    enum kind kind;
    size_t at;
    uint64_t least, most, otherwise; /* PERCENT: parts of a million */
    const char *text;
};

#define AT(field)      offsetof(struct sim_options, field)
#define PERCENT_MAX(p) ((p) * (SIM_ALWAYS / 100))

static const char *const aggregates[] = {"exact", "scan", "rounds"};

static const struct option_row rows[] = {
    {"members", NUMBER, AT(members), 2, SIM_MEMBERS_MAX, 6, "members; one level has 32 at most"},
    {"levels", NUMBER, AT(levels), 1, 2, 1, "levels of switches"},
    {"leaf", NUMBER, AT(leaf), 1, SIM_RANKS, 4, "members of each leaf switch, with two levels"},
    {"broadcasts", NUMBER, AT(broadcasts), 1, 100000000, 1000, "of all members together"},
    {"loss", PERCENT, AT(loss), 0, PERCENT_MAX(50), 0, "% of frames lost on each link"},
    {"dup", PERCENT, AT(dup), 0, PERCENT_MAX(50), 0, "% of frames doubled"},
    {"reorder", PERCENT, AT(reorder), 0, PERCENT_MAX(50), 0, "% of frames up to 3 link times late"},
    {"skew", PERCENT, AT(skew), 0, PERCENT_MAX(100), PERCENT_MAX(40), "% of a link's time, random"},
    {"rnr", PERCENT, AT(rnr), 0, PERCENT_MAX(50), 0, "% of messages without a posted receive"},
    {"delayed", PERCENT, AT(delayed), 0, PERCENT_MAX(100), 0, "% of acknowledgements held back"},
    {"deaths", PERCENT, AT(deaths), 0, PERCENT_MAX(50), 0, "% of broadcasts a member dies in"},
    {"sleeps", PERCENT, AT(sleeps), 0, PERCENT_MAX(50), 0, "% of broadcasts the root sleeps in"},
    {"hostile", PERCENT, AT(hostile), 0, PERCENT_MAX(100), 0, "% of broadcasts with forged frames"},
    {"pauses", PERCENT, AT(pauses), 0, PERCENT_MAX(100), 0,
     "% of rounds in a switch that take long"},
    {"keep", PERCENT, AT(keep), 0, PERCENT_MAX(100), PERCENT_MAX(20), "% that keep the lock"},
    {"packets", NUMBER, AT(packets), 1, 64, 3, "most packets of a message"},
    {"messages", NUMBER, AT(messages), 1, 8, 3, "most messages of a broadcast"},
    {"mtu", NUMBER, AT(mtu), 1024, 4096, 1024, "bytes, a power of two"},
    {"window", NUMBER, AT(window), 1, 1024, 64, "packets that a sender has in flight"},
    {"seed", LONG, AT(seed), 0, UINT64_MAX, 1, "of every random choice"},
    {"aggregate", CHOICE, AT(aggregate), 0, 2, SIM_EXACT, "exact, scan or rounds"},
    {"mutant", NUMBER, AT(mutant), 0, 99, 0, "a fault of the switch (tests' build only)"},
    {"loops", FLAG, AT(loops), 0, 1, 0, "the switch loops instead of recirculating"},
    {"alone", FLAG, AT(alone), 0, 1, 0, "one broadcast at a time"},
    {"shrink", FLAG, AT(shrink), 0, 1, 0, "looks for a smaller run that fails too"},
    {"verbose", FLAG, AT(verbose), 0, 1, 0, "prints every frame that a switch takes or emits"},
};
enum { n_rows = sizeof rows / sizeof rows[0] };

static uint64_t value_of(const struct sim_options *o, const struct option_row *r)
{
    const char *at = (const char *)o + r->at;

    if (r->kind == LONG)
        return *(const uint64_t *)(const void *)at;
    if (r->kind == FLAG)
        return *(const bool *)(const void *)at;
    return *(const uint32_t *)(const void *)at;
}

static void set(struct sim_options *o, const struct option_row *r, uint64_t value)
{
    char *at = (char *)o + r->at;

    if (r->kind == LONG)
        *(uint64_t *)(void *)at = value;
    else if (r->kind == FLAG)
        *(bool *)(void *)at = value != 0;
    else
        *(uint32_t *)(void *)at = (uint32_t)value;
}

void sim_options_default(struct sim_options *o)
{
    memset(o, 0, sizeof *o);
    for (size_t i = 0; i < n_rows; i++)
        set(o, &rows[i], rows[i].otherwise);
}

static void print_value(const struct option_row *r, uint64_t value, char *to, size_t room)
{
    if (r->kind == PERCENT)
        snprintf(to, room, "%g", (double)value * 100 / SIM_ALWAYS);
    else if (r->kind == CHOICE)
        snprintf(to, room, "%s", aggregates[value]);
    else
        snprintf(to, room, "%llu", (unsigned long long)value);
}

static void help(void)
{
    printf("usage: mcsw-sim [options]\n"
           "Broadcasts among simulated members over the multicast switch; every invariant is "
           "checked.\n\n");
    for (size_t i = 0; i < n_rows; i++) {
        char value[32];

        print_value(&rows[i], rows[i].otherwise, value, sizeof value);
        if (rows[i].kind == FLAG)
            printf("  --%-12s      %s\n", rows[i].name, rows[i].text);
        else
            printf("  --%-12s %-4s %s (%s)\n", rows[i].name, rows[i].kind == CHOICE ? "WAY" : "N",
                   rows[i].text, value);
    }
    printf("\nStatus 0: no violation and no hang; 1: one was found; 2: wrong options.\n");
}

static int bad(const struct option_row *r, const char *value)
{
    char least[32], most[32];

    print_value(r, r->least, least, sizeof least);
    print_value(r, r->most, most, sizeof most);
    if (r->kind == CHOICE)
        fprintf(stderr, "mcsw-sim: --%s %s: it is one of exact, scan, rounds\n", r->name, value);
    else
        fprintf(stderr, "mcsw-sim: --%s %s: it is a number from %s to %s\n", r->name, value, least,
                most);
    return 2;
}

static bool read_value(const struct option_row *r, const char *text, uint64_t *value)
{
    char *end;

    errno = 0;
    if (r->kind == CHOICE) {
        for (*value = 0; *value <= r->most; ++*value)
            if (strcmp(text, aggregates[*value]) == 0)
                return true;
        return false;
    }
    if (*text < '0' || *text > '9')
        return false;
    if (r->kind == PERCENT) {
        double percent = strtod(text, &end);

        if (*end || !(percent >= 0 && percent <= 100))
            return false;
        *value = (uint64_t)(percent * (SIM_ALWAYS / 100) + 0.5);
    } else {
        *value = strtoull(text, &end, 0);
    }
    return *end == 0 && errno == 0 && *value >= r->least && *value <= r->most;
}

static const struct option_row *find(const char *name, size_t length)
{
    for (size_t i = 0; i < n_rows; i++)
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0)
            return &rows[i];
    return NULL;
}

/* Checks that depend on several values. */
static int fits(const struct sim_options *o)
{
    uint32_t leaves = (o->members + o->leaf - 1) / o->leaf;
    uint32_t control = control_bytes + leaves * section_bytes;

    if (o->mtu & (o->mtu - 1))
        fprintf(stderr, "mcsw-sim: --mtu %u: it is 1024, 2048 or 4096\n", o->mtu);
    else if (o->levels == 1 && o->members > SIM_RANKS)
        fprintf(stderr, "mcsw-sim: --members %u: one level has 2 to %u; use --levels 2\n",
                o->members, SIM_RANKS);
    else if (o->levels == 2 && leaves > SIM_LEAVES_MAX)
        fprintf(stderr, "mcsw-sim: --leaf %u: %u members need %u leaves, the root has 1 to %u\n",
                o->leaf, o->members, leaves, SIM_LEAVES_MAX);
    else if (o->levels == 2 && control > o->mtu)
        fprintf(stderr, "mcsw-sim: --mtu %u: a control for %u leaves has up to %u bytes\n", o->mtu,
                leaves, control);
    else if (o->mutant && !MUTANTS)
        fprintf(stderr, "mcsw-sim: --mutant %u: this build has none, 0 is the only one\n",
                o->mutant);
    else
        return 0;
    return 2;
}

int sim_options_parse(struct sim_options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i] + 2, *equal, *text = NULL;
        const struct option_row *r;
        uint64_t value = 1;

        if (strcmp(argv[i], "--help") == 0) {
            help();
            return 1;
        }
        equal = strchr(argv[i], '=');
        r = strncmp(argv[i], "--", 2) == 0
                ? find(name, equal ? (size_t)(equal - name) : strlen(name))
                : NULL;
        if (!r || (equal && r->kind == FLAG)) {
            fprintf(stderr, "mcsw-sim: unknown option '%s'; mcsw-sim --help lists them\n", argv[i]);
            return 2;
        }
        if (r->kind != FLAG) {
            text = equal ? equal + 1 : i + 1 < argc ? argv[++i] : "";
            if (!read_value(r, text, &value))
                return bad(r, text);
        }
        set(o, r, value);
    }
    return fits(o);
}

void sim_options_print(const struct sim_options *o, char *to, size_t room)
{
    size_t used = (size_t)snprintf(to, room, "mcsw-sim");

    for (size_t i = 0; i < n_rows && used < room; i++) {
        uint64_t value = value_of(o, &rows[i]);
        char text[32];

        if (value == rows[i].otherwise || strcmp(rows[i].name, "shrink") == 0)
            continue;
        print_value(&rows[i], value, text, sizeof text);
        used += (size_t)snprintf(to + used, room - used, " --%s%s%s", rows[i].name,
                                 rows[i].kind == FLAG ? "" : " ", rows[i].kind == FLAG ? "" : text);
    }
}
