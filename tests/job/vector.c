/* SPDX-License-Identifier: BSD-3-Clause */
/* Vector, indexed and strided puts and gets against plain loops: random shapes, every way to
 * complete, many at once, 1e5 and 1e6 pieces, completion at the peer. Rank r transfers to and from
 * rank r + shift, so each segment has one writer, and each thread has a slot of its own there. The
 * first thread owns `job`.
 *
 * Usage: vector TRANSFERS [SEED]; vector strided, vector block: 100 puts and gets of 100 pieces by
 * rank 0, by which the script sees which path they take */
#include "config.h"

#include "vector.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, AT_ONCE = 40, PIECE = 8, NOTE = 100 };
enum { FLAG_ROOM = 4096, SLOT = vector_area + 4096, LOCAL = FLAG_ROOM + THREADS * SLOT };
enum { SEGMENT = LOCAL + THREADS * SLOT, LARGE = 32 << 20 };
enum mode { BLOCKING, NB, NB_LEAF, NBI, NBI_LEAF, REGION, MODES };

static gex_Rank_t peer;
static gex_AM_Index_t note_index;
static volatile unsigned notes;

/* What a thread works with. */
struct worker {
    unsigned number;
    uint64_t random;
    long transfers;
    char *local, *model, *seen; /* of vector_area bytes */
    struct vector_shape shape;
};

/* ---- calls ---- */

static gex_Event_t put_nb(struct vector_shape *s, char *to, char *from, gex_Flags_t flags)
{
    if (s->form == VECTOR)
        return gex_VIS_VectorPutNB(job.tm, peer, s->to_count, s->to, s->from_count, s->from, flags);
    if (s->form == INDEXED)
        return gex_VIS_IndexedPutNB(job.tm, peer, s->to_count, s->to_list, s->to_length,
                                    s->from_count, s->from_list, s->from_length, flags);
    return gex_VIS_StridedPutNB(job.tm, peer, to + s->to_base, s->to_strides, from + s->from_base,
                                s->from_strides, s->size, s->counts, s->levels, flags);
}

static int put_nbi(struct vector_shape *s, char *to, char *from, gex_Flags_t flags)
{
    if (s->form == VECTOR)
        return gex_VIS_VectorPutNBI(job.tm, peer, s->to_count, s->to, s->from_count, s->from,
                                    flags);
    if (s->form == INDEXED)
        return gex_VIS_IndexedPutNBI(job.tm, peer, s->to_count, s->to_list, s->to_length,
                                     s->from_count, s->from_list, s->from_length, flags);
    return gex_VIS_StridedPutNBI(job.tm, peer, to + s->to_base, s->to_strides, from + s->from_base,
                                 s->from_strides, s->size, s->counts, s->levels, flags);
}

static int put_blocking(struct vector_shape *s, char *to, char *from, gex_Flags_t flags)
{
    if (s->form == VECTOR)
        return gex_VIS_VectorPutBlocking(job.tm, peer, s->to_count, s->to, s->from_count, s->from,
                                         flags);
    if (s->form == INDEXED)
        return gex_VIS_IndexedPutBlocking(job.tm, peer, s->to_count, s->to_list, s->to_length,
                                          s->from_count, s->from_list, s->from_length, flags);
    return gex_VIS_StridedPutBlocking(job.tm, peer, to + s->to_base, s->to_strides,
                                      from + s->from_base, s->from_strides, s->size, s->counts,
                                      s->levels, flags);
}

static gex_Event_t get_nb(struct vector_shape *s, char *to, char *from, gex_Flags_t flags)
{
    if (s->form == VECTOR)
        return gex_VIS_VectorGetNB(job.tm, s->to_count, s->to, peer, s->from_count, s->from, flags);
    if (s->form == INDEXED)
        return gex_VIS_IndexedGetNB(job.tm, s->to_count, s->to_list, s->to_length, peer,
                                    s->from_count, s->from_list, s->from_length, flags);
    return gex_VIS_StridedGetNB(job.tm, to + s->to_base, s->to_strides, peer, from + s->from_base,
                                s->from_strides, s->size, s->counts, s->levels, flags);
}

