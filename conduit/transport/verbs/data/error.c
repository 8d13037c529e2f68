/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Errors of the network and the device. Each cause is logged once: everything behind the first
 * error of a queue pair is flushed, and those completions carry no information. Takes the lock of a
 * lane. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/atomic.h"
#include "base/report.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

static const char *opcode_text(unsigned opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
        return "put";
    case IBV_WR_RDMA_READ:
        return "get";
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return "atomic operation";
    default:
        return "message";
    }
}

static const char *likely_cause(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return "the peer does not answer: its process or host is gone, or the cable is out";
    case IBV_WC_REM_ACCESS_ERR:
        return "the peer's device refused the address: it is outside the peer's segment";
    case IBV_WC_LOC_PROT_ERR:
        return "the local address is no longer mapped";
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_LOC_LEN_ERR:
        return "the message and the receive buffer do not fit: an error of this library";
    case IBV_WC_WR_FLUSH_ERR:
        return "the connection was broken before";
    case IBV_WC_LOC_QP_OP_ERR:
        return "the device could not do it here, whatever the peer is doing: see what it said "
               "before (softhca), or dmesg";
    default:
        return "see the device's documentation for the vendor code";
    }
}

static void tell(struct tk_conn *conn, const char *what, size_t nbytes, const char *why)
{
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    char amount[40] = "", /* not known for unsignaled messages and receives */
        path[tk_path_text_size];
    if (nbytes)
        snprintf(amount, sizeof(amount), " of %zu bytes", nbytes);
    tk_log_error("%s%s to rank %u (%s, pid %d) failed on %s:%u, queue pair %u: %s; path: %s", what,
                 amount, conn->peer->rank, conn->peer->host, conn->peer->pid, a->device, a->port,
                 conn->qp->qp_num, why,
                 tk_path_text(&tk_rail_of(conn)->address, tk_path_of(conn), path));
}

/* Only the first thread that notices the error acts. `may_be_dead`: the peer may have died. A job
 * that is leaving reports nothing, because its peers may end at any time. */
static void give_up(struct tk_conn *conn, const char *what, size_t nbytes, const char *why,
                    bool may_be_dead)
{
    void (*lost_peer)(uint32_t) = __atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
    if (tk_counter_add(&conn->broken, 1) != 1 || !lost_peer)
        return;
    tell(conn, what, nbytes, why);
    lost_peer(may_be_dead ? conn->peer->rank : tk_no_peer);
}

/* Ends the job: the failed registration has logged the cause, and each further attempt would log it
 * again. */
void tk_buffers_exhausted(struct tk_conn *conn)
{
    void (*lost_peer)(uint32_t) = __atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
    (void)conn;
    if (lost_peer)
        lost_peer(tk_no_peer);
}

void tk_conns_exhausted(const struct tk_peer *peer)
{
    void (*lost_peer)(uint32_t) = __atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
    struct tk_conn *conns = tk_conns_to(peer->rank);
    char ports[256], path[tk_path_text_size];
    size_t length = 0;
    bool is_news = false;
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        const struct tk_port_address *a = &tk_rail_of(&conns[k])->address;
        is_news |= tk_counter_add(&conns[k].broken, 1) == 1;
        if (length < sizeof(ports))
            length += (size_t)snprintf(ports + length, sizeof(ports) - length, "%s%s:%u",
                                       k ? ", " : "", a->device, a->port);
    }
    if (!is_news || !lost_peer)
        return;
    tk_log_error("rank %u (%s, pid %d) is no longer reached over any port: %s; first path: %s",
                 peer->rank, peer->host, peer->pid, ports,
                 tk_path_text(&tk_rail_of(conns)->address, tk_path_of(conns), path));
    lost_peer(peer->rank);
}

/* Does the status mean that the peer may have died? A dying process may lose its memory before its
 * queue pairs, so refusals count too. */
static bool is_of_peer(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR ||
           status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_OP_ERR ||
           status == IBV_WC_REM_INV_REQ_ERR;
}

/* Other causes of silence: our address was removed; or a switch drops packets that are larger than
 * its MTU, which takes the large transfers only. */
static void add_cause(const struct tk_conn *conn, size_t nbytes, char *text, size_t size)
{
    enum { smallest_mtu = 256 };
    const struct tk_rail *rail = tk_rail_of(conn);
    const struct tk_path *path = tk_path_of(conn);
    if (path->is_global && tk_gid_row_now(rail->context, rail->address.port, &path->from) < 0)
        snprintf(text, size, "; or our GID is gone: its address was removed from the interface");
    else if (nbytes == 0 || nbytes > smallest_mtu)
        snprintf(text, size,
                 "; if only large transfers fail, the network takes smaller packets than the path "
                 "MTU of %d bytes: lower GASNET_MAX_MTU",
                 128 << path->mtu);
}

static void completion_failed(struct tk_conn *conn, const char *what, size_t nbytes,
                              const struct ibv_wc *wc)
{
    char why[384], more[160] = "";
    if (wc->status == IBV_WC_RETRY_EXC_ERR)
        add_cause(conn, nbytes, more, sizeof(more));
    snprintf(why, sizeof(why), "%s (vendor code %u); %s%s", ibv_wc_status_str(wc->status),
             wc->vendor_err, likely_cause(wc->status), more);
    give_up(conn, what, nbytes, why, is_of_peer(wc->status));
}

