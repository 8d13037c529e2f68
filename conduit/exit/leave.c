/* SPDX-License-Identifier: BSD-3-Clause
 *
 * LEAVING, as drawn in exit.h, by the one thread that left RUNNING first; the watchdog behind it;
 * and ABORT. */
#include "config.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "exit/exit_private.h"
#include "firehose/firehose.h"
#include "message/message.h"
#include "peer/peer.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "tools/public.h"
#include "topology/topology.h"
#include "transport/neighbour.h"
#include "transport/transport.h"

/* How long all may take to come before those that did not are told: a collective exit is over long
 * before. Where ranks outnumber CPUs some wait for their turn; to be told would run their SIGQUIT
 * handlers for nothing. */
static const uint64_t grace_alone = TK_SECOND / 10, grace_in_crowd = TK_SECOND / 5;

/* What PMIx and flushing may take on top of the deadline before the watchdog strikes, in whole
 * seconds. */
enum { watchdog_margin = 3 };

/* While there is nothing to do: who is to come next may need this CPU. */
enum { nap_min = 20000, nap_max = 1000000 /* ns */ };

volatile sig_atomic_t tk_final_code;
static volatile sig_atomic_t is_told;
static uint64_t ask_at, deadline;
static bool network_ready, is_leaving, is_over;

static uint64_t grace(void)
{
    return tk_topology.oversubscribed ? grace_in_crowd : grace_alone;
}

static double timeout_seconds(void)
{
    double linear =
        tk_settings.exit_timeout_min + tk_settings.exit_timeout_factor * (double)tk_peers.size;
    if (tk_settings.exit_timeout > 0)
        return tk_settings.exit_timeout;
    return linear < tk_settings.exit_timeout_max ? linear : tk_settings.exit_timeout_max;
}

/* What is in the way, for who wonders about the status. */
static const char *volatile is_late =
    "did not leave within the time for it, GASNET_EXITTIMEOUT and 3 s (3 s in all after a signal): "
    "its watchdog ends it";

/* Once the launcher knows the code, 0 is no lie any more, and there is nothing to tell; nor when it
 * wanted the end itself. */
static void watchdog(int signal)
{
    (void)signal;
    if (!is_told && !tk_exit_is_asked_for())
        tk_log_error_signal_safe(is_late);
    _exit(tk_final_code || is_told ? tk_final_code : 1);
}

