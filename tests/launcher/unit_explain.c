/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the sentences about a hang: the chains of waits over ranks whose records are made
 * here, including states that no real job can be held in. */
#include "config.h"

#include "spawner/head/explain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SECOND = 1000000000, NOW = 100 };

static struct explain e;
static char text[16384];

static struct waits_rank made(char state)
{
    struct waits_rank w = {.pid = 1, .state = state, .has_record = true};
    w.now = (uint64_t)NOW * SECOND;
    w.page.opened = SECOND;
    w.page.threads[0].tid = 1;
    w.thread_state[0] = state;
    strcpy(w.doing, "sleeping in pause");
    return w;
}

/* In a wait of that kind for 10 s; it polled just now. */
static struct waits_rank waiting(enum tk_wait_kind kind, uint32_t peer)
{
    struct waits_rank w = made('S');
    w.page.threads[0].why = (struct tk_wait_why){.kind = kind, .peer = peer};
    w.page.threads[0].since = w.now - (uint64_t)10 * SECOND;
    w.page.threads[0].beat = w.now;
    return w;
}

static void row(struct waits_rank *w, enum tk_wait_reason reason, uint32_t peer, uint64_t number,
                uint64_t more)
{
    struct tk_wait_thread *t = &w->page.threads[0];
    t->rows[t->row_count++] = (struct tk_wait_row){reason, peer, number, more};
}

static void begin(uint32_t ranks)
{
    assert_true(explain_init(&e, ranks));
}

static void put(uint32_t rank, const struct waits_rank *w)
{
    assert_true(explain_take(&e, rank, w, sizeof(*w)));
}

static void join(void)
{
    explain_join(&e);
    memcpy(text, bytes_front(&e.text), e.text.length);
    text[e.text.length] = 0;
    explain_free(&e);
}

static void has(const char *wanted)
{
    if (!strstr(text, wanted))
        fail_msg("no '%s' in:\n%s", wanted, text);
}

static void lacks(const char *unwanted)
{
    if (strstr(text, unwanted))
        fail_msg("'%s' in:\n%s", unwanted, text);
}

static void missing_ranks_are_named_together(void **state)
{
    struct waits_rank in = waiting(TK_WAITS_EVENT, tk_wait_nobody), out = made('S');
    row(&in, TK_REASON_BARRIER, 3, 5, 0);
    in.page.progress.barriers = 5;
    out.page.progress.barriers = 4;
    begin(12);
    for (uint32_t r = 0; r < 12; r++)
        put(r, r == 7 || r == 9 || r == 10 ? &out : &in);
    join();
    has("  ranks 0-6, 8 and 11 wait for an event, in barrier 5: ranks 7, 9 and 10 have not entered "
        "it "
        "(up to 10.0 s)\n");
    has("  ranks 7, 9 and 10 wait for nothing of the library; last waited there");
    lacks("circle");
}

static void all_have_entered(void **state)
{
    struct waits_rank a = waiting(TK_WAITS_EVENT, tk_wait_nobody), stopped = made('T');
    row(&a, TK_REASON_BARRIER, 1, 5, 0);
    a.page.progress.barriers = stopped.page.progress.barriers = 5;
    begin(2);
    put(0, &a);
    put(1, &stopped);
    join();
    has("  rank 0 waits for an event, in barrier 5 for word of rank 1, which has entered it (for "
        "10.0 s)\n");
    has("  rank 1 is stopped (SIGSTOP or a debugger)");
}

static void the_dead_and_the_unknown(void **state)
{
    struct waits_rank a = waiting(TK_WAITS_SEND, 1), dead = made(0), left = made(0);
    row(&a, TK_REASON_CREDIT, 1, 12, 1);
    row(&a, TK_REASON_CREDIT, 2, 12, 1);
    left.is_done = true;
    begin(4);
    put(0, &a);
    put(1, &dead);
    put(2, &left);
    join();
    has("  rank 0 waits to send a message, for a credit of rank 1: all 12 are out (for 10.0 s)\n");
    lacks("credit of rank 2");
    has("  rank 1 is gone: its process has ended\n");
    has("  rank 2 has left the job in order\n");
    has("  rank 3 is not known: the guard of its host has not answered\n");
}

static void a_circle_is_shown_once(void **state)
{
    begin(5);
    for (uint32_t r = 0; r < 5; r++) {
        struct waits_rank w = waiting(TK_WAITS_SEND, r == 4 ? 0 : (r + 1) % 3);
        if (r == 3)
            w = waiting(TK_WAITS_SEND, 4);
        put(r, &w);
    }
    join();
    has("  circle: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 0\n");
    assert_null(strstr(strstr(text, "circle") + 1, "circle"));
}

