/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which ports are down, and which HCAs are broken. Every member keeps its own copy of the state of
 * the whole fabric, changed by requests (wire/control.c) that go to all members; a member that
 * joins later copies it from a settled one. In addition each process has ports of its own, as if it
 * were alone on its host, and their cables can be unplugged: the process then sends nothing, and a
 * mark on its queue pairs rejects what others send. Owns the down bits of the segment (atomic,
 * written under shca.lock or before the helper thread runs) and the cables. */
#include "config.h"

#include "fabric/fabric.h"

_Atomic uint32_t shca_any_down;

/* Cables: a bit for each port of this process whose cable is out, and when it is to be plugged in
 * again, 0: not by itself. Changed by any thread, under any lock; the helper thread updates the
 * marks afterwards. */
static _Atomic uint32_t out[SHCA_MAX_HCA];
static _Atomic uint64_t back_at[SHCA_MAX_HCA][SHCA_MAX_PRT + 1];
static _Atomic bool marks_stale, any_back;

static uint32_t any_now(void)
{
    uint32_t any = 0;

    for (int i = 0; i < SHCA_MAX_HCA; i++)
        any |= atomic_load(&shca.seg->down[i]) | atomic_load(&out[i]);
    return any;
}

/* The last thread to change something sees the complete state. */
static void recount(void)
{
    uint32_t any;

    do {
        any = any_now();
        atomic_store(&shca_any_down, any);
    } while (any != any_now());
}

/* Reads the head of its segment: to map it, and to end the mapping, costs a process that joins as
 * much as the rest. */
static bool copy_state(uint32_t slot)
{
    struct shca_segment head;
    uint32_t pid;
    int fd;

    if (shca_registry_find(slot, &pid, &fd) != 0 ||
        !shca_segment_peek_settled(slot, pid, fd, &head))
        return false;
    for (int i = 0; i < SHCA_MAX_HCA; i++)
        atomic_store(&shca.seg->down[i], atomic_load(&head.down[i]));
    return true;
}

/* From one that the directory names; else from any that has settled. */
static bool copy_from_member(void)
{
    uint16_t slots[SHCA_MEMBERS];
    bool copied = false;
    uint32_t slot, count;

    if (shca_directory_find_settled(&slot) && slot != shca.slot && copy_state(slot))
        return true;
    count = shca_registry_slots(slots);
    for (uint32_t i = 0; i < count && !copied; i++)
        copied = slots[i] != shca.slot && copy_state(slots[i]);
    return copied;
}

void shca_link_join(void)
{
    bool copied = copy_from_member();

    for (int i = 0; i < SHCA_MAX_HCA && !copied; i++)
        atomic_store(&shca.seg->down[i], shca_config.down[i]);
    for (int i = 0; i < SHCA_MAX_HCA; i++) {
        atomic_store(&out[i], shca_config.unplugged[i]);
        memset((void *)back_at[i], 0, sizeof back_at[i]);
    }
    atomic_store(&shca.seg->settled, 1);
    shca_directory_settled(shca.slot);
    /* A peer that joins right now must not stay unknown for the next millisecond: a datagram to it
     * would be lost. */
    shca_registry_stale();
    recount();
}

/* A forked child has no segment until it opens a device of its own. */
static uint32_t fabric_bits(int hca)
{
    return shca.seg ? atomic_load(&shca.seg->down[hca]) : shca_config.down[hca];
}

bool shca_link_down(int hca, int port)
{
    return (fabric_bits(hca) | atomic_load(&out[hca])) & 1u << port;
}

bool shca_link_unplugged(int hca, int port)
{
    return atomic_load(&out[hca]) & 1u << port;
}

static bool fabric_port_down(uint32_t fabric_port)
{
    uint32_t at = fabric_port - 1, ports = (uint32_t)shca_config.ports;

    /* 0: an address of no port; a multicast address. */
    if (fabric_port == 0 || at >= ports * (uint32_t)shca_config.hcas)
        return false;
    return fabric_bits((int)(at / ports)) & 1u << (at % ports + 1);
}