void tk_take_alarm(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void tk_start_watchdog(void)
{
    struct sigaction action = {.sa_handler = watchdog};
    tk_liveness_set(TK_FATE_LEAVING);
    sigaction(SIGALRM, &action, NULL);
    tk_take_alarm();
    alarm((unsigned)timeout_seconds() + watchdog_margin);
}

/* The client's functions have the time of an exit for themselves. That all ranks agreed on 0 is no
 * excuse for one that hangs in them. */
void tk_leave_to_client(void)
{
    is_told = 0;
    is_late = "functions registered with atexit(), or destructors, did not end within "
              "GASNET_EXITTIMEOUT and 3 s: its watchdog ends it";
    alarm((unsigned)timeout_seconds() + watchdog_margin);
}

void tk_code_is_known(void)
{
    is_told = 1;
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
    network_ready = true; /* last: a signal handler may leave in between */
}

bool tk_network_is_ready(void)
{
    return network_ready;
}

void tk_leave_begin(void)
{
    uint64_t now = tk_now();
    tk_quit_is_done = 1;
    ask_at = now + grace();
    deadline = now + (uint64_t)(timeout_seconds() * 1e9);
    __atomic_store_n(&tk_lost_peer, NULL, __ATOMIC_RELEASE);
    tk_agree_begin(tk_final_code);
    tk_start_watchdog();
}

/* After asking the launcher to end the job, give it the time to do so: a rank that is killed is no
 * new failure to it, one that exits may be. When it was the launcher's own SIGTERM that brought us
 * here, going soon is what it waits for. */
_Noreturn void tk_abort_job(int code, const char *why)
{
    tk_bootstrap_abort(code, why);
    if (!tk_bootstrap.alone)
        usleep(200000);
    _exit(code);
}

/* Of a job that is ended although not all ranks came to its end within the time for it: 0 would
 * hide one that hangs. */
static int code_of_forced_end(void)
{
    return tk_final_code ? tk_final_code : 1;
}

static void tell_others(uint64_t now)
{
    if (now > ask_at && tk_elect_step(now - ask_at) == TK_ROLE_LEADER)
        tk_elect_tell(tk_final_code);
}

/* No handler of the client's runs any more: none can call gasnet_exit() on top of this. */
static void serve(void)
{
    if (!network_ready)
        return;
    tk_poll();
    tk_elect_serve();
    if (!tk_agree_step())
        tell_others(tk_now());
    tk_final_code = tk_agree_code();
}

static void nap(long *ns)
{
    const struct timespec little = {.tv_nsec = *ns};
    nanosleep(&little, NULL);
    *ns = 2 * *ns < nap_max ? 2 * *ns : nap_max;
}

/* Returns when all ranks agree; or, later than `grace`, when that is left to the fence. */
static void agree(void)
{
    long ns = nap_min;
    for (serve(); network_ready && !tk_agree_step() && tk_now() < ask_at; serve())
        nap(&ns);
}

/* Of each rank, by the fence. */
static const char key_of_code[] = "tk.exit";

/* Codes are many, and each is asked for by itself: a part of the watchdog's margin. */
static const uint64_t learning_max = TK_SECOND;

/* Somebody left without the network, so that not all could agree (agree.c). But all have come, so
 * the codes that each brought along are there: the largest is what they would have agreed on. */
static void learn_code_of_all(void)
{
    uint8_t code;
    uint64_t until = tk_now() + learning_max;
    for (uint32_t rank = 0; rank < tk_peers.size && tk_now() < until; rank++)
        if (tk_bootstrap_peek(rank, key_of_code, &code, sizeof(code)) == TK_OK &&
            code > tk_final_code)
            tk_final_code = code;
}

/* With GASNET_CATCH_EXIT=0 some may have gone before. */
static enum tk_status part_from_others(void (*poll)(void), uint64_t until)
{
    const uint8_t code = (uint8_t)tk_final_code;
    if (tk_peers.size > 1)
        tk_bootstrap_put(key_of_code, &code, sizeof(code));
    return tk_settings.catch_exit ? tk_bootstrap_fence(poll, until)
                                  : tk_bootstrap_part(poll, until);
}

/* Over verbs who leaves takes with it what it sent last. So nobody leaves before the launcher's
 * fence, which each begins when it knows the code: the network has done its work then. Who could
 * not come to know it, because somebody leaves without the network, learns here that all have
 * come, and with which codes. */
static void part(void)
{
    /* A PMIx server that is stuck holds up all that follows, until the watchdog ends it: that does
     * not change what all ranks have agreed on over the network. */
    if (network_ready && tk_agree_step() && tk_bootstrap_leave_mark())
        tk_code_is_known();
    if (part_from_others(serve, deadline) != TK_OK)
        tk_abort_job(is_told ? tk_final_code : code_of_forced_end(),
                     "not all processes came to the end of the job");
    if (!network_ready || !tk_agree_step())
        learn_code_of_all();
    tk_liveness_set(TK_FATE_LEFT);
    if (tk_bootstrap_leave_mark())
        tk_code_is_known();
    tk_bootstrap_close();
    is_over = true;
}

void tk_leave(void)
{
    tk_leave_begin();
    tk_handlers_shut();
    tk_firehose_tell();
    tk_transports_report_end();
    gasnett_flush_streams();
    is_leaving = true;
    tk_leave_rest();
}

void tk_leave_rest(void)
{
    if (!is_leaving || is_over)
        return;
    agree();
    part();
}

static void (*poll_aside)(void);

/* Neighbours hear of our code, and we of that of all. */
static void serve_aside(void)
{
    if (poll_aside)
        poll_aside();
    if (!network_ready)
        return;
    tk_agree_step_by_flags();
    tk_final_code = tk_agree_code();
}

void tk_leave_without_network(void (*poll)(void))
{
    /* Those that wait for us among others find out after `grace`, then come to the fence too. Who
     * comes there because all agree has written so before. */
    poll_aside = poll;
    enum tk_status status = part_from_others(serve_aside, ask_at + 2 * grace());
    serve_aside();
    if (status == TK_OK) {
        if (!network_ready || !tk_agree_step_by_flags())
            learn_code_of_all();
        tk_liveness_set(TK_FATE_LEFT);
        tk_bootstrap_close();
    } else {
        tk_bootstrap_abort(tk_final_code, ""); /* how others hear of it: no failure, if 0 */
    }
}
