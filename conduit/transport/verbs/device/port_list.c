/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which variable GASNET_IBV_PORTS* a rank uses. GASNET_IBV_PORTS_TYPE selects a kind of number, by
 * default that of the sockets to which the rank is bound. If the variable with the rank's numbers
 * is set, the rank uses that; otherwise, and always with GASNET_IBV_PORTS_TYPE=auto or None, the
 * one without a number. No lock: start-up only. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "topology/locality.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"

static const char stem[] = "GASNET_IBV_PORTS_";

/* Avoids reading the machine's topology when no variable needs it. */
static bool any_is_numbered(void)
{
    for (char *const *env = tk_environment(); env && *env; env++) {
        const char *digit = *env + sizeof(stem) - 1;
        if (!strncmp(*env, stem, sizeof(stem) - 1) && *digit >= '0' && *digit <= '9')
            return true;
    }
    return false;
}

/* ---- The numbers of a rank ---- */

struct numbers {
    uint32_t count;
    uint32_t at[4096];
};

static enum tk_status find_numbers(struct numbers *n, const struct tk_port_key *key,
                                   uint32_t host_rank)
{
    const uint32_t nbrhd = (uint32_t)tk_settings.supernode_maxsize;
    n->count = key->kind != TK_KEY_NONE;
    if (key->kind == TK_KEY_JOB_RANK)
        n->at[0] = tk_peers.me;
    else if (key->kind == TK_KEY_HOST_RANK)
        n->at[0] = host_rank;
    else if (key->kind == TK_KEY_NBRHD_RANK) /* divides hosts as tk_topology_map() does */
        n->at[0] = nbrhd ? host_rank % nbrhd : host_rank;
    else if (key->kind == TK_KEY_PART)
        return tk_locality_indices(key->part, n->at, sizeof(n->at) / sizeof(n->at[0]), &n->count);
    return TK_OK;
}

static uint32_t operate(const struct tk_port_key *key, uint32_t number)
{
    if (key->operation == '/')
        return number / key->operand;
    return key->operation == '%' ? number % key->operand : number;
}

/* Ascending; equal results count once. */
static void insert_number(struct numbers *n, uint32_t number)
{
    uint32_t i = n->count;
    while (i > 0 && n->at[i - 1] > number)
        i--;
    if (i > 0 && n->at[i - 1] == number)
        return;
    memmove(&n->at[i + 1], &n->at[i], (n->count - i) * sizeof(n->at[0]));
    n->at[i] = number;
    n->count++;
}

/* In place: there are never more results than numbers read. */
static void operate_on_all(struct numbers *n, const struct tk_port_key *key)
{
    const uint32_t count = n->count;
    n->count = 0;
    for (uint32_t i = 0; i < count; i++)
        insert_number(n, operate(key, n->at[i]));
}

/* If the name does not fit, the rank is bound to nearly all sockets, for which no variable
 * exists. */
static void use_numbers(struct tk_port_family *family, const struct numbers *n)
{
    char name[sizeof(family->name)];
    size_t length = sizeof(stem) - 2; /* each number has its own _ */
    memcpy(name, stem, length + 1);
    for (uint32_t i = 0; i < n->count && length < sizeof(name); i++)
        length += (size_t)snprintf(name + length, sizeof(name) - length, "_%u", n->at[i]);
    const char *value = n->count > 0 && length < sizeof(name) ? tk_getenv(name) : NULL;
    if (!value || !*value)
        return;
    memcpy(family->name, name, sizeof(name));
    family->filter = value;
}

enum tk_status tk_port_family_find(struct tk_port_family *family, uint32_t host_rank)
{
    struct tk_port_key key;
    struct numbers numbers;
    *family = (struct tk_port_family){.name = "GASNET_IBV_PORTS", .filter = tk_settings.ibv_ports};
    family->is_auto = tk_parse_auto(tk_settings.ibv_ports_type, &family->rails);
    if (family->is_auto || !any_is_numbered())
        return TK_OK;
    if (!tk_parse_port_key(tk_settings.ibv_ports_type, &key) ||
        find_numbers(&numbers, &key, host_rank) != TK_OK) {
        tk_log_error("GASNET_IBV_PORTS_TYPE='%s' is no type of hwloc's for parts of a machine: "
                     "Package (or Socket), NUMANode, Group, L3Cache, L2Cache, L1Cache, Core, PU",
                     tk_settings.ibv_ports_type);
        return TK_FAIL;
    }
    operate_on_all(&numbers, &key);
    use_numbers(family, &numbers);
    return TK_OK;
}
