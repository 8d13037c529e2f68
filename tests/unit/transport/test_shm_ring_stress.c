/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ring of messages under load: four threads that send with handles of their own (two of them
 * share one), two that receive; then the same between processes. Every message is compared byte by
 * byte and arrives once, and those of one sender arrive in order if one thread receives. Built with
 * the thread sanitizer, this is also its test of the ring. */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring_memory.h"
#include "unit.h"

enum { senders = 4, slots = 64, lines = 256, size_max = lines / 2 * tk_ring_line };

static struct ring_memory memory;
static struct tk_ring_out outs[senders];
static struct tk_ring_in in;
static uint32_t messages; /* of each sender */
static _Atomic uint32_t received;
static _Atomic bool wrong;
static _Atomic uint8_t *seen; /* how often each came */

static void send_all(uint32_t me, struct tk_ring_out *out)
{
    static _Thread_local char text[size_max];
    struct unit_random dice = unit_random(me + 100);
    for (uint32_t n = 0; n < messages; n++) {
        size_t limit = unit_below(&dice, 8) ? 48 : unit_below(&dice, 8) ? 600 : size_max - 16;
        size_t nbytes = ring_text_min + unit_below(&dice, (unsigned)limit);
        ring_text(text, me, n, nbytes);
        while (tk_ring_send(out, text, 16, text + 16, nbytes - 16) == TK_BUSY)
            sched_yield();
    }
}

static void *sending_thread(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg;
    send_all(me, &outs[me == 3 ? 2 : me]);
    return NULL;
}

/* The text names the sender, because threads may share a handle. */
static void look_at(const struct tk_ring_item *item, uint32_t *next)
{
    uint32_t whose = senders, number = 0;
    char text[size_max];
    size_t nbytes = ring_item_text(item, text, sizeof(text));
    if (nbytes >= ring_text_min)
        memcpy(&whose, text, sizeof(whose));
    if (whose >= senders || !ring_text_is(text, whose, &number, nbytes) || number >= messages ||
        (next && number != next[whose]++))
        wrong = true;
    else
        atomic_fetch_add(&seen[whose * messages + number], 1);
}

static void receive_all(uint32_t *next)
{
    while (!wrong && atomic_load(&received) < senders * messages) {
        struct tk_ring_item item;
        if (!tk_ring_ready(&in) || !tk_ring_take(&in, &item)) {
            sched_yield();
            continue;
        }
        look_at(&item, next);
        tk_ring_done(&in, &item);
        atomic_fetch_add(&received, 1);
    }
}

static void *receiving_thread(void *arg)
{
    (void)arg;
    receive_all(NULL);
    return NULL;
}

static void open_all(uint32_t count, uint64_t start)
{
    messages = count;
    received = 0;
    wrong = false;
    seen = calloc((size_t)senders * messages, 1);
    ring_memory_open(&memory, slots, lines, start);
    for (uint16_t i = 0; i < senders; i++)
        ring_memory_out(&memory, &outs[i], i);
    ring_memory_in(&memory, &in);
}

static void close_all(void)
{
    struct tk_ring_item item;
    assert_false(wrong);
    for (uint32_t i = 0; i < senders * messages; i++)
        assert_int_equal(seen[i], 1);
    assert_false(tk_ring_take(&in, &item));
    tk_ring_in_close(&in);
    ring_memory_close(&memory);
    free((void *)seen);
}

static void threads_send_and_threads_receive(void **state)
{
    pthread_t sending[senders], receiving[2];
    if (!TK_THREADED)
        skip();
    open_all(10000, UINT64_MAX - 5000 * TK_RING_SLOT);
    for (uintptr_t i = 0; i < senders; i++)
        assert_int_equal(pthread_create(&sending[i], NULL, sending_thread, (void *)i), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&receiving[i], NULL, receiving_thread, NULL), 0);
    for (int i = 0; i < senders; i++)
        pthread_join(sending[i], NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(receiving[i], NULL);
    close_all();
}

static void processes_send_in_their_order(void **state)
{
    uint32_t next[senders] = {0};
    int status;
    open_all(20000, (UINT64_C(1) << 32) * TK_RING_SLOT - 1);
    for (uint32_t i = 0; i < senders; i++)
        if (fork() == 0) {
            send_all(i, &outs[i]);
            _exit(0);
        }
    receive_all(next);
    for (int i = 0; i < senders; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    close_all();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(threads_send_and_threads_receive),
    cmocka_unit_test(processes_send_in_their_order),
};

UNIT_MAIN(tests)
