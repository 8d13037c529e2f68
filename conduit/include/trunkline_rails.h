/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Raw rails: plain verbs on the ports that the conduit selects, for programs that measure or use
 * the network below the GASNet-EX interface. An extension of Trunkline; valid between
 * gex_Client_Init() and gasnet_exit(). Objects made here belong to the client alone: the traffic of
 * the job uses other contexts, queue pairs and completion queues, and may use shared memory.
 *
 * Every function that can fail returns GASNET_OK, GASNET_ERR_BAD_ARG or GASNET_ERR_RESOURCE; after
 * a failure trunkline_rails_error() returns one line with the cause, the limit and the remedy.
 * Nothing is printed.
 *
 * Threads: in PAR, functions on different domains, queues and queue pairs may run at the same time;
 * calls on one object must be serialised by the client. trunkline_rails_* except
 * trunkline_rails_error() must be called by one thread at a time. Nothing here may be called from a
 * handler of active messages or with a gex_HSL_t held. Posting and polling are done with
 * ibv_post_send(), ibv_poll_cq() and so on, under the rules of verbs. */
#ifndef TRUNKLINE_RAILS_H
#define TRUNKLINE_RAILS_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A port in use. Rail i of one rank reaches rail i of every other. Read-only. */
typedef struct {
    char name[40];               /* "softhca0:1": device and port */
    struct ibv_context *context; /* shared by the rails of one device */
    uint32_t index;              /* index among the rails */
    uint32_t rate_mbps;          /* Mb/s, of the port */
    uint32_t message_max;        /* bytes of the largest message */
    uint32_t mtu;                /* bytes */
    uint8_t gid[16];             /* zeros if the network is routed by LID */
    uint16_t lid;                /* 0 on RoCE */
    uint16_t pkey_index;
    uint8_t gid_index;
    uint8_t port;
    uint8_t is_ethernet;     /* RoCE or iWARP; else InfiniBand */
    int reads_in, reads_out; /* RDMA reads at once per queue pair, as responder and as requester */
    struct ibv_device_attr limits; /* of the device: max_qp, max_qp_wr, max_cqe, max_mr_size, ... */
} trunkline_rail_t;

/* Opens the ports that GASNET_IBV_PORTS, GASNET_NUM_QPS and related settings select for this rank,
 * even in a job that needs no device itself: *rails becomes an array of *count rails, at least one,
 * valid until trunkline_rails_close(). A second call returns the same. Local: ranks may have
 * different numbers of rails. GASNET_ERR_RESOURCE: no port can be used, and *count is 0
 * (gasnetrun_ibv adds the software device to jobs that share memory only with
 * GASNET_SOFTHCA=always); GASNET_ERR_BAD_ARG: a setting is invalid. */
int trunkline_rails_open(const trunkline_rail_t **rails, unsigned *count);

/* Call after all domains are closed. */
void trunkline_rails_close(void);

/* Why the last call of this thread failed: one line without a newline, valid until the next call of
 * this thread. */
const char *trunkline_rails_error(void);

/* Collective over the job, through its bootstrap: gathers `size` bytes of every rank, in order of
 * rank, into `all` (size times the number of ranks). Meant for addresses: for kilobytes, before and
 * after a measurement. Serves active messages while it waits, sleeping 50 us at a time. All ranks
 * must give the same size, and make this call and the next in the same order, not at the same time
 * as other collective calls (gex_Segment_Attach). GASNET_ERR_RESOURCE: a rank has exited, or gave
 * another size. */
int trunkline_rails_share(const void *mine, void *all, size_t size);

/* Collective: no rank returns before all ranks have called it. Sleeps like
 * trunkline_rails_share(). */
int trunkline_rails_barrier(void);

/* A protection domain on an opened device. Queue pairs, completion queues and memory that work
 * together belong to one domain; several rails of one device may share it. */
typedef struct {
    struct ibv_context *context;
    struct ibv_pd *pd;
    const trunkline_rail_t *rail; /* that it was opened for */
} trunkline_domain_t;

/* `own_context` not 0: opens the device once more, so that no provider state is shared with other
 * domains; 0: uses rail->context. */
int trunkline_domain_open(trunkline_domain_t *domain, const trunkline_rail_t *rail,
                          int own_context);