/* One of the ranks can proceed: then they are not in a deadlock. */
static void no_circle_where_one_may_end(void **state)
{
    struct waits_rank a = waiting(TK_WAITS_SEND, 1), b = waiting(TK_WAITS_CONDITION, 0);
    struct waits_rank c = made('R');
    row(&b, TK_REASON_UNANSWERED, 0, 3, 1);
    row(&b, TK_REASON_UNANSWERED, 2, 3, 1);
    begin(3);
    put(0, &a);
    put(1, &b);
    put(2, &c);
    explain_join(&e);
    assert_int_equal(e.suspect_count, 1);
    assert_int_equal(e.suspects[0], 2);
    assert_int_equal(e.longest, (uint64_t)10 * SECOND);
    explain_free(&e);
}

static void a_wait_that_polls_no_more(void **state)
{
    struct waits_rank handler = waiting(TK_WAITS_EVENT, tk_wait_nobody), stuck = handler;
    struct waits_rank over = waiting(TK_WAITS_CONDITION, tk_wait_nobody);
    handler.page.threads[0].beat = stuck.page.threads[0].beat = handler.now - (uint64_t)5 * SECOND;
    over.page.threads[0].beat = handler.page.threads[0].beat;
    handler.depth[0] = 1;
    begin(3);
    put(0, &handler);
    put(1, &stuck);
    put(2, &over);
    join();
    has("  rank 0 runs a handler that has not returned, and has not polled for 5.0 s\n");
    has("  rank 1 has not polled for 5.0 s: something that");
    has("  rank 2 waits for nothing of the library; last waited there 5.0 s ago");
}

static void calls_of_a_team_are_named(void **state)
{
    const char *const names[] = {[TK_CALL_INIT] = "in gex_Client_Init for rank 1",
                                 [TK_CALL_SPLIT] = "in gex_TM_Split for rank 1",
                                 [TK_CALL_CREATE] = "in gex_TM_Create for rank 1",
                                 [TK_CALL_DESTROY] = "in gex_TM_Destroy for rank 1",
                                 [TK_CALL_PUBLISH] = "in gex_EP_PublishBoundSegment for rank 1",
                                 [TK_CALL_AD_CREATE] = "in gex_AD_Create (debug libraries compare",
                                 [TK_CALL_AD_CREATE + 1] = "in a call of a team for rank 1"};
    for (unsigned call = 0; call < sizeof(names) / sizeof(names[0]); call++) {
        struct waits_rank a = waiting(TK_WAITS_EVENT, tk_wait_nobody), b = made('S');
        row(&a, TK_REASON_TEAM, 1, call, 7);
        begin(2);
        put(0, &a);
        put(1, &b);
        join();
        has(names[call]);
    }
}

static void stacks_are_lines(void **state)
{
    static const char gdb[] =
        "[New LWP 7]\n\nThread 2 (Thread 0x7f (LWP 7) \"x\"):\n"
        "#0  0x01 in epoll_wait () from /lib/libc.so.6\n#1  0x02 in event_base_loop () from /lib\n"
        "\nThread 1 (Thread 0x7e (LWP 6) \"x\"):\n#0  __libc_pause () at ../sysdeps/pause.c:29\n"
        "#1  0x0000 in stay_away (n=...) at ../a/hang.c:25\n#2  main () at hang.c:3\n";
    begin(1);
    explain_add_stack(&e, 0, gdb, sizeof(gdb) - 1);
    explain_add_stack(&e, 0, "ptrace: not permitted", 21);
    join();
    has("  stack of rank 0:\n"
        "    __libc_pause (pause.c:29) < stay_away (hang.c:25) < main (hang.c:3)\n"
        "  stack of rank 0:\n    can't be read: ptrace: not permitted\n");
    lacks("event_base_loop");
}

static void damaged_answers(void **state)
{
    struct waits_rank w = waiting(TK_WAITS_EVENT, tk_wait_nobody);
    begin(2);
    assert_false(explain_take(&e, 2, &w, sizeof(w)));
    assert_false(explain_take(&e, 0, &w, sizeof(w) - 1));
    memset(&w, 0xff, sizeof(w));
    w.page.threads[0].row_count = 1000000;
    put(0, &w);
    put(1, &w);
    join();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(missing_ranks_are_named_together),
                                       cmocka_unit_test(all_have_entered),
                                       cmocka_unit_test(the_dead_and_the_unknown),
                                       cmocka_unit_test(a_circle_is_shown_once),
                                       cmocka_unit_test(no_circle_where_one_may_end),
                                       cmocka_unit_test(a_wait_that_polls_no_more),
                                       cmocka_unit_test(calls_of_a_team_are_named),
                                       cmocka_unit_test(stacks_are_lines),
                                       cmocka_unit_test(damaged_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