void tk_tx_failed(struct tk_tx *tx, const struct ibv_wc *wc)
{
    struct tk_conn *conn = tx->conn;
    if (tk_counter_read(&conn->broken))
        return;
    completion_failed(conn, opcode_text(tx->opcode), tx->nbytes, wc);
}

/* A local failure stops a queue pair of datagrams, and then no connection can be made. Flushes are
 * no failure: they come when a port or the job ends. */
void tk_datagram_failed(struct tk_tx *tx, const struct ibv_wc *wc)
{
    const struct tk_port_address *a = &tk_rail_of(tx->conn)->address;
    void (*lost_peer)(uint32_t) = __atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
    if (wc->status == IBV_WC_WR_FLUSH_ERR || tk_counter_add(&tx->conn->broken, 1) != 1 ||
        !lost_peer)
        return;
    tk_log_error("%s:%u sends no datagrams any more, so no connection can be made: %s (vendor code "
                 "%u); %s",
                 a->device, a->port, ibv_wc_status_str(wc->status), wc->vendor_err,
                 likely_cause(wc->status));
    lost_peer(tk_no_peer);
}

/* The device refused a work request although its queue had space: the queue pair is broken. */
void tk_post_failed(struct tk_tx *tx, int error)
{
    char why[128];
    if (tk_counter_read(&tx->conn->broken))
        return;
    snprintf(why, sizeof(why), "the device refused the work request: %s", strerror(error));
    give_up(tx->conn, opcode_text(tx->opcode), tx->nbytes, why, false);
}

void tk_recv_failed(struct tk_conn *conn, const struct ibv_wc *wc)
{
    if (tk_counter_read(&conn->broken))
        return;
    if (wc->status != IBV_WC_WR_FLUSH_ERR) {
        completion_failed(conn, "receive", 0, wc);
        return;
    }
    /* The cause is on the send side. It may be an unsignaled message, which has no work request, so
     * from now on the send queue never counts as idle. */
    tk_lane_stay_busy(tk_lane_of(conn));
}

void tk_wire_error(struct tk_conn *conn, const char *what)
{
    tk_panic("%s from rank %u (%s, pid %d); the ranks of a job must be built against one version "
             "of this library",
             what, conn->peer->rank, conn->peer->host, conn->peer->pid);
}

static void limit_text(char *text, size_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        snprintf(text, size, "unlimited");
    else
        snprintf(text, size, "%llu bytes", (unsigned long long)limit.rlim_cur);
}

/* Suggests the likely remedy: the kernel reports ENOMEM both for the limit and for lack of
 * memory. */
static const char *registration_remedy(const struct ibv_device_attr *attr, size_t size, int error)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (size > attr->max_mr_size)
        return "it is larger than the device registers at once: ask for less";
    if (error == EFAULT)
        return "it is not all there, or may not be written to";
    if (error == ENOMEM && limit.rlim_cur != RLIM_INFINITY && size + (16u << 20) > limit.rlim_cur)
        return "raise the limit on locked memory (ulimit -l unlimited, or memlock in "
               "/etc/security/limits.conf, also for the "
               "batch system's daemon), or ask for less";
    if (error == ENOMEM)
        return "the host is out of memory or the device out of regions or translation entries: ask "
               "for less, or lower GASNET_PINNED_REGIONS_MAX";
    return "check dmesg";
}

/* Adds the state of memory if that may be the cause. */
static void say_memory(char *text, size_t text_size, size_t size)
{
    char what[160];
    uint64_t left = tk_memory_available(what, sizeof(what));
    text[0] = 0;
    if (left < size)
        snprintf(text, text_size, ", %s leaves %llu bytes", what, (unsigned long long)left);
}

static void say_registration(const struct tk_device *device, const char *what, size_t size,
                             int error, char *text, size_t text_size)
{
    struct ibv_device_attr attr = {.max_mr_size = UINT64_MAX};
    char memlock[32], memory[256];
    ibv_query_device(device->context, &attr);
    limit_text(memlock, sizeof(memlock));
    say_memory(memory, sizeof(memory), size);
    snprintf(text, text_size,
             "%s can't register %zu bytes for the %s: %s; locked-memory limit (ulimit -l) "
             "%s, device limit %llu bytes, %d regions%s; %s",
             ibv_get_device_name(device->context->device), size, what, strerror(error), memlock,
             (unsigned long long)attr.max_mr_size, attr.max_mr, memory,
             registration_remedy(&attr, size, error));
}

void tk_explain_registration(const struct tk_device *device, const char *what, size_t size,
                             int error)
{
    char text[1024];
    say_registration(device, what, size, error, text, sizeof(text));
    tk_log_error("%s", text);
}

void tk_warn_registration(const struct tk_device *device, size_t size, int error)
{
    char text[1024];
    say_registration(device, "local side of a transfer", size, error, text, sizeof(text));
    tk_log_warn("%s; such transfers go through bounce buffers meanwhile", text);
}
