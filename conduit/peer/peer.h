/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The peer table: one entry per rank of the job with what a transfer to it needs, and the peer
 * infos that ranks exchange to fill it. Written at start-up and by attach, before any rank may use
 * the segment concerned, and read-only otherwise, so there is no lock. Exception: the address
 * offsets of neighbours' segments are found at first use and are read and written atomically. */
#ifndef TK_PEER_H
#define TK_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/platform.h"
#include "base/status.h"
#include "topology/topology.h"

struct tk_transport;

/* One cache line: indexed by a shift, and never straddles two lines. */
struct tk_peer {
    _Alignas(TK_CACHE_LINE) const struct tk_transport *transport;
    void *connection;       /* private to the transport */
    uintptr_t segment_base; /* of endpoint 0 */
    uintptr_t segment_size; /* 0: not attached */
    uint32_t segment_key;   /* remote key on the rail for small transfers */
    int32_t segment_fd;     /* as in struct tk_bound */
    uint64_t segment_inode;
    uint32_t rank;
    int pid;
    const char *host;
};

/* The address offset of a segment: owner's address + offset = address in this process; 0 for our
 * own. Offsets are multiples of a page, so this value is not an offset: the segment is not mapped,
 * or not yet. */
enum { tk_unmapped = 1 };

/* Changes when a peer is connected on demand. */
static inline const struct tk_transport *tk_peer_transport(const struct tk_peer *peer)
{
    return __atomic_load_n(&peer->transport, __ATOMIC_ACQUIRE);
}

struct tk_peers {
    struct tk_peer *at;  /* by job rank; in its block are the arrays down to rail_to */
    uint32_t **keys;     /* remote keys of the same segments, one per rail; NULL: none known */
    uint8_t *rail_to;    /* by job rank: the rail that tk_peer.segment_key belongs to */
    uint32_t *key_table; /* what `keys` points into: made with the first of them */
    const uintptr_t *unmapped; /* by job rank: tk_unmapped each; from start/tables.c on */
    uintptr_t *offsets;        /* a copy of them, with the address offsets of segments of
                                * endpoints 0; only neighbours have any */
    uint32_t rails;            /* of each rank; 0: no network */
    uint32_t size;
    uint32_t me;
};

extern TK_HIDDEN struct tk_peers tk_peers;

static inline struct tk_peer *tk_peer(uint32_t rank)
{
    return &tk_peers.at[rank];
}

/* Whether the range lies inside the segment of the peer's endpoint 0. An empty range always
 * does. */
static inline bool tk_peer_has(const struct tk_peer *peer, uintptr_t address, size_t nbytes)
{
    uintptr_t offset = address - peer->segment_base;
    return nbytes == 0 || (offset < peer->segment_size && nbytes <= peer->segment_size - offset);
}

/* A GID by which a port can be reached, and how many of its first bits name its network. */
struct tk_gid {
    uint8_t raw[16];
    uint8_t type; /* enum ibv_gid_type */
    uint8_t network_bits;
    uint16_t index; /* in the port's table */
};

/* Network address of a port, InfiniBand or RoCE, and what its end of a path can do. Both ends of a
 * pair choose the same path from the addresses of both: transport/verbs/device/path.c. */
enum { tk_gids_max = 8 };
/* On-demand paging: not requested; segments are paged; requested, but a device lacks it. */
enum tk_paging { TK_PAGING_UNASKED, TK_PAGING_USED, TK_PAGING_MISSED };
struct tk_port_address {
    uint32_t rate_mbps;
    uint16_t lid;
    uint16_t pkey; /* with the membership bit */
    uint8_t gid_count;
    uint8_t is_ethernet;
    uint8_t needs_gid; /* cannot be reached by LID alone */
    uint8_t mtu;       /* enum ibv_mtu */
    uint8_t port;
    uint8_t reads;     /* RDMA reads per queue pair that the port serves at once (max_qp_rd_atom) */
    uint8_t reads_out; /* that it may have outstanding (max_qp_init_rd_atom) */
    uint8_t atomics;   /* of the device: enum ibv_atomic_cap */
    uint8_t paging;    /* enum tk_paging; the same for all ports of a rank */
    uint8_t is_iwarp;  /* which is Ethernet too */
    char device[32];
    struct tk_gid
        gids[tk_gids_max]; /* gid_count of them, the best first; the stored struct ends there */
};

