/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a job, begun by every cause. Each case is a child process; the bootstrap is a fake
 * that writes its requests to standard error, where the parent reads them. */
#include "config.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "bootstrap/bootstrap.h"
#include "exit/exit.h"
#include "fake_job.h"
#include "message/message.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "transport/neighbour.h"
#include "transport/transport.h"
#include "unit.h"

/* ---- what lies below */

struct tk_bootstrap tk_bootstrap = {.rank = 0, .size = 4};

static enum tk_status fence_status;
static uint64_t fence_lasts; /* ns for which the fence polls before it ends */
static bool untouchable;     /* no poll may reach the network, and deadlines are not adjusted */
static bool fence_exits, fence_hangs, fence_raises;

static void note(const char *text)
{
    fprintf(stderr, "%s;", text);
}

/* The deadline, in tenths of a second from now. */
static void note_deadline(uint64_t deadline)
{
    char text[40];
    uint64_t now = tk_now();
    snprintf(text, sizeof(text), "fence %llu",
             deadline ? (unsigned long long)((deadline - now + TK_SECOND / 20) / (TK_SECOND / 10))
                      : 0ULL);
    note(text);
}

enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline)
{
    uint64_t end = tk_now() + fence_lasts;
    if (untouchable)
        note("fence");
    else
        note_deadline(deadline);
    if (fence_exits) {
        fence_exits = false;
        tk_exit(99);
    }
    if (fence_raises)
        raise(SIGUSR1);
    while (poll && tk_now() < end)
        poll();
    while (fence_hangs)
        pause();
    return fence_status;
}

/* Only a fence that carries data transports codes. */
static bool is_exchanged;

enum tk_status tk_bootstrap_fence_data(void (*poll)(void), uint64_t deadline)
{
    is_exchanged = true;
    return tk_bootstrap_fence(poll, deadline);
}

enum tk_status tk_bootstrap_part(void (*poll)(void), uint64_t deadline)
{
    note("without those that left");
    return tk_bootstrap_fence_data(poll, deadline);
}

/* The other ranks' codes in the fence; -1: none. */
static int codes_of_others[4] = {-1, -1, -1, -1};

enum tk_status tk_bootstrap_put(const char *key, const void *blob, size_t size)
{
    assert_string_equal(key, "tk.exit");
    assert_int_equal(size, 1);
    codes_of_others[0] = *(const uint8_t *)blob;
    return TK_OK;
}

enum tk_status tk_bootstrap_peek(uint32_t rank, const char *key, void *blob, size_t size)
{
    assert_string_equal(key, "tk.exit");
    assert_int_equal(size, 1);
    *(uint8_t *)blob = (uint8_t)codes_of_others[rank];
    return codes_of_others[rank] < 0 || !is_exchanged ? TK_FAIL : TK_OK;
}

void tk_bootstrap_close_early(void)
{
    note("close early");
}

void tk_bootstrap_abort(int code, const char *why)
{
    fprintf(stderr, "abort %d%s%s;", code, *why ? " " : "", why);
}

bool tk_bootstrap_leave_mark(void)
{
    return false;
}

void tk_bootstrap_close(void)
{
    note("close");
}

void tk_bootstrap_close_last(void)
{
    note("close");
}

/* No launcher asks for stacks. */
void tk_bootstrap_show_stacks(uint32_t signal)
{
    (void)signal;
}

int tk_bootstrap_stack_file(void)
{
    return -1;
}

/* No ranks share memory here. */
void tk_liveness_set(enum tk_rank_liveness liveness)
{
    (void)liveness;
}

const _Atomic uint32_t *tk_liveness_of(uint32_t index)
{
    (void)index;
    return NULL;
}

void *tk_neighbour_flags(uint32_t neighbour)
{
    (void)neighbour;
    return NULL;
}

void tk_neighbour_wake(uint32_t rank)
{
    (void)rank;
}

/* ---- the others: each is a neighbourhood, and leaves when we do */

static int code_of_others;

static void take_code(struct tk_peer *from, int32_t round)
{
    struct {
        struct tk_message_head head;
        int32_t args[2];
    } message = {.head = {.handler = TK_HANDLER_AGREE, .nargs = 2}};
    struct tk_arrival arrival = {.peer = from, .head = &message.head};
    message.args[0] = round;
    message.args[1] = code_of_others;
    tk_deliver(&arrival);
}

static enum tk_status send_to_leaving(struct tk_peer *to, struct tk_outgoing *m)
{
    const int32_t *args = (const int32_t *)(m->head + 1);
    if (m->head->handler == TK_HANDLER_AGREE)
        take_code(to, args[0]);
    else
        note("?");
    return TK_OK;
}

