/* SPDX-License-Identifier: BSD-3-Clause */
/* testbcast [-n RECEIVERS,...] [-s MIN:MAX] [-m MODE,...] [-k KIND,...] [-i ITERATIONS] [-u FILE]
 * (repeat everything until the file exists) [-a BYTES] (each rank's destination has an offset in
 * its segment that is so much larger than the previous rank's) - broadcasts of each size to each
 * number of receivers by each algorithm, every payload verified; prints a table. MODE: switch (the
 * multicast switch), binomial, flat, chain. KIND: fresh (the lock of the switch's group is given
 * back each time), kept, rotate (another root each time), subset (a random subset of the ranks each
 * time). A time is from the root's call until the last receiver has the data: by the common clock
 * where all ranks share a host, else by the last of the receivers' messages minus half a round
 * trip. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <gasnetex.h>
#include <gasnet_coll.h>

#include "job.h"

/* Functions of the library that clients have no headers for: conduit/collective/coll.h and
 * mcast.h. */
_Bool tk_coll_choose_force(const char *word);
void tk_mcast_keep_lock(_Bool keep);
void tk_mcast_settle(void);

enum { subsets = 16, apart_ranks = 64, iterations_max = 1000000 };
enum kind { FRESH, KEPT, ROTATE, SUBSET, kinds };
static const char *const kind_names[kinds] = {"fresh", "kept", "rotate", "subset"};
static const char *const mode_names[] = {"switch", "binomial", "flat", "chain"};
enum { SWITCH, modes = sizeof mode_names / sizeof mode_names[0] };

static struct {
    const char *receivers, *modes, *kinds, *socket, *until;
    size_t least, most, apart;
    unsigned iterations;
} wish = {"", "binomial,flat,chain", "kept", NULL, NULL, 8, 1 << 20, 0, 100};

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- who took part in an iteration, and when the last of them was done */

static volatile unsigned answers;
static volatile int64_t answered_at;
static int64_t half_round_trip;
static int shares_clock;

static void on_done(gex_Token_t token)
{
    (void)token;
    answered_at = now();
    answers++;
}

static void on_ping(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, 201, 0);
}

static gex_AM_Entry_t handlers[] = {
    {201, (gex_AM_Fn_t)on_done, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 0, NULL, "done"},
    {202, (gex_AM_Fn_t)on_ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ping"},
};

static void measure_round_trip(void)
{
    gex_Rank_t hosts;
    gex_System_QueryHostInfo(NULL, &hosts, NULL);
    shares_clock = hosts == job.size;
    for (unsigned i = 0; i < 20 && job.rank == 0 && !shares_clock; i++) {
        int64_t began = now();
        answers = 0;
        gex_AM_RequestShort0(job.tm, job.size - 1, 202, 0);
        GASNET_BLOCKUNTIL(answers == 1);
        if (i == 0 || (now() - began) / 2 < half_round_trip)
            half_round_trip = (now() - began) / 2;
    }
    gex_Event_Wait(gex_Coll_BroadcastNB(job.tm, 0, &half_round_trip, &half_round_trip,
                                        sizeof half_round_trip, 0));
}

/* ---- one broadcast */

struct run {
    gex_TM_t tm;
    gex_Rank_t root;
    char *memory;
    size_t nbytes;
    uint64_t seed;
};

/* The time of the root's call is 0 elsewhere. */
static int64_t broadcast(const struct run *run)
{
    int is_root = gex_TM_QueryRank(run->tm) == run->root;
    memset(run->memory, 0, run->nbytes);
    if (is_root)
        job_fill(run->memory, run->nbytes, run->seed);
    answers = 0;
    gex_Event_Wait(gex_Coll_BarrierNB(run->tm, 0));
    int64_t began = now();
    gex_Event_Wait(
        gex_Coll_BroadcastNB(run->tm, run->root, run->memory, run->memory, run->nbytes, 0));
    int64_t ended = now();
    if (!shares_clock && !is_root)
        gex_AM_RequestShort0(run->tm, run->root, 201, 0);
    CHECK_PATTERN(run->memory, run->nbytes, run->seed);
    if (shares_clock) {
        gex_Event_Wait(gex_Coll_ReduceToAllNB(run->tm, &ended, &ended, GEX_DT_I64, 8, 1, GEX_OP_MAX,
                                              NULL, NULL, 0));
        return ended - began;
    }
    GASNET_BLOCKUNTIL(!is_root || answers + 1 == gex_TM_QuerySize(run->tm));
    gex_Event_Wait(gex_Coll_BarrierNB(run->tm, 0));
    return answered_at - half_round_trip - began;
}

/* ---- what the switch counts */

enum { PACKETS, COPIES, ACKS, CONTROLS, WAITS, REPEATS, LOCAL, counters };
static const char *const counter_names[counters] = {
    " requests_in ", " copies ", " acks ", " controls ", " rnrs ", " repeats ", " acks_local "};

static void read_counters(uint64_t at[counters])
{
    char text[65536];
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    ssize_t more;
    size_t have = 0;
    snprintf(to.sun_path, sizeof to.sun_path, "%s", wish.socket);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof to), "no switch at %s",
          wish.socket);
    CHECK(write(fd, "stat\n", 5) == 5);
    while ((more = read(fd, text + have, sizeof text - 1 - have)) > 0)
        have += (size_t)more;
    text[have] = 0;
    close(fd);
    const char *core = strstr(text, "core ");
    CHECK(core != NULL, "the switch counts nothing");
    for (int i = 0; i < counters; i++) {
        const char *place = strstr(core, counter_names[i]);
        at[i] = place ? strtoull(place + strlen(counter_names[i]), NULL, 10) : 0;
    }
}

