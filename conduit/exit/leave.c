/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LEAVING, as drawn in exit.h, by the one thread that left RUNNING first; and ABORT. */
#include "config.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "common/clock.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "exit/exit_private.h"
#include "exit/state.h"
#include "firehose/firehose.h"
#include "message/message.h"
#include "peer/peer.h"
#include "progress/progress.h"
#include "progress/threads.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "gasnet_tools.h"
#include "stats/write.h"
#include "topology/topology.h"
#include "trace/trace.h"
#include "transport/neighbour.h"
#include "transport/transport.h"
#include "transport/connect_record.h"

/* For the last flush: an interrupted thread may hold a stream's lock for ever. In whole seconds. */
enum { last_flush = 1 };

/* Ranks that hold something for this process answer in milliseconds; a rank that hangs must not
 * delay the exit. */
static const uint64_t giving_back_max = TK_SECOND;

enum { give_backs_max = 4 };
static bool (*give_backs[give_backs_max])(bool all);
static unsigned give_back_count;

/* Sleep while idle, to check events that do not wake this thread. */
enum { nap_ns = 1000000 };

static bool has_network(void)
{
    return tk_state_has_network(&tk_exit_state);
}

static uint64_t grace(void)
{
    return tk_exit_grace(tk_topology.oversubscribed, tk_machine_ranks(), tk_topology.cpus);
}

void tk_leave_add(bool (*give_back)(bool all))
{
    if (give_back_count == give_backs_max)
        tk_panic("more than %d parts of the library want to know of the end", give_backs_max);
    give_backs[give_back_count++] = give_back;
}

void tk_leave_open(void)
{
    tk_agree_open();
    tk_elect_open();
}

void tk_leave_connect(void)
{
    if (tk_peers.size == 1)
        return;
    tk_agree_connect();
    tk_elect_connect();
    tk_state_network_ready(&tk_exit_state);
}

void tk_leave_begin(void)
{
    tk_state_begin(&tk_exit_state, tk_now(), grace(), (uint64_t)(tk_exit_timeout() * 1e9));
    __atomic_store_n(&tk_lost_peer, NULL, __ATOMIC_RELEASE);
    tk_agree_begin(tk_state_code(&tk_exit_state));
    tk_start_watchdog();
    tk_progress_threads_stop();
}

/* After asking the launcher to end the job, wait until it kills this rank: a launcher does not
 * count a killed rank as a new failure, but may count a rank that exits. If the launcher's own
 * SIGTERM began the exit, the launcher waits for this process to end soon. */
_Noreturn void tk_abort_job(int code, const char *why)
{
    tk_state_abort(&tk_exit_state);
    tk_stats_write(*why ? why : "the job was ended", false);
    tk_trace_close(*why ? why : "the job was ended");
    tk_bootstrap_abort(code, why);
    if (!tk_bootstrap.alone)
        usleep(200000);
    _exit(code);
}

static void notify_others(uint64_t now)
{
    if (!tk_state_is_grace_over(&tk_exit_state, now))
        return;
    uint64_t waited = now - tk_exit_state.grace_end;
    if (tk_elect_step(waited, grace()) == TK_ROLE_LEADER)
        tk_elect_notify(tk_state_code(&tk_exit_state), waited, grace());
}

/* Any step may yield the code of all ranks. */
static bool has_agreed(void)
{
    if (!has_network())
        return false;
    bool all = tk_agree_step();
    tk_state_learn(&tk_exit_state, tk_agree_code());
    return all;
}

/* Client handlers no longer run, so none can call gasnet_exit() on top of this. */
static void serve(void)
{
    if (!has_network())
        return;
    tk_poll();
    tk_elect_serve();
    if (!has_agreed())
        notify_others(tk_now());
}

/* True: all functions are done. */
static bool give_back(bool all)
{
    unsigned done = 0;
    while (done < give_back_count)
        if (give_backs[done](all))
            give_backs[done] = give_backs[--give_back_count];
        else
            done++;
    return give_back_count == 0;
}

static void nap(void)
{
    const struct timespec little = {.tv_nsec = nap_ns};
    nanosleep(&little, NULL);
}

/* Sleeps when there is nothing to do, until a neighbour or a message wakes it: another rank on this
 * host may need this CPU to leave, and many ranks that polled on a timer would use up the CPUs. */
static void serve_asleep(void)
{
    static unsigned turn;
    serve();
    if (has_network())
        tk_wait_asleep(&turn);
    else
        nap();
}

/* Returns when all ranks agree; or after `grace`, when the fence has to do it. */
static void leave_agree(void)
{
    serve();
    while (!tk_leave_parts(has_network(), has_agreed(),
                           tk_state_is_grace_over(&tk_exit_state, tk_now()))) {
        give_back(false);
        serve_asleep();
    }
}

/* Skipped if not all ranks agree: some rank may be gone or hang, and its answer would never arrive.
 */
static void leave_others(void)
{
    uint64_t until = tk_now() + giving_back_max;
    if (give_back_count == 0 || !has_agreed())
        return;
    for (serve(); !give_back(true) && tk_now() < until; serve())
        nap();
}

/* The code of each rank, exchanged by the fence. */
static const char key_of_code[] = "tk.exit";

/* There are many codes, each fetched by a call of its own: part of the watchdog's margin. */
static const uint64_t learning_max = TK_SECOND;

/* A rank left without the network, so that not all could agree (agree.c). But all have entered the
 * fence, which carries the code of each: the largest is the one they would have agreed on. */
