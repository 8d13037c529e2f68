/* SPDX-License-Identifier: BSD-3-Clause */
/* Promises of puts, gets and events that implementations break, named after the items of
 * tests/rules.md (item_22 and so on). putget.c has the matrix of sizes and places, nbi.c implicit
 * operations. Rank r transfers to and from rank r + shift, so each segment has one writer at a
 * time. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BIG = 20 * 65536, FLOOD = 48, PIECE = 4096 };
enum {
    FLAG = 0,
    GO = 64,
    CELL = 4096,
    IN = 8192,
    LOCAL = IN + (2 << 20),
    SEGMENT = LOCAL + (2 << 20)
};

static gex_Rank_t peer;
static gex_AM_Index_t note_index, look_index;
static unsigned notes, looked;
static char *heap;

static char *there(size_t offset)
{
    return job_remote(peer, offset);
}

static volatile uint64_t *number_at(size_t offset)
{
    return (volatile uint64_t *)(void *)(job.base + offset);
}

/* ---- handlers ---- */

static void on_note(gex_Token_t token)
{
    (void)token;
    notes++;
}

/* The initiator reports that its put is complete: checks that it is here. */
static void on_look(gex_Token_t token, gex_AM_Arg_t value)
{
    CHECK(*number_at(CELL) == (uint64_t)value, "a completed put is not visible at its target");
    gex_AM_ReplyShort0(token, note_index, 0);
    looked++;
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_note, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 0, NULL, NULL},
        {0, (gex_AM_Fn_t)on_look, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    note_index = table[0].gex_index;
    look_index = table[1].gex_index;
}

/* ---- 22: tests run no handlers, waits do ---- */

/* Sends a message to rank 0, and behind it on the same connection a flag that shows its arrival. */
static void send_note(void)
{
    uint64_t go = 0, one = 1;

    while (!go)
        CHECK(gex_RMA_GetBlocking(job.tm, &go, 0, job_remote(0, GO), sizeof go, 0) == 0);
    CHECK(gex_AM_RequestShort0(job.tm, 0, note_index, 0) == 0);
    CHECK(gex_RMA_PutBlocking(job.tm, 0, job_remote(0, FLAG), &one, sizeof one, 0) == 0);
}

static void test_then_wait(void)
{
    uint64_t number[3];
    gex_Event_t event[4] = {GEX_EVENT_INVALID};
    gex_Rank_t last = job.size - 1;

    /* Starts operations before the message, because starting may poll if there is no space. */
    for (int i = 0; i < 3; i++)
        event[i] = gex_RMA_GetNB(job.tm, &number[i], last, job_remote(last, IN), 8, 0);
    *number_at(GO) = 1;
    while (!*number_at(FLAG))
        usleep(100);
    while (gex_Event_Test(event[0]) != GASNET_OK)
        continue;
    while (gex_Event_TestSome(event + 1, 1, 0) != GASNET_OK)
        continue;
    while (gex_Event_TestAll(event + 1, 3, 0) != GASNET_OK)
        continue;
    for (int i = 0; i < 100; i++)
        gex_NBI_Test(GEX_EC_ALL, 0);
    CHECK(notes == 0, "a test ran a handler");
    for (int i = 0; i < 100 && notes == 0; i++)
        gex_Event_Wait(gex_RMA_GetNB(job.tm, number, last, job_remote(last, IN), 8, 0));
    CHECK(notes == 1 || job_is_neighbour(last), "100 waits ran no handler");
    GASNET_BLOCKUNTIL(notes == 1);
}

static void item_22_tests_run_no_handlers_waits_do(void)
{
    job_phase("22: tests and waits");
    *number_at(GO) = *number_at(FLAG) = 0;
    job_barrier();
    notes = 0;
    if (job.size > 1 && job.rank == 0)
        test_then_wait();
    else if (job.size > 1 && job.rank == job.size - 1)
        send_note();
    job_barrier();
}

/* ---- 23: what an unsuccessful call completed is recorded ---- */