static int get_nbi(struct vector_shape *s, char *to, char *from, gex_Flags_t flags)
{
    if (s->form == VECTOR)
        return gex_VIS_VectorGetNBI(job.tm, s->to_count, s->to, peer, s->from_count, s->from,
                                    flags);
    if (s->form == INDEXED)
        return gex_VIS_IndexedGetNBI(job.tm, s->to_count, s->to_list, s->to_length, peer,
                                     s->from_count, s->from_list, s->from_length, flags);
    return gex_VIS_StridedGetNBI(job.tm, to + s->to_base, s->to_strides, peer, from + s->from_base,
                                 s->from_strides, s->size, s->counts, s->levels, flags);
}

static int get_blocking(struct vector_shape *s, char *to, char *from, gex_Flags_t flags)
{
    if (s->form == VECTOR)
        return gex_VIS_VectorGetBlocking(job.tm, s->to_count, s->to, peer, s->from_count, s->from,
                                         flags);
    if (s->form == INDEXED)
        return gex_VIS_IndexedGetBlocking(job.tm, s->to_count, s->to_list, s->to_length, peer,
                                          s->from_count, s->from_list, s->from_length, flags);
    return gex_VIS_StridedGetBlocking(job.tm, to + s->to_base, s->to_strides, peer,
                                      from + s->from_base, s->from_strides, s->size, s->counts,
                                      s->levels, flags);
}

/* Overwrites the arrays that describe a shape, which is allowed when the call has returned. */
static void forget(struct vector_shape *s)
{
    if (s->form != STRIDED)
        return;
    memset(s->to_strides, 0x55, sizeof s->to_strides);
    memset(s->from_strides, 0x55, sizeof s->from_strides);
    memset(s->counts, 0x55, sizeof s->counts);
}

/* ---- one transfer in each way to complete; the source is overwritten as soon as that is allowed
 * ---- */

static void spoil(char *source)
{
    memset(source, 0xee, vector_area);
}

static void put_with_leaf(struct vector_shape *s, char *to, char *from)
{
    gex_Event_t root = put_nb(s, to, from, GEX_FLAG_ENABLE_LEAF_LC), leaf;

    leaf = gex_Event_QueryLeaf(root, GEX_EC_LC);
    CHECK(root != GEX_EVENT_INVALID || leaf == GEX_EVENT_INVALID);
    gex_Event_Wait(leaf);
    spoil(from);
    forget(s);
    gex_Event_Wait(root);
}

static void put(struct vector_shape *s, char *to, char *from, enum mode mode)
{
    gex_Event_t event;

    switch (mode) {
    case BLOCKING:
        CHECK(put_blocking(s, to, from, 0) == 0);
        break;
    case NB:
        event = put_nb(s, to, from, GEX_FLAG_IMMEDIATE);
        if (event == GEX_EVENT_NO_OP)
            event = put_nb(s, to, from, 0);
        forget(s);
        while (gex_Event_Test(event) != GASNET_OK)
            gasnet_AMPoll();
        break;
    case NB_LEAF:
        put_with_leaf(s, to, from);
        break;
    case NBI:
        CHECK(put_nbi(s, to, from, 0) == 0);
        forget(s);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        break;
    case NBI_LEAF:
        CHECK(put_nbi(s, to, from, GEX_FLAG_ENABLE_LEAF_LC) == 0);
        gex_NBI_Wait(GEX_EC_LC, 0);
        spoil(from);
        gex_NBI_Wait(GEX_EC_PUT, 0);
        break;
    default:
        gex_NBI_BeginAccessRegion(0);
        CHECK(put_nbi(s, to, from, 0) == 0);
        event = gex_NBI_EndAccessRegion(0);
        gex_Event_Wait(event);
    }
    spoil(from);
}

