/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the settings of this process once from the environment, when the program first asks for
 * devices. Owns the copies of their texts; writes shca_config under pthread_once. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "fabric/fabric.h"

static int config_status;

/* The program may change its environment later. */
static const char *load_keep(const char *text)
{
    return text ? strdup(text) : NULL;
}

static int load_faults(const char *text)
{
    char why[400];

    if (!text || shca_fault_set(text, why, sizeof why) == 0)
        return 0;
    shca_log("SOFTHCA_FAULT: %s", why);
    return EINVAL;
}

static void load_once(void)
{
    struct shca_config *c = &shca_config;
    char why[400];

    config_status = shca_settings_parse(environ, c, why, sizeof why);
    if (config_status != 0) {
        shca_log("%s", why);
        return;
    }
    c->fabric_name = load_keep(c->fabric_name);
    c->profile_list = load_keep(c->profile_list);
    c->wire = load_keep(c->wire);
    c->udp_list = load_keep(c->udp_list);
    c->down_list = load_keep(c->down_list);
    c->unplugged_list = load_keep(c->unplugged_list);
    c->rate_list = load_keep(c->rate_list);
    c->speed_list = load_keep(c->speed_list);
    c->fault = load_keep(c->fault);
    c->stats = load_keep(c->stats);
    c->real = load_keep(c->real);
    config_status = load_faults(c->fault);
    if (c->rate_list)
        atomic_store(&shca_detour, true);
}

int shca_config_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_once);
    return config_status;
}