static void item_23_progress_is_recorded_on_failure(void)
{
    gex_Event_t event[3];
    uint64_t one = 1;

    job_phase("23: arrays of events");
    *number_at(FLAG) = 0;
    job_barrier();
    if (job.rank != 0)
        GASNET_BLOCKUNTIL(*number_at(FLAG) == 1);
    event[0] = gex_Coll_BarrierNB(job.tm, 0); /* done when rank 0 has notified the others */
    event[1] = gex_RMA_PutNB(job.tm, peer, there(IN), heap, 8, GEX_EVENT_DEFER, 0);
    event[2] = GEX_EVENT_INVALID;
    if (job.rank == 0 && job.size > 1) {
        while (event[1] != GEX_EVENT_INVALID) {
            CHECK(gex_Event_TestAll(event, 3, 0) == GASNET_ERR_NOT_READY);
            CHECK(event[0] != GEX_EVENT_INVALID && event[2] == GEX_EVENT_INVALID);
        }
        for (gex_Rank_t r = 1; r < job.size; r++)
            CHECK(gex_RMA_PutBlocking(job.tm, r, job_remote(r, FLAG), &one, 8, 0) == 0);
    }
    gex_Event_WaitAll(event, 3, 0);
    for (int i = 0; i < 3; i++)
        CHECK(event[i] == GEX_EVENT_INVALID);
}

/* ---- 25: a leaf that is never queried costs nothing ---- */

static long resident_pages(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    CHECK(file && fscanf(file, "%*s %ld", &pages) == 1);
    fclose(file);
    return pages;
}

static void item_25_leaves_may_be_forgotten(void)
{
    gex_Event_t leaf;
    long before = 0;

    job_phase("25: leaves nobody syncs, rank %u", peer);
    for (int i = 0; i < 60000; i++) {
        gex_Event_Wait(gex_RMA_PutNB(job.tm, peer, there(IN), job.base + LOCAL, 256, &leaf, 0));
        if (i == 10000)
            before = resident_pages();
    }
    CHECK(resident_pages() < before + 100, "%ld pages became %ld", before, resident_pages());
}

/* ---- 31, 32, 34: any local memory ---- */

