/* SPDX-License-Identifier: BSD-3-Clause */
/* The benchmark's parts and what they share. Two processes: rank 0 measures, rank 1 is its peer.
 * Each case exists twice, over the conduit and raw: over a queue pair of the same two processes on
 * the same port with the same memory, or, between neighbours, by loads and stores of that memory.
 * One thread; no locks. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gasnetex.h>

#define BENCH_KIB ((size_t)1024)
#define BENCH_MIB (1024 * BENCH_KIB)

enum {
    bench_window = 16,    /* puts or gets kept in flight: below the conduit's default depth of 24 */
    bench_slots = 64,     /* receive buffers of the raw queue pair */
    bench_reps_max = 101, /* odd, so that a median is a sample */
    bench_cases_max = 64
};

/* Where things lie in each segment. */
#define BENCH_SLOT_SIZE    (64 * BENCH_KIB)
#define BENCH_SOURCE       ((size_t)0)
#define BENCH_TARGET       (4 * BENCH_MIB)
#define BENCH_RING         (8 * BENCH_MIB)
#define BENCH_SEGMENT_SIZE (BENCH_RING + bench_slots * BENCH_SLOT_SIZE)
/* Where the next small transfer lies, behind the source and the target. One place for all would
 * measure which variable of the loop happens to lie there in a page: a load that seems to depend on
 * a store of the copy just before it (4K aliasing) costs more than the copy. */
#define BENCH_NEXT(at) (((at) + 576) & 8191)

/* job.c: the two processes */
struct bench_job {
    gex_TM_t tm;
    gex_EP_t ep;
    gex_Rank_t me, peer;
    char *mine, *theirs; /* segments, each at its owner's address */
};
extern struct bench_job bench_job;

void bench_job_start(int *argc, char ***argv);
_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Both give `mine`, both get the other's; at most a few hundred bytes. Collective. */
void bench_exchange(const void *mine, void *theirs, size_t size);
/* Rank 0 sends the next command; rank 1 waits for it. */
struct bench_command {
    int32_t index; /* of the case; < 0: no more */
    int32_t raw;
    int32_t count;
};
void bench_command_send(struct bench_command command);
/* Runs what the other side sends, until an index below 0 comes. */
void bench_obey(double (*run)(struct bench_command command));
double bench_now(void); /* seconds */
/* Rank N stays on the Nth CPU that the job may use, if there are enough. */
void bench_pin(void);

/* One measurement: both ranks call it with the same arguments, rank 0 is timed. */
typedef void bench_op(size_t nbytes, long count);

enum bench_unit { BENCH_NS, BENCH_US, BENCH_KOPS, BENCH_MBPS };

struct bench_case {
    const char *name;
    const char *raw_name;
    bench_op *conduit, *raw;
    enum bench_unit unit;
    size_t bytes;
    double aim;      /* of the ratio: at most for times, at least for rates; 0: none */
    double aim_rate; /* of the conduit alone, in the unit, at least; 0: none */
};

/* cases.c; nbrhd_cases.c for neighbours */
extern struct bench_case bench_cases[bench_cases_max];
int bench_cases_fill(void);

/* conduit_am.c; the handlers' table is registered by job.c */
extern gex_AM_Entry_t bench_am_table[];
extern const size_t bench_am_count;
bench_op bench_am_short, bench_am_medium, bench_am_long;
bench_op bench_am_short_flood, bench_am_medium_flood, bench_am_long_flood;

/* conduit_rma.c */
bench_op bench_put, bench_get, bench_put_window, bench_get_window;

/* raw_open.c, raw_ops.c */
void bench_raw_open(const char *port);
const char *bench_raw_describe(void);
void bench_raw_close(void);
bench_op bench_raw_send, bench_raw_write_imm, bench_raw_flood, bench_raw_write_send;
bench_op bench_raw_fetch_add, bench_raw_compare_swap, bench_raw_fetch_add_window;
bench_op bench_raw_write, bench_raw_read, bench_raw_write_window, bench_raw_read_window;

/* nbrhd_raw.c, which has bench_raw_open and its like, too */
bench_op nbrhd_raw_ping_pong, nbrhd_raw_copies, nbrhd_raw_both, nbrhd_raw_memcpy, nbrhd_raw_flood;
bench_op nbrhd_raw_copy_flood, nbrhd_raw_careless_flood;
bench_op nbrhd_raw_store, nbrhd_raw_load, nbrhd_raw_look;
bench_op nbrhd_raw_small_put, nbrhd_raw_small_get, nbrhd_raw_small_value, nbrhd_raw_small_load;

/* nbrhd_small.c */
bench_op nbrhd_put_blocking, nbrhd_get_blocking, nbrhd_put_nb, nbrhd_get_nb;
bench_op nbrhd_put_nbi, nbrhd_get_nbi;
bench_op nbrhd_put_val, nbrhd_put_nb_val, nbrhd_put_nbi_val, nbrhd_get_val;

/* report.c */
struct bench_result {
    const struct bench_case *what;
    int reps;
    double conduit[bench_reps_max], raw[bench_reps_max]; /* in the case's unit */
};
void bench_report_table(const struct bench_result *results, int count);
/* Non-zero when the file can't be written. */
int bench_report_json(const char *file, const struct bench_result *results, int count);

#endif
