/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One process's part in a group of a multicast switch, as the device sees it: a queue pair that
 * sends requests to the switch, one that receives copies from it, and the memory that receives the
 * copies. A transport that has such queue pairs names its functions here and owns the objects. No
 * lock: the caller serializes. */
#ifndef TK_TRANSPORT_MULTICAST_H
#define TK_TRANSPORT_MULTICAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcswitch/protocol.h"

struct tk_mcast_device;
struct tk_mcast_link {
    const struct tk_mcast_device *device;
};

/* Writes a range of the memory to an address that the switch completes: an offset from the
 * receivers' bases, or tk_mcast_control. Writes to the window go from our window to the given
 * offset in theirs. */
struct tk_mcast_write {
    const void *from;
    uint64_t to;
    size_t nbytes;
    bool to_window;
};

/* Memory of the client that is registered. */
struct tk_mcast_window {
    uint64_t base, size; /* 0: none */
    uint32_t rkey;
    uint64_t most; /* bytes of one write */
};
static const uint64_t tk_mcast_control = UINT64_MAX;
enum { tk_mcast_list_max = 8, tk_mcast_depth = 64 };

struct tk_mcast_device {
    /* NULL: failed, the reason is in `why`. The memory stays the caller's, and is registered. */
    struct tk_mcast_link *(*open)(void *memory, size_t size, const char **why);
    void (*close)(struct tk_mcast_link *link);

    /* Resets both queue pairs, whatever their state, and describes them for the switch: all but the
     * rank. False with a reason: our port has no address in the switch's network.
     */
    bool (*reset)(struct tk_mcast_link *link, const struct tk_mcsw_info *info,
                  struct tk_mcsw_member *member, const char **why);
    /* Call it when the switch has assigned our places. False: the device refused. */
    bool (*connect)(struct tk_mcast_link *link, const struct tk_mcsw_info *info,
                    const struct tk_mcsw_place *place);
    /* From now on nothing arrives, and pending operations fail. */
    void (*stop)(struct tk_mcast_link *link);

    /* The segment; false: the switch could write to none. */
    bool (*window)(const struct tk_mcast_link *link, struct tk_mcast_window *window);

    /* Posts the writes as one list; the last one completes as `id`. False: the device refused. */
    bool (*post)(struct tk_mcast_link *link, const struct tk_mcast_write *list, unsigned count,
                 uint64_t id);
    /* Reads the switch's status into our memory. */
    bool (*read_status)(struct tk_mcast_link *link, void *to, size_t nbytes, uint64_t id);
    /* The next completion; false: none. */
    bool (*poll)(struct tk_mcast_link *link, uint64_t *id, bool *has_failed, const char **how);
};

#endif
