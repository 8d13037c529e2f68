/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include <string.h>

#include "exit/state.h"
#include "exit/thread.h"

_Static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_BOOL_LOCK_FREE == 2 &&
                   ATOMIC_LONG_LOCK_FREE == 2,
               "signal handlers use the state");

struct tk_exit_state tk_exit_state;
TK_PER_THREAD struct tk_exit_thread tk_exit_thread;

static bool state_move(struct tk_exit_state *s, enum tk_exit_phase from, enum tk_exit_phase to)
{
    int expected = (int)from;
    return atomic_compare_exchange_strong(&s->phase, &expected, (int)to);
}

void tk_state_open(struct tk_exit_state *s, pid_t pid)
{
    s->pid = pid;
}

void tk_state_network_ready(struct tk_exit_state *s)
{
    atomic_store(&s->has_network, true);
}

bool tk_state_leave(struct tk_exit_state *s, int code)
{
    if (!state_move(s, TK_EXIT_RUNNING, TK_EXIT_LEAVING))
        return false;
    atomic_store(&s->code, code);
    tk_state_take_over(s);
    return true;
}

bool tk_state_fail(struct tk_exit_state *s, const char *reason)
{
    if (!state_move(s, TK_EXIT_RUNNING, TK_EXIT_ABORT))
        return false;
    atomic_store(&s->code, 1);
    memcpy(s->reason, reason, strnlen(reason, sizeof(s->reason) - 1));
    tk_state_take_over(s);
    return true;
}

bool tk_state_end_by_signal(struct tk_exit_state *s, int code, int signal)
{
    if (!state_move(s, TK_EXIT_RUNNING, TK_EXIT_ABORT))
        return false;
    atomic_store(&s->code, code);
    atomic_store(&s->signal, signal);
    return true;
}

void tk_state_begin(struct tk_exit_state *s, uint64_t now, uint64_t grace, uint64_t timeout)
{
    atomic_store(&s->is_notified, true);
    s->grace_end = now + grace;
    s->deadline = now + timeout;
}

void tk_state_agree(struct tk_exit_state *s)
{
    state_move(s, TK_EXIT_LEAVING, TK_EXIT_AGREE);
}

void tk_state_part(struct tk_exit_state *s)
{
    state_move(s, TK_EXIT_AGREE, TK_EXIT_PART);
}

void tk_state_hand_over(struct tk_exit_state *s)
{
    state_move(s, TK_EXIT_LEAVING, TK_EXIT_HANDED_OVER);
}

void tk_state_over(struct tk_exit_state *s)
{
    if (!state_move(s, TK_EXIT_PART, TK_EXIT_OVER))
        state_move(s, TK_EXIT_HANDED_OVER, TK_EXIT_OVER);
}

void tk_state_to_client(struct tk_exit_state *s, int given)
{
    s->given = given & 0xff;
    state_move(s, TK_EXIT_OVER, TK_EXIT_TO_CLIENT);
}

void tk_state_abort(struct tk_exit_state *s)
{
    if (!tk_state_is_running(s))
        atomic_store(&s->phase, TK_EXIT_ABORT);
}

void tk_state_take_over(struct tk_exit_state *s)
{
    atomic_store(&s->leaver, pthread_self());
}

void tk_state_learn(struct tk_exit_state *s, int code)
{
    if (code > atomic_load(&s->code))
        atomic_store(&s->code, code);
}

bool tk_state_answer(struct tk_exit_state *s, int code)
{
    int none = 0;
    return tk_state_is_running(s) &&
           atomic_compare_exchange_strong(&s->peers_code, &none, 1 + (code & 0xff));
}

void tk_state_ask(struct tk_exit_state *s)
{
    atomic_store(&s->is_asked, true);
}

bool tk_state_notify(struct tk_exit_state *s)
{
    return !atomic_exchange(&s->is_notified, true);
}

void tk_state_code_known(struct tk_exit_state *s)
{
    atomic_store(&s->is_code_known, true);
}

enum tk_exit_phase tk_state_phase(const struct tk_exit_state *s)
{
    return (enum tk_exit_phase)atomic_load(&s->phase);
}

bool tk_state_is_running(const struct tk_exit_state *s)
{
    return tk_state_phase(s) == TK_EXIT_RUNNING;
}

bool tk_state_is_leaver(const struct tk_exit_state *s)
{
    return pthread_equal(atomic_load(&s->leaver), pthread_self());
}

bool tk_state_may_resume(const struct tk_exit_state *s)
{
    enum tk_exit_phase phase = tk_state_phase(s);
    return phase == TK_EXIT_AGREE || phase == TK_EXIT_PART;
}

bool tk_state_has_network(const struct tk_exit_state *s)
{
    return atomic_load(&s->has_network);
}

bool tk_state_is_asked(const struct tk_exit_state *s)
{
    return atomic_load(&s->is_asked);
}

bool tk_state_is_notified(const struct tk_exit_state *s)
{
    return atomic_load(&s->is_notified);
}

bool tk_state_is_code_known(const struct tk_exit_state *s)
{
    return atomic_load(&s->is_code_known) && tk_state_phase(s) != TK_EXIT_TO_CLIENT;
}

bool tk_state_is_grace_over(const struct tk_exit_state *s, uint64_t now)
{
    return now >= s->grace_end;
}

int tk_state_code(const struct tk_exit_state *s)
{
    return atomic_load(&s->code);
}

int tk_state_code_of_exit(const struct tk_exit_state *s, int code)
{
    int peers_code = atomic_load(&s->peers_code);
    return peers_code ? peers_code - 1 : code & 0xff;
}

int tk_state_late_code(const struct tk_exit_state *s)
{
    int code = tk_state_code(s);
    return code || tk_state_is_code_known(s) ? code : 1;
}

bool tk_state_exits_with_another(const struct tk_exit_state *s)
{
    return tk_state_phase(s) == TK_EXIT_TO_CLIENT && s->given != tk_state_code(s);
}
