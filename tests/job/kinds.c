/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets with memory of devices: a random mix with an exact model of every byte. Each rank
 * has host segments and device segments; in each segment, each thread of each rank (a writer) has a
 * part that only it writes, so it knows all bytes of it. Within a batch, operations use blocks of
 * their own. At the end the owners read their memory through the driver and publish checksums.
 *
 * Usage: kinds [batches [threads]]
 * KINDS_SEED     of the mix
 * KINDS_CLASS    cuda, hip or ze, or two of them, as "hip,ze": the devices' vendors
 * KINDS_PUTS     no gets, which push earlier writes of an HCA to a device as a flush does
 * KINDS_KILL     rank 1 dies in this batch
 * KINDS_FREED    rank 1 frees memory under a segment */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gasnet_mk.h"
#include "gasnet_vis.h"
#include "kinds_devices.h"

enum {
    DEVICE = 1, /* endpoints: memory of the library on the first device, */
    GIVEN,      /* memory of the client on the last one, */
    HOST,       /* and another host segment */
    ENDPOINTS,
    PLAIN = ENDPOINTS, /* local ends alone: memory in no segment */
    PLACES,
    OPS = 6,            /* of a batch */
    BLOCK = 100 * 1000, /* more than ten pieces of the least size */
    BLOCKS = 2 * OPS,   /* one for the remote end and one for the local end of each */
    PART = BLOCK * BLOCKS,
    SHIFT = 40, /* offset of the client's segment in its allocation */
    GUARD = 64
};

/* ---- memory ---- */

static gex_EP_t eps[ENDPOINTS];
static gex_Segment_t segments[ENDPOINTS];
static gex_MK_t kinds[2];
static struct kinds_device devices[2]; /* of DEVICE and GIVEN */
static int threads = 1, batches = 30;
static bool has_gets;
static gex_Rank_t writers;
static __thread gex_Rank_t me;        /* of all writers */
static char *bases[PLACES];           /* ours */
static char **theirs[ENDPOINTS];      /* by rank */
static __thread char **model[PLACES]; /* of our parts, by rank; PLAIN: only of this rank */
static size_t segment_size;
static __thread uint64_t state;

static bool is_device(int place)
{
    return place == DEVICE || place == GIVEN;
}

static const struct kinds_device *device_of(int place)
{
    return &devices[place - DEVICE];
}

/* KINDS_CLASS: the vendor, or one for each of the two devices */
static void open_devices(void)
{
    const char *first = getenv("KINDS_CLASS") ? getenv("KINDS_CLASS") : "cuda";
    const char *comma = strchr(first, ','), *second = comma ? comma + 1 : first;
    size_t length = comma ? (size_t)(comma - first) : strlen(first);
    devices[0].vendor = kinds_vendor(first, length);
    devices[1].vendor = kinds_vendor(second, strlen(second));
    for (int i = 0; i < 2; i++)
        devices[i].vendor->open(&devices[i], i == 1);
}

static void write_ours(int place, char *at, const void *from, size_t size)
{
    if (is_device(place))
        device_of(place)->vendor->write(device_of(place), at, from, size);
    else
        memcpy(at, from, size);
}

static void read_ours(int place, void *to, const char *at, size_t size)
{
    if (is_device(place))
        device_of(place)->vendor->read(device_of(place), to, at, size);
    else
        memcpy(to, at, size);
}

static void make_kinds(void)
{
    for (int i = 0; i < 2; i++) {
        gex_MK_Create_args_t args = {.gex_flags = 0};
        devices[i].vendor->describe(&devices[i], &args);
        CHECK(gex_MK_Create(&kinds[i], job.client, &args, 0) == GASNET_OK);
    }
}

static char *client_memory(void)
{
    return devices[1].vendor->alloc(&devices[1], segment_size + 2 * SHIFT) + SHIFT;
}

