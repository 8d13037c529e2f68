/* SPDX-License-Identifier: BSD-3-Clause */
/* Raw rails: plain verbs on the ports that the conduit selects, for programs that want to measure
 * or use the network below the GASNet-EX interface. An extension of Trunkline's own; valid between
 * gex_Client_Init() and gasnet_exit(). What is made here is the client's alone: the job's own
 * traffic goes by other contexts, queue pairs and completion queues, and may go by shared memory.
 *
 * Every function that can fail returns GASNET_OK, GASNET_ERR_BAD_ARG or GASNET_ERR_RESOURCE; what
 * trunkline_rails_error() says then is one line with the cause, the limit and the remedy. Nothing
 * is printed.
 *
 * Threads: functions on different domains, queues and queue pairs may run at the same time in PAR;
 * those on one object are the client's to serialise. trunkline_rails_* but for
 * trunkline_rails_error() are for one thread at a time. Nothing here may be called from a handler
 * of active messages or with a gex_HSL_t held. What is posted and polled goes by ibv_post_send(),
 * ibv_poll_cq() and so on, under the rules of verbs. */
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
    uint32_t index;              /* its place among the rails */
    uint32_t rate_mbps;          /* Mb/s, of the port */
    uint32_t message_max;        /* bytes of the largest message */
    uint32_t mtu;                /* bytes */
    uint8_t gid[16];             /* zeros where the network is routed by LID */
    uint16_t lid;                /* 0 on RoCE */
    uint16_t pkey_index;
    uint8_t gid_index;
    uint8_t port;
    uint8_t is_ethernet;     /* RoCE or iWARP; else InfiniBand */
    int reads_in, reads_out; /* RDMA reads at once for a queue pair, as responder, as requester */
    struct ibv_device_attr limits; /* of its device: max_qp, max_qp_wr, max_cqe, max_mr_size, ... */
} trunkline_rail_t;

/* Opens the ports that GASNET_IBV_PORTS, GASNET_NUM_QPS and the others select for this rank, also
 * in a job that needs no device itself, and tells them: *rails is an array of *count, at least one,
 * good until trunkline_rails_close(). A second call tells the same. Every rank by itself, so ranks
 * may come to different numbers. GASNET_ERR_RESOURCE: there is no port that can be used, *count
 * is 0 (gasnetrun_ibv adds the software device to jobs that share memory only with
 * GASNET_SOFTHCA=always); GASNET_ERR_BAD_ARG: a setting makes no sense. */
int trunkline_rails_open(const trunkline_rail_t **rails, unsigned *count);

/* After all domains are closed. */
void trunkline_rails_close(void);

/* Why the last call of this thread failed: one line without its end, good until the next call of
 * this thread. */
const char *trunkline_rails_error(void);

/* Collective over the job, through its bootstrap: `size` bytes of every rank, in order of rank,
 * into `all` (size times the number of ranks). Meant for addresses: for kilobytes, before and after
 * what is measured. Serves active messages while it waits, in naps of 50 us. All ranks must give
 * the same size, and call this and the next in the same order, not at the same time as other
 * collective calls (gex_Segment_Attach). GASNET_ERR_RESOURCE: a rank has gone, or gave another
 * size. */
int trunkline_rails_share(const void *mine, void *all, size_t size);

/* Collective: nobody returns before all have called it. Naps like the above. */
int trunkline_rails_barrier(void);

/* A control block: a device opened, and a protection domain. Queue pairs, queues and memory that
 * work together are of one domain; several rails of one device may share it. */
typedef struct {
    struct ibv_context *context;
    struct ibv_pd *pd;
    const trunkline_rail_t *rail; /* that it was made for */
} trunkline_domain_t;

/* `own_context` not 0: opens the device once more, so that nothing of the provider's is shared with
 * other domains; 0: over rail->context. */
int trunkline_domain_open(trunkline_domain_t *domain, const trunkline_rail_t *rail,
                          int own_context);

