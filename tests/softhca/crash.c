/* SPDX-License-Identifier: BSD-3-Clause */
/* A process may be killed at any instruction, and the others continue. A sender is executed
 * instruction by instruction and killed after the k-th of its ibv_post_send, for every STRIDEth k
 * (environment CRASH_STRIDE: another distance). The receiver must get the message whole or not at
 * all, then the error of a vanished peer; its other connections and the queues they share work on.
 * Three processes: this one steps and kills, the survivor runs during a whole case, and each victim
 * is a new process. They take turns by one word in shared memory. */
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/ptrace.h>

#include "harness.h"

#define LONG 1800 /* seconds; killing at each instruction needs more than 10 000 kills */

/* Under a sanitizer a post is longer, and the time grows with the square of that. */
#define STRIDE (SANITIZED ? 1201 : 17)
/* A first post is longer still. */
#define STRIDES_OF_FIRST (SANITIZED ? 33 : 100)

struct attack {
    enum ibv_wr_opcode opcode;
    size_t length;
    bool private;
    bool first; /* the first post, which also looks the peer up and maps it */
};

enum step { NOTHING, VICTIM_READY, SURVIVOR_READY, ATTACHED, VICTIM_DEAD, SURVIVED };

/* In memory that all three share. */
struct stage {
    struct attack attack;
    struct address victim, survivor;
    _Atomic int turn;
    _Atomic bool posting, polled, last;
    int k, whole;
};

static struct stage *stage;

static void await_turn(enum step turn)
{
    double until = seconds() + HANG;

    while (stage->turn != (int)turn) {
        CHECK(seconds() < until);
        sched_yield();
    }
}

/* ---- the victim ---- */

static void victim(void)
{
    struct end e;

    deadline(ALARM);
    end_open(&e, &(struct end_options){.private = stage->attack.private});
    fill(e.buf, stage->attack.length, (unsigned)stage->k);
    stage->victim = address_of(&e);
    stage->turn = VICTIM_READY;
    await_turn(SURVIVOR_READY);
    connect_to(&e, &stage->survivor);
    await_turn(ATTACHED);
    if (!stage->attack.first) {
        CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &stage->survivor, 700000),
                 0);
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    }
    CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
    stage->posting = true;
    raise(SIGSTOP);
    CHECK_EQ(post(&e, stage->attack.opcode, 1, 0, stage->attack.length, IBV_SEND_SIGNALED,
                  &stage->survivor, 0),
             0);
    stage->posting = false;
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    stage->polled = true;
    for (;;)
        pause();
}

/* ---- the survivor ---- */

struct survivor {
    struct end e;           /* its queue pair: the one to the victim */
    struct end left, right; /* a connection to itself over the same CQs */
};

static void open_survivor(struct survivor *v)
{
    struct address left, right;

    end_open(&v->e, &(struct end_options){.no_qp = true, .private = stage->attack.private});
    v->left = v->right = v->e;
    end_qp(&v->left, &(struct end_options){0});
    end_qp(&v->right, &(struct end_options){0});
    left = address_of(&v->left);
    right = address_of(&v->right);
    connect_to(&v->left, &right);
    connect_to(&v->right, &left);
}

static struct ibv_wc next_wc(struct ibv_cq *cq, const struct ibv_qp *qp)
{
    struct ibv_wc wc = wait_wc(cq);

    CHECK_EQ(wc.qp_num, qp->qp_num);
    return wc;
}

/* A send to the dead process ends with an error; the dead process's message, if complete, comes
 * before the flush of the other receive. */
static void check_traces(struct survivor *v)
{
    CHECK_EQ(post_send(&v->e, 9, 500000, 8, 0), 0);
    CHECK_EQ(next_wc(v->e.scq, v->e.qp).status, IBV_WC_RETRY_EXC_ERR);
    stage->whole = 0;
    for (uint64_t i = 0; i < 2; i++) {
        struct ibv_wc wc = next_wc(v->e.rcq, v->e.qp);

        CHECK_EQ(wc.wr_id, i);
        if (wc.status == IBV_WC_WR_FLUSH_ERR)
            continue;
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
        CHECK_EQ(i, 0);
        CHECK_EQ(wc.byte_len, stage->attack.length);
        CHECK(filled(v->e.buf, stage->attack.length, (unsigned)stage->k));
        stage->whole = 1;
    }
}

