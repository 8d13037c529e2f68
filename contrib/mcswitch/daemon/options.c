/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command line; see options.h. */
#include "config.h"

#include "daemon/options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "daemon/group.h"

enum { SOCKET_DEFAULT_ROOM = 108 };

static const char usage[] =
    "usage: mcswitchd --control HOST:PORT [--udp REQUESTS,COPIES] [--vip REQUESTS,COPIES\n"
    "           --port PORT ...] [options]\n"
    "       mcswitchd --socket PATH stat [GROUP] | destroy GROUP | loss PERCENT\n"
    "\n"
    "A switch that replicates RDMA messages to the members of groups.\n"
    "\n"
    "  --control HOST:PORT     where jobs make and join groups (GASNET_MCAST_CTRL)\n"
    "  --udp ADDR,ADDR         softhca's wire: the two addresses A.B.C.D[:PORT] of the switch,\n"
    "                          port 4791 or 45056..49151\n"
    "  --vip ADDR,ADDR         the two IPv4 addresses of the switch among Ethernet ports\n"
    "  --port packet:IF        an Ethernet port: a network interface\n"
    "  --port dgram:OWN,PEER   an Ethernet port: -netdev dgram of QEMU, A.B.C.D:PORT or paths\n"
    "  --key FILE              64 hexadecimal digits, from which keys of jobs are derived\n"
    "  --socket PATH           for the administrator (default: none)\n"
    "  --lease MS              until a silent holder loses a group's lock, 10..600000 (2000)\n"
    "  --groups N              groups of all jobs, 1..4096 (256)\n"
    "  --mtu BYTES             the largest path MTU, 256, 512, 1024, 2048 or 4096 (4096)\n"
    "  --loss PERCENT          loses so many frames each way, 0..90 (0), for tests\n"
    "  --seed N                of --loss (1)\n"
    "  --help, --version\n";

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list rest;

    fputs("mcswitchd: ", stderr);
    va_start(rest, format);
    vfprintf(stderr, format, rest);
    va_end(rest);
    fputs("; see mcswitchd --help\n", stderr);
    exit(2);
}

static uint64_t number(const char *name, const char *text, uint64_t least, uint64_t most)
{
    uint64_t n;

    if (!tk_number_digits(text, least, most, &n))
        fail("--%s %s: not a number from %llu to %llu", name, text, (unsigned long long)least,
             (unsigned long long)most);
    return n;
}

static uint32_t percent(const char *text)
{
    uint32_t per_million;

    if (!mcd_port_percent(text, &per_million))
        fail("--loss %s: not a number from 0 to 90", text);
    return per_million;
}

static uint32_t mtu(const char *text)
{
    uint64_t n = number("mtu", text, 256, 4096);

    if (n & (n - 1))
        fail("--mtu %s: not one of 256, 512, 1024, 2048 and 4096", text);
    return (uint32_t)n;
}

static void vips(struct mcd_options *o, const char *text)
{
    const char *comma = strchr(text, ',');
    char first[16];

    o->has_vips = comma && comma - text < (ptrdiff_t)sizeof first;
    if (o->has_vips) {
        snprintf(first, sizeof first, "%.*s", (int)(comma - text), text);
        o->has_vips = inet_pton(AF_INET, first, o->vips.requests) == 1 &&
                      inet_pton(AF_INET, comma + 1, o->vips.copies) == 1 &&
                      memcmp(o->vips.requests, o->vips.copies, 4) != 0 &&
                      o->vips.requests[0] - 1u < 223 && o->vips.copies[0] - 1u < 223;
    }
    if (!o->has_vips)
        fail("--vip %s: not two different IPv4 addresses A.B.C.D,A.B.C.D of hosts", text);
}

enum word {
    CONTROL = 256,
    UDP,
    VIP,
    PORT,
    KEY,
    SOCKET,
    LEASE,
    GROUPS,
    MTU,
    LOSS,
    SEED,
    HELP,
    VERSION_
};