/* After all that is in it. Harmless on one that is all zeros. */
void trunkline_domain_close(trunkline_domain_t *domain);

/* Registers `size` bytes; `access` is of enum ibv_access_flags. *memory is given back by
 * ibv_dereg_mr(). */
int trunkline_memory_open(struct ibv_mr **memory, const trunkline_domain_t *domain, void *address,
                          size_t size, int access);

/* A completion queue for at least `depth` entries; `channel` NULL, or where it rings
 * (ibv_create_comp_channel() of the same context). *cq is given back by ibv_destroy_cq(). */
int trunkline_cq_open(struct ibv_cq **cq, const trunkline_domain_t *domain, uint32_t depth,
                      struct ibv_comp_channel *channel);

/* How another rank reaches a queue pair: plain bytes, for trunkline_rails_share(). */
typedef struct {
    uint8_t gid[16];
    char rail[32]; /* name, for people */
    uint32_t qpn, psn;
    uint16_t lid;
    uint8_t mtu; /* enum ibv_mtu */
    uint8_t reads;
    uint8_t is_ethernet;
    uint8_t type; /* enum ibv_qp_type */
    uint8_t reserved[2];
} trunkline_address_t;

/* What a queue pair is to be. All zeros but `type` and `send_depth` will do. */
typedef struct {
    const char *name;                  /* for error lines, copied; NULL: none */
    enum ibv_qp_type type;             /* IBV_QPT_RC, IBV_QPT_UC or IBV_QPT_UD */
    uint32_t send_depth, recv_depth;   /* work requests in each queue; at least 1 is made */
    uint32_t send_pieces, recv_pieces; /* of memory in a work request; 0: 1 */
    uint32_t inline_size;              /* bytes; the device may give less */
    struct ibv_cq *send_cq, *recv_cq;  /* may be one, and serve other queue pairs of the same
                                          context; send_cq NULL: one of its own, as deep as the
                                          queue; recv_cq NULL: the send queue's */
    struct ibv_srq *srq;               /* NULL: none */
    int signal_all; /* every work request makes a completion, whatever its flags */
    int access;     /* of others to memory, enum ibv_access_flags; 0: remote reads and writes */
    int reads;      /* under way at once (max_rd_atomic); 0: as many as the device allows */
} trunkline_qp_options_t;

typedef struct {
    struct ibv_qp *qp;
    struct ibv_cq *send_cq, *recv_cq;
    const trunkline_rail_t *rail;
    trunkline_address_t address; /* ours, for others */
    uint32_t inline_size;        /* bytes: the limit of IBV_SEND_INLINE */
    int reads;                   /* that we asked for */
    int owns_cq;
    char name[96];
} trunkline_qp_t;

/* Makes a queue pair on a rail of the domain's device, in state INIT: buffers for receiving may be
 * posted. GASNET_ERR_BAD_ARG: the device does not allow so much; GASNET_ERR_RESOURCE: it has no
 * more. */
int trunkline_qp_open(trunkline_qp_t *qp, const trunkline_domain_t *domain,
                      const trunkline_rail_t *rail, const trunkline_qp_options_t *options);

/* Connects RC and UC with the queue pair of that address, which must connect with this one; UD is
 * made ready and connected with nobody, `to` NULL. Ready to send and to receive afterwards, but the
 * other end may not be: a barrier first. */
int trunkline_qp_connect(trunkline_qp_t *qp, const trunkline_address_t *to);

/* UD: where a work request's wr.ud.ah has to point to reach that address, with to->qpn and
 * trunkline_qkey. *ah is given back by ibv_destroy_ah(). */
int trunkline_qp_reach(struct ibv_ah **ah, const trunkline_qp_t *qp, const trunkline_address_t *to);
enum { trunkline_qkey = 0x7472756e }; /* that of every UD queue pair made here */

/* Nobody may be using the other end any more: a barrier first. Harmless on one that is all zeros.
 */
void trunkline_qp_close(trunkline_qp_t *qp);

#ifdef __cplusplus
}
#endif

#endif