static void item_31_a_source_may_be_read_only(void)
{
    char *memory = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *back = heap;

    job_phase("31: read-only source, rank %u", peer);
    CHECK(memory != MAP_FAILED);
    job_fill(memory, BIG, 31);
    CHECK(mprotect(memory, BIG, PROT_READ) == 0);
    CHECK(gex_RMA_PutNBI(job.tm, peer, there(IN), memory, BIG, GEX_EVENT_GROUP, 0) == 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    CHECK(gex_RMA_GetBlocking(job.tm, back, peer, there(IN), BIG, 0) == 0);
    CHECK_PATTERN(back, BIG, 31);
    munmap(memory, BIG);
}

/* A transfer uses the page that is mapped now, not the one of an earlier transfer. */
static void item_32_an_address_may_become_another_page(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    char *memory = NULL;

    job_phase("32: memory that is mapped again, rank %u", peer);
    for (uint64_t i = 0; i < 6; i++) {
        char *again =
            mmap(memory, BIG, PROT_READ | PROT_WRITE, flags | (memory ? MAP_FIXED : 0), -1, 0);

        CHECK(again != MAP_FAILED && (!memory || again == memory));
        memory = again;
        job_fill(memory, BIG, i);
        CHECK(gex_RMA_PutBlocking(job.tm, peer, there(IN), memory, BIG, 0) == 0);
        munmap(memory, BIG);
        CHECK(mmap(memory, BIG, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0) == memory);
        CHECK(gex_RMA_GetBlocking(job.tm, memory, peer, there(IN), BIG, 0) == 0);
        CHECK_PATTERN(memory, BIG, i);
        munmap(memory, BIG);
    }
}

static void item_34_no_alignment_is_asked_for(void)
{
    job_phase("34: alignment, rank %u", peer);
    for (size_t size = 1; size < 20; size++) {
        char *from = heap + 3 * size, *to = heap + 1000 + size;

        job_fill(from, size, size);
        CHECK(gex_RMA_PutNBI(job.tm, peer, there(IN + size), from, size, GEX_EVENT_NOW, 0) == 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        CHECK(gex_RMA_GetNBI(job.tm, to, peer, there(IN + size), size, 0) == 0);
        gex_NBI_Wait(GEX_EC_GET, 0);
        CHECK_PATTERN(to, size, size);
    }
}

/* ---- 33: complete means visible at the target ---- */

static void item_33_complete_is_visible_at_the_target(void)
{
    job_phase("33: visibility, rank %u", peer);
    for (uint64_t i = 1; i <= 200; i++) {
        unsigned before = notes;

        CHECK(gex_RMA_PutNBIVal(job.tm, peer, there(CELL), i, 8, 0) == 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        gex_AM_RequestShort1(job.tm, peer, look_index, 0, (gex_AM_Arg_t)i);
        GASNET_BLOCKUNTIL(notes != before);
    }
}

/* ---- GEX_FLAG_IMMEDIATE: all or nothing ---- */

enum form { PUT, PUT_NB, PUT_NBI, GET, GET_NB, GET_NBI, FORMS };

/* True when it was refused; else it is complete on return. */
static int refused(enum form form, char *local)
{
    gex_Event_t event;

    switch (form) {
    case PUT:
        return gex_RMA_PutBlocking(job.tm, peer, there(IN), local, BIG, GEX_FLAG_IMMEDIATE) != 0;
    case GET:
        return gex_RMA_GetBlocking(job.tm, local, peer, there(IN), BIG, GEX_FLAG_IMMEDIATE) != 0;
    case PUT_NBI:
        if (gex_RMA_PutNBI(job.tm, peer, there(IN), local, BIG, GEX_EVENT_GROUP,
                           GEX_FLAG_IMMEDIATE))
            return 1;
        gex_NBI_Wait(GEX_EC_PUT, 0);
        return 0;
    case GET_NBI:
        if (gex_RMA_GetNBI(job.tm, local, peer, there(IN), BIG, GEX_FLAG_IMMEDIATE))
            return 1;
        gex_NBI_Wait(GEX_EC_GET, 0);
        return 0;
    case PUT_NB:
        event =
            gex_RMA_PutNB(job.tm, peer, there(IN), local, BIG, GEX_EVENT_DEFER, GEX_FLAG_IMMEDIATE);
        break;
    default:
        event = gex_RMA_GetNB(job.tm, local, peer, there(IN), BIG, GEX_FLAG_IMMEDIATE);
    }
    if (event == GEX_EVENT_NO_OP)
        return 1;
    gex_Event_Wait(event);
    return 0;
}

/* With a queue full of other transfers, one of twenty pieces must be refused and have no effect. */
static void one_form_in_a_hurry(enum form form, uint64_t seed)
{
    gex_Event_t flood[FLOOD];
    char *local = heap, *back = job_memory(BIG);
    int is_put = form < GET, times = 0;

    memset(back, 0, BIG);
    CHECK(gex_RMA_PutBlocking(job.tm, peer, there(IN), back, BIG, 0) == 0);
    job_fill(local, BIG, seed);
    for (int i = 0; i < FLOOD; i++)
        flood[i] =
            gex_RMA_PutNB(job.tm, peer, there(LOCAL), job.base + LOCAL, PIECE, GEX_EVENT_DEFER, 0);
    times = refused(form, local);
    CHECK(times || job_is_neighbour(peer) || getenv("GASNET_NETWORKDEPTH_PP"), "form %d had room",
          form);
    gex_Event_WaitAll(flood, FLOOD, 0);
    CHECK(gex_RMA_GetBlocking(job.tm, back, peer, there(IN), BIG, 0) == 0);
    if (times) {
        for (int i = 0; i < BIG; i++)
            CHECK(back[i] == 0, "a refused put wrote byte %d", i);
        CHECK_PATTERN(local, BIG, seed);
    }
    for (; times && refused(form, local); times++)
        gasnet_AMPoll();
    CHECK(times < 100000, "refused for ever");
    CHECK(gex_RMA_GetBlocking(job.tm, back, peer, there(IN), BIG, 0) == 0);
    if (is_put)
        CHECK_PATTERN(back, BIG, seed);
    else
        CHECK(memcmp(local, back, BIG) == 0);
    free(back);
}

static void immediate_is_all_or_nothing(void)
{
    for (int form = 0; form < FORMS; form++)
        for (uint64_t i = 0; i < 3; i++) {
            job_phase("GEX_FLAG_IMMEDIATE, form %d, rank %u", form, peer);
            one_form_in_a_hurry(form, i + 1);
        }
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, SEGMENT);
    heap = job_memory(BIG);
    memset(heap, 0, BIG);
    register_handlers();
    for (unsigned shift = 0; shift < job.size; shift++) {
        peer = (job.rank + shift) % job.size;
        item_22_tests_run_no_handlers_waits_do();
        item_23_progress_is_recorded_on_failure();
        item_25_leaves_may_be_forgotten();
        item_31_a_source_may_be_read_only();
        item_32_an_address_may_become_another_page();
        item_33_complete_is_visible_at_the_target();
        item_34_no_alignment_is_asked_for();
        immediate_is_all_or_nothing();
        job_barrier();
    }
    CHECK(looked == 200 * job.size);
    job_end();
}
