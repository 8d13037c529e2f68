/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters; see stat.h. */
#include "config.h"

#include "daemon/stat.h"

#include "daemon/control.h"
#include "daemon/switch.h"

struct count {
    const char *name;
    uint64_t value;
};

static void print_counts(FILE *to, const struct count *counts)
{
    for (; counts->name; counts++)
        fprintf(to, " %s %llu", counts->name, (unsigned long long)counts->value);
    fprintf(to, "\n");
}

static void print_port(FILE *to, const struct mcd_port *p)
{
    const struct mcd_port_counters *c = &p->count;
    const struct count counts[] = {
        {"frames_in", c->frames_in}, {"bytes_in", c->bytes_in},   {"frames_out", c->frames_out},
        {"bytes_out", c->bytes_out}, {"strangers", c->strangers}, {"too_long", c->too_long},
        {"lost_in", c->lost_in},     {"lost_out", c->lost_out},   {NULL, 0}};

    fprintf(to, "port %u %s", p->number, p->name);
    print_counts(to, counts);
}

static void print_bridge(FILE *to)
{
    const struct mcd_bridge_counters *c = &mcd_bridge_count;
    const struct count counts[] = {{"forwarded", c->forwarded},
                                   {"flooded", c->flooded},
                                   {"to_core", c->to_core},
                                   {"not_for_us", c->not_for_us},
                                   {"malformed", c->malformed},
                                   {"moved", c->moved},
                                   {NULL, 0}};

    fprintf(to, "bridge");
    print_counts(to, counts);
}

static void print_control(FILE *to)
{
    const struct mcd_control_counters *c = &mcd_control_count;
    const struct count counts[] = {{"open", c->open},
                                   {"accepted", c->accepted},
                                   {"refused_full", c->refused_full},
                                   {"refused_key", c->refused_key},
                                   {"late", c->late},
                                   {"malformed", c->malformed},
                                   {"slow", c->slow},
                                   {"requests", c->requests},
                                   {"errors", c->errors},
                                   {"joined", c->joined},
                                   {"left", c->left},
                                   {"destroyed", c->destroyed},
                                   {NULL, 0}};

    fprintf(to, "control");
    print_counts(to, counts);
}

void mcd_stat_print(FILE *to)
{
    for (unsigned i = 0; i < mcd_port_count; i++)
        print_port(to, &mcd_ports[i]);
    print_bridge(to);
    print_control(to);
    mcd_switch_print(to);
}
