/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command line of mcswitchd. Owns nothing: texts point into argv. */
#ifndef MCD_OPTIONS_H
#define MCD_OPTIONS_H

#include "daemon/bridge.h"

struct mcd_options {
    const char *ports[MCD_PORTS];
    unsigned port_count;
    const char *udp, *control, *socket, *key;
    const char *command; /* for a running switch: "stat", "destroy 3"; NULL: run a switch */
    char command_text[64];
    bool has_vips;
    struct mcd_vips vips;
    uint32_t lease_ms, groups, mtu, loss; /* loss: per million */
    uint64_t seed;
};

/* The process exits here for --help, --version and mistakes (status 2). */
void mcd_options_read(struct mcd_options *o, int argc, char **argv);

/* The status of a process that has printed the requested text: 1 if it could not be written. / */
int mcd_options_printed(int status);

#endif
