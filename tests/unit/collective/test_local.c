/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives in shared memory: ranks in this process run random operations of several teams at a
 * time; results are compared with a loop. Once as threads: with the thread sanitizer this also
 * tests publishing and acquiring. Once in turn, where an idle rank sleeps until it is woken: if all
 * sleep before the end, a wake-up was lost. Owns the memory of the channels, and replaces the
 * transport and mapped segments. */
#include "config.h"

#include <pthread.h>
#include <sched.h>

#include "collective/local_private.h"
#include "settings/settings.h"
#include "topology/topology.h"
#include "unit.h"

enum {
    ranks_max = 12,
    teams_max = 3,
    channels = 4,
    steps_max = 80,
    outstanding_max = 24,
    guard = 16
};

/* ---- what lies below */

static _Alignas(4096) char memory[ranks_max][channels][tk_scratch_channel];
static bool awake[ranks_max];

void *tk_neighbour_scratch(uint32_t neighbour)
{
    return memory[neighbour];
}

static _Thread_local bool in_turn; /* no threads: sleeping counts */

void tk_neighbour_wake(uint32_t rank)
{
    if (in_turn)
        awake[rank] = true;
}

static _Thread_local bool in_segment;
static _Thread_local unsigned not_yet; /* every third query of a segment fails */

bool tk_local_place_of(const void *address, size_t nbytes, struct tk_local_place *place)
{
    (void)nbytes;
    if (in_segment)
        *place = (struct tk_local_place){.address = (uintptr_t)address, .endpoint = 3};
    return in_segment;
}

const char *tk_local_place_map(const struct tk_local_member *member,
                               const struct tk_local_place *place)
{
    (void)member;
    return place->endpoint == 3 && ++not_yet % 3 ? (const char *)(uintptr_t)place->address : NULL;
}

/* Errors of a test with threads end the process here, because cmocka's assertions support one
 * thread only. */
#define NEED(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* ---- scripts */

enum kind { MEET, GATHER, RELEASE, BROADCAST, REDUCE, TO_ALL, kinds };

struct step {
    enum kind kind;
    uint32_t root;
    size_t element, count;
};

struct team {
    uint32_t count, steps;
    uint32_t ranks[ranks_max];
    struct tk_local locals[ranks_max]; /* by member */
    struct step script[steps_max];
    bool started[steps_max][ranks_max]; /* plain: what a barrier must make visible */
};

static struct team teams[teams_max];
static uint32_t team_count;

/* A member's contribution to a step; member 0's is the data of a broadcast. */
static unsigned char byte_of(uint32_t team, uint32_t step, uint32_t member, size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + step * 40503u + member * 9176u + team * 77u;
    return (unsigned char)(x >> 13);
}

static void add_bytes(const void *a, void *b, size_t count, const void *cdata)
{
    const struct step *step = cdata;
    const unsigned char *from = a;
    unsigned char *to = b;
    size_t alignment = tk_min(step->element & -step->element, 16);
    NEED((uintptr_t)a % alignment == 0 && (uintptr_t)b % alignment == 0, "alignment %zu",
         alignment);
    NEED(count > 0 && count <= step->count, "%zu elements", count);
    for (size_t i = 0; i < count * step->element; i++)
        to[i] = (unsigned char)(to[i] + from[i]);
}

/* ---- operations of a rank */

struct flight {
    bool live;
    uint32_t team, me, index;
    struct tk_local_op op;
    size_t nbytes;
    unsigned char *source, *destination; /* with guards; may be the same */
};

static size_t bytes_in(const struct step *step)
{
    return step->kind >= BROADCAST ? step->element * step->count : 0;
}

static unsigned char *make_bytes(size_t nbytes)
{
    unsigned char *bytes = aligned_alloc(64, tk_align_up(nbytes + guard, 64));
    NEED(bytes, "no memory");
    memset(bytes, 0xa5, nbytes + guard);
    return bytes;
}

static void fill_source(struct flight *f, const struct step *step)
{
    uint32_t member = step->kind == BROADCAST ? 0 : f->me;
    for (size_t i = 0; i < f->nbytes; i++)
        f->source[i] = byte_of(f->team, f->index, member, i);
}

static void make_buffers(struct flight *f, const struct step *step, bool in_place)
{
    f->nbytes = bytes_in(step);
    f->source = make_bytes(f->nbytes);
    f->destination = in_place && step->kind != BROADCAST ? f->source : make_bytes(f->nbytes);
    fill_source(f, step);
}