/* The address of a listener of librdmacm (transport/verbs/cm). */
struct tk_cm_place {
    uint8_t address[16]; /* IPv4 uses the first 4 bytes */
    uint16_t port;       /* in network order; 0: no listener */
    uint8_t is_ip6;
    uint8_t reserved;
    uint32_t scope; /* the interface of a link-local address; valid on its own host only */
};

/* How neighbours find the shared-memory rings of a rank: see memory.h. The nonce is also in the
 * first bytes of the rings. */
struct tk_rings_place {
    uint64_t inode;
    uint8_t nonce[8]; /* against accidents; and each byte travels to all hosts */
    int32_t fd;       /* -1: no rings, the rank shares no memory with neighbours */
    uint32_t reserved;
};

enum { tk_peer_info_version = 10, tk_job_secret_size = 16 };

/* A rank's offer for extended reliable connections, see transport/verbs/conn/xrc_agree.c: the
 * reason against them, or 0; for how many ranks a send queue has space; and a file to share with
 * neighbours. */
struct tk_xrc_offer {
    uint32_t refusal;
    uint32_t ranks;
    uint64_t inode;
    int32_t fd;
    uint32_t reserved;
};

/* The record that each rank publishes at start-up. After it come the addresses of its rails; the
 * numbers (uint32_t) of its datagram queue pairs, one for each rail, 0 for none; if all ranks are
 * connected at start-up, the numbers of its queue pairs for each rank of the job, itself included;
 * the addresses of listeners; and a zero-terminated text about ports it does not use. */
struct tk_peer_info {
    uint32_t version;
    uint32_t pid;
    uint64_t settings_hash;
    uint64_t host_memory; /* bytes that processes of its host may use: bounds segments */
    uint64_t memory_left; /* of these, still free at start-up; UINT64_MAX: unknown */
    uint64_t pinnable;    /* for all ranks of its host; UINT64_MAX: its device pins nothing */
    char mode[8];         /* threading mode: must be the same in the whole job */
    struct tk_host_info host;
    struct tk_rings_place rings;
    uint32_t ranks;       /* of the job */
    uint32_t rails;       /* 0: it opened no device */
    uint32_t conns;       /* queue pairs per rank */
    uint32_t numbers;     /* of them published: as many, or 0 */
    uint32_t credits;     /* requests that each peer may have in flight to it from the beginning */
    uint32_t recv_min;    /* minimum of buffers for its shared queue, if fewer were configured */
    uint32_t whole_max;   /* bytes of the largest message that its receive buffers take */
    uint16_t slack;       /* of its credits, each peer may hold back that many */
    uint16_t has_bounded; /* it has receive buffers for messages that take no credit (TK_BOUNDED) */
    uint32_t traces;      /* it writes a trace, or would with another mask: clocks must be
                           * compared */
    uint32_t unused_size; /* of the text */
    uint32_t cm_places; /* addresses of listeners, one for each rail; 0: librdmacm connects none */
    uint32_t reserved;
    struct tk_xrc_offer xrc;
    uint8_t secret[tk_job_secret_size]; /* of rank 0, for the job; 0 in others: tk_gather() sends
                                         * what the ranks of a host have in common once */
};

static inline size_t tk_peer_info_size(const struct tk_peer_info *info)
{
    return sizeof(*info) + info->rails * (sizeof(struct tk_port_address) + sizeof(uint32_t)) +
           (size_t)info->ranks * info->numbers * sizeof(uint32_t) +
           info->cm_places * sizeof(struct tk_cm_place) + info->unused_size;
}