static bool nothing(void)
{
    return false;
}

static const struct tk_transport leaving = {
    .am.send = send_to_leaving, .poll = nothing, .reap = nothing, .reap_in_handler = nothing};

static void use(const struct tk_transport *transport)
{
    for (uint32_t r = 0; r < tk_peers.size; r++)
        tk_peer(r)->transport = transport;
    tk_progress_use(transport);
}

static void open_topology(void)
{
    static uint32_t nbrhd_of[] = {0, 1, 2, 3};
    tk_topology.nbrhds = 4;
    tk_topology.nbrhd_size = 1;
    tk_topology.nbrhd_of = nbrhd_of;
}

/* ---- running a way out */

static void (*way_out)(void), (*hook)(void);
static const char *settings_of_child[3];

static void start(void *unused)
{
    unit_settings(settings_of_child[0] ? settings_of_child[0] : "A=", settings_of_child[1], NULL);
    fake_job_open(4);
    open_topology();
    if (hook)
        atexit(hook);
    use(&leaving);
    tk_message_open();
    tk_exit_open();
    tk_exit_network_ready();
    way_out();
    note("still here");
    _exit(77);
}

static const char *leave_by(void (*way)(void), int code)
{
    const char *said;
    way_out = way;
    int status = unit_child(start, NULL, &said);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        fail_msg("expected exit %d, got wait status 0x%x; it said: %s", code, status, said);
    return said;
}

static int no_settings(void **state)
{
    memset(settings_of_child, 0, sizeof(settings_of_child));
    return 0;
}

static void exit_7(void)
{
    tk_exit(7);
}

static void exit_259(void)
{
    tk_exit(259);
}

static void all_meet_and_part_with_the_code(void **state)
{
    assert_string_equal(leave_by(exit_7, 7), "fence 21;close;");
    leave_by(exit_259, 3);
}

static void exit_7_but_others_9(void)
{
    code_of_others = 9;
    tk_exit(7);
}

static void return_7_but_others_9(void)
{
    code_of_others = 9;
    exit(7);
}

static void exit_12_but_others_9(void)
{
    code_of_others = 9;
    tk_exit(12);
}

static void the_largest_code_is_that_of_all(void **state)
{
    leave_by(exit_7_but_others_9, 9);
    leave_by(exit_12_but_others_9, 12);
    assert_string_equal(leave_by(return_7_but_others_9, 9), "fence 21;close;");
}

static void clients_hook(void)
{
    note("hook");
}

static void exit_with_output(void)
{
    setvbuf(stderr, malloc(1000), _IOFBF, 1000);
    atexit(clients_hook);
    fprintf(stderr, "buffered;");
    tk_exit(1);
}

/* gasnetex.h: output is flushed, atexit() functions of the client are not run. */
static void output_is_flushed_and_hooks_are_not_run(void **state)
{
    assert_string_equal(leave_by(exit_with_output, 1), "buffered;");
}

static void leave_by_exit(void)
{
    exit(5);
}

static void exit_is_as_good_as_gasnet_exit(void **state)
{
    assert_string_equal(leave_by(leave_by_exit, 5), "fence 21;close;");
}

static void with_catch_exit_off_exit_is_only_ours(void **state)
{
    settings_of_child[0] = "GASNET_CATCH_EXIT=0";
    assert_string_equal(leave_by(leave_by_exit, 5), "close early;");
    assert_string_equal(leave_by(exit_7, 7), "without those that left;fence 21;close;");
}

static void exit_in_a_forked_child(void)
{
    int status;
    if (fork() == 0)
        exit(3);
    wait(&status);
    _exit(WEXITSTATUS(status) == 3 ? 0 : 1);
}

static void a_clients_own_child_may_exit_alone(void **state)
{
    assert_string_equal(leave_by(exit_in_a_forked_child, 0), "");
}

static void deadline_is(const char *one, const char *two, const char *expected)
{
    settings_of_child[0] = one;
    settings_of_child[1] = two;
    assert_string_equal(leave_by(exit_7, 7), expected);
}

/* The manual: min(MAX, MIN + ranks * FACTOR), unless EXITTIMEOUT is given. Four ranks here. */
static void the_deadline_follows_the_manual(void **state)
{
    deadline_is("GASNET_EXITTIMEOUT=5", NULL, "fence 50;close;");
    deadline_is("GASNET_EXITTIMEOUT_MIN=3", NULL, "fence 31;close;");
    deadline_is("GASNET_EXITTIMEOUT_FACTOR=1", NULL, "fence 60;close;");
    deadline_is("GASNET_EXITTIMEOUT_FACTOR=10", NULL, "fence 200;close;");
    deadline_is("GASNET_EXITTIMEOUT_FACTOR=10", "GASNET_EXITTIMEOUT_MAX=7", "fence 70;close;");
}

