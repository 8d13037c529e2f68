/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of threads of one process to each other: rank 0 has 1 to 8 threads that put, get and
 * send, each to a rank of its own, or all to the same rank; the other ranks wait in a barrier. The
 * cost of an operation is the available CPU time per operation: one CPU for each thread, at most
 * all CPUs. Numbers of threads take turns, and ratios to one thread are those of one turn. Of sends
 * only the calls are measured, in bursts below the number of credits: with as many senders as CPUs,
 * receivers have to use them in between. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gasnetex.h>

#include "pin.h"

enum {
    threads_max = 8,
    turns_max = 99,
    burst = 8,            /* of sends, below the credits of a peer that one thread has to itself */
    slot_size = 4096,     /* of a thread, in each segment */
    segment_size = 65536, /* at least threads_max slots */
    counts = 4
};

static const int thread_counts[counts] = {1, 2, 4, 8};

static struct {
    gex_TM_t tm;
    gex_Rank_t me, size;
    char *remote[threads_max + 1]; /* segments, by rank */
    char *mine;
} job;

static struct {
    int turns;
    double seconds; /* of one sample */
    const char *json;
} options = {.turns = 9, .seconds = 0.03};

/* Of one thread. Lines of their own: the counts are written all the time. */
struct worker {
    _Alignas(128) pthread_t id;
    int number;
    gex_Rank_t peer;
    double seconds; /* that it measured */
    long done;
    volatile long replies;
};

static struct worker workers[threads_max];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- operations: each does `burst` of them, and returns the seconds that count ---- */

static void *there(const struct worker *w)
{
    return job.remote[w->peer] + (size_t)w->number * slot_size;
}

static void *here(const struct worker *w)
{
    return job.mine + (size_t)w->number * slot_size;
}

static double put(struct worker *w)
{
    double begin = now();
    for (int i = 0; i < burst; i++)
        gex_RMA_PutBlocking(job.tm, w->peer, there(w), here(w), 8, 0);
    return now() - begin;
}

static double put_flood(struct worker *w)
{
    double begin = now();
    for (int i = 0; i < burst; i++)
        gex_RMA_PutNBI(job.tm, w->peer, there(w), here(w), 8, GEX_EVENT_DEFER, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    return now() - begin;
}

static double get(struct worker *w)
{
    double begin = now();
    for (int i = 0; i < burst; i++)
        gex_RMA_GetBlocking(job.tm, here(w), w->peer, there(w), 8, 0);
    return now() - begin;
}

static void on_request(gex_Token_t token, gex_AM_Arg_t number);

static void on_reply(gex_Token_t token, gex_AM_Arg_t number)
{
    (void)token;
    __atomic_fetch_add(&workers[number].replies, 1, __ATOMIC_RELAXED);
}

static gex_AM_Entry_t handlers[] = {
    {0, (gex_AM_Fn_t)on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "request"},
    {0, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "reply"},
};

static void on_request(gex_Token_t token, gex_AM_Arg_t number)
{
    gex_AM_ReplyShort1(token, handlers[1].gex_index, 0, number);
}

static double send_short(struct worker *w)
{
    long wanted = w->replies + burst;
    double begin = now();
    for (int i = 0; i < burst; i++)
        gex_AM_RequestShort1(job.tm, w->peer, handlers[0].gex_index, 0, w->number);
    double took = now() - begin;
    GASNET_BLOCKUNTIL(w->replies >= wanted);
    return took;
}

static const struct operation {
    const char *name;
    double (*run)(struct worker *);
    double aim;  /* ratio of two threads with peers of their own */
    int windows; /* of options.seconds in a sample */
} operations[] = {
    {"put", put, 1.3, 1},
    {"put, 8 in flight", put_flood, 1.3, 1},
    {"get", get, 1.3, 1},
    /* The receiver has to run, on the CPU of one of the threads if there are no others: in a window
     * of few time slices that thread may make no progress to any peer. */
    {"Short, the call", send_short, 1.3, 10},
};

enum { operation_count = sizeof(operations) / sizeof(*operations) };

/* ---- threads that take orders ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int threads, left; /* of this sample */
    long serial;
    const struct operation *what;
    bool is_over;
} order = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void sample(struct worker *w, const struct operation *what)
{
    double end = now() + options.seconds * what->windows;
    w->seconds = 0;
    w->done = 0;
    do {
        w->seconds += what->run(w);
        w->done += burst;
    } while (now() < end);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    long serial = 0;
    bench_pin_to(w->number % (int)sysconf(_SC_NPROCESSORS_ONLN));
    pthread_mutex_lock(&order.lock);
    for (;;) {
        while (!order.is_over && (order.serial == serial || w->number >= order.threads)) {
            serial = order.serial;
            pthread_cond_wait(&order.changed, &order.lock);
        }
        if (order.is_over)
            break;
        serial = order.serial;
        const struct operation *what = order.what;
        pthread_mutex_unlock(&order.lock);
        sample(w, what);
        pthread_mutex_lock(&order.lock);
        order.left--;
        pthread_cond_broadcast(&order.changed);
    }
    pthread_mutex_unlock(&order.lock);
    return NULL;
}

