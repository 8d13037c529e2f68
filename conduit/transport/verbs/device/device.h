/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Devices and rails, which device/ owns: it chooses the ports at start-up and opens their devices.
 * A device in use has the objects that serve all its ports; a rail is one port in use. The buffers
 * and queues of both belong to data/. No lock, except where a member names one: start-up and exit
 * are single-threaded. */
#ifndef TK_VERBS_DEVICE_H
#define TK_VERBS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/platform.h"
#include "base/pool_type.h"
#include "base/status.h"
#include "peer/peer.h"
#include "transport/verbs/library.h"

struct tk_sends;
struct tk_srq;

/* How a connection reaches its other end: properties that the ports of both ends have in common. */
struct tk_path {
    struct tk_gid from, to; /* if is_global */
    uint16_t lid;           /* of the other end; the members below are for logs: */
    uint8_t port;
    bool is_global;
    uint8_t mtu;                 /* enum ibv_mtu */
    uint8_t reads_in, reads_out; /* concurrent RDMA reads, as responder and as requester */
    char device[28];             /* the beginning of its name */
};

struct tk_device {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *recv_cq;
    struct ibv_comp_channel *send_events,
        *recv_events; /* NULL: no thread sleeps until events come */
    struct tk_device *next;
    unsigned index;
    bool has_fixed_cqs;     /* ibv_resize_cq is missing: they are made for all peers */
    struct tk_sends *sends; /* by lane; NULL for the first device, which uses those in the lanes */
    _Alignas(TK_CACHE_LINE) tk_lock_t recv_cq_lock;
    struct tk_srq *srq;    /* NULL: each connection has receive buffers of its own */
    struct ibv_xrcd *xrcd; /* NULL: neighbours share no receive queue and no queue pairs */
};

struct tk_rail {
    struct tk_pool recv_pool;
    struct ibv_context *context;
    struct tk_device *device;
    struct tk_port_address address;
    int pkey_index;
    uint8_t retry_count;  /* of our queue pairs, in the device's encoding */
    bool is_retry_capped; /* it is lower than the setting */
    uint32_t vendor;      /* of the device */
    bool is_iwarp;
    bool by_cm;            /* librdmacm connects its queue pairs: cm/cm.h */
    char why[192];         /* why it was chosen, for the start-up record */
    uint32_t message_max;  /* of the port */
    uint8_t gids_lost;     /* a bit for each GID that the port's table lacks now, as reported */
    uint32_t peers;        /* peers whose primary connection it has */
    unsigned recv_buffers; /* buffers in its pool, used or not */
    uint32_t conns_open;   /* connections on demand: how many are open, and how many of those */
    uint32_t primaries;    /* are primary ones */
    uint64_t down_since;   /* time, from the device's events; 0: it is up, or that was handled */
    uint64_t look_again; /* when to check whether connections can be reopened; 0: it never was down;
                            atomic */
    tk_counter_t failures, returns; /* of its connections */
};

/* device/rail_select.c; turn: our number among the ranks of this host */
struct tk_choice {
    struct tk_rail *rails;
    uint32_t count;
    char unused[512]; /* unused ports of this host, with the reason */
};
/* A port that a rank could use; distance: tk_spread_never, or larger is farther. */
struct tk_rail_claim {
    char device[32];
    int port, distance;
    bool is_taken;
};
/* Decides with the other ranks of the host which of these ports this rank takes. claims == NULL:
 * this rank takes no part, and the others need not wait for it. False: the others do not answer,
 * and this rank decides alone. */
typedef bool tk_rail_sharer(struct tk_rail_claim *claims, uint32_t count, uint32_t wanted);
/* Finding no usable port is no failure: `count` is 0 then. `share` may be NULL. Each rank of a host
 * with several ports calls share() once; it passes its ports if GASNET_IBV_PORTS_TYPE is auto. */
enum tk_status tk_rails_choose(struct tk_choice *choice, uint32_t turn, tk_rail_sharer *share);
/* The same for at most so many rails, without asking the other ranks of the host. */
enum tk_status tk_rails_choose_few(struct tk_choice *choice, uint32_t turn, uint32_t most);
void tk_rails_report_none(const char *unused); /* in one line, with the remedy */

/* device/agree.c: how many rails all ranks have, of one kind of network each; rank 0 logs it. 0:
 * all have as many, or there is none. */
uint32_t tk_rails_in_common(void);

/* device/rail_share.c: through the launcher's server, before the first fence */
tk_rail_sharer tk_rails_share;

/* device/device.c: the devices of the rails chosen, once each; data/queues.h opens their queues */
void tk_devices_use(void);
void tk_devices_close(void);

/* device/path.c; is_first: both ends must name the ports in the same order. False: they can't reach
 * each other. */
bool tk_path_find(struct tk_path *path, const struct tk_port_address *mine,
                  const struct tk_port_address *theirs, bool is_first);
/* Logs that these two ports can't reach each other. */
void tk_gids_log_apart(const char *one, const struct tk_port_address *a, const char *other,
                       const struct tk_port_address *b);
/* "mlx5_0:1 (GID ...) to mlx5_1:1 (GID ...)": the path of a connection, for logs. The second: of
 * the primary connection to a rank, before that exists. */
enum { tk_path_end_size = 128, tk_path_text_size = 2 * tk_path_end_size + 64 };
const char *tk_path_text(const struct tk_port_address *mine, const struct tk_path *path,
                         char text[tk_path_text_size]);
const char *tk_path_to_text(uint32_t rank, char text[tk_path_text_size]);
/* The port's table of GIDs has changed: warns of those that connections use and it lacks. */
void tk_gids_look(struct tk_rail *rail);
/* The address of a port, and why it was chosen: for the start-up record. */
void tk_path_describe(const struct tk_rail *rail, char *text, size_t size);

/* device/paging.c: the first when the rails are chosen, before atomics are; the second when the
 * peer infos are known */
void tk_paging_choose(void);
void tk_paging_report(void);

/* device/last_wqe.c: do all devices raise an asynchronous event when a queue pair in ERR takes no
 * more from its shared receive queue? Tries it on each; call it before other code reads their
 * events. */
bool tk_last_wqe_comes(void);

#endif
