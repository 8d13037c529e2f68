/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix of puts and gets: sizes 0 to 4 MiB around each power of two, every alignment of both
 * sides, local memory in the segment, on the heap, on the stack and read-only, and every way to
 * complete. The target itself checks the data of a put, as soon as the initiator knows that the put
 * is complete. In a round rank r transfers to and from rank r + shift, so each segment has one
 * writer. An argument limits the size: sizes above 64 KiB move most of the bytes, which an emulated
 * network need not repeat in each mode. Owned by the one client thread. */
#include "config.h"

#include "job.h"
#include "putget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BIGGEST = 4 << 20, GUARD = 64, ROOM = BIGGEST + 8192, STACK_ROOM = 65536 };
enum { IN = 0, OUT = ROOM, LOCAL = 2 * ROOM }; /* what a segment holds */
enum kind { IN_SEGMENT, ON_HEAP, ON_STACK, READ_ONLY, KINDS };
enum mode { BLOCKING, NOW, DEFER, LEAF_FIRST, ROOT_ONLY, BY_TEST, MODES };

struct put {
    size_t size;
    enum kind kind;
    enum mode mode;
    unsigned near, far; /* misalignment of our side and of the peer's */
};

gex_Rank_t peer;
static gex_AM_Index_t look_index, looked_index;
static unsigned looked;
static char *heap, *read_only, *expected;
static uint64_t count;
static size_t largest = BIGGEST;

/* ---- the target's side ---- */

/* A put of `size` bytes at `offset` is complete: checks that it is here, and nothing else. */
static void look(gex_Token_t token, gex_AM_Arg_t offset, gex_AM_Arg_t size, gex_AM_Arg_t high,
                 gex_AM_Arg_t low)
{
    char *memory = job.base + offset;
    uint64_t seed = (uint64_t)(uint32_t)high << 32 | (uint32_t)low;

    CHECK_PATTERN(memory, (size_t)size, seed);
    for (int i = 1; i <= 16; i++)
        CHECK(memory[-i] == 0 && memory[size + i - 1] == 0, "%d bytes at %d: written outside", size,
              offset);
    memset(memory, 0, (size_t)size);
    gex_AM_ReplyShort0(token, looked_index, 0);
}

static void on_looked(gex_Token_t token)
{
    (void)token;
    looked++;
}

void check_at_peer(size_t offset, size_t size, uint64_t seed)
{
    unsigned before = looked;

    gex_AM_RequestShort4(job.tm, peer, look_index, 0, (gex_AM_Arg_t)offset, (gex_AM_Arg_t)size,
                         (gex_AM_Arg_t)(uint32_t)(seed >> 32), (gex_AM_Arg_t)(uint32_t)seed);
    GASNET_BLOCKUNTIL(looked != before);
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)look, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 4, NULL, NULL},
        {0, (gex_AM_Fn_t)on_looked, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    look_index = table[0].gex_index;
    looked_index = table[1].gex_index;
}

/* ---- puts ---- */

/* The source of a put, filled; `stack` is memory of the caller's frame. */
static char *source_of(const struct put *put, char *stack, uint64_t seed)
{
    char *area = put->kind == IN_SEGMENT ? job.base + LOCAL
                 : put->kind == ON_HEAP  ? heap
                 : put->kind == ON_STACK ? stack
                                         : read_only;

    if (put->kind == READ_ONLY)
        CHECK(mprotect(read_only, ROOM, PROT_READ | PROT_WRITE) == 0);
    job_fill(area + put->near, put->size, seed);
    if (put->kind == READ_ONLY)
        CHECK(mprotect(read_only, ROOM, PROT_READ) == 0);
    return area + put->near;
}

static void spoil(const struct put *put, char *source)
{
    if (put->kind != READ_ONLY)
        memset(source, 0xee, put->size);
}