static inline struct tk_port_address *tk_peer_info_rail(const struct tk_peer_info *info,
                                                        uint32_t rail)
{
    return (struct tk_port_address *)(info + 1) + rail;
}

static inline uint32_t *tk_peer_info_datagram_qps(const struct tk_peer_info *info)
{
    return (uint32_t *)tk_peer_info_rail(info, info->rails);
}

static inline uint32_t *tk_peer_info_qps(const struct tk_peer_info *info, uint32_t rank)
{
    return tk_peer_info_datagram_qps(info) + info->rails + (size_t)rank * info->numbers;
}

static inline struct tk_cm_place *tk_peer_info_cm_places(const struct tk_peer_info *info)
{
    return (struct tk_cm_place *)tk_peer_info_qps(info, info->ranks);
}

static inline char *tk_peer_info_unused(const struct tk_peer_info *info)
{
    return (char *)(tk_peer_info_cm_places(info) + info->cm_places);
}

/* Allocates the table; only rank numbers are filled in. */
enum tk_status tk_peers_open(uint32_t rank, uint32_t size);

/* Points the arrays of a table of `size` ranks into its block, and returns how large that is;
 * `block` may be NULL. */
static inline size_t tk_peers_lay_out(struct tk_peers *peers, void *block, size_t size)
{
    uintptr_t at = (uintptr_t)block;
    peers->at = (struct tk_peer *)at;
    peers->keys = (uint32_t **)(at += size * sizeof(*peers->at));
    peers->rail_to = (uint8_t *)(at += size * sizeof(*peers->keys));
    at += size * sizeof(*peers->rail_to);
    return tk_align_up(at - (uintptr_t)block, TK_CACHE_LINE);
}

/* Fills in an array for tk_peers.unmapped, which is the same in all ranks. */
void tk_peers_unmap(uintptr_t *unmapped, uint32_t size);

static inline size_t tk_peers_unmapped_bytes(size_t size)
{
    return size * sizeof(*tk_peers.unmapped);
}

/* The sizes of the segments of neighbours that are mapped. */
static inline size_t tk_peers_mapped_bytes(size_t neighbours)
{
    return neighbours * sizeof(size_t);
}

/* The keys of their segments. */
static inline size_t tk_peers_keys_bytes(size_t size, size_t rails)
{
    return size * rails * sizeof(uint32_t);
}

/* host_names.c: one copy of each name, which many ranks share; valid until the process ends. NULL:
 * out of memory. Start-up only. */
const char *tk_host_name_keep(const char *name);

/* Ends the table: no more names follow. */
void tk_host_names_complete(void);

/* The bytes that `count` names of `length` characters take. */
size_t tk_host_names_bytes(size_t count, size_t length);

/* Publishes `info` and collects the infos of all ranks with one fence. Checks version, mode,
 * settings. */
enum tk_status tk_peer_info_exchange_all(struct tk_peer_info *info);

/* Collective: replaces all infos, whose rails have changed. */
enum tk_status tk_peer_info_exchange_again(struct tk_peer_info *info);

/* The peer info of a rank; NULL before the exchange. tk_peer_info_drop_all(), after a barrier
 * behind the exchange, frees all, here and in the launcher's servers. */
const struct tk_peer_info *tk_peer_info_of(uint32_t rank);
const struct tk_host_info *tk_host_info_of(uint32_t rank);
void tk_peer_info_drop_all(void);

/* segment.c: segments bound to endpoints, as other ranks reach them. Segments of endpoints 0 are in
 * struct tk_peer; segments of other endpoints are in a table that is allocated with the first of
 * them. A record is written only while its owner's segment may not be used yet, and is read-only
 * otherwise; allocating the table takes a lock. */

enum {
    tk_endpoints_max = 33,                  /* of the client: GASNET_MAXEPS */
    tk_endpoint_staging = tk_endpoints_max, /* buffers of kind_rma/, as a segment of this number */
    tk_endpoints_known
};

