/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of target queue pairs that neighbours share: one neighbour creates a target and the
 * others find its number; a taken row belongs to its owner and never blocks others, even if the
 * owner is dead; its contents remain. Run by processes that map one table, as neighbours do. */
#include "config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "transport/verbs/conn/xrc_table.h"

enum { RANKS = 5, CONNS = 21, PROCESSES = 4, ROUNDS = 20000 };

static struct tk_xrc_table open_table(void)
{
    size_t size = tk_xrc_table_bytes(RANKS, CONNS);
    void *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(words != MAP_FAILED);
    return (struct tk_xrc_table){.words = words, .conns = CONNS};
}

static void close_table(struct tk_xrc_table *table)
{
    munmap(table->words, tk_xrc_table_bytes(RANKS, CONNS));
}

static void rows_are_apart(void **state)
{
    struct tk_xrc_table table = open_table();
    for (uint32_t r = 0; r < RANKS; r++)
        for (uint32_t k = 0; k < CONNS; k++) {
            assert_int_equal(tk_xrc_table_target(&table, r, k), 0);
            assert_false(tk_xrc_table_is_connected(&table, r, k));
            tk_xrc_table_made(&table, r, k, 1 + r * CONNS + k);
            if ((r + k) % 2)
                tk_xrc_table_connected(&table, r, k);
        }
    for (uint32_t r = 0; r < RANKS; r++) {
        assert_true(tk_xrc_table_take(&table, r, r));
        for (uint32_t k = 0; k < CONNS; k++) {
            assert_int_equal(tk_xrc_table_target(&table, r, k), 1 + r * CONNS + k);
            assert_int_equal(tk_xrc_table_is_connected(&table, r, k), (r + k) % 2);
        }
    }
    close_table(&table);
}

static void one_at_a_time(void **state)
{
    struct tk_xrc_table table = open_table();
    assert_true(tk_xrc_table_take(&table, 3, 0));
    assert_false(tk_xrc_table_take(&table, 3, 0));
    assert_false(tk_xrc_table_take(&table, 3, 1));
    assert_true(tk_xrc_table_take(&table, 2, 1));
    tk_xrc_table_give(&table, 3);
    assert_true(tk_xrc_table_take(&table, 3, 1));
    close_table(&table);
}

/* A rank that takes the row sees the changes of others, and none is lost: all increment one
 * word. */
static void count_up(struct tk_xrc_table *table, uint32_t me)
{
    for (int i = 0; i < ROUNDS; i++) {
        while (!tk_xrc_table_take(table, 1, me))
            usleep(0);
        tk_xrc_table_made(table, 1, 0, tk_xrc_table_target(table, 1, 0) + 1);
        tk_xrc_table_give(table, 1);
    }
}

static void many_processes(void **state)
{
    struct tk_xrc_table table = open_table();
    pid_t children[PROCESSES];
    for (uint32_t i = 0; i < PROCESSES; i++)
        if ((children[i] = fork()) == 0) {
            count_up(&table, i);
            _exit(0);
        }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(tk_xrc_table_target(&table, 1, 0), PROCESSES * ROUNDS);
    close_table(&table);
}

/* The job is about to end then: no rank needs the row, but none may hang for it. */
static void owner_dies(void **state)
{
    struct tk_xrc_table table = open_table();
    pid_t child = fork();
    if (child == 0) {
        if (!tk_xrc_table_take(&table, 4, 0))
            _exit(1);
        tk_xrc_table_made(&table, 4, 1, 77);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_false(tk_xrc_table_take(&table, 4, 1));
    assert_int_equal(tk_xrc_table_target(&table, 4, 1), 77);
    assert_true(tk_xrc_table_take(&table, 3, 1));
    close_table(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_apart),
        cmocka_unit_test(one_at_a_time),
        cmocka_unit_test(many_processes),
        cmocka_unit_test(owner_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