/* Overwrites the source as soon as the call's promise allows it. */
static void do_put(const struct put *put, char *source, void *dest)
{
    gex_Event_t leaf = GEX_EVENT_NO_OP, root;

    if (put->mode == BLOCKING) {
        CHECK(gex_RMA_PutBlocking(job.tm, peer, dest, source, put->size, 0) == 0);
        spoil(put, source);
        return;
    }
    root = gex_RMA_PutNB(job.tm, peer, dest, source, put->size,
                         put->mode == NOW || put->mode == BY_TEST ? GEX_EVENT_NOW
                         : put->mode == DEFER                     ? GEX_EVENT_DEFER
                                                                  : &leaf,
                         0);
    CHECK(root != GEX_EVENT_NO_OP);
    if (put->mode == NOW || put->mode == BY_TEST)
        spoil(put, source);
    if (put->mode == LEAF_FIRST) {
        CHECK(leaf != GEX_EVENT_NO_OP, "no leaf was stored");
        gex_Event_Wait(leaf);
        spoil(put, source);
    }
    if (put->mode == BY_TEST)
        while (gex_Event_Test(root) != GASNET_OK)
            gasnet_AMPoll();
    else
        gex_Event_Wait(root);
    spoil(put, source);
}

static void one_put(const struct put *put)
{
    char stack[STACK_ROOM + GUARD];
    uint64_t seed = job_mix(count, job.rank);
    size_t offset = IN + GUARD + put->far;
    char *source = source_of(put, stack, seed);

    job_phase("put of %zu bytes, kind %d, mode %d, alignments %u and %u, to rank %u", put->size,
              put->kind, put->mode, put->near, put->far, peer);
    do_put(put, source, job_remote(peer, offset));
    check_at_peer(offset, put->size, seed);
}

/* ---- gets ---- */

static void do_get(const struct put *get, char *dest, char *src)
{
    gex_Event_t event;

    if (get->mode == BLOCKING) {
        CHECK(gex_RMA_GetBlocking(job.tm, dest, peer, src, get->size, 0) == 0);
        return;
    }
    event = gex_RMA_GetNB(job.tm, dest, peer, src, get->size, 0);
    CHECK(event != GEX_EVENT_NO_OP);
    if (get->mode == BY_TEST)
        while (gex_Event_Test(event) != GASNET_OK)
            gasnet_AMPoll();
    else
        gex_Event_Wait(event);
}

static void one_get(const struct put *get)
{
    char stack[STACK_ROOM + 2 * GUARD];
    char *area = get->kind == IN_SEGMENT ? job.base + LOCAL : get->kind == ON_STACK ? stack : heap;
    char *dest = area + GUARD + get->near;

    job_phase("get of %zu bytes, kind %d, mode %d, alignments %u and %u, from rank %u", get->size,
              get->kind, get->mode, get->near, get->far, peer);
    memset(dest - 16, 0x77, 16);
    memset(dest, 0xee, get->size);
    memset(dest + get->size, 0x77, 16);
    do_get(get, dest, job_remote(peer, OUT + get->far));
    CHECK(memcmp(dest, expected + get->far, get->size) == 0, "wrong data");
    for (int i = 1; i <= 16; i++)
        CHECK(dest[-i] == 0x77 && dest[get->size + (size_t)i - 1] == 0x77, "written outside");
}

/* ---- the matrix ---- */

/* The round of a case: one in eight is for ourselves, the others take the peers in turn. */
static unsigned shift_of(uint64_t number)
{
    if (job.size == 1 || number % 8 == 0)
        return 0;
    return 1 + (unsigned)(number % (job.size - 1));
}

static void put_and_get(unsigned shift, size_t size, enum kind kind, enum mode mode, unsigned near,
                        unsigned far)
{
    struct put put = {size, kind, mode, near, far};

    count++;
    if (shift_of(count) != shift || (kind == ON_STACK && size > STACK_ROOM - 16))
        return;
    one_put(&put);
    one_get(&put);
}

static void one_size(unsigned shift, size_t size)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int mode = 0; mode < MODES; mode++)
            if (size <= 65536 || (kind + mode + (int)(size % 2)) % 4 == 0)
                put_and_get(shift, size, kind, mode, count % 9, count / 9 % 9);
}