/* Of a segment in the memory of a device, what other ranks must know. */
struct tk_bound_kind {
    uint8_t gex_class;      /* gex_MK_Class_t */
    uint8_t has_ipc;        /* `ipc` and `offset` are valid */
    uint8_t needs_flush;    /* a put over the network needs a read behind it */
    uint8_t is_registered;  /* an HCA reaches it: a key is not 0. Set where it is recorded */
    uint32_t serial;        /* of the allocation: the handle of a freed one may come again */
    unsigned char uuid[16]; /* of the device */
    uint64_t offset;        /* of the segment in its allocation */
    unsigned char ipc[64];  /* the vendor's handle of the allocation */
};

struct tk_bound {
    uintptr_t base;
    uintptr_t size;       /* 0: no segment known */
    const uint32_t *keys; /* remote keys, one per rail; NULL: no network */
    uint64_t inode;       /* of the file that backs it */
    uint32_t endpoint;
    int32_t fd;                       /* -1: memory of the client, backed by no file of ours */
    const struct tk_bound_kind *kind; /* NULL: host memory; valid as long as the keys */
};

/* Host buffers through which data of device segments passes. kind_rma/ sets the functions when it
 * opens; NULL before. open: a kind was created; TK_FAIL: no memory, which was logged. bound: the
 * buffers, to be published beside device segments; false: there are none. */
struct tk_staging {
    enum tk_status (*open)(void);
    bool (*bound)(struct tk_bound *bound);
};
extern struct tk_staging tk_staging;

/* Any rank and endpoint number is allowed. The keys and the kind are valid until the endpoint is
 * bound to another segment. */
struct tk_bound tk_bound_of(uint32_t rank, uint32_t endpoint);
void tk_bound_set(uint32_t rank, const struct tk_bound *bound);

/* The segment of ours that holds these bytes and that all ranks know, or are about to know, because
 * they are in the collective call that publishes it. False: there is none. */
bool tk_bound_find_published(uintptr_t address, size_t nbytes, struct tk_bound *bound);

/* The address offset of such a segment, and setting it after `mapped` bytes have been mapped
 * here. The table owns the mapping from then on and unmaps it when tk_bound_set() replaces the
 * segment. */
uintptr_t tk_bound_addr_offset(uint32_t rank, uint32_t endpoint);
void tk_bound_mapped(uint32_t rank, uint32_t endpoint, uintptr_t offset, size_t mapped);

static inline uintptr_t tk_segment_addr_offset(uint32_t rank)
{
    return __atomic_load_n(&tk_peers.offsets[rank], __ATOMIC_ACQUIRE);
}

static inline bool tk_bound_has(const struct tk_bound *bound, uintptr_t address, size_t nbytes)
{
    uintptr_t offset = address - bound->base;
    return nbytes == 0 || (offset < bound->size && nbytes <= bound->size - offset);
}

/* share.c. Collective: gathers `size` bytes of each rank, in order of rank, into `all`; calls poll
 * while waiting. All ranks must give the same size. */
enum tk_status tk_share(const void *mine, void *all, size_t size, void (*poll)(void));

#define tk_nobody UINT32_MAX

/* Collective: publishes `count` of our records and learns those of all ranks; calls poll while
 * waiting. With `mine` NULL this rank reports that it failed: then no rank learns anything, and
 * *unable is the lowest rank that failed (otherwise tk_nobody). Other ranks may not have learnt our
 * records yet on return. */
enum tk_status tk_segments_exchange(const struct tk_bound *mine, uint32_t count, void (*poll)(void),
                                    uint32_t *unable);

/* After a barrier that follows an exchange: nobody needs what this rank has published for it. */
void tk_segments_withdraw(void);

/* The same records for an exchange by other means: ours as tk_bound_offer_size() bytes, to be
 * freed, and those of another rank, which are checked. TK_FAIL: they are invalid, which was
 * logged. */
size_t tk_bound_offer_size(const struct tk_bound *mine, uint32_t count);
void *tk_bound_offer(const struct tk_bound *mine, uint32_t count);
enum tk_status tk_bound_accept(uint32_t rank, const void *offer, size_t size);

#endif