static void make_segments(void)
{
    eps[0] = job.ep;
    segments[0] = job.segment;
    CHECK(gex_Segment_Create(&segments[DEVICE], job.client, NULL, segment_size, kinds[0], 0) ==
          GASNET_OK);
    CHECK(gex_Segment_Create(&segments[GIVEN], job.client, client_memory(), segment_size, kinds[1],
                             0) == GASNET_OK);
    CHECK(gex_Segment_Create(&segments[HOST], job.client, NULL, segment_size, GEX_MK_HOST, 0) ==
          GASNET_OK);
    for (int e = DEVICE; e < ENDPOINTS; e++) {
        CHECK(gex_EP_Create(&eps[e], job.client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
        CHECK(gex_EP_BindSegment(eps[e], segments[e], 0) == GASNET_OK);
        bases[e] = gex_Segment_QueryAddr(segments[e]);
    }
    bases[0] = job.base;
    bases[PLAIN] = job_memory((size_t)threads * PART);
    CHECK(gex_EP_PublishBoundSegment(job.tm, &eps[1], ENDPOINTS - 1, 0) == GASNET_OK);
}

static void find_others(void)
{
    for (int e = 0; e < ENDPOINTS; e++) {
        theirs[e] = job_memory(job.size * sizeof(char *));
        for (gex_Rank_t r = 0; r < job.size; r++) {
            void *owner = NULL, *local = NULL;
            uintptr_t size = 0;
            gex_Event_Wait(gex_EP_QueryBoundSegmentNB(gex_TM_Pair(job.ep, (gex_EP_Index_t)e), r,
                                                      &owner, &local, &size, 0));
            CHECK(size >= segment_size && (!is_device(e) || local == NULL));
            theirs[e][r] = owner;
        }
    }
}

/* Our part of a rank's memory at a place; it is initialized with a pattern. */
static void make_model(void)
{
    for (int place = 0; place < PLACES; place++) {
        gex_Rank_t ranks = place == PLAIN ? 1 : job.size;
        model[place] = job_memory(ranks * sizeof(char *));
        for (gex_Rank_t r = 0; r < ranks; r++) {
            model[place][r] = job_memory(PART);
            gex_Rank_t owner = place == PLAIN ? job.rank : r;
            job_fill(model[place][r], PART, job_mix(job_mix(owner, me), (uint64_t)place));
        }
    }
}

static size_t part_of(int place, gex_Rank_t writer)
{
    return (size_t)(place == PLAIN ? writer % (gex_Rank_t)threads : writer) * PART;
}

static char *model_of(int place, gex_Rank_t owner)
{
    return model[place][place == PLAIN ? 0 : owner];
}

static void fill_ours(void)
{
    char *pattern = job_memory(PART);
    for (int place = 0; place < PLACES; place++)
        for (gex_Rank_t w = 0; w < writers; w++) {
            if (place == PLAIN && w / (gex_Rank_t)threads != job.rank)
                continue;
            job_fill(pattern, PART, job_mix(job_mix(job.rank, w), (uint64_t)place));
            write_ours(place, bases[place] + part_of(place, w), pattern, PART);
        }
    free(pattern);
    job_barrier();
}

/* ---- operations ---- */

enum { NB, NBI, BLOCKING, VALUE, PIECEWISE, FORMS };
enum { PIECES = 2000 };

struct op {
    gex_Rank_t rank;
    int here, there;              /* places */
    size_t local, remote, nbytes; /* offsets in our parts */
    bool is_put;
    int form;
    gex_Event_t event, leaf;
    bool has_leaf;
};

static size_t random_below(size_t limit)
{
    return (size_t)(job_random(&state) % limit);
}

static size_t random_size(int form)
{
    static const size_t ends[] = {8, 64, 200, 4032, 4100, 20000, BLOCK - GUARD};
    if (form == VALUE)
        return 1 + random_below(8);
    size_t end = ends[random_below(sizeof(ends) / sizeof(ends[0]))];
    return random_below(4) == 0 ? end : random_below(end + 1);
}

/* The order of operations within a batch does not matter: each has two blocks of its own. */
static struct op random_op(size_t number)
{
    struct op op = {.rank = (gex_Rank_t)random_below(job.size),
                    .is_put = !has_gets || random_below(2),
                    .form = (int)random_below(FORMS)};
    do {
        op.here = (int)random_below(PLACES);
        op.there = (int)random_below(ENDPOINTS);
    } while (!is_device(op.here) && !is_device(op.there));
    if (op.form == VALUE)
        op.here = PLAIN;
    if (op.form == VALUE && !is_device(op.there))
        op.there = DEVICE;
    op.nbytes = random_size(op.form);
    op.remote = 2 * number * BLOCK + random_below(GUARD);
    op.local = (2 * number + 1) * BLOCK + random_below(GUARD);
    return op;
}

static gex_TM_t pair_of(const struct op *op)
{
    return gex_TM_Pair(op->here == PLAIN ? job.ep : eps[op->here], (gex_EP_Index_t)op->there);
}

static char *here_at(const struct op *op)
{
    return bases[op->here] + part_of(op->here, me) + op->local;
}

static char *there_at(const struct op *op)
{
    return theirs[op->there][op->rank] + part_of(op->there, me) + op->remote;
}

static char *here_model(const struct op *op)
{
    return model_of(op->here, job.rank) + op->local;
}

static char *there_model(const struct op *op)
{
    return model_of(op->there, op->rank) + op->remote;
}

static void move_model(const struct op *op)
{
    if (op->is_put)
        memcpy(there_model(op), here_model(op), op->nbytes);
    else
        memcpy(here_model(op), there_model(op), op->nbytes);
}

/* Pieces of one length: rows of some planes, or lists, in which the distances change or the local
 * side descends. */
struct pieces {
    size_t length, count;
    size_t counts[2];
    ptrdiff_t there[2], here[2]; /* strides */
    void *to[PIECES], *from[PIECES];
    ptrdiff_t at_there[PIECES], at_here[PIECES]; /* in the block */
};

static ptrdiff_t random_stride(size_t least)
{
    return (ptrdiff_t)(least + random_below(2) * random_below(least / 2 + 1));
}

/* Everything lies in a block: a stride is at most one and a half times the data that it skips. */
static void random_box(struct pieces *p)
{
    static const size_t lengths[] = {1, 8, 64, 300, 5000};
    size_t planes = 1 + random_below(2) * random_below(4);
    p->length = 1 + random_below(lengths[random_below(5)]);
    size_t most = (BLOCK - GUARD) * 4 / 9 / p->length / planes;
    p->counts[0] = 1 + random_below(most < PIECES / planes ? most : PIECES / planes);
    p->counts[1] = planes;
    p->there[0] = random_stride(p->length);
    p->here[0] = random_stride(p->length);
    p->there[1] = random_stride(p->counts[0] * (size_t)p->there[0]);
    p->here[1] = random_stride(p->counts[0] * (size_t)p->here[0]);
    p->count = p->counts[0] * planes;
    for (size_t i = 0; i < p->count; i++) {
        ptrdiff_t row = (ptrdiff_t)(i % p->counts[0]), plane = (ptrdiff_t)(i / p->counts[0]);
        p->at_there[i] = row * p->there[0] + plane * p->there[1];
        p->at_here[i] = row * p->here[0] + plane * p->here[1];
    }
}

/* The same places as for a box, except for a part that is moved or descends here. */
static void random_lists(struct pieces *p)
{
    random_box(p);
    size_t from = random_below(p->count), to = from + random_below(p->count - from);
    for (; from < to; from++, to--) {
        ptrdiff_t at = p->at_here[from];
        p->at_here[from] = p->at_here[to];
        p->at_here[to] = at;
    }
}

static gex_Event_t indexed(struct op *op, struct pieces *p, bool is_nb)
{
    gex_TM_t tm = pair_of(op);
    for (size_t i = 0; i < p->count; i++) {
        p->to[i] = (op->is_put ? there_at(op) + p->at_there[i] : here_at(op) + p->at_here[i]);
        p->from[i] = (op->is_put ? here_at(op) + p->at_here[i] : there_at(op) + p->at_there[i]);
    }
    if (op->is_put)
        return gex_VIS_IndexedPutNB(tm, op->rank, p->count, p->to, p->length, p->count, p->from,
                                    p->length, GEX_FLAG_ENABLE_LEAF_LC);
    if (is_nb)
        return gex_VIS_IndexedGetNB(tm, p->count, p->to, p->length, op->rank, p->count, p->from,
                                    p->length, 0);
    CHECK(gex_VIS_IndexedGetBlocking(tm, p->count, p->to, p->length, op->rank, p->count, p->from,
                                     p->length, 0) == 0);
    return GEX_EVENT_INVALID;
}

static gex_Event_t strided(struct op *op, struct pieces *p, int form)
{
    gex_TM_t tm = pair_of(op);
    char *there = there_at(op), *here = here_at(op);
    if (form == 0)
        return op->is_put ? gex_VIS_StridedPutNB(tm, op->rank, there, p->there, here, p->here,
                                                 p->length, p->counts, 2, GEX_FLAG_ENABLE_LEAF_LC)
                          : gex_VIS_StridedGetNB(tm, here, p->here, op->rank, there, p->there,
                                                 p->length, p->counts, 2, 0);
    int status;
    if (op->is_put)
        status = (form == 1 ? gex_VIS_StridedPutNBI : gex_VIS_StridedPutBlocking)(
            tm, op->rank, there, p->there, here, p->here, p->length, p->counts, 2, 0);
    else
        status = (form == 1 ? gex_VIS_StridedGetNBI : gex_VIS_StridedGetBlocking)(
            tm, here, p->here, op->rank, there, p->there, p->length, p->counts, 2, 0);
    CHECK(status == 0);
    return GEX_EVENT_INVALID;
}

/* The source may be reused: data written now must not arrive. */
static void spoil(const struct op *op)
{
    char *bytes = job_memory(op->nbytes + 1);
    job_fill(bytes, op->nbytes, job_random(&state));
    write_ours(op->here, here_at(op), bytes, op->nbytes);
    memcpy(here_model(op), bytes, op->nbytes);
    free(bytes);
}

/* A source may be reused when the leaf event is done, and after a blocking put. */
static void non_contiguous(struct op *op)
{
    static __thread struct pieces p;
    int form = (int)random_below(3);
    bool is_list = random_below(3) == 0;
    if (is_list)
        random_lists(&p);
    else
        random_box(&p);
    for (size_t i = 0; i < p.count; i++) {
        char *a = there_model(op) + p.at_there[i], *b = here_model(op) + p.at_here[i];
        memcpy(op->is_put ? a : b, op->is_put ? b : a, p.length);
    }
    op->event = is_list ? indexed(op, &p, form == 0) : strided(op, &p, form);
    op->nbytes = p.length * p.count; /* not all of it, if there are gaps */
    if (op->is_put && (is_list || form == 0)) {
        op->leaf = gex_Event_QueryLeaf(op->event, GEX_EC_LC);
        op->has_leaf = true;
    } else if (op->is_put && form == 2) {
        spoil(op);
    }
    if (is_list) { /* the lists are used again */
        gex_Event_Wait(op->event);
        op->event = op->leaf = GEX_EVENT_INVALID;
    }
}

/* A value has no address, so any local endpoint can send it, whether bound to device memory or
 * not. */
static void value(struct op *op)
{
    gex_RMA_Value_t v = 0;
    gex_EP_t ours = random_below(2) ? job.ep : eps[random_below(ENDPOINTS)];
    gex_TM_t tm = gex_TM_Pair(ours, (gex_EP_Index_t)op->there);
    if (op->is_put) {
        memcpy(&v, here_model(op), op->nbytes);
        switch (random_below(3)) {
        case 0:
            CHECK(gex_RMA_PutBlockingVal(tm, op->rank, there_at(op), v, op->nbytes, 0) == 0);
            break;
        case 1:
            op->event = gex_RMA_PutNBVal(tm, op->rank, there_at(op), v, op->nbytes, 0);
            break;
        default:
            CHECK(gex_RMA_PutNBIVal(tm, op->rank, there_at(op), v, op->nbytes, 0) == 0);
        }
    } else {
        v = gex_RMA_GetBlockingVal(tm, op->rank, there_at(op), op->nbytes, 0);
        memcpy(here_at(op), &v, op->nbytes);
    }
    move_model(op);
}

static void put(struct op *op, gex_Flags_t flags)
{
    gex_TM_t tm = pair_of(op);
    char *to = there_at(op), *from = here_at(op);
    int lc = (int)random_below(3), refused = 1;
    move_model(op);
    while (refused) {
        if (op->form == NB) {
            op->has_leaf = lc == 2;
            op->event = gex_RMA_PutNB(tm, op->rank, to, from, op->nbytes,
                                      lc == 0   ? GEX_EVENT_NOW
                                      : lc == 1 ? GEX_EVENT_DEFER
                                                : &op->leaf,
                                      flags);
            refused = op->event == GEX_EVENT_NO_OP;
        } else if (op->form == NBI)
            refused = gex_RMA_PutNBI(tm, op->rank, to, from, op->nbytes,
                                     lc == 0   ? GEX_EVENT_NOW
                                     : lc == 1 ? GEX_EVENT_DEFER
                                               : GEX_EVENT_GROUP,
                                     flags);
        else
            refused = gex_RMA_PutBlocking(tm, op->rank, to, from, op->nbytes, flags);
        if (refused)
            gasnet_AMPoll();
    }
    if (op->form == BLOCKING || lc == 0)
        spoil(op);
}

static void get(struct op *op, gex_Flags_t flags)
{
    gex_TM_t tm = pair_of(op);
    char *to = here_at(op), *from = there_at(op);
    int refused = 1;
    move_model(op);
    while (refused) {
        if (op->form == NB) {
            op->event = gex_RMA_GetNB(tm, to, op->rank, from, op->nbytes, flags);
            refused = op->event == GEX_EVENT_NO_OP;
        } else if (op->form == NBI)
            refused = gex_RMA_GetNBI(tm, to, op->rank, from, op->nbytes, flags);
        else
            refused = gex_RMA_GetBlocking(tm, to, op->rank, from, op->nbytes, flags);
        if (refused)
            gasnet_AMPoll();
    }
}

static void start(struct op *op)
{
    gex_Flags_t flags = random_below(4) ? 0 : GEX_FLAG_IMMEDIATE;
    op->event = op->leaf = GEX_EVENT_INVALID;
    op->has_leaf = false;
    if (op->form == VALUE)
        value(op);
    else if (op->form == PIECEWISE)
        non_contiguous(op);
    else if (op->is_put)
        put(op, flags);
    else
        get(op, flags);
}

static void check_here(const struct op *op)
{
    static __thread char bytes[BLOCK];
    size_t from = op->local - (op->local % BLOCK);
    read_ours(op->here, bytes, bases[op->here] + part_of(op->here, me) + from, BLOCK);
    CHECK(memcmp(bytes, model_of(op->here, job.rank) + from, BLOCK) == 0,
          "local block: %s %zu bytes, place %d at %zu, place %d of rank %u at %zu, form %d",
          op->is_put ? "put" : "get", op->nbytes, op->here, op->local, op->there, op->rank,
          op->remote, op->form);
}

/* Reads through the driver if the memory is local, else by a get to host memory. */
static void check_there(const struct op *op)
{
    static __thread char bytes[BLOCK];
    size_t from = op->remote - (op->remote % BLOCK);
    char *at = theirs[op->there][op->rank] + part_of(op->there, me) + from;
    if (op->rank == job.rank)
        read_ours(op->there, bytes, at, BLOCK);
    else
        CHECK(gex_RMA_GetBlocking(gex_TM_Pair(job.ep, (gex_EP_Index_t)op->there), bytes, op->rank,
                                  at, BLOCK, 0) == 0);
    CHECK(memcmp(bytes, model_of(op->there, op->rank) + from, BLOCK) == 0,
          "remote block: %s %zu bytes, place %d at %zu, place %d of rank %u at %zu, form %d",
          op->is_put ? "put" : "get", op->nbytes, op->here, op->local, op->there, op->rank,
          op->remote, op->form);
}

static void batch(int number)
{
    struct op ops[OPS];
    uintptr_t current[2];
    if (me % (gex_Rank_t)threads == 0)
        job_phase("batch %d", number);
    for (int i = 0; i < 2; i++)
        current[i] = devices[i].vendor->current();
    for (size_t i = 0; i < OPS; i++) {
        ops[i] = random_op(i);
        start(&ops[i]);
    }
    for (size_t i = 0; i < OPS; i++) {
        if (ops[i].has_leaf) {
            gex_Event_Wait(ops[i].leaf);
            spoil(&ops[i]);
        }
        gex_Event_Wait(ops[i].event);
    }
    gex_NBI_Wait(GEX_EC_ALL, 0);
    for (int i = 0; i < 2; i++)
        CHECK(devices[i].vendor->current() == current[i], "the current context was changed");
    for (size_t i = 0; i < OPS; i++) {
        check_here(&ops[i]);
        if (random_below(2) && (has_gets || ops[i].rank == job.rank))
            check_there(&ops[i]);
    }
}

/* ---- peer completion: the rows are in the memory of the target before its handler runs ---- */

enum { NOTE_ROWS = 1000, NOTE_ROW = 64, NOTE_PITCH = 96, NOTE_INDEX = 200 };
struct note {
    int place;
    const char *at;
    uint64_t seed;
};
static unsigned notes;

static void on_note(gex_Token_t token, void *payload, size_t nbytes)
{
    struct note note;
    char *rows = job_memory((size_t)NOTE_ROWS * NOTE_PITCH),
         *pattern = job_memory(NOTE_ROWS * NOTE_ROW);
    (void)token;
    CHECK(nbytes == sizeof(note));
    memcpy(&note, payload, nbytes);
    read_ours(note.place, rows, note.at, (size_t)NOTE_ROWS * NOTE_PITCH);
    job_fill(pattern, NOTE_ROWS * NOTE_ROW, note.seed);
    for (size_t i = 0; i < NOTE_ROWS; i++)
        CHECK(memcmp(rows + i * NOTE_PITCH, pattern + i * NOTE_ROW, NOTE_ROW) == 0,
              "row %zu is not in place %d when the handler runs", i, note.place);
    free(rows);
    free(pattern);
    __atomic_add_fetch(&notes, 1, __ATOMIC_RELEASE);
}

/* Puts packed rows into the first blocks of the first writer's parts. */
static void put_with_note(int from, int to)
{
    struct op op = {.rank = (job.rank + 1) % job.size,
                    .here = from,
                    .there = to,
                    .local = BLOCK,
                    .is_put = true};
    const ptrdiff_t there = NOTE_PITCH, here = NOTE_ROW;
    const size_t count = NOTE_ROWS;
    const struct note note = {to, there_at(&op), job_mix(me, (uint64_t)(from * PLACES + to))};
    job_fill(here_model(&op), NOTE_ROWS * NOTE_ROW, note.seed);
    write_ours(from, here_at(&op), here_model(&op), NOTE_ROWS * NOTE_ROW);
    for (size_t i = 0; i < NOTE_ROWS; i++)
        memcpy(there_model(&op) + i * NOTE_PITCH, here_model(&op) + i * NOTE_ROW, NOTE_ROW);
    gex_VIS_SetPeerCompletionHandler(NOTE_INDEX, &note, sizeof(note), 0);
    gex_Event_Wait(gex_VIS_StridedPutNB(pair_of(&op), op.rank, there_at(&op), &there, here_at(&op),
                                        &here, NOTE_ROW, &count, 1, 0));
    check_there(&op);
}

/* Gets the same rows back into another block; each row is so small that an HCA may deliver it by
 * the CPU. */
static void get_back(int from, int to)
{
    struct op op = {
        .rank = (job.rank + 1) % job.size, .here = from, .there = to, .local = 2 * BLOCK};
    const ptrdiff_t stride = NOTE_PITCH;
    const size_t count = NOTE_ROWS;
    for (size_t i = 0; i < NOTE_ROWS; i++)
        memcpy(here_model(&op) + i * NOTE_PITCH, there_model(&op) + i * NOTE_PITCH, NOTE_ROW);
    CHECK(gex_VIS_StridedGetBlocking(pair_of(&op), here_at(&op), &stride, op.rank, there_at(&op),
                                     &stride, NOTE_ROW, &count, 1, 0) == 0);
    check_here(&op);
}

static void tell_targets(void)
{
    unsigned told = 0;
    job_phase("telling targets");
    for (int from = 0; from < PLACES; from++)
        for (int to = DEVICE; to <= GIVEN; to++) {
            put_with_note(from, to);
            get_back(from, to);
            told++;
            GASNET_BLOCKUNTIL(job_seen(&notes) == told);
            job_barrier();
        }
}

/* ---- memory that one rank frees under its segment: all learn of it ---- */

static void freed(void)
{
    gex_TM_t team;
    job_phase("publishing freed memory");
    gex_TM_Split(&team, job.tm, 0, (int)job.rank, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    if (job.rank == 1)
        devices[1].vendor->free(&devices[1], bases[GIVEN] - SHIFT);
    job_barrier();
    CHECK(gex_EP_PublishBoundSegment(job.tm, &eps[1], ENDPOINTS - 1, 0) == GASNET_ERR_RESOURCE);
    CHECK(gex_EP_PublishBoundSegment(team, &eps[1], ENDPOINTS - 1, 0) == GASNET_ERR_RESOURCE);
    CHECK(gex_EP_PublishBoundSegment(team, &eps[HOST], 1, 0) == GASNET_OK);
    job_end();
}

/* ---- the end: what owners find in their memory ---- */

static uint64_t sum(const char *bytes)
{
    uint64_t s = 0, word;
    for (size_t i = 0; i + sizeof(word) <= PART; i += sizeof(word)) {
        memcpy(&word, bytes + i, sizeof(word));
        s = job_mix(s, word);
    }
    return s;
}

/* After all parts in the segment of endpoint 0: one for each place and writer. */
static size_t sum_at(int place, gex_Rank_t writer)
{
    return segment_size + ((size_t)place * writers + writer) * sizeof(uint64_t);
}

static void tell_sums(void)
{
    char *bytes = job_memory(PART);
    job_phase("comparing sums");
    job_barrier();
    for (int e = 0; e < ENDPOINTS; e++)
        for (gex_Rank_t w = 0; w < writers; w++) {
            read_ours(e, bytes, bases[e] + part_of(e, w), PART);
            const uint64_t s = sum(bytes);
            memcpy(job.base + sum_at(e, w), &s, sizeof(s));
        }
    job_barrier();
    free(bytes);
}

static void compare_sums(void)
{
    for (int e = 0; e < ENDPOINTS; e++)
        for (gex_Rank_t r = 0; r < job.size; r++) {
            uint64_t s = 0;
            CHECK(gex_RMA_GetBlocking(job.tm, &s, r, job_remote(r, sum_at(e, me)), sizeof(s), 0) ==
                  0);
            CHECK(s == sum(model[e][r]), "place %d of rank %u differs from the model", e, r);
        }
}

/* Only the first thread enters the job's barriers, and polls there; the other threads wait for
 * it. */
static pthread_barrier_t between;

static void *run_writer(void *arg)
{
    me = job.rank * (gex_Rank_t)threads + (gex_Rank_t)(uintptr_t)arg;
    state = job_mix((uint64_t)job_number("KINDS_SEED", 1), me);
    make_model();
    if (!arg)
        tell_targets();
    for (int i = 0; i < batches; i++) {
        if (i == job_number("KINDS_KILL", -1) && job.rank == 1)
            raise(SIGKILL); /* while others use its slots, and it theirs */
        batch(i);
    }
    pthread_barrier_wait(&between);
    if (!arg)
        tell_sums();
    pthread_barrier_wait(&between);
    compare_sums();
    return NULL;
}

static void run_writers(void)
{
    pthread_t others[16];
    CHECK(threads >= 1 && threads <= 16);
    pthread_barrier_init(&between, NULL, (unsigned)threads);
    for (uintptr_t t = 1; t < (uintptr_t)threads; t++)
        CHECK(pthread_create(&others[t], NULL, run_writer, (void *)t) == 0);
    run_writer(NULL);
    for (int t = 1; t < threads; t++)
        pthread_join(others[t], NULL);
    job_barrier();
}

/* The library has released the devices. */
static void release_devices(void)
{
    for (int i = 0; i < 2; i++)
        devices[i].vendor->close(&devices[i]);
    for (int i = 0; i < 2; i++)
        devices[i].vendor->check_idle();
}

static void destroy(void)
{
    job_phase("destroying");
    gex_MK_Destroy(kinds[0], 0);
    for (int e = DEVICE; e < ENDPOINTS; e++)
        gex_Segment_Destroy(segments[e], 0);
    gex_MK_Destroy(kinds[1], 0);
    release_devices();
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 0);
    batches = argc > 1 ? atoi(argv[1]) : batches;
    threads = argc > 2 ? atoi(argv[2]) : threads;
    has_gets = !job_number("KINDS_PUTS", 0);
    writers = job.size * (gex_Rank_t)threads;
    segment_size = (size_t)writers * PART;
    size_t sums = ENDPOINTS * writers * sizeof(uint64_t);
    job_attach((segment_size + sums + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE);
    gex_AM_Entry_t handler = {
        NOTE_INDEX, (gex_AM_Fn_t)on_note, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "note"};
    CHECK(gex_EP_RegisterHandlers(job.ep, &handler, 1) == GASNET_OK);
    open_devices();
    make_kinds();
    make_segments();
    find_others();
    fill_ours();
    if (getenv("KINDS_FREED"))
        freed();
    run_writers();
    destroy();
    job_end();
}