static const struct option options[] = {
    {"control", required_argument, NULL, CONTROL}, {"udp", required_argument, NULL, UDP},
    {"vip", required_argument, NULL, VIP},         {"port", required_argument, NULL, PORT},
    {"key", required_argument, NULL, KEY},         {"socket", required_argument, NULL, SOCKET},
    {"lease", required_argument, NULL, LEASE},     {"groups", required_argument, NULL, GROUPS},
    {"mtu", required_argument, NULL, MTU},         {"loss", required_argument, NULL, LOSS},
    {"seed", required_argument, NULL, SEED},       {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION_},      {NULL, 0, NULL, 0}};

static void add_port(struct mcd_options *o, const char *text)
{
    if (o->port_count == MCD_PORTS - 1)
        fail("--port %s: more than %d ports", text, MCD_PORTS - 1);
    o->ports[o->port_count++] = text;
}

/* Flushes the buffer, because a full disk may show only then. */
int mcd_options_printed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "mcswitchd: cannot write standard output: %s\n", strerror(errno));
    return status ? status : 1;
}

static void take(struct mcd_options *o, int option, const char *text)
{
    switch (option) {
    case CONTROL:
        o->control = text;
        break;
    case UDP:
        o->udp = text;
        break;
    case VIP:
        vips(o, text);
        break;
    case PORT:
        add_port(o, text);
        break;
    case KEY:
        o->key = text;
        break;
    case SOCKET:
        o->socket = text;
        break;
    case LEASE:
        o->lease_ms = (uint32_t)number("lease", text, 10, 600000);
        break;
    case GROUPS:
        o->groups = (uint32_t)number("groups", text, 1, MCD_GROUPS_MAX);
        break;
    case MTU:
        o->mtu = mtu(text);
        break;
    case LOSS:
        o->loss = percent(text);
        break;
    case SEED:
        o->seed = number("seed", text, 0, INT64_MAX);
        break;
    case HELP:
        fputs(usage, stdout);
        exit(mcd_options_printed(0));
    case VERSION_:
        printf("mcswitchd (Trunkline) %s\n", PACKAGE_VERSION);
        exit(mcd_options_printed(0));
    default: /* getopt has logged the error */
        fputs("see mcswitchd --help\n", stderr);
        exit(2);
    }
}

static void command(struct mcd_options *o, char **words, int count)
{
    bool stat = strcmp(words[0], "stat") == 0, loss = strcmp(words[0], "loss") == 0;

    if (!stat && !loss && strcmp(words[0], "destroy") != 0)
        fail("%s: none of stat, destroy and loss", words[0]);
    if (count > 2 || (!stat && count != 2))
        fail("%s takes %s", words[0],
             stat   ? "at most one group"
             : loss ? "a percentage"
                    : "the number of a group");
    if (!o->socket)
        fail("%s: the socket of the running switch is missing (--socket PATH)", words[0]);
    if (loss)
        percent(words[1]);
    else if (count == 2)
        number(words[0], words[1], 1, MCD_GROUPS_MAX);
    snprintf(o->command_text, sizeof o->command_text, "%s%s%s", words[0], count == 2 ? " " : "",
             count == 2 ? words[1] : "");
    o->command = o->command_text;
}

static void check(const struct mcd_options *o)
{
    if (!o->control)
        fail("--control HOST:PORT is missing");
    if (!o->udp && o->port_count == 0)
        fail("neither --udp nor --port: the switch would have no port");
    if (o->port_count > 0 && !o->has_vips)
        fail("--port needs --vip: the two addresses that hosts know the switch by");
    if (o->has_vips && o->port_count == 0)
        fail("--vip is for ports of frames, and there is no --port");
}

void mcd_options_read(struct mcd_options *o, int argc, char **argv)
{
    int option;

    *o = (struct mcd_options){.lease_ms = 2000, .groups = 256, .mtu = 4096, .seed = 1};
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        take(o, option, optarg);
    if (optind < argc)
        command(o, argv + optind, argc - optind);
    else
        check(o);
}