static uint32_t take_tickets(struct tk_local *local, const struct step *step)
{
    uint32_t count = 1;
    if (step->kind == MEET)
        count = tk_local_meet_tickets(local);
    else if (step->kind == TO_ALL)
        count = tk_local_to_all_tickets(local, bytes_in(step));
    return tk_local_take_tickets(local, count);
}

static void start(struct flight *f, uint32_t team, uint32_t me, uint32_t index, bool in_place)
{
    struct team *t = &teams[team];
    struct tk_local *local = &t->locals[me];
    const struct step *step = &t->script[index];
    *f = (struct flight){.live = true, .team = team, .me = me, .index = index};
    make_buffers(f, step, in_place);
    bool has_result = step->kind == TO_ALL || me == step->root;
    const struct tk_local_reduction how = {.destination = has_result ? f->destination : NULL,
                                           .source = f->source,
                                           .element = step->element,
                                           .count = step->count,
                                           .fn = add_bytes,
                                           .cdata = step};
    uint32_t ticket = take_tickets(local, step);
    t->started[index][me] = true;
    if (step->kind == MEET)
        tk_local_meet(&f->op, local, ticket);
    else if (step->kind == GATHER)
        tk_local_gather(&f->op, local, ticket, step->root);
    else if (step->kind == RELEASE)
        tk_local_release(&f->op, local, ticket, step->root);
    else if (step->kind == BROADCAST)
        tk_local_broadcast(&f->op, local, ticket, step->root,
                           me == step->root ? NULL : f->destination,
                           me == step->root ? f->source : NULL, f->nbytes);
    else if (step->kind == REDUCE)
        tk_local_reduce(&f->op, local, ticket, step->root, &how);
    else
        tk_local_reduce_to_all(&f->op, local, ticket, &how);
}

static unsigned char expected(const struct flight *f, size_t i)
{
    const struct team *t = &teams[f->team];
    unsigned char sum = 0;
    if (t->script[f->index].kind == BROADCAST)
        return byte_of(f->team, f->index, 0, i);
    for (uint32_t member = 0; member < t->count; member++)
        sum = (unsigned char)(sum + byte_of(f->team, f->index, member, i));
    return sum;
}

static void check_started(const struct flight *f, const struct step *step)
{
    const struct team *t = &teams[f->team];
    bool all = step->kind == MEET || (step->kind == GATHER && f->me == step->root);
    for (uint32_t member = 0; member < t->count; member++)
        if (all || (step->kind == RELEASE && member == step->root))
            NEED(t->started[f->index][member], "done at %u before %u came", f->me, member);
}

static void check_bytes(const struct flight *f, const struct step *step)
{
    bool is_root = f->me == step->root;
    bool has_result = step->kind == TO_ALL || (step->kind == REDUCE && is_root) ||
                      (step->kind == BROADCAST && !is_root);
    for (size_t i = 0; has_result && i < f->nbytes; i++)
        NEED(f->destination[i] == expected(f, i), "kind %d, %zu bytes, byte %zu, member %u",
             step->kind, f->nbytes, i, f->me);
    for (size_t i = f->nbytes; i < f->nbytes + guard; i++)
        NEED(f->destination[i] == 0xa5 && f->source[i] == 0xa5, "guard of kind %d", step->kind);
}

/* Buffers of a completed operation may be overwritten. */
static void end(struct flight *f)
{
    const struct step *step = &teams[f->team].script[f->index];
    check_started(f, step);
    check_bytes(f, step);
    memset(f->source, 0x77, f->nbytes);
    if (f->destination != f->source)
        free(f->destination);
    free(f->source);
    f->live = false;
}

/* ---- ranks */

struct rank {
    struct unit_random dice;
    uint32_t next[teams_max]; /* step */
    uint32_t outstanding[teams_max];
    struct flight flights[teams_max * outstanding_max];
};

static struct rank ranks[ranks_max];

static uint32_t member_of(uint32_t team, uint32_t rank)
{
    for (uint32_t i = 0; i < teams[team].count; i++)
        if (teams[team].ranks[i] == rank)
            return i;
    return UINT32_MAX;
}

static bool may_start(const struct rank *r, uint32_t rank, uint32_t team)
{
    return team < team_count && member_of(team, rank) != UINT32_MAX &&
           r->next[team] < teams[team].steps && r->outstanding[team] < outstanding_max;
}