static void get(struct vector_shape *s, char *to, char *from, enum mode mode)
{
    gex_Event_t event;

    switch (mode) {
    case BLOCKING:
        CHECK(get_blocking(s, to, from, 0) == 0);
        break;
    case NB:
    case NB_LEAF:
        event = get_nb(s, to, from, 0);
        forget(s);
        gex_Event_Wait(event);
        break;
    case NBI:
    case NBI_LEAF:
        CHECK(get_nbi(s, to, from, 0) == 0);
        gex_NBI_Wait(GEX_EC_GET, 0);
        break;
    default:
        gex_NBI_BeginAccessRegion(0);
        CHECK(get_nbi(s, to, from, 0) == 0);
        event = gex_NBI_EndAccessRegion(0);
        gex_Event_Wait(event);
    }
}

/* ---- random transfers ---- */

static void check_same(const struct worker *w, const char *seen, uint64_t state, const char *what)
{
    for (size_t i = 0; i < vector_area; i++)
        CHECK(seen[i] == w->model[i], "%s, thread %u, form %d, random state %llu: byte %zu differs",
              what, w->number, (int)w->shape.form, (unsigned long long)state, i);
}

static char *slot_there(const struct worker *w)
{
    return job_remote(peer, FLAG_ROOM + w->number * (size_t)SLOT);
}

static void one_put(struct worker *w)
{
    uint64_t state = w->random;
    char *there = slot_there(w);

    vector_random(&w->shape, &w->random);
    job_fill(w->local, vector_area, job_random(&w->random));
    CHECK(gex_RMA_GetBlocking(job.tm, w->model, peer, there, vector_area, 0) == 0);
    vector_model(&w->shape, w->model, w->local);
    vector_place(&w->shape, there, w->local);
    put(&w->shape, there, w->local, (enum mode)(job_random(&w->random) % MODES));
    CHECK(gex_RMA_GetBlocking(job.tm, w->seen, peer, there, vector_area, 0) == 0);
    check_same(w, w->seen, state, "put");
}

static void one_get(struct worker *w)
{
    uint64_t state = w->random;
    char *there = slot_there(w);

    vector_random(&w->shape, &w->random);
    CHECK(gex_RMA_GetBlocking(job.tm, w->seen, peer, there, vector_area, 0) == 0);
    memcpy(w->model, w->local, vector_area);
    vector_model(&w->shape, w->model, w->seen);
    vector_place(&w->shape, w->local, there);
    get(&w->shape, w->local, there, (enum mode)(job_random(&w->random) % MODES));
    check_same(w, w->local, state, "get");
}

static void *work(void *worker)
{
    struct worker *w = worker;
    char *heap = job_memory(vector_area);

    w->model = job_memory(vector_area);
    w->seen = job_memory(vector_area);
    memset(heap, 1, vector_area);
    for (long i = 0; i < w->transfers; i++) {
        w->local = i % 3 ? heap : job.base + LOCAL + w->number * (size_t)SLOT;
        if (w->number == 0)
            job_phase("transfer %ld, random state %llu", i, (unsigned long long)w->random);
        if (i % 2)
            one_get(w);
        else
            one_put(w);
    }
    free(heap);
    free(w->model);
    free(w->seen);
    return NULL;
}

#ifdef GASNET_PAR
enum { workers = THREADS };
#else
enum { workers = 1 };
#endif

static void random_transfers(long transfers, uint64_t seed)
{
    static struct worker all[THREADS];
    pthread_t id[THREADS];

    for (unsigned i = 0; i < workers; i++)
        all[i] = (struct worker){
            .number = i, .random = job_mix(seed, job.rank * 8 + i), .transfers = transfers};
    for (unsigned i = 1; i < workers; i++)
        CHECK(pthread_create(&id[i], NULL, work, &all[i]) == 0);
    work(&all[0]);
    for (unsigned i = 1; i < workers; i++)
        CHECK(pthread_join(id[i], NULL) == 0);
}