/* Call after all its objects are closed. No effect on a domain that is all zeros. */
void trunkline_domain_close(trunkline_domain_t *domain);

/* Registers `size` bytes; `access` is a set of enum ibv_access_flags. Release *memory with
 * ibv_dereg_mr(). */
int trunkline_memory_open(struct ibv_mr **memory, const trunkline_domain_t *domain, void *address,
                          size_t size, int access);

/* A completion queue of at least `depth` entries; `channel`: NULL, or where to send its events
 * (from ibv_create_comp_channel() on the same context). Release *cq with ibv_destroy_cq(). */
int trunkline_cq_open(struct ibv_cq **cq, const trunkline_domain_t *domain, uint32_t depth,
                      struct ibv_comp_channel *channel);

/* The address of a queue pair for another rank: plain bytes, for trunkline_rails_share(). */
typedef struct {
    uint8_t gid[16];
    char rail[32]; /* name, for people */
    uint32_t qpn, psn;
    uint16_t lid;
    uint8_t mtu; /* enum ibv_mtu */
    uint8_t reads;
    uint8_t is_ethernet;
    uint8_t type;     /* enum ibv_qp_type */
    uint8_t gid_type; /* enum ibv_gid_type */
    uint8_t reserved;
} trunkline_address_t;

/* Attributes of a new queue pair. All zeros except `type` and `send_depth` is valid. */
typedef struct {
    const char *name;                  /* for error lines, copied; NULL: none */
    enum ibv_qp_type type;             /* IBV_QPT_RC, IBV_QPT_UC or IBV_QPT_UD */
    uint32_t send_depth, recv_depth;   /* work requests per queue; at least 1 is allocated */
    uint32_t send_pieces, recv_pieces; /* scatter/gather entries per work request; 0: 1 */
    uint32_t inline_size;              /* bytes; the device may give less */
    struct ibv_cq *send_cq,
        *recv_cq; /* may be one queue, also one shared with other queue pairs; send_cq NULL: a new
                     one as deep as the queue; recv_cq NULL: send_cq */
    struct ibv_srq *srq; /* NULL: none */
    int signal_all;      /* every work request generates a completion, whatever its flags */
    int access; /* remote access to memory, enum ibv_access_flags; 0: remote reads and writes */
    int reads;  /* outstanding at once (max_rd_atomic); 0: as many as the device allows */
} trunkline_qp_options_t;

typedef struct {
    struct ibv_qp *qp;
    struct ibv_cq *send_cq, *recv_cq;
    const trunkline_rail_t *rail;
    trunkline_address_t address; /* of this queue pair, for other ranks */
    uint32_t inline_size;        /* bytes: the limit of IBV_SEND_INLINE */
    int reads;                   /* outstanding at once, as requested */
    int owns_cq;
    char name[96];
} trunkline_qp_t;

/* Creates a queue pair on a rail of the domain's device, in state INIT: receive buffers may be
 * posted. GASNET_ERR_BAD_ARG: a value is above the device's limits; GASNET_ERR_RESOURCE: the device
 * has no more. */
int trunkline_qp_open(trunkline_qp_t *qp, const trunkline_domain_t *domain,
                      const trunkline_rail_t *rail, const trunkline_qp_options_t *options);

/* RC and UC: connects with the queue pair at that address, which must connect with this one. UD:
 * made ready, unconnected; `to` is NULL. Ready to send and to receive afterwards, but the other end
 * may not be: use a barrier first. */
int trunkline_qp_connect(trunkline_qp_t *qp, const trunkline_address_t *to);

/* UD: creates the address handle for a work request's wr.ud.ah to reach that address, with to->qpn
 * and trunkline_qkey. Release *ah with ibv_destroy_ah(). */
int trunkline_qp_reach(struct ibv_ah **ah, const trunkline_qp_t *qp, const trunkline_address_t *to);
enum { trunkline_qkey = 0x7472756e }; /* of every UD queue pair made here */

/* The other end must not be in use any more: use a barrier first. No effect on one that is all
 * zeros. */
void trunkline_qp_close(trunkline_qp_t *qp);

#ifdef __cplusplus
}
#endif

#endif