static void all_sizes(unsigned shift)
{
    one_size(shift, 0);
    one_size(shift, 1);
    for (size_t power = 2; power <= largest; power *= 2)
        for (size_t size = power - 1; size <= power + 1; size++)
            one_size(shift, size);
}

static void all_alignments(unsigned shift)
{
    static const size_t sizes[] = {1, 7, 8, 64, 4097};

    for (int i = 0; i < 5; i++)
        for (unsigned near = 0; near <= 8; near++)
            for (unsigned far = 0; far <= 8; far++)
                put_and_get(shift, sizes[i], (near + far) % KINDS, (near + 2 * far) % MODES, near,
                            far);
}

/* The program's own constants: memory that cannot be registered for writing. */
#define TEXT16  "sixteen letters."
#define TEXT256 TEXT16 TEXT16 TEXT16 TEXT16 TEXT16 TEXT16 TEXT16 TEXT16
#define TEXT2K  TEXT256 TEXT256 TEXT256 TEXT256 TEXT256 TEXT256 TEXT256 TEXT256
static const char constants[] = TEXT2K TEXT2K TEXT2K TEXT2K TEXT2K TEXT2K;

static void from_constants(void)
{
    static const size_t sizes[] = {1, 8, 73, 1500, sizeof constants};
    char back[sizeof constants];
    gex_Event_t event;

    job_phase("put of constants to rank %u", peer);
    for (int i = 0; i < 5; i++) {
        char *dest = job_remote(peer, IN + GUARD);

        event = gex_RMA_PutNB(job.tm, peer, dest, constants, sizes[i], GEX_EVENT_DEFER, 0);
        gex_Event_Wait(event);
        CHECK(gex_RMA_GetBlocking(job.tm, back, peer, dest, sizes[i], 0) == 0);
        CHECK(memcmp(back, constants, sizes[i]) == 0);
        memset(back, 0, sizeof back);
        CHECK(gex_RMA_PutBlocking(job.tm, peer, dest, back, sizes[i], 0) == 0);
    }
}

/* Empty transfers must not access any address. */
static void nothing_to_move(void)
{
    void *nowhere = (void *)(uintptr_t)1;
    gex_Event_t leaf = GEX_EVENT_NO_OP;

    CHECK(gex_RMA_PutBlocking(job.tm, peer, nowhere, nowhere, 0, 0) == 0);
    CHECK(gex_RMA_GetBlocking(job.tm, nowhere, peer, nowhere, 0, 0) == 0);
    CHECK(gex_RMA_PutNB(job.tm, peer, nowhere, NULL, 0, GEX_EVENT_NOW, 0) == GEX_EVENT_INVALID);
    CHECK(gex_RMA_PutNB(job.tm, peer, nowhere, NULL, 0, &leaf, 0) == GEX_EVENT_INVALID);
    CHECK(leaf == GEX_EVENT_INVALID);
    CHECK(gex_RMA_GetNB(job.tm, NULL, peer, nowhere, 0, 0) == GEX_EVENT_INVALID);
}

static void one_round(unsigned shift)
{
    peer = (job.rank + shift) % job.size;
    job_fill(expected, BIGGEST + 16, peer);
    job_phase("barrier before the round with shift %u", shift);
    job_barrier();
    nothing_to_move();
    from_constants();
    count = 0;
    all_alignments(shift);
    all_sizes(shift);
    test_event_arrays(IN + GUARD, job.base + LOCAL);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 3 * (size_t)ROOM);
    if (argc > 1)
        largest = strtoul(argv[1], NULL, 10);
    CHECK(largest > 0 && largest <= BIGGEST, "usage: putget [largest size, at most %d]", BIGGEST);
    heap = job_memory(ROOM);
    expected = job_memory(ROOM);
    read_only = mmap(NULL, ROOM, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(read_only != MAP_FAILED);
    job_fill(job.base + OUT, BIGGEST + 16, job.rank);
    register_handlers();
    for (unsigned shift = 0; shift < job.size; shift++)
        one_round(shift);
    job_end();
}
