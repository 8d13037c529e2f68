/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The GID table of a port as SOFTHCA_GIDS describes it: "link+ipv4@5+-" has the GIDs of the
 * link-local address, those of an IPv4 address in VLAN 5, and an empty entry. Each address has two
 * entries, RoCE v1 and v2, in the order of Linux. Owns nothing. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "softhca_settings.h"

static const char usual[] = "link+ipv4";

static bool add_row(struct shca_port_config *out, struct shca_gid_row row)
{
    if (out->gids == SHCA_GIDS)
        return false;
    out->gid[out->gids++] = row;
    return true;
}

/* What follows "@". */
static bool parse_vlan(const char *text, size_t n, uint8_t *vlan)
{
    char *end;
    unsigned long value = n > 0 && isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;

    *vlan = (uint8_t)value;
    return value >= 1 && value <= SHCA_VLAN_MAX && end == text + n;
}

static bool parse_word(const char *text, size_t n, struct shca_port_config *out)
{
    static const char *const names[] = {
        [SHCA_GID_LINK] = "link", [SHCA_GID_IPV4] = "ipv4", [SHCA_GID_IPV6] = "ipv6"};
    const char *at = memchr(text, '@', n);
    size_t length = at ? (size_t)(at - text) : n;
    struct shca_gid_row row = {.vlan = 0};

    if (n == 1 && *text == '-')
        return add_row(out, row);
    if (at && !parse_vlan(at + 1, n - length - 1, &row.vlan))
        return false;
    for (uint8_t kind = SHCA_GID_LINK; kind <= SHCA_GID_IPV6; kind++)
        if (strlen(names[kind]) == length && strncmp(names[kind], text, length) == 0)
            row.kind = kind;
    if (row.kind == SHCA_GID_NONE || !add_row(out, row))
        return false;
    row.v2 = true;
    return add_row(out, row);
}

bool shca_gid_list_parse(const char *text, struct shca_port_config *out)
{
    bool good = true;

    out->gids = 0;
    for (const char *at = text ? text : usual; at && good;) {
        size_t n = strcspn(at, "+");

        good = parse_word(at, n, out);
        at = at[n] ? at + n + 1 : NULL;
    }
    return good;
}

/* A port of InfiniBand has no IP addresses in its table. */
static bool has_row(const struct shca_profile *device, struct shca_gid_row row)
{
    if (row.kind == SHCA_GID_NONE)
        return true;
    if (device->link == SHCA_LINK_IB)
        return row.kind == SHCA_GID_LINK && !row.v2 && row.vlan == 0;
    return device->gid_types >> row.v2 & 1;
}

void shca_gid_list_fit(const struct shca_profile *device, struct shca_port_config *port)
{
    uint8_t kept = 0;

    for (uint8_t i = 0; i < port->gids; i++)
        if (has_row(device, port->gid[i]))
            port->gid[kept++] = port->gid[i];
    port->gids = kept;
}