static bool own_port_out(uint32_t fabric_port)
{
    uint32_t at = fabric_port - 1, ports = (uint32_t)shca_config.ports;

    return shca_link_unplugged((int)(at / ports), (int)(at % ports) + 1);
}

bool shca_path_cut_slow(uint32_t from, uint32_t to)
{
    return own_port_out(from) || fabric_port_down(from) || fabric_port_down(to);
}

static void notify_change(int hca, int port, bool was)
{
    bool is = shca_link_down(hca, port);

    if (is != was)
        shca_contexts_notify(hca, is ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE, (uint32_t)port);
}

void shca_link_set(int hca, int port, bool down)
{
    uint32_t bit = 1u << port, old;
    bool was;

    pthread_mutex_lock(&shca.lock);
    was = shca_link_down(hca, port);
    old = atomic_load(&shca.seg->down[hca]);
    atomic_store(&shca.seg->down[hca], down ? old | bit : old & ~bit);
    recount();
    pthread_mutex_unlock(&shca.lock);
    notify_change(hca, port, was);
}

/* ---- cables ---- */

void shca_link_plug(int hca, int port, bool in, uint64_t back_after)
{
    uint32_t bit = 1u << port;
    bool was = shca_link_down(hca, port);

    atomic_store(&back_at[hca][port], 0);
    if (in)
        atomic_fetch_and(&out[hca], ~bit);
    else
        atomic_fetch_or(&out[hca], bit);
    recount();
    atomic_store(&marks_stale, true);
    notify_change(hca, port, was);
    /* Set only after the event was sent: the helper thread could otherwise be faster, and send only
     * the event of plugging in. */
    if (back_after) {
        atomic_store(&back_at[hca][port], tk_now() + back_after);
        atomic_store(&any_back, true);
    }
    shca_helper_kick();
}

uint32_t shca_link_mark(uint32_t fabric_port)
{
    return own_port_out(fabric_port) ? SHCA_UNPLUGGED : 0;
}

static void change_mark(struct shca_qp_sh *sh)
{
    uint32_t network = atomic_load_explicit(&sh->network, memory_order_relaxed);

    network = (network & ~SHCA_UNPLUGGED) | shca_link_mark(sh->port);
    atomic_store_explicit(&sh->network, network, memory_order_relaxed);
}

static void refresh_marks(void)
{
    pthread_mutex_lock(&shca.lock);
    for (uint32_t i = 0; i < shca.qp_high; i++) {
        struct shca_qp *qp = shca.qps[i];

        if (!qp || qp->home)
            continue;
        /* A sender that holds this lock has finished before the mark changes; code that changes the
         * queue pair later reads the cable itself. */
        shca_rx_lock(shca.seg, qp->sh, shca.pid);
        if (qp->sh->port != 0)
            change_mark(qp->sh);
        shca_rx_unlock(qp->sh);
    }
    pthread_mutex_unlock(&shca.lock);
}

/* Plugs in the cables that are due; returns when the next one is due. */
static uint64_t plug_due(uint64_t now)
{
    uint64_t next = UINT64_MAX;

    for (int hca = 0; hca < shca_config.hcas; hca++)
        for (int port = 1; port <= shca_config.ports; port++) {
            uint64_t at = atomic_load(&back_at[hca][port]);

            if (at != 0 && at <= now)
                shca_link_plug(hca, port, true, 0);
            else if (at != 0)
                next = at < next ? at : next;
        }
    return next;
}

uint64_t shca_link_run(void)
{
    uint64_t now, next = UINT64_MAX;

    if (atomic_exchange(&any_back, false)) {
        now = tk_now();
        next = plug_due(now);
        if (next != UINT64_MAX) {
            atomic_store(&any_back, true);
            next -= now;
        }
    }
    if (atomic_exchange(&marks_stale, false))
        refresh_marks();
    return next;
}

int shca_unusable(struct ibv_context *ctx)
{
    if (shca_ctx(ctx)->inherited)
        return EINVAL;
    return shca_is_fatal(ctx) ? EIO : 0;
}