static void start_next(struct rank *r, uint32_t rank, uint32_t team)
{
    struct flight *f = r->flights;
    while (f->live)
        f++;
    in_segment = unit_below(&r->dice, 2);
    start(f, team, member_of(team, rank), r->next[team]++, unit_below(&r->dice, 2));
    r->outstanding[team]++;
}

/* Steps one operation; did it do anything? */
static bool step_one(struct rank *r, struct flight *f)
{
    if (!f->live || !tk_local_is_due(&f->op))
        return false;
    in_segment = unit_below(&r->dice, 2);
    if (tk_local_step(&f->op)) {
        r->outstanding[f->team]--;
        end(f);
    }
    return true;
}

static bool turn(uint32_t rank)
{
    struct rank *r = &ranks[rank];
    enum { places = teams_max * outstanding_max };
    uint32_t first = unit_below(&r->dice, places), team = unit_below(&r->dice, teams_max);
    bool any = false;
    for (uint32_t t = 0; t < teams_max && !any; t++, team = (team + 1) % teams_max)
        if (unit_below(&r->dice, 3) && may_start(r, rank, team)) {
            start_next(r, rank, team);
            any = true;
        }
    for (uint32_t i = 0; i < places; i++)
        any |= step_one(r, &r->flights[(first + i) % places]);
    for (uint32_t t = 0; t < teams_max; t++)
        any |= may_start(r, rank, t);
    return any;
}

static bool is_over(uint32_t rank)
{
    const struct rank *r = &ranks[rank];
    for (uint32_t t = 0; t < team_count; t++)
        if (member_of(t, rank) != UINT32_MAX &&
            (r->next[t] < teams[t].steps || r->outstanding[t] > 0))
            return false;
    return true;
}

/* ---- random teams and scripts */

static size_t random_count(struct unit_random *dice, bool small)
{
    static const size_t edges[] = {1,     7,     8,     9,      47,     48,    49,
                                   56,    63,    1000,  1024,   1025,   4095,  4096,
                                   4097,  8200,  12000, 15000,  16350,  16383, 16384,
                                   16385, 20000, 70000, 262144, 300000, 600000};
    enum { edge_count = sizeof(edges) / sizeof(edges[0]), small_count = 12 };
    return edges[unit_below(dice, small || unit_below(dice, 4) ? small_count : edge_count)];
}

static struct step random_step(struct unit_random *dice, uint32_t count, bool small)
{
    static const size_t elements[] = {1, 1, 8, 8, 8, 16, 24, 1000, 1500, 4096, 4104, 9000, 16384};
    struct step step = {.kind = (enum kind)unit_below(dice, kinds),
                        .root = unit_below(dice, count)};
    step.element = 1;
    step.count = random_count(dice, small);
    if (step.kind == BROADCAST && !unit_below(dice, 10))
        step.count = 0;
    if (step.kind == TO_ALL)
        step.root = 0;
    if (step.kind < REDUCE)
        return step;
    step.element = elements[unit_below(dice, small ? 7 : sizeof(elements) / sizeof(elements[0]))];
    step.count = (step.count + step.element - 1) / step.element;
    return step;
}

static void shuffle(uint32_t *all, uint32_t count, struct unit_random *dice)
{
    for (uint32_t i = 0; i < count; i++)
        all[i] = i;
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = unit_below(dice, i), other = all[i - 1];
        all[i - 1] = all[j];
        all[j] = other;
    }
}

/* A channel as a former team has left it. */
static uint64_t age_channel(struct tk_local_channel *at, struct unit_random *dice)
{
    uint64_t base = (uint64_t)unit_below(dice, 4) * tk_local_slots;
    if (unit_below(dice, 2))
        base = UINT32_MAX - 3 * tk_local_slots + 1 + base;
    atomic_store(&at->retired, base << 32);
    for (uint32_t i = 0; i < tk_local_slots; i++) {
        atomic_store(&at->slots[i].word, base << 32);
        atomic_store(&at->slots[i].ack, base << 32);
    }
    return base;
}

static void open_member(struct team *t, uint32_t team, uint32_t me,
                        const struct tk_local_member *all)
{
    struct tk_local *local = &t->locals[me];
    *local = (struct tk_local){.count = t->count, .me = me, .safe = tk_local_slots, .usable = true};
    if (t->count == 1)
        return;
    local->members = malloc(t->count * sizeof(*local->members));
    NEED(local->members, "no memory");
    memcpy(local->members, all, t->count * sizeof(*local->members));
    local->members[me].at = (void *)memory[t->ranks[me]][team];
}