/* On one rank, while the others do nothing. */
static void count(gex_TM_t tm, uint64_t at[counters])
{
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    if (wish.socket && gex_TM_QueryRank(tm) == 0)
        read_counters(at);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

static void print_counts(const uint64_t before[counters], const uint64_t after[counters])
{
    if (wish.socket)
        for (int i = 0; i < REPEATS; i++)
            printf(" %9llu", (unsigned long long)(after[i] - before[i]));
    if (wish.socket)
        printf(" %9llu", (unsigned long long)(after[REPEATS] + after[LOCAL] - before[REPEATS] -
                                              before[LOCAL]));
    printf("\n");
    fflush(stdout);
}

/* ---- one line of the table */

/* The first broadcasts of a kind take or give back the lock of the previous kind, so they are not
 * counted. */
enum { uncounted = 2 };

struct teams {
    gex_TM_t of[subsets]; /* the first has all ranks; GEX_TM_INVALID: we are not in that subset */
    unsigned count;
};

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void line(const char *mode, const char *kind, gex_Rank_t receivers, size_t nbytes,
                 int64_t *times, unsigned count)
{
    static int has_head;
    qsort(times, count, sizeof *times, by_time);
    double median = (double)times[count / 2] / 1e3, p99 = (double)times[count * 99 / 100] / 1e3;
    if (!has_head++)
        printf("%-9s %-7s %4s %9s %11s %11s %9s%s\n", "mode", "kind", "recv", "bytes", "median_us",
               "p99_us", "MB/s_last",
               wish.socket ? " root_msgs sw_copies acks_root  ctl_pkts       rnr   retrans" : "");
    printf("%-9s %-7s %4u %9zu %11.1f %11.1f %9.1f", mode, kind, receivers, nbytes, median, p99,
           median > 0 ? (double)nbytes / median : 0.0);
}

static void measure(unsigned mode, enum kind kind, const struct teams *teams, size_t nbytes)
{
    static int64_t *times;
    uint64_t chance = 42 + nbytes; /* the same on all members */
    gex_Rank_t all = gex_TM_QuerySize(teams->of[0]);
    struct run run = {.memory = (char *)job.base + wish.apart * job.rank, .nbytes = nbytes};
    if (!times)
        times = job_memory(wish.iterations * sizeof *times);
    job_phase("%s %s, %u ranks, %zu bytes", mode_names[mode], kind_names[kind], all, nbytes);
    uint64_t before[counters], after[counters];
    tk_mcast_keep_lock(kind == KEPT);
    tk_mcast_settle();
    gex_Event_Wait(gex_Coll_BarrierNB(teams->of[0], 0));
    run.tm = teams->of[0];
    for (unsigned i = 0; i < uncounted; i++)
        broadcast(&run);
    count(teams->of[0], before);
    for (unsigned i = 0; i < wish.iterations; i++) {
        uint64_t any = job_random(&chance);
        unsigned which = kind == SUBSET ? (unsigned)(any % teams->count) : 0;
        run.seed = any;
        run.tm = teams->of[which];
        times[i] = 0;
        /* Otherwise members of other subsets would take the lock before it is given back. */
        if (kind == SUBSET)
            gex_Event_Wait(gex_Coll_BarrierNB(teams->of[0], 0));
        if (run.tm == GEX_TM_INVALID)
            continue;
        gex_Rank_t size = gex_TM_QuerySize(run.tm);
        run.root = kind == ROTATE ? i % size : kind == SUBSET ? (gex_Rank_t)(any >> 32) % size : 0;
        int64_t time = broadcast(&run);
        if (gex_TM_QueryRank(run.tm) == run.root)
            times[i] = time;
    }
    count(teams->of[0], after);
    gex_Event_Wait(gex_Coll_ReduceToAllNB(teams->of[0], times, times, GEX_DT_I64, sizeof *times,
                                          wish.iterations, GEX_OP_MAX, NULL, NULL, 0));
    if (gex_TM_QueryRank(teams->of[0]) == 0) {
        line(mode_names[mode], kind_names[kind], all - 1, nbytes, times, wish.iterations);
        print_counts(before, after);
    }
}

/* ---- which of them */

static int has_word(const char *list, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == size && !memcmp(at, word, size))
            return 1;
    return 0;
}

