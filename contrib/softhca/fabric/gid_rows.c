/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rows of the GID tables of this process's ports: at start those of SOFTHCA_GIDS, which change
 * when addresses are removed and added (softhca gid). Addresses have numbers: the rows that they
 * are in at start. As in Linux, a row whose address was removed is empty to queries, but queue
 * pairs and address handles that were made with it keep it. Owns the rows; any thread reads them,
 * the helper thread changes them. */
#include "config.h"

#include "fabric/fabric.h"

/* 1 + the number of the address in the row, 0: it never had one; removed: it is empty. */
enum { removed = 0x80 };
static _Atomic uint8_t rows[SHCA_MAX_HCA * SHCA_MAX_PRT + 1][SHCA_GIDS];
static _Atomic bool any_changed;

uint32_t shca_gid_count(uint32_t fabric_port)
{
    return shca_config.udp ? SHCA_INET_GIDS : shca_port_config_at(fabric_port)->gids;
}

static uint8_t row_at_start(uint32_t fabric_port, uint32_t index)
{
    bool empty =
        index >= shca_gid_count(fabric_port) ||
        (!shca_config.udp && shca_port_config_at(fabric_port)->gid[index].kind == SHCA_GID_NONE);

    return empty ? 0 : (uint8_t)(index + 1);
}

static uint8_t row_of(uint32_t fabric_port, uint32_t index)
{
    if (!atomic_load_explicit(&any_changed, memory_order_acquire))
        return row_at_start(fabric_port, index);
    return index < SHCA_GIDS ? atomic_load(&rows[fabric_port][index]) : 0;
}

bool shca_gid_empty(uint32_t fabric_port, uint32_t index)
{
    uint8_t row = row_of(fabric_port, index);

    return row == 0 || row & removed;
}

int shca_gid_address_at(uint32_t fabric_port, uint32_t index)
{
    return (row_of(fabric_port, index) & ~removed) - 1;
}

const struct shca_gid_row *shca_gid_row_at(uint32_t fabric_port, uint32_t index)
{
    static const struct shca_gid_row none;
    int address = shca_gid_address_at(fabric_port, index);

    return address < 0 ? &none : &shca_port_config_at(fabric_port)->gid[address];
}

static void begin_changes(void)
{
    if (atomic_load(&any_changed))
        return;
    for (uint32_t port = 1; port <= (uint32_t)(shca_config.hcas * shca_config.ports); port++)
        for (uint32_t i = 0; i < SHCA_GIDS; i++)
            atomic_store(&rows[port][i], row_at_start(port, i));
    atomic_store(&any_changed, true);
}

const char *shca_gid_remove(int hca, int port, uint32_t index)
{
    uint32_t fabric_port = shca_fabric_port(hca, port);

    begin_changes();
    if (shca_gid_empty(fabric_port, index))
        return "that row is empty";
    atomic_fetch_or(&rows[fabric_port][index], removed);
    shca_contexts_notify(hca, IBV_EVENT_GID_CHANGE, (uint32_t)port);
    return NULL;
}

const char *shca_gid_add(int hca, int port, uint32_t address, uint32_t index)
{
    uint32_t fabric_port = shca_fabric_port(hca, port);

    begin_changes();
    if (row_at_start(fabric_port, address) == 0)
        return "there is no address of that number";
    if (index >= shca_gid_count(fabric_port))
        return "the table has no such row (SOFTHCA_GIDS)";
    if (!shca_gid_empty(fabric_port, index))
        return "that row is in use";
    for (uint32_t i = 0; i < shca_gid_count(fabric_port); i++)
        if (!shca_gid_empty(fabric_port, i) && shca_gid_address_at(fabric_port, i) == (int)address)
            return "the address is in the table already";
    atomic_store(&rows[fabric_port][index], (uint8_t)(address + 1));
    shca_contexts_notify(hca, IBV_EVENT_GID_CHANGE, (uint32_t)port);
    return NULL;
}
