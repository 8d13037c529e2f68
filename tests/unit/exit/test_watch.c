/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The events that the helper thread waits for. Neighbours are children of this process; the test
 * writes their end states. Each case is a process of its own, because a wait ends only once. */
#include "config.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "exit/exit_private.h"
#include "exit/state.h"
#include "peer/peer.h"
#include "topology/topology.h"
#include "unit.h"

enum { ranks = 4, me = 2 /* watches 3, then 0, then 1 */, first_rank = 10 };

static _Atomic uint32_t liveness[ranks];
static bool unreachable[ranks], is_reaped[ranks];

static unsigned looks;

const _Atomic uint32_t *tk_liveness_of(uint32_t index)
{
    looks++;
    return unreachable[index] ? NULL : &liveness[index];
}

static void make_neighbours(void)
{
    static struct tk_peer peers[first_rank + ranks];
    static uint32_t numbers[ranks];
    for (uint32_t r = 0; r < ranks; r++) {
        numbers[r] = first_rank + r; /* indices are no ranks */
        struct tk_peer *peer = &peers[numbers[r]];
        peer->rank = numbers[r];
        if (r != me && (peer->pid = fork()) == 0)
            for (alarm(60);;)
                pause();
        if (peer->pid < 0) /* kill() would mean all processes */
            _exit(4);
    }
    tk_peers.at = peers;
    tk_topology.nbrhd_size = ranks;
    tk_topology.nbrhd_rank = me;
    tk_topology.nbrhd_ranks = numbers;
}

static pid_t pid_of(uint32_t index)
{
    return tk_peer(first_rank + index)->pid;
}

static void end(uint32_t index, enum tk_rank_liveness how)
{
    liveness[index] = how;
    kill(pid_of(index), SIGKILL);
}

/* Then another process may get the pid. */
static void reap(uint32_t index)
{
    waitpid(pid_of(index), NULL, 0);
    is_reaped[index] = true;
}

/* The expected result of the wait: the dead rank's index, or me: it was called. */
static void expect(uint32_t index, enum tk_rank_liveness how)
{
    enum tk_rank_liveness seen = TK_LIVENESS_RUNS;
    const struct tk_peer *dead = tk_watch_wait(&seen);
    uint32_t got = dead ? dead->rank - first_rank : me;
    for (uint32_t r = 0; r < ranks; r++)
        if (r != me && !is_reaped[r])
            kill(pid_of(r), SIGKILL);
    if (got != index || (dead && seen != how)) {
        fprintf(stderr, "dead: %u, liveness %d;", got, (int)seen);
        _exit(1);
    }
}

static void run(void *fn)
{
    make_neighbours();
    if (tk_watch_open() != TK_OK)
        _exit(2);
    (*(void (**)(void))fn)();
}

static void in_child(void (*fn)(void))
{
    unit_assert_exit(run, &fn, 0);
}

/* ---- cases */

static void call_later(int number)
{
    (void)number;
    tk_watch_call();
}

static void called(void)
{
    tk_watch_neighbours();
    signal(SIGALRM, call_later);
    alarm(1);
    expect(me, TK_LIVENESS_RUNS);
}

static void killed(void)
{
    tk_watch_neighbours();
    end(3, TK_LIVENESS_RUNS);
    expect(3, TK_LIVENESS_RUNS);
}

static void killed_and_reaped_before(void)
{
    end(3, TK_LIVENESS_RUNS);
    reap(3);
    tk_watch_neighbours();
    expect(3, TK_LIVENESS_RUNS);
}

static void told(void)
{
    tk_watch_neighbours();
    end(3, TK_LIVENESS_REPORTED);
    expect(3, TK_LIVENESS_REPORTED);
}

/* The launcher's SIGTERM comes in the second that it is given. */
static void killed_and_called(void)
{
    tk_watch_neighbours();
    end(3, TK_LIVENESS_RUNS);
    signal(SIGALRM, call_later);
    ualarm(300000, 0);
    expect(me, TK_LIVENESS_RUNS);
}

static void left(void)
{
    tk_watch_neighbours();
    end(3, TK_LIVENESS_LEFT);
    end(0, TK_LIVENESS_RUNS);
    expect(0, TK_LIVENESS_RUNS);
}

static void left_two(void)
{
    tk_watch_neighbours();
    unreachable[0] = true; /* dead before we began to watch it */
    end(3, TK_LIVENESS_LEFT);
    end(1, TK_LIVENESS_RUNS);
    expect(1, TK_LIVENESS_RUNS);
}

static void left_all(void)
{
    tk_watch_neighbours();
    for (uint32_t r = 0; r < ranks; r++)
        if (r != me)
            end(r, TK_LIVENESS_LEFT);
    signal(SIGALRM, call_later);
    alarm(1);
    expect(me, TK_LIVENESS_RUNS);
}

/* All others end too: a search for one that lives would take quadratic time. */
static void left_while_we_leave(void)
{
    tk_watch_neighbours();
    tk_state_leave(&tk_exit_state, 0);
    unsigned before = looks;
    end(3, TK_LIVENESS_LEFT);
    end(0, TK_LIVENESS_RUNS);
    signal(SIGALRM, call_later);
    alarm(1);
    expect(me, TK_LIVENESS_RUNS);
    if (looks != before)
        _exit(3);
}

static void close_all(void)
{
    for (int fd = 3; fd < 256; fd++)
        close(fd);
}

static void closed_and_called(void)
{
    tk_watch_neighbours();
    close_all();
    signal(SIGALRM, call_later);
    alarm(1);
    expect(me, TK_LIVENESS_RUNS);
}

static void closed_and_killed(void)
{
    tk_watch_neighbours();
    close_all();
    end(3, TK_LIVENESS_RUNS);
    reap(3);
    expect(3, TK_LIVENESS_RUNS);
}

/* ---- promises */

static void a_call_ends_the_wait(void **state)
{
    in_child(called);
}

static void the_death_of_the_next_neighbour_ends_it(void **state)
{
    in_child(killed);
    in_child(killed_and_reaped_before);
    in_child(told);
}

static void a_launcher_that_ends_us_speaks_for_itself(void **state)
{
    in_child(killed_and_called);
}

static void a_rank_that_leaves_in_order_passes_the_watch_on(void **state)
{
    in_child(left);
    in_child(left_two);
    in_child(left_all);
}

static void a_leaving_rank_watches_no_other(void **state)
{
    in_child(left_while_we_leave);
}

/* Clients that become daemons do. */
static void a_client_may_close_our_descriptors(void **state)
{
    in_child(closed_and_called);
    in_child(closed_and_killed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_call_ends_the_wait),
    cmocka_unit_test(the_death_of_the_next_neighbour_ends_it),
    cmocka_unit_test(a_launcher_that_ends_us_speaks_for_itself),
    cmocka_unit_test(a_rank_that_leaves_in_order_passes_the_watch_on),
    cmocka_unit_test(a_leaving_rank_watches_no_other),
    cmocka_unit_test(a_client_may_close_our_descriptors),
};

UNIT_MAIN(tests)
