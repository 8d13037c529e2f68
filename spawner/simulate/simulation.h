/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a simulation, shared by the files of this folder. Ranks of a neighbourhood behave
 * alike, so only its first rank, the leader, has a record. Times are ns from the start of the
 * launcher. One thread. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_SIMULATION_H
#define TRUNKLINE_SPAWNER_SIMULATE_SIMULATION_H

#include "costs.h"
#include "events.h"
#include "fabric.h"
#include "input.h"

#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/limits.h"

enum sim_phase {
    SIM_GUARDS,   /* until all hosts have answered */
    SIM_RANKS,    /* until the first fence */
    SIM_EXCHANGE, /* peer infos, connections of start-up, the last wait */
    SIM_CALLS,    /* the program's collectives */
    SIM_FAILURE,  /* of a host: until the launcher has ended all others */
    SIM_EXIT,     /* codes, last fence, end of the processes */
    sim_phases
};

/* Frames on the head's control sockets by kind. */
struct sim_frames {
    uint64_t hello, job, go, server, fence, fence_done, done, left, lost, kill, ending, abort;
    uint64_t report_least; /* reports depend on time: at least so many */
};

struct sim_leader {
    uint64_t clock;        /* when it has finished the work given to it */
    uint64_t received;     /* bit for each step */
    uint64_t bytes;        /* sent to other hosts' ranks */
    uint32_t sent, came;   /* without the following */
    uint32_t acks, loans;  /* sent: acknowledgements, and messages about loans of credits */
    uint32_t waits;        /* messages that found no credit */
    uint32_t pass, passes; /* what it posts belongs to this pass; their number: messages.c */
    uint32_t datagrams, connections;
    uint32_t *partners; /* that it is connected to now */
    uint32_t partner_space;
    uint32_t made, closed; /* connections, in all */
    uint32_t connections_most;
    uint32_t *records; /* partners: demand.c */
    uint32_t record_count, record_space;
    uint32_t looks, questions;
    uint64_t timer;
    bool is_due;          /* messages may be sent again */
    uint32_t waiting;     /* its messages that wait for credits: messages.c */
    uint32_t next_victim; /* the partner that credits are reclaimed from next */
    int credits_total;    /* requests that it may send now to all together */
    struct tk_lender lender;
    uint16_t step;
    bool has_sent;   /* in this step */
    bool is_sending; /* what it sends in this step waits for a credit */
};

/* Of a collective in progress, a leader. */
struct sim_member {
    uint32_t round, stage, outstanding;
    uint8_t phase, value;
};

struct sim_host {
    uint64_t clock;
    uint64_t cpu;        /* ns used */
    uint32_t first, end; /* its neighbourhoods */
    uint32_t ranks;
    uint32_t codes; /* ranks that add theirs to the last fence */
};

/* Ranks at the end of the job, from the end of the calls. A message is one of the library, through
 * the network or (`local`) shared memory. */
struct sim_ending {
    uint64_t agree, elect, notices; /* messages of all ranks by what they are for */
    uint64_t local;                 /* of these */
    uint64_t puts;                  /* ranks that add their code to the last fence */
    struct {
        uint64_t messages, bytes, connections; /* of the busiest one; messages sent and received */
    } rank, host;
    uint64_t head_frames, head_bytes; /* before that */
};

struct simulation {
    struct sim_input in;
    struct sim_costs costs;
    struct sim_fabric fabric;
    struct sim_events events;
    uint32_t nbrhds;
    uint32_t *first;   /* rank of each neighbourhood, and then the number of ranks */
    uint32_t *host_of; /* by neighbourhood */
    struct sim_leader *leaders;
    struct sim_member *members;
    struct sim_host *hosts;
    struct sim_connections *connections;
    struct tk_verbs_limits limits; /* of each process */
    struct tk_loan_plan plan;      /* of its shared receive queue */
    struct tk_verbs_credits credits;
    bool is_shared;              /* receive queues are */
    uint32_t conns;              /* connections to a peer; what is counted below are peers */
    uint32_t connections_max;    /* peers of a process at once; 0: not bounded */
    struct sim_waiting *waiting; /* messages.c */
    uint32_t waiting_count, waiting_space, waiting_free;
    /* A message of this leader that waited for a credit is gone. */
    void (*sent)(struct simulation *s, uint32_t nbrhd, uint64_t now);
    struct sim_frames frames;
    uint64_t head_cpu, head_bytes, head_frames, guard_bytes, guard_cpu_most;
    uint64_t pmix_puts, pmix_gets, pmix_fences;
    struct {
        uint64_t up, down;
    } fence_bytes; /* of the head, without headers of frames */
    struct {
        uint64_t sent, acks, loans, waits, datagrams, connections, closed;
    } stock; /* of all ranks before the end of the job, as its statistics count */
    struct sim_ending end;
    uint64_t cpu; /* of all, ns */
    uint64_t ends[sim_phases];
    uint64_t random;
    bool has_failed;    /* no memory */
    bool hangs;         /* nobody notices that a host has failed */
    bool is_late;       /* ranks have not agreed by GASNET_EXITTIMEOUT */
    int status, wanted; /* that the policy ends the job with, and that it should */
};

/* A number below `limit`, the same for each run with this seed. */
uint64_t sim_random(struct simulation *s, uint64_t limit);

/* CPU time of the host of a neighbourhood that begins at `now`; returns its end. */
uint64_t sim_compute(struct simulation *s, uint32_t host, uint64_t now, uint64_t cost);

/* ---- barriers.c */
void sim_barrier(struct simulation *s, uint32_t number);
/* Time in which a neighbourhood hands a value on from its last rank to its first, or back. */
uint64_t sim_inside(const struct simulation *s, uint32_t nbrhd);

/* ---- rounds.c */
void sim_collective(struct simulation *s, const struct sim_call *call);
uint32_t sim_nbrhd_of_rank(const struct simulation *s, uint32_t rank);

/* ---- infos.c: bytes that a fence of data carries, of all hosts: the first, and that at the end.
 * Nothing on one host, where fences carry no data. */
struct sim_data {
    uint64_t first, left;
};
struct sim_data sim_data_of_hosts(const struct simulation *s);

/* ---- launcher.c */
void sim_start(struct simulation *s);

/* ---- leaving.c: ranks leave, until all agree; their hosts' clocks are then when they enter the
 * last fence. Returns the code of the job. */
int sim_leave(struct simulation *s);
/* Leaders in a barrier that hosts `first` .. `end` - 1 do not come to: calls `sends` for each that
 * sends one of these a message. */
void sim_get_stuck(struct simulation *s, uint32_t first, uint32_t end,
                   void (*sends)(void *object, uint32_t from, uint32_t to, uint64_t time),
                   void *object);

/* ---- ending.c: all exit, and the launcher judges it */
void sim_end(struct simulation *s);

/* ---- failing.c: a host fails while the others are in a barrier */
void sim_fail(struct simulation *s);

/* ---- result.c */
void sim_print(const struct simulation *s);
void sim_print_json(const struct simulation *s);

#endif