struct outcome {
    double ns;    /* of an operation */
    double share; /* of the slowest thread, relative to an equal share */
};

static struct outcome measure(const struct operation *what, int threads, bool is_same_peer)
{
    for (int i = 0; i < threads; i++)
        workers[i].peer = is_same_peer ? 1 : 1 + (gex_Rank_t)i;
    pthread_mutex_lock(&order.lock);
    order.what = what;
    order.left = order.threads = threads;
    order.serial++;
    pthread_cond_broadcast(&order.changed);
    while (order.left)
        pthread_cond_wait(&order.changed, &order.lock);
    pthread_mutex_unlock(&order.lock);

    double seconds = 0;
    long done = 0, least = workers[0].done;
    for (int i = 0; i < threads; i++) {
        seconds += workers[i].seconds;
        done += workers[i].done;
        least = workers[i].done < least ? workers[i].done : least;
    }
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    double shared = threads > cpus ? (double)cpus / threads : 1;
    return (struct outcome){1e9 * seconds * shared / (double)done,
                            (double)least * threads / (double)done};
}

/* ---- results ---- */

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread {
    double median, first, third;
};

static struct spread spread_of(const double *samples)
{
    double sorted[turns_max];
    memcpy(sorted, samples, (size_t)options.turns * sizeof(*sorted));
    qsort(sorted, (size_t)options.turns, sizeof(*sorted), compare);
    return (struct spread){sorted[options.turns / 2], sorted[options.turns / 4],
                           sorted[options.turns - 1 - options.turns / 4]};
}

/* One operation with peers of one kind. */
struct series {
    double ns[counts][turns_max], ratio[counts][turns_max], share[counts][turns_max];
};

static void run_series(struct series *s, const struct operation *what, bool is_same_peer, int turn)
{
    for (int c = 0; c < counts; c++) {
        struct outcome o = measure(what, thread_counts[c], is_same_peer);
        s->ns[c][turn] = o.ns;
        s->ratio[c][turn] = o.ns / s->ns[0][turn];
        s->share[c][turn] = o.share;
    }
}

static void print_series(const struct series *s, const struct operation *what, bool is_same_peer,
                         FILE *json)
{
    const char *peers = is_same_peer ? "the same" : "its own";
    for (int c = 0; c < counts; c++) {
        struct spread ratio = spread_of(s->ratio[c]);
        double ns = spread_of(s->ns[c]).median, share = spread_of(s->share[c]).median;
        bool has_aim = thread_counts[c] == 2 && !is_same_peer;
        printf("%-18s %-9s %7d %10.1f ns %8.2f (%.2f-%.2f) %8.2f", what->name, peers,
               thread_counts[c], ns, ratio.median, ratio.first, ratio.third, share);
        if (has_aim)
            printf("  aim <= %.2f: %s", what->aim, ratio.median <= what->aim ? "met" : "MISSED");
        putchar('\n');
        if (json)
            fprintf(json,
                    "  {\"operation\": \"%s\", \"peer\": \"%s\", \"threads\": %d, \"ns\": %.2f, "
                    "\"ratio\": {\"median\": %.4f, \"q1\": %.4f, \"q3\": %.4f}, \"least_share\": "
                    "%.4f},\n",
                    what->name, peers, thread_counts[c], ns, ratio.median, ratio.first, ratio.third,
                    share);
    }
}