static void choose(unsigned mode)
{
    char word[64];
    snprintf(word, sizeof word, "broadcast=%s", mode_names[mode]);
    CHECK(tk_coll_choose_force(word), "no mode %s", word);
}

static void measure_teams(const struct teams *teams)
{
    for (unsigned mode = 0; mode < modes; mode++) {
        if (!has_word(wish.modes, mode_names[mode]))
            continue;
        choose(mode);
        for (unsigned kind = 0; kind < kinds; kind++)
            for (size_t size = wish.least; size <= wish.most;
                 size = size ? 8 * size : wish.most + 1)
                if (has_word(wish.kinds, kind_names[kind]))
                    measure(mode, (enum kind)kind, teams, size);
    }
}

static gex_TM_t split(gex_TM_t tm, int is_in)
{
    gex_TM_t part;
    gex_TM_Split(is_in ? &part : NULL, tm, 0, (int)gex_TM_QueryRank(tm), NULL, 0,
                 GEX_FLAG_TM_NO_SCRATCH);
    return is_in ? part : GEX_TM_INVALID;
}

/* Random members of the team, two at least. */
static int is_in_subset(gex_Rank_t rank, gex_Rank_t size, uint64_t seed)
{
    gex_Rank_t first = (gex_Rank_t)(seed % size);
    return rank == first || rank == (first + 1) % size || job_mix(seed, rank) % 2;
}

static void measure_receivers(gex_Rank_t receivers)
{
    struct teams teams = {.count = 1};
    CHECK(receivers < job.size, "%u receivers and a root are more than the job's ranks", receivers);
    teams.of[0] = split(job.tm, job.rank <= receivers);
    if (teams.of[0] != GEX_TM_INVALID) {
        for (; has_word(wish.kinds, "subset") && teams.count < subsets; teams.count++)
            teams.of[teams.count] =
                split(teams.of[0], is_in_subset(job.rank, receivers + 1, teams.count * 77));
        measure_teams(&teams);
        for (unsigned i = teams.count; i-- > 0;)
            if (teams.of[i] != GEX_TM_INVALID)
                gex_TM_Destroy(teams.of[i], NULL, 0);
    }
    job_barrier();
}

static void usage(const char *what)
{
    fprintf(stderr,
            "testbcast: %s; usage: testbcast [-n RECEIVERS,...] [-s MIN:MAX] [-m switch,binomial,"
            "flat,chain] [-k fresh,kept,rotate,subset] [-i 1..%d] [-S SOCKET] "
            "[-u FILE] [-a BYTES]\n",
            what, iterations_max);
    exit(2);
}

static void set(char option, char *value)
{
    char *end = value;
    switch (option) {
    case 'n':
        wish.receivers = value;
        return;
    case 'S':
        wish.socket = value;
        return;
    case 'u':
        wish.until = value;
        return;
    case 'm':
        wish.modes = value;
        return;
    case 'k':
        wish.kinds = value;
        return;
    case 's':
        wish.least = strtoul(value, &end, 0);
        wish.most = *end == ':' ? strtoul(end + 1, &end, 0) : wish.least;
        if (*end || wish.least > wish.most || wish.most > 64 << 20)
            usage("-s takes MIN:MAX in bytes, at most 67108864");
        return;
    case 'a':
        wish.apart = strtoul(value, &end, 0);
        if (*end || wish.apart > 1 << 20)
            usage("-a takes bytes, at most 1048576");
        return;
    case 'i':
        wish.iterations = (unsigned)strtoul(value, &end, 0);
        if (*end || wish.iterations < 1 || wish.iterations > iterations_max)
            usage("-i takes a number of iterations");
        return;
    default:
        usage("unknown option");
    }
}

static int is_to_go_on(void)
{
    int32_t go_on = wish.until && job.rank == 0 && access(wish.until, F_OK) != 0;
    gex_Event_Wait(gex_Coll_BroadcastNB(job.tm, 0, &go_on, &go_on, sizeof go_on, 0));
    return go_on;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        if (argv[i][0] != '-' || !argv[i][1] || argv[i][2] || i + 1 == argc)
            usage(argv[i]);
        set(argv[i][1], argv[i + 1]);
    }
    job_start(&argc, &argv, (wish.most + apart_ranks * wish.apart + 65535) / 65536 * 65536 + 65536);
    CHECK(!wish.apart || job.size <= apart_ranks, "-a is for %d ranks at most", apart_ranks);
    gex_EP_RegisterHandlers(job.ep, handlers, sizeof handlers / sizeof handlers[0]);
    job_barrier();
    measure_round_trip();
    do {
        if (!*wish.receivers)
            measure_receivers(job.size - 1);
        for (const char *at = wish.receivers; *at; at += strcspn(at, ","), at += *at == ',')
            measure_receivers((gex_Rank_t)strtoul(at, NULL, 10));
    } while (is_to_go_on());
    job_end();
}
