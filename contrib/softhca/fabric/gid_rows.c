/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rows of the GID tables of this process's ports, which change when addresses are removed and
 * added (softhca gid). Addresses have numbers: the rows that they are in at start. As in Linux, a
 * row whose address was removed is empty to queries, but queue pairs and address handles that were
 * made with it keep it. Owns the rows; any thread reads them, the helper thread changes them. */
#include "config.h"

#include "fabric/fabric.h"

/* 1 + the number of the address in the row, 0: it never had one; removed: it is empty. */
enum { removed = 0x80 };
static _Atomic uint8_t rows[SHCA_MAX_HCA * SHCA_MAX_PRT + 1][SHCA_GID_ROWS];
static _Atomic bool any_changed;

/* RoCE: link-local and IPv4, each for v1 and v2, or for one of them. */
uint32_t shca_gid_addresses(int hca)
{
    enum { roce_both = 3, roce_gids = 4 };

    if (shca_config.udp)
        return SHCA_INET_GIDS;
    if (!shca_is_ethernet(hca))
        return 1;
    return shca_config.device[hca].gid_types == roce_both ? roce_gids : roce_gids / 2;
}

static uint32_t addresses_of(uint32_t fabric_port)
{
    return shca_gid_addresses(shca_hca_at(fabric_port));
}

static uint8_t row_of(uint32_t fabric_port, uint32_t index)
{
    if (!atomic_load_explicit(&any_changed, memory_order_acquire))
        return index < addresses_of(fabric_port) ? (uint8_t)(index + 1) : 0;
    return index < SHCA_GID_ROWS ? atomic_load(&rows[fabric_port][index]) : 0;
}

uint32_t shca_gid_count(int hca)
{
    uint32_t addresses = shca_gid_addresses(hca);

    return shca_config.gid_rows > addresses ? shca_config.gid_rows : addresses;
}

bool shca_gid_is_there(uint32_t fabric_port, uint32_t index)
{
    uint8_t row = row_of(fabric_port, index);

    return row != 0 && !(row & removed);
}

int shca_gid_address_at(uint32_t fabric_port, uint32_t index)
{
    return (row_of(fabric_port, index) & ~removed) - 1;
}

static void begin_changes(void)
{
    if (atomic_load(&any_changed))
        return;
    for (int hca = 0; hca < shca_config.hcas; hca++)
        for (int port = 1; port <= shca_config.ports; port++)
            for (uint32_t i = 0; i < shca_gid_addresses(hca); i++)
                atomic_store(&rows[shca_fabric_port(hca, port)][i], (uint8_t)(i + 1));
    atomic_store(&any_changed, true);
}

const char *shca_gid_remove(int hca, int port, uint32_t index)
{
    uint32_t fabric_port = shca_fabric_port(hca, port);

    begin_changes();
    if (index >= shca_gid_count(hca) || !shca_gid_is_there(fabric_port, index))
        return "that row is empty";
    atomic_fetch_or(&rows[fabric_port][index], removed);
    shca_contexts_notify(hca, IBV_EVENT_GID_CHANGE, (uint32_t)port);
    return NULL;
}

const char *shca_gid_add(int hca, int port, uint32_t address, uint32_t index)
{
    uint32_t fabric_port = shca_fabric_port(hca, port);

    begin_changes();
    if (address >= shca_gid_addresses(hca))
        return "there is no address of that number";
    if (index >= shca_gid_count(hca))
        return "the table has no such row (SOFTHCA_GIDS)";
    if (shca_gid_is_there(fabric_port, index))
        return "that row is in use";
    for (uint32_t i = 0; i < shca_gid_count(hca); i++)
        if (shca_gid_is_there(fabric_port, i) &&
            shca_gid_address_at(fabric_port, i) == (int)address)
            return "the address is in the table already";
    atomic_store(&rows[fabric_port][index], (uint8_t)(address + 1));
    shca_contexts_notify(hca, IBV_EVENT_GID_CHANGE, (uint32_t)port);
    return NULL;
}