static void measure_all(FILE *json)
{
    static struct series all[operation_count][2];
    /* Connects, and registers the threads. */
    for (int i = 0; i < operation_count; i++)
        measure(&operations[i], threads_max, false);
    for (int turn = 0; turn < options.turns; turn++)
        for (int i = 0; i < 2 * operation_count; i++)
            run_series(&all[i / 2][i % 2], &operations[i / 2], i % 2, turn);
    printf("%ld CPUs, medians of %d turns, of the ratios also the quartiles; share: of the thread "
           "that did least, of an equal part\n",
           sysconf(_SC_NPROCESSORS_ONLN), options.turns);
    printf("%-18s %-9s %7s %13s %20s %8s\n", "operation", "peer", "threads", "CPU time each",
           "to one thread", "share");
    for (int i = 0; i < 2 * operation_count; i++)
        print_series(&all[i / 2][i % 2], &operations[i / 2], i % 2, json);
}

static int drive(void)
{
    FILE *json = options.json ? fopen(options.json, "w") : NULL;
    if (options.json && !json) {
        fprintf(stderr, "threads: %s can't be written: %s\n", options.json, strerror(errno));
        return 1;
    }
    if (json)
        fprintf(json, "{\"cpus\": %ld, \"results\": [\n", sysconf(_SC_NPROCESSORS_ONLN));
    for (int i = 0; i < threads_max; i++) {
        workers[i].number = i;
        if (pthread_create(&workers[i].id, NULL, work, &workers[i])) {
            fprintf(stderr, "threads: a thread can't be made\n");
            gasnet_exit(1);
        }
    }
    measure_all(json);
    pthread_mutex_lock(&order.lock);
    order.is_over = true;
    pthread_cond_broadcast(&order.changed);
    pthread_mutex_unlock(&order.lock);
    for (int i = 0; i < threads_max; i++)
        pthread_join(workers[i].id, NULL);
    if (json && (fprintf(json, "  null]}\n") < 0 || fclose(json))) {
        fprintf(stderr, "threads: %s can't be written: %s\n", options.json, strerror(errno));
        return 1;
    }
    return 0;
}

/* ---- start ---- */

static _Noreturn void usage_exit(const char *why, const char *what)
{
    if (job.me == 0)
        fprintf(
            stderr,
            "threads: %s%s\nusage: gasnetrun_ibv -n 9 threads [--json FILE] [--turns N] [--ms N]\n"
            "  --json FILE  write the results as JSON, too\n"
            "  --turns N    of all numbers of threads, of which the median counts (9; 1..99)\n"
            "  --ms N       milliseconds of one sample, ten times as many for Shorts (30; "
            "1..1000)\n",
            why, what);
    gex_Coll_BarrierBlocking(job.tm, 0);
    gasnet_exit(2);
}

static int number(const char *text, long most, const char *name)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < 1 || value > most)
        usage_exit("bad value for ", name);
    return (int)value;
}

static void parse(int argc, char **argv)
{
    static const struct option known[] = {
        {"json", 1, NULL, 'j'}, {"turns", 1, NULL, 't'}, {"ms", 1, NULL, 'm'}, {NULL, 0, NULL, 0}};
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'j')
            options.json = optarg;
        else if (option == 't')
            options.turns = number(optarg, turns_max, "--turns");
        else if (option == 'm')
            options.seconds = 1e-3 * number(optarg, 1000, "--ms");
        else
            usage_exit("unknown option or missing value: ", argv[optind - 1]);
    }
    if (optind < argc)
        usage_exit("nothing is expected after the options: ", argv[optind]);
    if (job.size != threads_max + 1)
        usage_exit("needs 9 processes: ", "gasnetrun_ibv -n 9");
}

static void attach(void)
{
    gex_Segment_t segment;
    if (gex_Segment_Attach(&segment, job.tm, segment_size))
        gasnet_exit(1);
    job.mine = gex_Segment_QueryAddr(segment);
    memset(job.mine, 1, segment_size);
    for (gex_Rank_t rank = 0; rank < job.size; rank++) {
        void *address = NULL;
        uintptr_t size = 0;
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(job.tm, rank, &address, NULL, &size, 0));
        job.remote[rank] = address;
    }
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    int status = 0;
    if (gex_Client_Init(&client, &ep, &job.tm, "threads", &argc, &argv, 0))
        return 1;
    job.me = gex_TM_QueryRank(job.tm);
    job.size = gex_TM_QuerySize(job.tm);
    parse(argc, argv);
    if (gex_EP_RegisterHandlers(ep, handlers, sizeof(handlers) / sizeof(*handlers)))
        gasnet_exit(1);
    attach();
    gex_Coll_BarrierBlocking(job.tm, 0);
    if (job.me == 0)
        status = drive();
    gex_Coll_BarrierBlocking(job.tm, 0);
    gasnet_exit(status);
}
