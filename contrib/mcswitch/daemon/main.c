/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mcswitchd: opens everything, runs the loop, removes what it made. */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/admin.h"
#include "daemon/group.h"
#include "daemon/options.h"
#include "daemon/request.h"
#include "daemon/switch.h"
#include "daemon/wire.h"

static struct mcd_options options;
static struct mcd_vips vips;
static uint8_t site_key[TK_MCSW_KEY];

static void on_signal(int number)
{
    (void)number;
    mcd_loop_stop();
}

/* Blocks signals; the loop unblocks them while it waits. */
static void catch_signals(void)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction act = {.sa_handler = on_signal};
    sigset_t blocked;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&blocked);
    for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++) {
        sigaction(ends[i], &act, NULL);
        sigaddset(&blocked, ends[i]);
    }
    sigprocmask(SIG_BLOCK, &blocked, NULL);
}

static void plain_gid(const uint8_t ip[4], uint8_t gid[16])
{
    memset(gid, 0, 16);
    gid[10] = gid[11] = 0xff;
    memcpy(gid + 12, ip, 4);
}

static void describe(uint32_t boot)
{
    struct tk_mcsw_info info = {.version = TK_MCSW_VERSION,
                                .boot = boot,
                                .members = mcd_switch_members(),
                                .groups = options.groups,
                                .mtu = options.mtu,
                                .lease = options.lease_ms};

    if (options.udp) {
        info.planes |= 1u << TK_MCSW_UDP;
        mcd_wire_gids(info.vip[TK_MCSW_UDP].requests, info.vip[TK_MCSW_UDP].copies);
    }
    if (options.port_count) {
        info.planes |= 1u << TK_MCSW_FRAMES;
        plain_gid(vips.requests, info.vip[TK_MCSW_FRAMES].requests);
        plain_gid(vips.copies, info.vip[TK_MCSW_FRAMES].copies);
    }
    mcd_request_open(&info);
}

/* The MAC must be the same after a restart: hosts remember it. */
static void make_mac(void)
{
    vips.mac[0] = 2; /* locally administered */
    vips.mac[1] = 'M';
    memcpy(vips.mac + 2, vips.requests, 4);
}

static bool read_key(void)
{
    char why[256];

    if (!options.key || tk_mcsw_key_read(options.key, site_key, why, sizeof why))
        return true;
    fprintf(stderr, "mcswitchd: --key: %s\n", why);
    mcd_status = 2;
    return false;
}

static bool open_ports(void)
{
    for (unsigned i = 0; i < options.port_count; i++)
        if (!mcd_port_open(options.ports[i]))
            return false;
    return !options.udp || mcd_wire_open(options.udp, &vips);
}

static void take(struct mcd_port *port, uint8_t *frame, size_t length)
{
    if (port->kind == MCD_WIRE)
        mcd_switch_take(port, frame, length);
    else
        mcd_bridge_take(port, frame, length);
}

static bool open_all(void)
{
    struct mcd_switch_config config = {.vips = &vips,
                                       .lease_ms = options.lease_ms,
                                       .groups = options.groups,
                                       .event = mcd_group_event};

    if (options.has_vips)
        vips = options.vips;
    if (getrandom(&config.boot, sizeof config.boot, 0) != sizeof config.boot) {
        fprintf(stderr, "mcswitchd: the kernel has no random bytes\n");
        return false;
    }
    if (!mcd_loop_open() || !read_key() || !open_ports())
        return false;
    make_mac();
    mcd_bridge_open(&vips);
    mcd_port_take = take;
    mcd_port_lose(options.loss, options.seed);
    mcd_group_open(options.groups);
    if (!mcd_switch_open(&config)) {
        fprintf(stderr, "mcswitchd: no memory for %u groups (--groups)\n", options.groups);
        return false;
    }
    describe(config.boot);
    return (!options.socket || mcd_admin_open(options.socket)) &&
           mcd_control_open(options.control, options.key ? site_key : NULL, &mcd_request_calls);
}

static void tick(uint64_t now)
{
    mcd_control_tick(now);
    mcd_admin_tick(now);
    mcd_group_tick(now);
}

static void close_all(void)
{
    mcd_control_close_all();
    mcd_group_close_all();
    mcd_admin_close();
    mcd_switch_close();
    mcd_wire_close();
    mcd_port_close_all();
    memset(site_key, 0, sizeof site_key);
}

int main(int argc, char **argv)
{
    static const struct mcd_hooks hooks = {.tick = tick, .round = mcd_port_flush};
    bool opened;

    mcd_options_read(&options, argc, argv);
    if (options.command)
        return mcd_options_printed(mcd_admin_ask(options.socket, options.command));
    catch_signals();
    opened = open_all();
    if (opened) {
        /* for a process that starts the daemon and waits for this line */
        printf("mcswitchd: ready\n");
        fflush(stdout);
        mcd_loop_run(&hooks);
    }
    close_all();
    return opened ? 0 : mcd_status;
}
