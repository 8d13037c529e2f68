/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the input of the switch in each corner case, as NN.pcap and NN.conf for mcsw-replay.
 * usage: write_cases DIRECTORY [fast|strict] */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "packet/bytes.h"
#include "packet/pcap.h"
#include "replay/setup.h"

static FILE *open_file(const char *directory, unsigned n, const char *suffix)
{
    char path[4096];
    FILE *f;

    snprintf(path, sizeof path, "%s/%02u.%s", directory, n, suffix);
    f = fopen(path, "wb");
    if (!f) {
        perror(path);
        exit(1);
    }
    return f;
}

static void record(void *context, unsigned port, uint64_t now, const uint8_t *frame, size_t length)
{
    uint8_t header[ROCE_PCAP_RECORD], tag[4];

    roce_pcap_record(header, now, (uint32_t)length + 4);
    roce_put32(tag, 0x81000000u | (port + 1));
    fwrite(header, sizeof header, 1, context);
    fwrite(frame, 12, 1, context);
    fwrite(tag, sizeof tag, 1, context);
    fwrite(frame + 12, length - 12, 1, context);
}

static unsigned write_case(const char *directory, const struct mcsw_case *c, enum mcsw_mode mode)
{
    static struct rig r;
    static struct setup_group g;
    struct setup s = {.groups = 1, .number = {RIG_GROUP}, .group = {&g}};
    struct rig_options o = c->o;
    uint8_t header[ROCE_PCAP_HEADER];
    FILE *f = open_file(directory, c->number, "pcap");

    o.mode = mode;
    rig_open(&r, &o);
    roce_pcap_header(header, ROCE_PCAP_ETHERNET);
    fwrite(header, sizeof header, 1, f);
    r.record = record;
    r.context = f;
    c->run(&r);
    fclose(f);
    s.c = r.config;
    g.c = (struct mcsw_group_config){RIG_KEY,  4,          r.o.members, r.o.members,
                                     r.sender, r.receiver, false};
    f = open_file(directory, c->number, "conf");
    setup_write(&s, f);
    fclose(f);
    rig_close(&r);
    return r.failures;
}

int main(int argc, char **argv)
{
    enum mcsw_mode mode = argc > 2 && strcmp(argv[2], "strict") == 0 ? MCSW_STRICT : MCSW_FAST;
    unsigned failures = 0;

    if (argc < 2)
        return 2;
    for (unsigned i = 0; i < cases_of_order; i++)
        failures += write_case(argv[1], &cases_order[i], mode);
    for (unsigned i = 0; i < cases_of_control; i++)
        failures += write_case(argv[1], &cases_control[i], mode);
    for (unsigned i = 0; i < cases_of_frame; i++)
        failures += write_case(argv[1], &cases_frame[i], mode);
    return failures != 0;
}