static void open_team(uint32_t team, uint32_t count, uint32_t of, uint32_t steps, bool small,
                      struct unit_random *dice)
{
    struct team *t = &teams[team];
    struct tk_local_member members[ranks_max];
    uint32_t all[ranks_max];
    memset(t, 0, sizeof(*t));
    t->count = count;
    t->steps = steps;
    shuffle(all, of, dice);
    memcpy(t->ranks, all, sizeof(all));
    for (uint32_t i = 0; i < count; i++)
        members[i] =
            (struct tk_local_member){.base = age_channel((void *)memory[all[i]][team], dice),
                                     .nbrhd_index = all[i],
                                     .rank = all[i],
                                     .channel = team};
    for (uint32_t i = 0; i < count; i++)
        open_member(t, team, i, members);
    for (uint32_t i = 0; i < steps; i++)
        t->script[i] = random_step(dice, count, small);
}

static void open_all(uint32_t size, uint32_t steps, bool small, uint64_t seed)
{
    struct unit_random dice = unit_random(seed);
    team_count = 1 + unit_below(&dice, teams_max);
    memset(ranks, 0, sizeof(ranks));
    for (uint32_t t = 0; t < team_count; t++)
        open_team(t, t == 0 ? size : 1 + unit_below(&dice, size), size, steps, small, &dice);
    for (uint32_t r = 0; r < size; r++)
        ranks[r].dice = unit_random(seed * 100 + r);
}

static void close_all(void)
{
    for (uint32_t t = 0; t < team_count; t++)
        for (uint32_t i = 0; i < teams[t].count; i++)
            free(teams[t].locals[i].members);
}

/* ---- as threads */

static void *run_rank(void *arg)
{
    uint32_t rank = (uint32_t)(uintptr_t)arg;
    while (!is_over(rank))
        if (!turn(rank))
            sched_yield();
    return NULL;
}

static void run_threads(uint32_t size, uint32_t steps, uint64_t seed)
{
    pthread_t threads[ranks_max];
    open_all(size, steps, false, seed);
    for (uintptr_t r = 0; r < size; r++)
        NEED(pthread_create(&threads[r], NULL, run_rank, (void *)r) == 0, "no thread");
    for (uint32_t r = 0; r < size; r++)
        pthread_join(threads[r], NULL);
    close_all();
}

static void threads_agree_with_a_loop(void **state)
{
    static const uint32_t sizes[] = {2, 3, 8, 9, 12};
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        run_threads(sizes[i], 40, 1000 + i);
    run_threads(2, steps_max, 77);
}

/* ---- in turn */

static bool all_over(uint32_t size)
{
    for (uint32_t r = 0; r < size; r++)
        if (!is_over(r))
            return false;
    return true;
}

static void run_in_turn(uint32_t size, uint32_t steps, bool small, uint64_t seed)
{
    struct unit_random dice = unit_random(seed + 5);
    open_all(size, steps, small, seed);
    for (uint32_t r = 0; r < size; r++)
        awake[r] = true;
    in_turn = true;
    while (!all_over(size)) {
        uint32_t first = unit_below(&dice, size), i = 0;
        while (i < size && !awake[(first + i) % size])
            i++;
        if (i == size)
            fail_msg("seed %u, %u ranks: all sleep", (unsigned)seed, size);
        uint32_t rank = (first + i) % size;
        awake[rank] = false;
        awake[rank] |= turn(rank);
    }
    in_turn = false;
    close_all();
}

static void no_thread_sleeps_through_its_event(void **state)
{
    for (uint32_t seed = 0; seed < 300; seed++)
        run_in_turn(1 + seed % ranks_max, 40, seed % 8 != 0, seed);
    /* One operation for each team: no other operation wakes its waiters. */
    for (uint32_t seed = 0; seed < 1000; seed++)
        run_in_turn(2 + seed % (ranks_max - 1), 1, false, seed);
}

/* ---- teams one after the other */

