/* SPDX-License-Identifier: BSD-3-Clause */
/* The raw queue pair: the port that the conduit uses too, opened a second time, and a reliable
 * connection between the two processes, whose memory is the conduit's segment, so that both kinds
 * of measurement touch the same kind of memory. Owns `raw`. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "raw_private.h"

struct raw raw;

/* "name:port" of GASNET_IBV_PORTS or of the command line admits this one; nothing admits all. */
static bool admitted(const char *wanted, const char *device, int port)
{
    size_t length = strlen(device);
    if (!wanted || !*wanted)
        return true;
    if (strncmp(wanted, device, length))
        return false;
    return wanted[length] == '\0' || (wanted[length] == ':' && atoi(wanted + length + 1) == port);
}

static int best_gid(struct ibv_context *context, uint8_t port, const struct ibv_port_attr *attr)
{
    const char *forced = gasnet_getenv("GASNET_IBV_GID_INDEX");
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (forced && *forced >= '0' && *forced <= '9') /* not by port */
        return atoi(forced);
    for (int i = 0; i < attr->gid_tbl_len; i++) {
        struct ibv_gid_entry entry;
        if (!ibv_query_gid_ex(context, port, (uint32_t)i, &entry, 0) &&
            entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
            !memcmp(entry.gid.raw, mapped, sizeof(mapped)))
            return i;
    }
    return 0;
}

static bool take_port(struct ibv_context *context, uint8_t port)
{
    struct ibv_port_attr attr;
    struct ibv_device_attr device;
    if (ibv_query_port(context, port, &attr) || attr.state != IBV_PORT_ACTIVE ||
        ibv_query_device(context, &device))
        return false;
    raw.context = context;
    raw.port = port;
    raw.by_gid = attr.lid == 0 || attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    raw.gid_index = raw.by_gid ? best_gid(context, port, &attr) : 0;
    raw.mine.lid = attr.lid;
    raw.mine.mtu = (uint8_t)attr.active_mtu;
    raw.mine.reads = device.max_qp_rd_atom > 16 ? 16 : (uint8_t)device.max_qp_rd_atom;
    raw.reads_out = device.max_qp_init_rd_atom > 16 ? 16 : (uint8_t)device.max_qp_init_rd_atom;
    raw.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    raw.access |= device.atomic_cap == IBV_ATOMIC_NONE ? 0 : IBV_ACCESS_REMOTE_ATOMIC;
    ibv_query_gid(context, port, raw.gid_index, &raw.mine.gid);
    snprintf(raw.name, sizeof(raw.name), "%.40s:%d", ibv_get_device_name(context->device), port);
    return true;
}

static bool try_device(struct ibv_device *device, const char *wanted)
{
    struct ibv_device_attr attr;
    struct ibv_context *context = ibv_open_device(device);
    if (!context)
        return false;
    int ports = ibv_query_device(context, &attr) ? 0 : attr.phys_port_cnt;
    for (int port = 1; port <= ports; port++)
        if (admitted(wanted, ibv_get_device_name(device), port) &&
            take_port(context, (uint8_t)port))
            return true;
    ibv_close_device(context);
    return false;
}

static void open_port(const char *wanted)
{
    int count = 0;
    bool found = false;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list && i < count && !found; i++)
        found = try_device(list[i], wanted);
    if (list)
        ibv_free_device_list(list);
    if (!found)
        bench_die("no active port%s%s for the raw measurements", wanted ? " " : "",
                  wanted ? wanted : "");
}