/* ---- many at once: more than any queue holds ---- */

static void many_at_once(void)
{
    const ptrdiff_t there[] = {16}, here[] = {8};
    const size_t count[] = {64};
    gex_Event_t events[AT_ONCE];
    char *from = job_memory(AT_ONCE * 512), *to = job_remote(peer, FLAG_ROOM), *back;

    job_phase("%d puts at once", AT_ONCE);
    back = job_memory(AT_ONCE * 512);
    job_fill(from, AT_ONCE * 512, job.rank);
    for (int i = 0; i < AT_ONCE; i++)
        events[i] = gex_VIS_StridedPutNB(job.tm, peer, to + i * 1024, there, from + i * 512, here,
                                         8, count, 1, 0);
    gex_Event_WaitAll(events, AT_ONCE, 0);
    for (int i = 0; i < AT_ONCE; i++)
        gex_VIS_StridedGetNBI(job.tm, back + i * 512, here, peer, to + i * 1024, there, 8, count, 1,
                              0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    CHECK_PATTERN(back, AT_ONCE * 512, job.rank);
    free(from);
    free(back);
}

/* ---- very many pieces ---- */

static long resident_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;

    CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return pages * (GASNET_PAGESIZE / 1024);
}

/* `count` pieces of 8 bytes, each with 8 others behind it, by lists of addresses; the memory that
 * it takes beyond them, in KiB. */
static long pieces(char *from, char *back, size_t count)
{
    void **there = job_memory(count * sizeof *there), **here = job_memory(count * sizeof *here);
    gex_Event_t event;
    long before;

    for (size_t i = 0; i < count; i++) {
        there[i] = (char *)job_remote(peer, FLAG_ROOM) + i * 2 * PIECE;
        here[i] = from + (count - 1 - i) * PIECE;
    }
    before = resident_kb();
    event = gex_VIS_IndexedPutNB(job.tm, peer, count, there, PIECE, count, here, PIECE, 0);
    gex_Event_Wait(event);
    for (size_t i = 0; i < count; i++)
        here[i] = back + (count - 1 - i) * PIECE;
    event = gex_VIS_IndexedGetNB(job.tm, count, here, PIECE, peer, count, there, PIECE, 0);
    gex_Event_Wait(event);
    before = resident_kb() - before;
    free(there);
    free(here);
    return before;
}

static void very_many(size_t count)
{
    char *from = job_memory(count * PIECE), *back = job_memory(count * PIECE);
    long grown;

    job_phase("%zu pieces", count);
    memset(back, 0, count * PIECE);
    job_fill(from, count * PIECE, count);
    pieces(from, back, count / 10); /* queues and buffers are used for the first time */
    memset(back, 0, count * PIECE);
    grown = pieces(from, back, count);
    CHECK_PATTERN(back, count * PIECE, count);
    /* All in one piece they would be 8 MB for each million, twice that with their addresses. */
    CHECK(count < 1000000 || grown < 4096, "%zu pieces took %ld KiB", count, grown);
    free(from);
    free(back);
}

/* ---- completion at the peer ---- */

static void on_note(gex_Token_t token, void *payload, size_t nbytes)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_ALL);
    CHECK(nbytes == NOTE && !info.gex_is_req);
    CHECK_PATTERN(payload, nbytes, info.gex_srcrank);
    for (int i = 0; i < 64; i++)
        CHECK(job.base[FLAG_ROOM + i * 16] == (char)(info.gex_srcrank + 1),
              "told of data that is not there");
    notes++;
}