static void open_two_teams(struct tk_local *first, struct tk_local *second,
                           const struct tk_local_blob *blobs, struct tk_local_member *members)
{
    for (uint32_t i = 0; i < 3; i++)
        members[i] = (struct tk_local_member){
            .at = (void *)memory[i][1], .base = blobs[i].base, .rank = i, .channel = 1};
    for (uint32_t i = 0; i < 3; i++)
        first[i] =
            (struct tk_local){.members = members, .count = 3, .me = i, .safe = tk_local_slots};
    for (uint32_t i = 0; i < 2; i++)
        second[i] =
            (struct tk_local){.members = members + 3, .count = 2, .me = i, .safe = tk_local_slots};
}

/* Two ranks leave a barrier, close the team, and go on in another team that uses the same
 * channels; the third polls only after that. */
static void a_late_member_passes_a_barrier_that_others_have_left(void **state)
{
    static struct tk_local first[3], second[2];
    static struct tk_local_member members[5];
    const struct tk_local_blob blobs[3] = {{2, 32}, {2, 48}, {2, 64}};
    struct tk_local_op late[2], ops[2];
    open_two_teams(first, second, blobs, members);
    for (uint32_t i = 0; i < 3; i++) {
        struct unit_random dice = unit_random(1);
        age_channel(members[i].at, &dice);
        for (uint32_t s = 0; s < tk_local_slots; s++)
            atomic_store(&members[i].at->slots[s].word, members[i].base << 32);
    }
    tk_local_meet(&late[0], &first[2], 0);
    tk_local_release(&late[1], &first[2], 1, 0);
    assert_false(tk_local_step(&late[0]));
    for (uint32_t i = 0; i < 2; i++)
        tk_local_meet(&ops[i], &first[i], 0);
    assert_false(tk_local_step(&ops[0]));
    assert_true(tk_local_step(&ops[1]));
    assert_true(tk_local_step(&ops[0]));
    tk_local_release(&ops[0], &first[0], 1, 0);
    assert_true(tk_local_step(&ops[0]));
    for (uint32_t i = 0; i < 2; i++) {
        members[3 + i] = members[i];
        members[3 + i].base += tk_local_slots;
        atomic_store(&members[i].at->retired, members[3 + i].base << 32);
    }
    for (uint32_t n = 0; n < 3 * tk_local_slots; n++) {
        for (uint32_t i = 0; i < 2; i++)
            tk_local_meet(&ops[i], &second[i], n);
        assert_false(tk_local_step(&ops[0]));
        assert_true(tk_local_step(&ops[1]));
        assert_true(tk_local_step(&ops[0]));
    }
    assert_true(tk_local_step(&late[0]));
    assert_true(tk_local_step(&late[1]));
}

static void open_topology(uint32_t size, uint32_t me)
{
    static uint32_t numbers[ranks_max];
    for (uint32_t r = 0; r < ranks_max; r++)
        numbers[r] = 10 * r;
    tk_topology.nbrhd_size = size;
    tk_topology.nbrhd_rank = me;
    tk_topology.nbrhd_ranks = numbers;
}

static void channels_come_back_and_go_on_where_they_were(void **state)
{
    const uint32_t pair[] = {10, 30};
    struct tk_local team;
    struct tk_local_blob blob, theirs = {.channel = 3, .base = 16};
    const struct tk_local_blob *blobs[] = {&blob, &theirs};
    unit_settings("GASNET_COLL_CHANNELS=4", NULL);
    open_topology(4, 1);
    for (uint32_t n = 0; n < 1000; n++) {
        tk_local_offer(&blob);
        assert_int_equal(blob.channel, 2);
        assert_int_equal(blob.base, 32 * n);
        tk_local_open(&team, pair, 2, 0, blobs);
        assert_true(tk_local_usable(&team));
        assert_ptr_equal(team.members[0].at, memory[1][1]);
        assert_ptr_equal(tk_local_map(&team.members[1]), memory[3][2]);
        assert_int_equal(team.members[1].rank, 30);
        assert_int_equal(tk_local_take_tickets(&team, 17), 0);
        tk_local_close(&team);
    }
    struct tk_local_channel *at = (void *)memory[1][1];
    assert_int_equal(atomic_load(&at->retired), UINT64_C(32 * 999) << 32);
}

