/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of processes in pairs, as asynchronous runtimes have them: rank r of the first half of
 * the ranks and rank r of the second half are partners, and thread i of one talks to thread i of
 * the other, both ways at once. So `-n 2 pairs --threads 4` does the same work as
 * `-n 8 pairs --threads 1`, and the script `pairs` compares them. Messages go in bursts: each side
 * sends one, and waits for that of its partner. */
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
#include <gasnet_coll.h>

#include "pin.h"

enum {
    threads_max = 16,
    burst = 16,
    slot_size = 16384, /* of a thread, in each segment */
    window = 16        /* of puts in flight */
};

/* Of one thread. Lines of their own: the counts are written all the time. */
struct worker {
    _Alignas(128) pthread_t id;
    int number;
    char *here, *there;
    double done, begin, end;          /* operations of a sample, and its times */
    long wanted;                      /* messages from its partner so far */
    _Alignas(128) volatile long came; /* of these */
    volatile int32_t last;            /* number of its partner's last burst; 0: not known yet */
};

static struct {
    gex_TM_t tm;
    gex_Rank_t me, size, partner;
    pthread_barrier_t all;
} job;

static struct {
    int threads;
    double seconds; /* of one sample */
} options = {.threads = 1, .seconds = 0.05};

static struct worker workers[threads_max];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- messages ---- */

static void on_short(gex_Token_t token, gex_AM_Arg_t number, gex_AM_Arg_t last)
{
    (void)token;
    if (last)
        __atomic_store_n(&workers[number].last, last, __ATOMIC_RELAXED);
    __atomic_fetch_add(&workers[number].came, 1, __ATOMIC_RELEASE);
}

static void on_medium(gex_Token_t token, void *data, size_t nbytes, gex_AM_Arg_t number,
                      gex_AM_Arg_t last)
{
    (void)data, (void)nbytes;
    on_short(token, number, last);
}

static gex_AM_Entry_t handlers[] = {
    {0, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "short"},
    {0, (gex_AM_Fn_t)on_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, "medium"},
};

static void send_burst(const struct worker *w, size_t nbytes, int32_t last)
{
    for (int i = 0; i < burst; i++)
        if (nbytes)
            gex_AM_RequestMedium2(job.tm, job.partner, handlers[1].gex_index, w->here, nbytes,
                                  GEX_EVENT_NOW, 0, w->number, last);
        else
            gex_AM_RequestShort2(job.tm, job.partner, handlers[0].gex_index, 0, w->number, last);
}

/* The first half decides which burst is the last one, and says its number in it. Counts of messages
 * are those of all samples, because a partner may begin the next sample first. */
static long exchange(struct worker *w, size_t nbytes, double end)
{
    bool leads = job.me < job.size / 2;
    int32_t bursts = 0;
    bool is_last;
    do {
        bursts++;
        is_last = leads && now() >= end;
        send_burst(w, nbytes, is_last ? bursts : 0);
        w->wanted += burst;
        GASNET_BLOCKUNTIL(w->came >= w->wanted);
    } while (!is_last && w->last != bursts);
    w->last = 0;
    return (long)bursts * burst;
}

/* ---- puts and gets ---- */

static long put(struct worker *w, size_t nbytes, double end)
{
    long done = 0;
    for (; now() < end; done += window)
        for (int i = 0; i < window; i++)
            gex_RMA_PutBlocking(job.tm, job.partner, w->there, w->here, nbytes, 0);
    return done;
}

