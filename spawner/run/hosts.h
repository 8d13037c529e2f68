/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the hosts that a job may use: from the first of command line, settings and batch system
 * that names hosts. Owns nothing, no lock. */
#ifndef TRUNKLINE_SPAWNER_HOSTS_H
#define TRUNKLINE_SPAWNER_HOSTS_H

#include "host_list.h"
#include "settings/settings.h"

struct hosts_wish {
    const char *list;     /* -H; NULL when not given */
    const char *nodefile; /* --nodefile; NULL when not given */
    const struct tk_settings *settings;
};

/* Fills the list; without any source it stays empty. False: a source is wrong, and why. */
bool hosts_find(struct host_list *list, const struct hosts_wish *wish, char *why, size_t size);

/* Whether a name means this host, as far as this shows without a query to the network. */
bool hosts_is_this(const char *name);

/* Whether this host is the only one of the list. */
bool hosts_only_this(const struct host_list *list);

#endif