static void note_at_the_peer(void)
{
    const ptrdiff_t there[] = {16}, here[] = {0};
    const size_t count[] = {64};
    char note[NOTE], value = (char)(job.rank + 1);

    job_phase("completion at the peer");
    job_fill(note, NOTE, job.rank);
    notes = 0;
    job_barrier();
    gex_VIS_SetPeerCompletionHandler(note_index, note, NOTE, 0);
    gex_VIS_SetPeerCompletionHandler(0, NULL, 0, 0);
    gex_VIS_StridedPutBlocking(job.tm, peer, job_remote(peer, FLAG_ROOM), there, &value, here, 1,
                               count, 1, 0);
    job_barrier();
    CHECK(notes == 0, "told although disarmed");
    job_barrier();
    gex_VIS_SetPeerCompletionHandler(note_index, note, NOTE, 0);
    memset(note, 0, NOTE);
    gex_Event_Wait(gex_VIS_StridedPutNB(job.tm, peer, job_remote(peer, FLAG_ROOM), there, &value,
                                        here, 1, count, 1, 0));
    /* The next one is not armed. */
    gex_VIS_StridedPutBlocking(job.tm, peer, job_remote(peer, FLAG_ROOM), there, &value, here, 1,
                               count, 1, 0);
    GASNET_BLOCKUNTIL(notes == 1);
    job_barrier();
    CHECK(notes == 1);
}