static long put_flood(struct worker *w, size_t nbytes, double end)
{
    long done = 0;
    for (; now() < end; done += window) {
        for (int i = 0; i < window; i++)
            gex_RMA_PutNBI(job.tm, job.partner, w->there, w->here, nbytes, GEX_EVENT_DEFER, 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
    }
    return done;
}

static long get(struct worker *w, size_t nbytes, double end)
{
    long done = 0;
    for (; now() < end; done += window)
        for (int i = 0; i < window; i++)
            gex_RMA_GetBlocking(job.tm, w->here, job.partner, w->there, nbytes, 0);
    return done;
}

static const struct operation {
    const char *name;
    long (*run)(struct worker *, size_t nbytes, double end); /* operations until `end` */
    size_t nbytes;
} operations[] = {
    {"Short", exchange, 0},
    {"Medium", exchange, 64},
    {"Medium", exchange, 512},
    {"Medium", exchange, 4096},
    {"put", put, 8},
    {"put", put, 4096},
    {"put, 16 in flight", put_flood, 8},
    {"get", get, 8},
};

enum { operation_count = sizeof(operations) / sizeof(*operations) };

/* ---- threads ---- */

/* Thread 0 speaks for its process between two samples. */
static void meet(const struct worker *w)
{
    pthread_barrier_wait(&job.all);
    if (w->number == 0)
        gex_Coll_BarrierBlocking(job.tm, 0);
    pthread_barrier_wait(&job.all);
}

static double largest(double a, double b)
{
    return a > b ? a : b;
}

static void reduce(double *of_all, const double *mine, size_t count, gex_OP_t op)
{
    gex_Event_Wait(gex_Coll_ReduceToOneNB(job.tm, 0, of_all, mine, GEX_DT_DBL, sizeof(*mine), count,
                                          op, NULL, NULL, 0));
}

/* Operations of all by the time from the first begin to the last end, which is compared among
 * ranks: they are on one host, and have one CLOCK_MONOTONIC. Rates of single threads do not add up:
 * where they outnumber CPUs, one that begins late goes on when others have ended. */
static void print_rate(const struct operation *o)
{
    double mine = 0, sum = 0, times[2] = {-workers[0].begin, workers[0].end}, latest[2];
    for (int i = 0; i < options.threads; i++) {
        mine += workers[i].done;
        times[0] = largest(times[0], -workers[i].begin);
        times[1] = largest(times[1], workers[i].end);
    }
    reduce(&sum, &mine, 1, GEX_OP_ADD);
    reduce(latest, times, 2, GEX_OP_MAX);
    if (job.me == 0)
        printf("%s|%zu|%.0f\n", o->name, o->nbytes, sum / (latest[0] + latest[1]));
}

static void sample(struct worker *w, const struct operation *o, double seconds)
{
    meet(w);
    w->begin = now();
    w->done = (double)o->run(w, o->nbytes, w->begin + seconds);
    w->end = now();
    meet(w);
    if (w->number == 0 && seconds == options.seconds)
        print_rate(o);
}

/* Partners are on different CPUs, as far as there are any. */
static int cpu_of(const struct worker *w)
{
    gex_Rank_t half = job.size / 2;
    bool leads = job.me < half;
    int pair = (int)(leads ? job.me : job.me - half) * options.threads + w->number;
    return (pair + !leads) % (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static void *work(void *argument)
{
    struct worker *w = argument;
    bench_pin_to(cpu_of(w));
    for (int i = 0; i < operation_count; i++) {
        sample(w, &operations[i], options.seconds / 8); /* connects, and fills caches */
        sample(w, &operations[i], options.seconds);
    }
    return NULL;
}

/* ---- start ---- */

/* Hosts have no common clock. */
static bool is_one_host(void)
{
    gex_Rank_t hosts;
    gex_System_QueryMyPosition(NULL, NULL, &hosts, NULL);
    return hosts == 1;
}

static _Noreturn void usage_exit(const char *why, const char *what)
{
    if (job.me == 0)
        fprintf(
            stderr,
            "pairs: %s%s\nusage: gasnetrun_ibv -n EVEN pairs [--threads N] [--ms N]   on one host\n"
            "  --threads N  of each process (1; 1..16)\n"
            "  --ms N       milliseconds of one sample (50; 1..1000)\n"
            "Prints operation|bytes|operations in a second, of all threads together.\n",
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
        {"threads", 1, NULL, 't'}, {"ms", 1, NULL, 'm'}, {NULL, 0, NULL, 0}};
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 't')
            options.threads = number(optarg, threads_max, "--threads");
        else if (option == 'm')
            options.seconds = 1e-3 * number(optarg, 1000, "--ms");
        else
            usage_exit("unknown option or missing value: ", argv[optind - 1]);
    }
    if (optind < argc)
        usage_exit("nothing is expected after the options: ", argv[optind]);
    if (job.size % 2)
        usage_exit("needs an even number of processes: ", "gasnetrun_ibv -n 2");
    if (!is_one_host())
        usage_exit("compares times of all processes, so they must be ", "on one host");
}

static void attach(void)
{
    gex_Segment_t segment;
    void *theirs = NULL;
    uintptr_t size = 0;
    if (gex_Segment_Attach(&segment, job.tm, threads_max * slot_size))
        gasnet_exit(1);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(job.tm, job.partner, &theirs, NULL, &size, 0));
    char *mine = gex_Segment_QueryAddr(segment);
    memset(mine, 1, threads_max * slot_size);
    /* sources and targets of a thread are apart, so that its partner's puts do not slow it */
    for (int i = 0; i < options.threads; i++) {
        workers[i].number = i;
        workers[i].here = mine + (size_t)i * slot_size;
        workers[i].there = (char *)theirs + (size_t)i * slot_size + slot_size / 2;
    }
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    if (gex_Client_Init(&client, &ep, &job.tm, "pairs", &argc, &argv, 0))
        return 1;
    job.me = gex_TM_QueryRank(job.tm);
    job.size = gex_TM_QuerySize(job.tm);
    parse(argc, argv);
    job.partner = (job.me + job.size / 2) % job.size;
    if (gex_EP_RegisterHandlers(ep, handlers, sizeof(handlers) / sizeof(*handlers)))
        gasnet_exit(1);
    attach();
    pthread_barrier_init(&job.all, NULL, (unsigned)options.threads);
    gex_Coll_BarrierBlocking(job.tm, 0);
    for (int i = 1; i < options.threads; i++)
        if (pthread_create(&workers[i].id, NULL, work, &workers[i])) {
            fprintf(stderr, "pairs: a thread can't be made\n");
            gasnet_exit(1);
        }
    work(&workers[0]);
    for (int i = 1; i < options.threads; i++)
        pthread_join(workers[i].id, NULL);
    gex_Coll_BarrierBlocking(job.tm, 0);
    gasnet_exit(0);
}