static void not_all_come(void)
{
    fence_status = TK_BUSY;
    tk_exit(4);
}

static void not_all_come_to_0(void)
{
    fence_status = TK_BUSY;
    tk_exit(0);
}

static void if_not_all_come_the_launcher_ends_the_job(void **state)
{
    assert_string_equal(leave_by(not_all_come, 4),
                        "fence 21;abort 4 not all processes came to the end of the job;");
    assert_string_equal(leave_by(not_all_come_to_0, 1),
                        "fence 21;abort 1 not all processes came to the end of the job;");
}

static void exit_while_leaving(void)
{
    fence_exits = true;
    tk_exit(6);
}

static void the_first_code_counts(void **state)
{
    assert_string_equal(leave_by(exit_while_leaving, 6), "fence 21;fence 21;close;");
}

static void leave_in_handler(int number)
{
    (void)number;
    tk_exit(12);
}

static void fail_start(void)
{
    tk_exit_failed();
}

static void lose_peer(void)
{
    tk_lost_peer(2);
}

static void fail_ourselves(void)
{
    tk_lost_peer(tk_no_peer);
}

/* A client that exits because it was notified of the failure did not cause it. */
static void lose_peer_with_handler(void)
{
    signal(SIGQUIT, leave_in_handler);
    tk_lost_peer(2);
}

static void what_failed_ends_the_job_with_1(void **state)
{
    assert_string_equal(leave_by(fail_start, 1), "abort 1;");
    assert_string_equal(leave_by(lose_peer, 1), "abort 1 peer 2 unreachable;");
    assert_string_equal(leave_by(lose_peer_with_handler, 1), "abort 1 peer 2 unreachable;");
    assert_string_equal(leave_by(fail_ourselves, 1), "abort 1;");
}

/* No other rank leaves: what is sent while the fence lasts. */
static enum tk_status take_notice(struct tk_peer *to, struct tk_outgoing *m)
{
    int32_t code = *(const int32_t *)(m->head + 1);
    if (m->head->handler == TK_HANDLER_AGREE)
        return TK_OK;
    if (fake_job.busy_sends > 0) {
        fake_job.busy_sends--;
        return TK_BUSY;
    }
    fprintf(stderr, "%s%u:%d;", m->head->kind == TK_CONTROL ? "notice " : "? ", to->rank, code);
    return TK_OK;
}

static const struct tk_transport noticing = {
    .am.send = take_notice, .poll = nothing, .reap = nothing, .reap_in_handler = nothing};

static void leave_alone(void)
{
    use(&noticing);
    fake_job.busy_sends = 1;
    fence_lasts = TK_SECOND / 50;
    tk_exit(8);
}

static void a_rank_that_leaves_alone_notifies_each_peer_once_and_waits_for_no_full_one(void **state)
{
    const char *said = leave_by(leave_alone, 8);
    assert_non_null(strstr(said, "notice 2:8;notice 3:8;"));
    assert_non_null(strstr(said, "notice 1:8;close;"));
    assert_int_equal(strlen(said), strlen("fence 20;notice 2:8;notice 3:8;notice 1:8;close;"));
}

static void exit_8_but_others_brought_9(void)
{
    use(&noticing);
    codes_of_others[2] = 9;
    tk_exit(8);
}

static void exit_8_but_others_brought_less(void)
{
    use(&noticing);
    codes_of_others[1] = 0;
    codes_of_others[3] = 7;
    tk_exit(8);
}

/* No peer answers here, so the codes did not come over the network. */
static void codes_missing_from_the_network_come_with_the_fence(void **state)
{
    leave_by(exit_8_but_others_brought_9, 9);
    leave_by(exit_8_but_others_brought_less, 8);
}

static enum tk_status send_when_there_is_room(struct tk_peer *to, struct tk_outgoing *m)
{
    static bool has_room;
    if (has_room)
        return send_to_leaving(to, m);
    has_room = true;
    return TK_BUSY;
}

static const struct tk_transport full_at_first = {.am.send = send_when_there_is_room,
                                                  .poll = nothing,
                                                  .reap = nothing,
                                                  .reap_in_handler = nothing};