static void learn_code_of_all(void)
{
    uint8_t code;
    uint64_t until = tk_now() + learning_max;
    for (uint32_t rank = 0; rank < tk_peers.size && tk_now() < until; rank++)
        if (tk_bootstrap_peek(rank, key_of_code, &code, sizeof(code)) == TK_OK)
            tk_state_learn(&tk_exit_state, code);
}

/* A fence without data is faster: with data a rank would wait until the server has taken it. */
static bool puts_code(uint8_t code)
{
    bool has_all = has_network() && tk_agree_step_by_flags();
    return tk_leave_puts_code(tk_peers.size, code, has_all, tk_agree_is_carried());
}

/* With GASNET_CATCH_EXIT=0 some ranks may have exited before. */
static enum tk_status part_from_others(void (*poll)(void), uint64_t until)
{
    const uint8_t code = (uint8_t)tk_state_code(&tk_exit_state);
    if (puts_code(code))
        tk_bootstrap_put(key_of_code, &code, sizeof(code));
    return tk_settings.catch_exit ? tk_bootstrap_fence_data(poll, until)
                                  : tk_bootstrap_part(poll, until);
}

/* Over verbs the last messages of a rank are lost when it exits. So a rank exits only after the
 * launcher's fence, which each rank enters when it knows the code and no longer needs the network.
 * If a rank left without the network, the others learn from the fence that all ranks arrived, and
 * with which codes. */
static void part(void)
{
    tk_state_part(&tk_exit_state);
    /* A stuck PMIx server blocks everything below until the watchdog ends this process, but the
     * code that all ranks have agreed on over the network stays valid. */
    if (has_agreed() && tk_bootstrap_leave_mark())
        tk_state_code_known(&tk_exit_state);
    tk_summary_put();
    if (part_from_others(serve_asleep, tk_exit_state.deadline) != TK_OK)
        tk_abort_job(tk_state_late_code(&tk_exit_state),
                     "not all processes came to the end of the job");
    if (!has_agreed())
        learn_code_of_all();
    tk_summary_write();
    tk_liveness_set(TK_LIVENESS_LEFT);
    if (tk_bootstrap_leave_mark())
        tk_state_code_known(&tk_exit_state);
    /* If one exits with a status, the launcher waits for those that have finalized. */
    if (tk_state_code(&tk_exit_state) == 0 && !tk_report_has_lost_output())
        tk_bootstrap_close_last();
    else
        tk_bootstrap_close();
    tk_state_over(&tk_exit_state);
}

/* The other ranks can no longer learn this code, but the launcher takes the largest code of all
 * ranks. */
void tk_leave_count_lost_output(void)
{
    if (tk_report_has_lost_output() && tk_state_code(&tk_exit_state) == 0)
        tk_state_learn(&tk_exit_state, tk_status_output_lost);
}

void tk_leave(void)
{
    tk_leave_begin();
    tk_handlers_shut();
    tk_firehose_log_counts();
    tk_transports_report_end();
    tk_stats_write("exit", true);
    tk_summary_take();
    tk_trace_stop();
    if (tk_settings.verboseenv)
        tk_progress_threads_report();
    gasnett_flush_streams();
    tk_state_agree(&tk_exit_state);
    tk_leave_rest();
    tk_leave_count_lost_output();
}

void tk_leave_rest(void)
{
    if (!tk_state_may_resume(&tk_exit_state))
        return;
    leave_agree();
    leave_others();
    tk_trace_close("exit"); /* the others have reported their clocks */
    tk_connect_record_write();
    part();
}

/* The last step of an exit without the network. Flushing may hang on a stream whose lock the
 * interrupted thread holds: the alarm bounds it. */
static _Noreturn void flush_and_exit(void)
{
    tk_state_code_known(&tk_exit_state);
    tk_stats_write("exit in a signal handler", false);
    tk_trace_close("exit in a signal handler");
    alarm(last_flush);
    gasnett_flush_streams();
    tk_leave_count_lost_output();
    _exit(tk_state_code(&tk_exit_state));
}

/* Exchanges codes with neighbours. After SIGTERM the launcher's verdict is final, so the process
 * ends at once. */
static void serve_aside(void)
{
    if (tk_state_is_asked(&tk_exit_state))
        flush_and_exit();
    if (!has_network())
        return;
    tk_agree_step_by_flags();
    tk_state_learn(&tk_exit_state, tk_agree_code());
}

static void serve_aside_and_nap(void)
{
    serve_aside();
    nap();
}

_Noreturn void tk_leave_without_network(void)
{
    /* Ranks of other neighbourhoods that wait for this one give up after `grace` and enter the
     * fence too. A rank that enters it because all agree has written the code to its flags before.
     */
    uint64_t began = tk_exit_state.grace_end - grace();
    uint64_t until = began + tk_leave_aside_max(tk_agree_depth_max(), grace());
    enum tk_status status = part_from_others(serve_aside_and_nap, until);
    serve_aside();
    if (status == TK_OK) {
        if (!has_network() || !tk_agree_step_by_flags())
            learn_code_of_all();
        tk_liveness_set(TK_LIVENESS_LEFT);
        tk_bootstrap_close();
        tk_state_over(&tk_exit_state);
    } else {
        /* Notifies the other ranks; no failure if the code is 0. */
        tk_bootstrap_abort(tk_state_code(&tk_exit_state), "");
    }
    flush_and_exit();
}
