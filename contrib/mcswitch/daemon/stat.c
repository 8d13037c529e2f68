/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters; see stat.h. */
#include "config.h"

#include "daemon/stat.h"

#include "daemon/control.h"
#include "daemon/switch.h"

static void print_port(FILE *to, const struct mcd_port *p)
{
    const struct mcd_port_counters *c = &p->count;

    fprintf(to,
            "port %u %s frames_in %llu bytes_in %llu frames_out %llu bytes_out %llu strangers %llu "
            "too_long %llu lost_in %llu lost_out %llu\n",
            p->number, p->name, (unsigned long long)c->frames_in, (unsigned long long)c->bytes_in,
            (unsigned long long)c->frames_out, (unsigned long long)c->bytes_out,
            (unsigned long long)c->strangers, (unsigned long long)c->too_long,
            (unsigned long long)c->lost_in, (unsigned long long)c->lost_out);
}

static void print_bridge(FILE *to)
{
    const struct mcd_bridge_counters *c = &mcd_bridge_count;

    fprintf(to,
            "bridge forwarded %llu flooded %llu to_core %llu not_for_us %llu "
            "malformed %llu moved %llu\n",
            (unsigned long long)c->forwarded, (unsigned long long)c->flooded,
            (unsigned long long)c->to_core, (unsigned long long)c->not_for_us,
            (unsigned long long)c->malformed, (unsigned long long)c->moved);
}

static void print_control(FILE *to)
{
    const struct mcd_control_counters *c = &mcd_control_count;

    fprintf(
        to,
        "control open %u accepted %llu refused_full %llu refused_key %llu late %llu "
        "malformed %llu slow %llu requests %llu errors %llu joined %llu left %llu destroyed %llu\n",
        c->open, (unsigned long long)c->accepted, (unsigned long long)c->refused_full,
        (unsigned long long)c->refused_key, (unsigned long long)c->late,
        (unsigned long long)c->malformed, (unsigned long long)c->slow,
        (unsigned long long)c->requests, (unsigned long long)c->errors,
        (unsigned long long)c->joined, (unsigned long long)c->left,
        (unsigned long long)c->destroyed);
}

void mcd_stat_print(FILE *to)
{
    for (unsigned i = 0; i < mcd_port_count; i++)
        print_port(to, &mcd_ports[i]);
    print_bridge(to);
    print_control(to);
    mcd_switch_print(to);
}