static void without_a_channel_a_team_is_not_usable(void **state)
{
    const uint32_t pair[] = {10, 30};
    struct tk_local team[3], other;
    struct tk_local_blob mine[4], theirs = {.channel = 1}, none = {0};
    unit_settings("GASNET_COLL_CHANNELS=4", NULL);
    open_topology(4, 1);
    for (uint32_t i = 0; i < 3; i++) {
        tk_local_offer(&mine[i]);
        const struct tk_local_blob *blobs[] = {&mine[i], &theirs};
        tk_local_open(&team[i], pair, 2, 0, blobs);
        assert_true(tk_local_usable(&team[i]));
    }
    tk_local_offer(&mine[3]);
    assert_int_equal(mine[3].channel, 0);
    const struct tk_local_blob *poor[] = {&mine[3], &theirs};
    tk_local_open(&other, pair, 2, 0, poor);
    assert_false(tk_local_usable(&other));
    tk_local_close(&other);
    tk_local_close(&team[1]);
    tk_local_offer(&mine[1]);
    assert_int_equal(mine[1].channel, 3);
    const struct tk_local_blob *half[] = {&mine[1], &none};
    tk_local_open(&other, pair, 2, 0, half);
    assert_false(tk_local_usable(&other));
    tk_local_offer(&mine[1]);
    assert_int_equal(mine[1].channel, 3);
    tk_local_withdraw(&mine[1]);
    tk_local_close(&team[0]);
    tk_local_close(&team[2]);
}

static void the_team_of_all_has_the_first_channel(void **state)
{
    const uint32_t all[] = {0, 10, 20, 30};
    struct tk_local team;
    struct tk_local_op op;
    unit_settings("GASNET_COLL_CHANNELS=1", NULL);
    open_topology(4, 2);
    tk_local_open(&team, all, 4, 2, NULL);
    assert_true(tk_local_usable(&team));
    assert_ptr_equal(team.members[2].at, memory[2][0]);
    tk_local_close(&team);
    unit_settings("GASNET_COLL_CHANNELS=0", NULL);
    tk_local_open(&team, all, 4, 2, NULL);
    assert_false(tk_local_usable(&team));
    tk_local_open(&team, all, 1, 0, NULL);
    assert_true(tk_local_usable(&team));
    tk_local_meet(&op, &team, tk_local_take_tickets(&team, 1));
    assert_true(tk_local_step(&op));
    tk_local_close(&team);
}

/* ---- the same bits everywhere */

static void add_doubles(const void *a, void *b, size_t count, const void *cdata)
{
    const double *from = a;
    double *to = b;
    (void)cdata;
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

static void sum_of(uint32_t count, const double *values, double *results)
{
    struct unit_random dice = unit_random(count);
    struct tk_local_op ops[ranks_max];
    team_count = 1;
    open_team(0, count, count, 0, true, &dice);
    for (uint32_t i = 0; i < count; i++) {
        const struct tk_local_reduction how = {.destination = &results[i],
                                               .source = &values[i],
                                               .element = 8,
                                               .count = 1,
                                               .fn = add_doubles};
        tk_local_reduce_to_all(&ops[i], &teams[0].locals[i], 0, &how);
    }
    for (uint32_t left = count, done[ranks_max] = {0}; left > 0;)
        for (uint32_t i = 0; i < count; i++)
            if (!done[i] && tk_local_step(&ops[i]))
                done[i] = 1, left--;
    close_all();
}

static void all_get_the_same_bits(void **state)
{
    for (uint32_t count = 1; count <= ranks_max; count++) {
        double values[ranks_max], results[ranks_max], sum = 0.1;
        for (uint32_t i = 0; i < ranks_max; i++)
            values[i] = 0.1 + i * 1e15 * (i % 2 ? 1 : -1);
        sum_of(count, values, results);
        for (uint32_t i = 1; i < count; i++)
            assert_memory_equal(&results[i], &results[0], sizeof(double));
        for (uint32_t i = 1; i < count && count <= tk_local_flat; i++)
            sum += values[i];
        if (count <= tk_local_flat)
            assert_memory_equal(&results[0], &sum, sizeof(double)); /* the order of members */
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(channels_come_back_and_go_on_where_they_were),
    cmocka_unit_test(without_a_channel_a_team_is_not_usable),
    cmocka_unit_test(the_team_of_all_has_the_first_channel),
    cmocka_unit_test(a_late_member_passes_a_barrier_that_others_have_left),
    cmocka_unit_test(all_get_the_same_bits),
    cmocka_unit_test(no_thread_sleeps_through_its_event),
    cmocka_unit_test(threads_agree_with_a_loop),
};

UNIT_MAIN(tests)