/* An empty put, by form (vector, indexed, strided) and kind of completion. */
static void put_nothing(unsigned form, unsigned kind)
{
    const gex_Memvec_t empty = {job_remote(peer, 0), 0};
    void *const there[] = {job_remote(peer, 0)};
    const ptrdiff_t strides[] = {8};
    const size_t none[] = {0};
    gex_Event_t event = GEX_EVENT_INVALID;

    if (form == 0 && kind == 0)
        gex_VIS_VectorPutBlocking(job.tm, peer, 1, &empty, 0, NULL, 0);
    if (form == 0 && kind == 1)
        event = gex_VIS_VectorPutNB(job.tm, peer, 1, &empty, 0, NULL, GEX_FLAG_ENABLE_LEAF_LC);
    if (form == 0 && kind == 2)
        gex_VIS_VectorPutNBI(job.tm, peer, 1, &empty, 0, NULL, 0);
    if (form == 1 && kind == 0)
        gex_VIS_IndexedPutBlocking(job.tm, peer, 1, there, 0, 0, NULL, 0, 0);
    if (form == 1 && kind == 1)
        event = gex_VIS_IndexedPutNB(job.tm, peer, 1, there, 0, 0, NULL, 0, 0);
    if (form == 1 && kind == 2)
        gex_VIS_IndexedPutNBI(job.tm, peer, 1, there, 0, 0, NULL, 0, 0);
    if (form == 2 && kind == 0)
        gex_VIS_StridedPutBlocking(job.tm, peer, job.base, strides, NULL, strides, 8, none, 1, 0);
    if (form == 2 && kind == 1)
        event = gex_VIS_StridedPutNB(job.tm, peer, there[0], strides, NULL, strides, 8, none, 1, 0);
    if (form == 2 && kind == 2)
        gex_VIS_StridedPutNBI(job.tm, peer, there[0], strides, NULL, strides, 0, none, 1, 0);
    gex_Event_Wait(event);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

/* The handler runs at the target of the empty put, and not with a later one, here to ourselves.
 * Runs after note_at_the_peer(), whose data on_note() checks. */
static void note_of_nothing(void)
{
    const gex_Memvec_t here = {job.base + LOCAL, 8};
    char note[NOTE];

    job_fill(note, NOTE, job.rank);
    for (unsigned i = 0; i < 9; i++) {
        job_phase("completion of an empty put, form %u, kind %u", i / 3, i % 3);
        notes = 0;
        job_barrier();
        gex_VIS_SetPeerCompletionHandler(note_index, note, NOTE, 0);
        put_nothing(i / 3, i % 3);
        gex_VIS_VectorPutBlocking(job.tm, job.rank, 1, &here, 1, &here, 0);
        GASNET_BLOCKUNTIL(notes >= 1);
        job_barrier();
        gasnet_AMPoll();
        job_barrier();
        CHECK(notes == 1, "notes came %d times", (int)notes);
    }
}

/* ---- nothing ---- */

static void nothing(void)
{
    const gex_Memvec_t empty[] = {{NULL, 0}, {NULL, 0}};
    void *const addresses[] = {NULL};
    const ptrdiff_t strides[] = {8};
    const size_t none[] = {0};

    job_phase("nothing");
    CHECK(gex_VIS_VectorPutNB(job.tm, peer, 0, NULL, 2, empty, 0) == GEX_EVENT_INVALID);
    CHECK(gex_VIS_VectorGetNB(job.tm, 2, empty, peer, 0, NULL, 0) == GEX_EVENT_INVALID);
    CHECK(gex_VIS_IndexedPutNB(job.tm, peer, 0, NULL, 8, 1, addresses, 0, 0) == GEX_EVENT_INVALID);
    CHECK(gex_VIS_IndexedGetBlocking(job.tm, 1, addresses, 0, peer, 0, NULL, 9, 0) == 0);
    CHECK(gex_VIS_StridedPutNB(job.tm, peer, NULL, strides, NULL, strides, 8, none, 1, 0) ==
          GEX_EVENT_INVALID);
    CHECK(gex_VIS_StridedGetNBI(job.tm, NULL, NULL, peer, NULL, NULL, 0, NULL, 0, 0) == 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

/* ---- how they travel ---- */

static void travel(int is_block)
{
    const ptrdiff_t spread[] = {64}, close[] = {32};
    const ptrdiff_t *there = is_block ? close : spread;
    const size_t count[] = {100};
    char *local = job.base + LOCAL, *remote;
    gex_Event_t root;

    peer = job.size - 1;
    remote = job_remote(peer, FLAG_ROOM);
    job_phase("100 transfers of 100 pieces");
    for (int i = 0; job.rank == 0 && i < 100; i++) {
        job_fill(local, 6400, (uint64_t)i);
        root = gex_VIS_StridedPutNB(job.tm, peer, remote, there, local, spread, 32, count, 1,
                                    GEX_FLAG_ENABLE_LEAF_LC);
        gex_Event_Wait(gex_Event_QueryLeaf(root, GEX_EC_LC));
        memset(local, 0, 6400);
        gex_Event_Wait(root);
        gex_VIS_StridedGetBlocking(job.tm, local, spread, peer, remote, there, 32, count, 1, 0);
        job_fill(local + 6400, 6400, (uint64_t)i);
        for (int k = 0; k < 100; k++)
            CHECK(!memcmp(local + 64 * k, local + 6400 + 64 * k, 32));
    }
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_note, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "note"}};

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 1) == GASNET_OK);
    note_index = table[0].gex_index;
}

int main(int argc, char **argv)
{
    long transfers = argc > 1 ? atol(argv[1]) : 100;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    size_t count = (size_t)job_number("VECTOR_PIECES", 0);

    job_start(&argc, &argv, SEGMENT + (count ? LARGE : 0));
    register_handlers();
    memset(job.base, 0, job.segment_size);
    job_barrier();
    if (argc > 1 && (!strcmp(argv[1], "strided") || !strcmp(argv[1], "block"))) {
        travel(argv[1][0] == 'b');
        job_end();
    }
    for (gex_Rank_t shift = 0; shift < job.size; shift++) {
        peer = (job.rank + shift) % job.size;
        if (shift > 2 && shift + 1 < job.size)
            continue;
        nothing();
        random_transfers(transfers, job_mix(seed, shift));
        many_at_once();
        note_at_the_peer();
        note_of_nothing();
        if (count && shift == 1)
            very_many(count);
        job_barrier();
    }
    job_end();
}
