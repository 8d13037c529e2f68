/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers: one entry per rank of the job with what is needed on the way to it, and the peer infos
 * that ranks exchange to fill it. Written at start-up and on attach (before anyone may use a
 * segment), read-only otherwise: no lock. But for where neighbours' segments are mapped, which is
 * found out when they are first used. */
#ifndef TK_PEER_H
#define TK_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/mode.h"
#include "base/status.h"
#include "topology/topology.h"

struct tk_transport;

/* A cache line: found by a shift, and never across two. */
struct tk_peer {
    _Alignas(TK_CACHE_LINE) const struct tk_transport *transport;
    void *connection;       /* the transport's own */
    uintptr_t segment_base; /* of endpoint 0 */
    uintptr_t segment_size; /* 0: not attached */
    uint32_t segment_key;   /* what a remote write must present on the rail of small transfers */
    int32_t segment_fd;     /* as in struct tk_bound */
    uint64_t segment_inode;
    uint32_t rank;
    int pid;
    const char *host;
};

/* A shift is what makes an address of a segment's owner one of ours. Shifts are multiples of a
 * page; this is none: the segment is not mapped, or not yet. Ours is 0. */
enum { tk_unmapped = 1 };

struct tk_peers {
    struct tk_peer *at; /* by job rank */
    uintptr_t *offsets; /* by job rank, of segments of endpoints 0 */
    uintptr_t *far;     /* by job rank: tk_unmapped each */
    size_t *mapped;     /* and how much of them we have mapped */
    uint32_t **keys;    /* of the same segments: one for each rail */
    uint32_t *rail_to;  /* by job rank: the rail that tk_peer.segment_key is for */
    uint32_t rails;     /* of each rank; 0: there is no network */
    uint32_t size;
    uint32_t me;
};

extern TK_HIDDEN struct tk_peers tk_peers;

static inline struct tk_peer *tk_peer(uint32_t rank)
{
    return &tk_peers.at[rank];
}

/* Is the range inside the segment of the peer's endpoint 0? An empty one is anywhere. */
static inline bool tk_peer_has(const struct tk_peer *peer, uintptr_t address, size_t nbytes)
{
    uintptr_t offset = address - peer->segment_base;
    return nbytes == 0 || (offset < peer->segment_size && nbytes <= peer->segment_size - offset);
}

/* Where a port is, on either kind of network. A port with LID 0 is a RoCE port: it is addressed by
 * GID. */
struct tk_port_address {
    uint8_t gid[16];
    uint16_t lid;
    uint8_t is_ethernet;
    uint8_t mtu; /* enum ibv_mtu */
    char device[32];
    uint8_t port;
    uint8_t reads; /* RDMA reads that the port serves at once for a queue pair */
    uint8_t reserved[2];
    uint32_t rate_mbps;
};

static inline bool tk_address_needs_gid(const struct tk_port_address *address)
{
    return address->is_ethernet || address->lid == 0;
}

/* By which neighbours find a rank's message rings: see memory.h. The nonce lies in the rings' first
 * bytes too. */
struct tk_rings_place {
    uint64_t inode;
    uint8_t nonce[16];
    int32_t fd; /* -1: it has none, its neighbours do not share memory */
    uint32_t reserved;
};

enum { tk_peer_info_version = 3 };

/* What each rank publishes at start-up, followed by the addresses of its rails, by the numbers of
 * the queue pairs that it has for each rank of the job, its own included (uint32_t each), and by a
 * text, with its end, about ports that it does not use. */
struct tk_peer_info {
    uint32_t version;
    uint32_t pid;
    uint64_t settings_hash;
    uint64_t host_memory; /* bytes that processes of its host may use: bounds segments */
    uint64_t memory_left; /* of these, at start-up; UINT64_MAX: nobody says */
    uint64_t pinnable;    /* for all ranks of its host; UINT64_MAX: its device pins nothing */
    char mode[8];         /* threading mode: builds of one job may not differ */
    struct tk_host_info host;
    struct tk_rings_place rings;
    uint32_t ranks;       /* of the job */
    uint32_t rails;       /* 0: it opened no device */
    uint32_t links;       /* queue pairs for each rank */
    uint32_t unused_size; /* of the text */
};