static void check_others(struct survivor *v)
{
    CHECK_EQ(post_recv(&v->right, 5, 600000, 64), 0);
    CHECK_EQ(post_send(&v->left, 6, 500000, 64, 0), 0);
    CHECK_EQ(next_wc(v->e.rcq, v->right.qp).status, IBV_WC_SUCCESS);
    CHECK_EQ(next_wc(v->e.scq, v->left.qp).status, IBV_WC_SUCCESS);
    no_wc(v->e.rcq);
    no_wc(v->e.scq);
}

static void survive_one(struct survivor *v)
{
    await_turn(VICTIM_READY);
    memset(v->e.buf, 0, stage->attack.length);
    end_qp(&v->e, &(struct end_options){0});
    stage->survivor = address_of(&v->e);
    connect_to(&v->e, &stage->victim);
    for (uint64_t i = 0; i < 2; i++)
        CHECK_EQ(post_recv(&v->e, i, i * 250000, 250000), 0);
    stage->turn = SURVIVOR_READY;
    /* A peer that was reached before is known to be dead at once; for another one the sender
     * waits. */
    CHECK_EQ(post(&v->e, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &stage->victim, 700000), 0);
    CHECK_EQ(next_wc(v->e.scq, v->e.qp).status, IBV_WC_SUCCESS);
    stage->turn = ATTACHED;
    await_turn(VICTIM_DEAD);
    check_traces(v);
    check_others(v);
    CHECK_EQ(ibv_destroy_qp(v->e.qp), 0);
    v->e.qp = NULL;
    stage->turn = SURVIVED;
}

static void survivor(void)
{
    struct survivor v;

    deadline(LONG);
    open_survivor(&v);
    while (!stage->last)
        survive_one(&v);
    CHECK_EQ(ibv_destroy_qp(v.left.qp), 0);
    CHECK_EQ(ibv_destroy_qp(v.right.qp), 0);
    end_close(&v.e);
}

/* ---- the stepper ---- */

/* Executes at most k instructions of the post; false when it returned before. */
static bool step(pid_t child, int k)
{
    int status;

    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSTOPPED(status));
    for (int i = 0; i < k && stage->posting; i++) {
        CHECK_EQ(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSTOPPED(status));
    }
    return stage->posting;
}

/* The post has returned. On a busy machine a first one may have left its request to the helper
 * thread. */
static void let_finish(pid_t child)
{
    double until = seconds() + HANG;

    CHECK_EQ(ptrace(PTRACE_DETACH, child, NULL, NULL), 0);
    while (!stage->polled)
        CHECK(seconds() < until && sched_yield() == 0);
}

static bool kill_after(int k)
{
    bool inside;
    int status;
    pid_t child;

    stage->k = k;
    stage->polled = false;
    child = fork();
    CHECK(child >= 0);
    if (child == 0)
        victim();
    inside = step(child, k);
    stage->last = !inside;
    if (!inside)
        let_finish(child);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    stage->turn = VICTIM_DEAD;
    await_turn(SURVIVED);
    stage->turn = NOTHING;
    return inside;
}

static int distance(void)
{
    const char *stride = getenv("CRASH_STRIDE");

    return (stride ? atoi(stride) : STRIDE) * (stage->attack.first ? STRIDES_OF_FIRST : 1);
}

static void attack(const struct attack *how)
{
    int k = 0, complete = 0, status;
    pid_t child;

    deadline(LONG);
    stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(stage != MAP_FAILED);
    stage->attack = *how;
    child = fork();
    if (child == 0) {
        survivor();
        exit(0);
    }
    for (bool inside = true; inside; k += distance()) {
        inside = kill_after(k);
        complete += stage->whole;
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    printf("     killed after 0 to %d instructions; the message was complete %d times\n",
           k - distance(), complete);
    /* Both kinds occurred, so the kills hit the post. */
    CHECK(complete > 0 && complete * distance() < k);
}

static void in_first_send(void)
{
    attack(&(struct attack){.opcode = IBV_WR_SEND, .length = 64, .first = true});
}

static void in_send(void)
{
    attack(&(struct attack){.opcode = IBV_WR_SEND, .length = 64});
}

static void in_send_private(void)
{
    attack(&(struct attack){.opcode = IBV_WR_SEND, .length = 1000, .private = true});
}

static void in_send_private_large(void)
{
    attack(&(struct attack){.opcode = IBV_WR_SEND, .length = 200000, .private = true});
}

static void in_write_imm(void)
{
    attack(&(struct attack){.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .length = 256});
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"in_first_send", in_first_send},     {"in_send", in_send},
        {"in_send_private", in_send_private}, {"in_send_private_large", in_send_private_large},
        {"in_write_imm", in_write_imm},       {NULL, NULL}};

    return run_cases(cases, argc, argv);
}