static void exit_8_while_others_exit_9(void)
{
    use(&full_at_first);
    code_of_others = 9;
    tk_exit(8);
}

/* The fence is complete at once, so no poll of its own comes after the step in which all agree. */
static void what_all_agree_on_last_is_learnt(void **state)
{
    leave_by(exit_8_while_others_exit_9, 9);
}

static void leave_together(void)
{
    fence_lasts = TK_SECOND / 4; /* beyond the grace that a collective exit has */
    tk_exit(8);
}

static void a_rank_that_leaves_with_all_notifies_none(void **state)
{
    assert_string_equal(leave_by(leave_together, 8), "fence 21;close;");
}

static void take_exit_notice(void)
{
    struct {
        struct tk_message_head head;
        int32_t code, along_tree;
    } message = {.head = {.kind = TK_CONTROL, .handler = TK_HANDLER_EXIT, .nargs = 2}, .code = 9};
    struct tk_arrival arrival = {.peer = tk_peer(2), .head = &message.head};
    tk_deliver(&arrival);
    note("handled"); /* the handler itself must not leave: locks may be held below it */
    tk_poll();
}

static void a_peers_notice_ends_us_with_its_code(void **state)
{
    assert_string_equal(leave_by(take_exit_notice, 9), "handled;fence 21;close;");
}

static void on_quit(int number)
{
    (void)number;
    note("client's SIGQUIT");
}

static void take_exit_notice_with_handler(void)
{
    signal(SIGQUIT, on_quit);
    take_exit_notice();
}

static void the_clients_sigquit_handler_hears_of_it(void **state)
{
    assert_string_equal(leave_by(take_exit_notice_with_handler, 9),
                        "handled;client's SIGQUIT;fence 21;close;");
}

static void on_client_message(gex_Token_t token)
{
    (void)token;
    note("client's");
    tk_exit(99);
}

static bool poll_messages(void)
{
    struct tk_message_head head = {.handler = GEX_AM_INDEX_BASE, .category = TK_SHORT};
    struct tk_arrival arrival = {.peer = tk_peer(1), .head = &head};
    tk_deliver(&arrival);
    tk_deliver_short(tk_peer(1), tk_tag(false, 0, GEX_AM_INDEX_BASE), NULL);
    return true;
}

static const struct tk_transport talking = {
    .am.send = send_to_leaving, .poll = poll_messages, .reap = nothing, .reap_in_handler = nothing};

static void leave_among_messages(void)
{
    gex_AM_Entry_t entry = {GEX_AM_INDEX_BASE,
                            (gex_AM_Fn_t)on_client_message,
                            GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP,
                            0,
                            NULL,
                            "message"};
    assert_int_equal(tk_handlers_register(0, &entry, 1), GASNET_OK);
    use(&talking);
    tk_exit(4);
}

/* Its data may be gone: C++ destructors run before. */
static void no_client_handler_runs_in_the_leaving_thread(void **state)
{
    assert_string_equal(leave_by(leave_among_messages, 4), "fence 21;close;");
}

static void exit_in_handler(int number)
{
    (void)number;
    exit(12);
}

static bool touch(void)
{
    note("touched");
    return false;
}

static const struct tk_transport noted = {.poll = touch, .reap = touch};

static void leave_in_signal(void)
{
    tk_progress_use(&noted);
    fence_lasts = TK_SECOND / 50;
    untouchable = true;
    signal(SIGUSR1, leave_in_handler);
    raise(SIGUSR1);
}

static void exit_in_signal(void)
{
    tk_progress_use(&noted);
    fence_lasts = TK_SECOND / 50;
    untouchable = true;
    signal(SIGUSR1, exit_in_handler);
    raise(SIGUSR1);
}

static void leave_in_signal_alone(void)
{
    fence_status = TK_BUSY;
    leave_in_signal();
}

/* The interrupted code may hold any lock: another thread does it, and nothing of the
 * network. */
static void a_signal_handler_leaves_without_the_network(void **state)
{
    assert_string_equal(leave_by(leave_in_signal, 12), "fence;close;");
    assert_string_equal(leave_by(exit_in_signal, 12), "fence;close;");
    assert_string_equal(leave_by(leave_in_signal_alone, 12), "fence;abort 12;");
}

static void leave_in_signal_while_others_bring_13(void)
{
    codes_of_others[3] = 13;
    leave_in_signal();
}

/* The first of one neighbourhood of several. */
static void a_rank_that_leaves_without_the_network_learns_the_code_of_all(void **state)
{
    assert_string_equal(leave_by(leave_in_signal_while_others_bring_13, 13), "fence;close;");
}