static struct ibv_qp *create_qp(uint32_t inline_data)
{
    struct ibv_qp_init_attr init = {
        .send_cq = raw.send_cq,
        .recv_cq = raw.recv_cq,
        .cap = {.max_send_wr = raw_depth,
                .max_recv_wr = bench_slots,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = inline_data},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    struct ibv_qp *qp = ibv_create_qp(raw.pd, &init);
    if (qp)
        raw.inline_limit =
            init.cap.max_inline_data < raw_inline ? init.cap.max_inline_data : raw_inline;
    return qp;
}

static void open_queues(void)
{
    const int access = IBV_ACCESS_LOCAL_WRITE | raw.access;
    raw.pd = ibv_alloc_pd(raw.context);
    raw.send_cq = ibv_create_cq(raw.context, raw_depth, NULL, NULL, 0);
    raw.recv_cq = ibv_create_cq(raw.context, bench_slots, NULL, NULL, 0);
    if (!raw.pd || !raw.send_cq || !raw.recv_cq)
        bench_die("%s: no completion queues: %s", raw.name, strerror(errno));
    raw.mr = ibv_reg_mr(raw.pd, bench_job.mine, BENCH_SEGMENT_SIZE, access);
    if (!raw.mr)
        bench_die("%s: the segment can't be registered again: %s", raw.name, strerror(errno));
    raw.qp = create_qp(raw_inline);
    if (!raw.qp)
        raw.qp = create_qp(0);
    if (!raw.qp)
        bench_die("%s: no queue pair: %s", raw.name, strerror(errno));
    raw.mine.qp_num = raw.qp->qp_num;
    raw.mine.rkey = raw.mr->rkey;
    raw.mine.base = (uintptr_t)bench_job.mine;
}

static int to_init(void)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = raw.port,
        .qp_access_flags = (unsigned)raw.access,
    };
    return ibv_modify_qp(raw.qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(void)
{
    uint8_t mtu = raw.mine.mtu < raw.theirs.mtu ? raw.mine.mtu : raw.theirs.mtu;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = (enum ibv_mtu)mtu,
        .dest_qp_num = raw.theirs.qp_num,
        .max_dest_rd_atomic = raw.mine.reads,
        .min_rnr_timer = 12,
        .ah_attr = {.dlid = raw.theirs.lid, .port_num = raw.port, .is_global = raw.by_gid},
    };
    attr.ah_attr.grh.dgid = raw.theirs.gid;
    attr.ah_attr.grh.sgid_index = (uint8_t)raw.gid_index;
    attr.ah_attr.grh.hop_limit = 64;
    return ibv_modify_qp(raw.qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* retry_cnt 6: with 7, Soft-RoCE repeats for ever. */
static int to_rts(void)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = 18,
        .retry_cnt = 6,
        .rnr_retry = 7,
        .max_rd_atomic = raw.theirs.reads < raw.reads_out ? raw.theirs.reads : raw.reads_out,
    };
    return ibv_modify_qp(raw.qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void raw_post_recv(uint64_t slot)
{
    struct ibv_sge sge = {(uintptr_t)bench_job.mine + BENCH_RING + slot * BENCH_SLOT_SIZE,
                          BENCH_SLOT_SIZE, raw.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    int error = ibv_post_recv(raw.qp, &wr, &bad);
    if (error)
        bench_die("%s: ibv_post_recv: %s", raw.name, strerror(error));
}

void bench_raw_open(const char *port)
{
    int error;
    open_port(port ? port : gasnet_getenv("GASNET_IBV_PORTS"));
    open_queues();
    bench_exchange(&raw.mine, &raw.theirs, sizeof(raw.mine));
    error = to_init();
    for (uint64_t slot = 0; !error && slot < bench_slots; slot++)
        raw_post_recv(slot);
    if (!error)
        error = to_rtr();
    if (!error)
        error = to_rts();
    if (error)
        bench_die("%s: the queue pair can't be connected: %s", raw.name, strerror(error));
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
}

const char *bench_raw_describe(void)
{
    return raw.name;
}

void bench_raw_close(void)
{
    ibv_destroy_qp(raw.qp);
    ibv_dereg_mr(raw.mr);
    ibv_destroy_cq(raw.send_cq);
    ibv_destroy_cq(raw.recv_cq);
    ibv_dealloc_pd(raw.pd);
    ibv_close_device(raw.context);
}
