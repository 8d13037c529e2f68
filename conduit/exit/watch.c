/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The events that the helper thread waits for: a call from a signal handler, or the death of a
 * neighbour. Launchers notice deaths of the processes that they started, some of them late; a
 * launcher does not notice the death of a process that a wrapper started. So the ranks of a
 * neighbourhood watch each other in a ring, each the next one: wherever a rank is killed (copying,
 * in a barrier, holding a slot of another rank's ring), the kernel notifies its watcher through a
 * pidfd. This costs one descriptor per rank, whatever the number of ranks, nothing on the message
 * path, and needs no polling client. If two neighbours die together, one of them has a live
 * watcher.
 *
 * Pids are reused: the pidfd is opened while the process is known to be the right one by the
 * contents of its file (shm_memory.c, shm_liveness.c). Kernels before 5.3 and some containers have
 * no pidfd: there the thread checks the pid each second, and misses the death of a process that is
 * not reaped or whose pid is reused.
 *
 * Owns both descriptors. No lock: only the helper uses them once the neighbours are known. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/report.h"
#include "exit/exit_private.h"
#include "exit/state.h"
#include "peer/peer.h"
#include "topology/topology.h"
#include "transport/neighbour.h"

enum {
    /* Time for a launcher that also saw the death: it reports the death and ends this process, so
     * that this rank prints no second line. As in report.c. */
    hold_back_ms = 1000,
    ask_ms = 1000,    /* without a pidfd */
    uncalled_ms = 100 /* a client closed the descriptor that signal handlers write */
};

static struct {
    int call_fd, death_fd;
    atomic_bool is_called, is_active;
    uint32_t index; /* index of the watched rank in the neighbourhood */
    const _Atomic uint32_t *liveness;
} watch = {.call_fd = -1, .death_fd = -1};

enum tk_status tk_watch_open(void)
{
    watch.call_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch.call_fd >= 0)
        return TK_OK;
    tk_log_error("eventfd: %s; look at ulimit -n", strerror(errno));
    return TK_FAIL;
}

static void watch_wake(void)
{
    const uint64_t one = 1;
    ssize_t ignored = write(watch.call_fd, &one, sizeof(one));
    (void)ignored;
}

void tk_watch_call(void)
{
    atomic_store_explicit(&watch.is_called, true, memory_order_release);
    watch_wake();
}

static bool is_called(void)
{
    return atomic_load_explicit(&watch.is_called, memory_order_acquire);
}

static struct tk_peer *peer_at(uint32_t index)
{
    return tk_peer(tk_topology.nbrhd_ranks[index]);
}

static void watch_start(uint32_t index)
{
    watch.death_fd = (int)syscall(SYS_pidfd_open, peer_at(index)->pid, 0);
    watch.index = index;
}

static void watch_stop(void)
{
    if (watch.death_fd >= 0)
        close(watch.death_fd);
    watch.death_fd = -1;
}

static uint32_t behind(uint32_t index)
{
    return (index + 1) % tk_topology.nbrhd_size;
}

/* The liveness word of the next rank was mapped before the last fence of start-up, so that it can
 * be read however early that rank dies. */
void tk_watch_neighbours(void)
{
    if (tk_topology.nbrhd_size < 2 || watch.call_fd < 0)
        return;
    uint32_t next = behind(tk_topology.nbrhd_rank);
    watch_start(next);
    watch.liveness = tk_liveness_of(next);
    atomic_store_explicit(&watch.is_active, watch.liveness != NULL, memory_order_release);
    watch_wake();
}

/* After a rank that exited regularly, watch the next rank that still exists; ranks that no longer
 * exist have exited too. */
static void watch_from(uint32_t index)
{
    for (; index != tk_topology.nbrhd_rank; index = behind(index)) {
        watch_start(index);
        watch.liveness = tk_liveness_of(index);
        if (watch.liveness)
            return;
        watch_stop();
    }
    atomic_store_explicit(&watch.is_active, false, memory_order_relaxed);
}

static bool is_watching(void)
{
    return atomic_load_explicit(&watch.is_active, memory_order_acquire);
}

static int patience(void)
{
    if (watch.call_fd < 0)
        return uncalled_ms;
    return is_watching() && watch.death_fd < 0 ? ask_ms : -1;
}

/* Clients were seen to close all descriptors that they do not know. */
static void heed(struct pollfd *ready, int *fd)
{
    if (ready->revents & POLLNVAL)
        *fd = -1;
}

/* Waits for either event; true: the neighbour is dead. */
static bool wait_for_death(void)
{
    uint64_t count;
    bool has_death_fd = is_watching() && watch.death_fd >= 0;
    struct pollfd ready[] = {{.fd = watch.call_fd, .events = POLLIN},
                             {.fd = has_death_fd ? watch.death_fd : -1, .events = POLLIN}};
    poll(ready, 2, patience());
    heed(&ready[0], &watch.call_fd);
    heed(&ready[1], &watch.death_fd);
    if (ready[0].revents & POLLIN && read(watch.call_fd, &count, sizeof(count)) < 0)
        return false;
    if (has_death_fd)
        return ready[1].revents & POLLIN;
    return is_watching() && watch.death_fd < 0 && kill(peer_at(watch.index)->pid, 0) != 0 &&
           errno == ESRCH;
}

/* Once this rank leaves, a death has no effect. All ranks of a host then end within milliseconds,
 * and each rank would search for its next neighbour among all those that have ended. */
static void watch_next(void)
{
    watch_stop();
    if (tk_state_is_running(&tk_exit_state))
        watch_from(behind(watch.index));
    else
        atomic_store_explicit(&watch.is_active, false, memory_order_relaxed);
}

/* Called when the watched rank is dead. Returns it, or NULL if it exited regularly, and watches the
 * next rank. */
static struct tk_peer *bury(enum tk_rank_liveness *how)
{
    struct tk_peer *dead = peer_at(watch.index);
    *how = (enum tk_rank_liveness)atomic_load_explicit(watch.liveness, memory_order_acquire);
    watch_next();
    return *how == TK_LIVENESS_LEFT ? NULL : dead;
}

static void hold_back(void)
{
    struct pollfd ready = {.fd = watch.call_fd, .events = POLLIN};
    if (!is_called())
        poll(&ready, 1, hold_back_ms);
}

struct tk_peer *tk_watch_wait(enum tk_rank_liveness *how)
{
    struct tk_peer *dead = NULL;
    while (!is_called() && !dead)
        if (wait_for_death())
            dead = bury(how);
    if (dead)
        hold_back();
    return is_called() ? NULL : dead;
}