static void leave_in_signal_for_ever(void)
{
    fence_hangs = true;
    leave_in_signal();
}

/* The interrupted code may hold libpmix's own lock. */
static void a_hanging_helper_delays_no_exit(void **state)
{
    settings_of_child[0] = "GASNET_EXITTIMEOUT=20";
    uint64_t began = tk_now();
    assert_non_null(strstr(leave_by(leave_in_signal_for_ever, 12), "fence;trunkline"));
    assert_true(tk_now() - began < 6 * TK_SECOND);
}

static void leave_while_printing(void)
{
    flockfile(stdout);
    printf("printed");
    leave_in_signal();
}

/* The stream stays locked for ever; what is in it still comes out, within bounds. */
static void a_locked_stream_delays_no_exit(void **state)
{
    leave_by(leave_while_printing, 12);
}

static void leave_by_quit_handler(void)
{
    signal(SIGQUIT, leave_in_handler);
    take_exit_notice();
}

/* The handler runs in a signal, but it was raised where no lock is held; and it is notified of an
 * exit whose code is final, whichever code the handler gives. */
static void a_sigquit_handler_leaves_with_the_network(void **state)
{
    assert_string_equal(leave_by(leave_by_quit_handler, 9), "handled;fence 21;close;");
}

static void leave_before_a_handler_can(void)
{
    signal(SIGUSR1, leave_in_handler);
    fence_raises = true;
    tk_exit(13);
}

static void no_handler_interrupts_the_leaving_thread(void **state)
{
    assert_string_equal(leave_by(leave_before_a_handler_can, 13), "fence 21;close;");
}

static void hang(void)
{
    fence_hangs = true;
    tk_exit(11);
}

/* This takes the three seconds that the watchdog adds to the deadline. */
static void a_watchdog_stands_behind_it(void **state)
{
    settings_of_child[0] = "GASNET_EXITTIMEOUT=0.1";
    const char *said = leave_by(hang, 11);
    assert_int_equal(strncmp(said, "fence 1;trunkline", 17), 0);
    assert_non_null(strstr(said, "did not leave within the time"));
}

static void hang_in_hook(void)
{
    for (;;)
        pause();
}

static void exit_with_a_hook_that_hangs(void)
{
    exit(0);
}

/* Handlers that the client registered before start-up get their time, and the status has a reason.
 */
static void a_watchdog_stands_behind_the_clients_hooks_too(void **state)
{
    settings_of_child[0] = "GASNET_EXITTIMEOUT=0.1";
    hook = hang_in_hook;
    const char *said = leave_by(exit_with_a_hook_that_hangs, 1);
    hook = NULL;
    assert_int_equal(strncmp(said, "fence 1;close;trunkline", 23), 0);
    assert_non_null(strstr(said, "functions registered with atexit()"));
}

#define TEST(name) cmocka_unit_test_setup(name, no_settings)

static const struct CMUnitTest tests[] = {
    TEST(all_meet_and_part_with_the_code),
    TEST(the_largest_code_is_that_of_all),
    TEST(output_is_flushed_and_hooks_are_not_run),
    TEST(exit_is_as_good_as_gasnet_exit),
    TEST(with_catch_exit_off_exit_is_only_ours),
    TEST(a_clients_own_child_may_exit_alone),
    TEST(the_deadline_follows_the_manual),
    TEST(if_not_all_come_the_launcher_ends_the_job),
    TEST(the_first_code_counts),
    TEST(what_failed_ends_the_job_with_1),
    TEST(a_rank_that_leaves_alone_notifies_each_peer_once_and_waits_for_no_full_one),
    TEST(codes_missing_from_the_network_come_with_the_fence),
    TEST(what_all_agree_on_last_is_learnt),
    TEST(a_rank_that_leaves_with_all_notifies_none),
    TEST(a_peers_notice_ends_us_with_its_code),
    TEST(the_clients_sigquit_handler_hears_of_it),
    TEST(no_client_handler_runs_in_the_leaving_thread),
    TEST(a_signal_handler_leaves_without_the_network),
    TEST(a_rank_that_leaves_without_the_network_learns_the_code_of_all),
    TEST(a_hanging_helper_delays_no_exit),
    TEST(a_locked_stream_delays_no_exit),
    TEST(a_sigquit_handler_leaves_with_the_network),
    TEST(no_handler_interrupts_the_leaving_thread),
    TEST(a_watchdog_stands_behind_it),
    TEST(a_watchdog_stands_behind_the_clients_hooks_too),
};

UNIT_MAIN(tests)