static inline size_t tk_peer_info_size(const struct tk_peer_info *info)
{
    return sizeof(*info) + info->rails * sizeof(struct tk_port_address) +
           (size_t)info->ranks * info->links * sizeof(uint32_t) + info->unused_size;
}

static inline struct tk_port_address *tk_peer_info_rail(const struct tk_peer_info *info,
                                                        uint32_t rail)
{
    return (struct tk_port_address *)(info + 1) + rail;
}

static inline uint32_t *tk_peer_info_qps(const struct tk_peer_info *info, uint32_t rank)
{
    return (uint32_t *)tk_peer_info_rail(info, info->rails) + (size_t)rank * info->links;
}

static inline char *tk_peer_info_unused(const struct tk_peer_info *info)
{
    return (char *)tk_peer_info_qps(info, info->ranks);
}

/* Makes the table with nothing known but rank numbers. */
enum tk_status tk_peers_open(uint32_t rank, uint32_t size);

/* Publishes `peer info` and collects everybody's by one fence. Checks version, mode and settings.
 */
enum tk_status tk_peer_info_exchange_all(struct tk_peer_info *info);

/* A rank's peer info; NULL before the exchange. Cards are freed by tk_peer_info_drop_all(). */
const struct tk_peer_info *tk_peer_info_of(uint32_t rank);
const struct tk_host_info *tk_host_info_of(uint32_t rank);
void tk_peer_info_drop_all(void);

/* segment.c: segments bound to endpoints, as others reach them. Those of endpoints 0 are in struct
 * tk_peer, those of others in a table that exists only once there are any. A record is written
 * while its owner is not to be used yet, and read-only otherwise; making the table takes a lock. */

enum { tk_endpoints_max = 33 };

struct tk_bound {
    uintptr_t base;
    uintptr_t size;       /* 0: none is known */
    const uint32_t *keys; /* what a remote access must present, on each rail; NULL: no network */
    uint64_t inode;       /* of the file that it is */
    uint32_t endpoint;
    int32_t fd; /* -1: it is no file, but the client's own memory */
};

/* Any numbers may be asked for. The keys are good until the endpoint has another segment. */
struct tk_bound tk_bound_of(uint32_t rank, uint32_t endpoint);
void tk_bound_set(uint32_t rank, const struct tk_bound *bound);

/* Where such a segment lies here, and that it does: `mapped` bytes of it. The mapping is ours from
 * then on, and goes when the endpoint is said to have another segment. */
uintptr_t tk_bound_addr_offset(uint32_t rank, uint32_t endpoint);
void tk_bound_mapped(uint32_t rank, uint32_t endpoint, uintptr_t shift, size_t mapped);

static inline uintptr_t tk_segment_addr_offset(uint32_t rank)
{
    return __atomic_load_n(&tk_peers.offsets[rank], __ATOMIC_ACQUIRE);
}

static inline bool tk_bound_has(const struct tk_bound *bound, uintptr_t address, size_t nbytes)
{
    uintptr_t offset = address - bound->base;
    return nbytes == 0 || (offset < bound->size && nbytes <= bound->size - offset);
}

/* share.c, all ranks together: `size` bytes of each, in order of rank, into `all`; calls poll while
 * waiting. All must give the same size. */
enum tk_status tk_share(const void *mine, void *all, size_t size, void (*poll)(void));

#define tk_nobody UINT32_MAX

/* All ranks together: publishes `count` records of ours and learns everybody's; calls poll while
 * waiting. With `mine` NULL we say that we can't: then nobody learns anything, and *unable is the
 * lowest rank that said so (else tk_nobody). Others may not have learnt ours yet on return. */
enum tk_status tk_segments_exchange(const struct tk_bound *mine, uint32_t count, void (*poll)(void),
                                    uint32_t *unable);

#endif
