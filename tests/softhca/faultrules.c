/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFTHCA_FAULT: which operations a rule hits, rules that are set while the program runs, and
 * faults that calls return. */
#include "config.h"

#include <stddef.h>
#include <sys/un.h>

#include "contrib/softhca/support/registry_name.h"
#include "faults.h"

/* ---- calls ---- */

static struct end maker;

static void *make_pd(void)
{
    return ibv_alloc_pd(maker.ctx);
}

static void *make_ah(void)
{
    struct address to = address_of(&maker);
    struct ibv_ah_attr path = path_to(&to);

    return ibv_create_ah(maker.pd, &path);
}

static void *make_channel(void)
{
    return ibv_create_comp_channel(maker.ctx);
}

static void *make_cq(void)
{
    return ibv_create_cq(maker.ctx, 1, NULL, NULL, 0);
}

static void *make_qp(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = maker.scq, .recv_cq = maker.rcq, .qp_type = IBV_QPT_RC};

    return ibv_create_qp(maker.pd, &init);
}

static void *make_mr(void)
{
    return ibv_reg_mr(maker.pd, maker.buf, 4096, 0);
}

static void *make_larger_cq(void)
{
    errno = ibv_resize_cq(maker.scq, 512);
    return errno == 0 ? maker.scq : NULL;
}

static void *make_srq(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};

    return ibv_create_srq(maker.pd, &init);
}

static void *make_xrcd(void)
{
    struct ibv_xrcd_init_attr init = {.comp_mask =
                                          IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                      .fd = -1,
                                      .oflags = O_CREAT};

    return ibv_open_xrcd(maker.ctx, &init);
}

struct maker {
    const char *name;
    void *(*make)(void);
    int before; /* calls of this kind that opening an end makes */
};

static void expect_enomem(const struct maker *m)
{
    char rules[64];

    snprintf(rules, sizeof rules, "enomem:call=%s,nth=%d", m->name, m->before + 2);
    faults(rules);
    end_open(&maker, NULL);
    CHECK(m->make() != NULL);
    errno = 0;
    CHECK(m->make() == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(m->make() != NULL);
}

static void calls_run_out_of_memory(void)
{
    static const struct maker makers[] = {
        {"alloc_pd", make_pd, 1},
        {"create_ah", make_ah, 0},
        {"create_comp_channel", make_channel, 0},
        {"create_cq", make_cq, 2},
        {"create_qp", make_qp, 1},
        {"create_srq", make_srq, 0},
        {"open_xrcd", make_xrcd, 0},
        {"reg_mr", make_mr, 1},
        {"resize_cq", make_larger_cq, 0},
    };

    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        pid_t child = fork();
        int result;

        CHECK(child >= 0);
        if (child == 0) {
            expect_enomem(&makers[i]);
            _exit(0); /* skips destroying the objects */
        }
        CHECK_EQ(waitpid(child, &result, 0), child);
        if (result != 0)
            fprintf(stderr, "with %s\n", makers[i].name);
        CHECK_EQ(result, 0);
    }
}

static void the_send_queue_is_full(void)
{
    struct end a, b;
    struct address to;

    faults("sqfull:nth=2");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(write_8(&a, &to, 2, 0), ENOMEM);
    CHECK_EQ(write_8(&a, &to, 3, 0), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK_EQ(wait_wc(a.scq).wr_id, 3);
    no_wc(a.scq);
    close_two(&a, &b);
}

/* Writes one, two and three by the builders; returns the result of ibv_wr_complete. */
static int write_three(struct end *a, const struct address *to)
{
    struct ibv_qp_ex *x = ibv_qp_to_qp_ex(a->qp);

    ibv_wr_start(x);
    for (uint64_t i = 0; i < 3; i++) {
        x->wr_id = i;
        x->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_rdma_write(x, to->rkey, to->addr);
        ibv_wr_set_sge(x, a->mr->lkey, (uintptr_t)a->buf, 8);
    }
    return ibv_wr_complete(x);
}

/* A batch in which one request finds the queue full is not posted at all. */
static void the_send_queue_is_full_for_a_batch(void)
{
    struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RC,
                                       .cap = {.max_send_wr = 8, .max_send_sge = 1},
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
    struct end a, b;
    struct address to_a, to_b;

    faults("sqfull:nth=2");
    end_open(&a, &(struct end_options){.no_qp = true});
    end_open(&b, NULL);
    init.pd = a.pd;
    init.send_cq = a.scq;
    init.recv_cq = a.rcq;
    CHECK((a.qp = ibv_create_qp_ex(a.ctx, &init)) != NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    connect_to(&a, &to_b);
    connect_to(&b, &to_a);
    CHECK_EQ(write_three(&a, &to_b), ENOMEM);
    no_wc(a.scq);
    CHECK_EQ(write_three(&a, &to_b), 0);
    for (uint64_t i = 0; i < 3; i++)
        CHECK_EQ(wait_wc(a.scq).wr_id, i);
    close_two(&a, &b);
}

static void the_completion_queue_overruns(void)
{
    struct ibv_async_event ev;
    struct end a, b;
    struct address to;

    faults("cqoverrun:nth=2");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK_EQ(write_8(&a, &to, 2, 0), 0);
    CHECK_EQ(ibv_get_async_event(a.ctx, &ev), 0);
    CHECK_EQ(ev.event_type, IBV_EVENT_CQ_ERR);
    CHECK(ev.element.cq == a.scq);
    ibv_ack_async_event(&ev);
    wait_wc(a.scq);
    CHECK_EQ(state_of(&a), IBV_QPS_ERR);
    close_two(&a, &b);
}

/* ---- selectors ---- */

/* Which of eight writes and of eight sends (posted in turn) a rule hits; a bit for each. */
static unsigned hit_by(const char *rule)
{
    unsigned hits = 0;
    int fds[2], status;
    pid_t child;

    CHECK_EQ(pipe(fds), 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct end a, b;
        struct address to;

        faults(rule);
        open_two(&a, &b, &(struct end_options){.send_wr = 64});
        to = address_of(&b);
        for (int i = 0; i < 8; i++) {
            CHECK_EQ(post_recv(&b, 1, 0, 8), 0);
            hits |= (unsigned)(write_8(&a, &to, 1, 0) == ENOMEM) << i;
            hits |= (unsigned)(post_send(&a, 1, 0, 8, 0) == ENOMEM) << (8 + i);
        }
        CHECK_EQ(write(fds[1], &hits, sizeof hits), sizeof hits);
        _exit(0);
    }
    close(fds[1]);
    CHECK_EQ(read(fds[0], &hits, sizeof hits), sizeof hits);
    close(fds[0]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return hits;
}

static void selectors_choose(void)
{
    CHECK_EQ(hit_by("sqfull"), 0xffff);
    CHECK_EQ(hit_by("sqfull:op=any"), 0xffff);
    CHECK_EQ(hit_by("sqfull:op=write"), 0x00ff);
    CHECK_EQ(hit_by("sqfull:op=send"), 0xff00);
    CHECK_EQ(hit_by("sqfull:op=read"), 0);
    CHECK_EQ(hit_by("sqfull:op=atomic"), 0);
    CHECK_EQ(hit_by("sqfull:op=write,nth=3"), 0x0004);
    CHECK_EQ(hit_by("sqfull:op=write,every=3"), 0x0024);
    CHECK_EQ(hit_by("sqfull:op=write,after=5"), 0x00e0);
    CHECK_EQ(hit_by("sqfull:op=write,after=3,every=2"), 0x0050);
    CHECK_EQ(hit_by("sqfull:op=write,count=2"), 0x0003);
    CHECK_EQ(hit_by("sqfull:op=write,after=2,every=2,count=2"), 0x0028);
    CHECK_EQ(hit_by("sqfull:op=write,nth=1;sqfull:op=send,nth=8"), 0x8001);
    CHECK_EQ(hit_by("sqfull:dev=softhca0,port=1"), 0xffff);
    CHECK_EQ(hit_by("sqfull:dev=softhca1"), 0);
    CHECK_EQ(hit_by("sqfull:port=2"), 0);
    CHECK_EQ(hit_by("sqfull:qp=1"), 0);
    CHECK_EQ(hit_by("sqfull:for=60000"), 0xffff);
}

static void probability_follows_the_seed(void)
{
    unsigned once = hit_by("sqfull:p=0.5"), again = hit_by("sqfull:p=0.5");

    CHECK_EQ(once, again);
    CHECK(__builtin_popcount(once) >= 2 && __builtin_popcount(once) <= 14);
    setenv("SOFTHCA_SEED", "2", 1);
    CHECK(hit_by("sqfull:p=0.5") != once);
}

/* ---- at run time ---- */

/* Asks the member that owns a queue pair, as the softhca command does. */
static const char *ask(const struct end *e, const char *request)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX}, me = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    static char reply[4096];
    char fabric[SHCA_NAME];
    ssize_t n;

    CHECK(fd >= 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&me, sizeof(sa_family_t)), 0);
    shca_name_fabric(getenv("SOFTHCA_FABRIC"), geteuid(), fabric);
    shca_name_claim(to.sun_path + 1, sizeof to.sun_path - 1, fabric, e->qp->qp_num >> SHCA_QP_BITS);
    CHECK_EQ(
        sendto(fd, request, strlen(request), 0, (struct sockaddr *)&to,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(to.sun_path + 1))),
        strlen(request));
    n = recv(fd, reply, sizeof reply - 1, 0);
    CHECK(n > 0);
    reply[n] = 0;
    close(fd);
    return reply;
}

static void one_queue_pair_of_two_from_now_on(void)
{
    struct end a, b;
    struct address to_a, to_b;
    char rules[64], expected[160];

    open_two(&a, &b, NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    CHECK_EQ(write_8(&a, &to_b, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    snprintf(rules, sizeof rules, "fault set sqfull:qp=%u", a.qp->qp_num);
    CHECK_EQ(strncmp(ask(&a, rules), "ok", 2), 0);
    CHECK_EQ(write_8(&a, &to_b, 1, 0), ENOMEM);
    CHECK_EQ(write_8(&b, &to_a, 1, 0), 0);
    CHECK_EQ(wait_wc(b.scq).status, IBV_WC_SUCCESS);
    snprintf(expected, sizeof expected, "ok\n%s matched 1 acted 1\n", rules + 10);
    CHECK_EQ(strcmp(ask(&a, "fault list"), expected), 0);
    CHECK_EQ(strcmp(ask(&a, "fault set drop:x=1"),
                    "error drop takes no 'x'; it takes dev, port, qp, op, nth, every, after, "
                    "count, p, for, lost, over"),
             0);
    CHECK_EQ(strcmp(ask(&a, "fault list"), expected), 0); /* a mistake changes nothing */
    CHECK_EQ(strncmp(ask(&a, "fault clear"), "ok", 2), 0);
    CHECK_EQ(write_8(&a, &to_b, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    close_two(&a, &b);
}

/* A request in flight keeps its fault when the rules are removed: it ends as they said. */
static void a_fault_under_way_ends_by_itself(void)
{
    struct end a, b;
    struct address to;

    faults("delay:ms=100");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(write_8(&a, &to, 2, 0), 0);
    CHECK_EQ(strncmp(ask(&a, "fault clear"), "ok", 2), 0);
    no_wc(a.scq);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    close_two(&a, &b);
}

static void the_window_ends(void)
{
    struct end a, b;
    struct address to;
    double start;
    int e;

    faults("sqfull:for=50");
    start = seconds();
    open_two(&a, &b, NULL);
    to = address_of(&b);
    e = write_8(&a, &to, 1, 0);
    /* On a loaded machine the window may be over by now. */
    CHECK(e == ENOMEM || (e == 0 && seconds() - start >= 50 * MS));
    if (e == 0)
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    while (seconds() - start < 60 * MS)
        usleep(1000);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    close_two(&a, &b);
}

/* ---- the variable ---- */

static void bad_rules_are_refused_at_once(void)
{
    int fds[2], saved = dup(STDERR_FILENO);
    char line[256];
    ssize_t n;

    CHECK_EQ(pipe(fds), 0);
    faults("drop:nth=1;delai:us=4");
    dup2(fds[1], STDERR_FILENO);
    CHECK(ibv_get_device_list(NULL) == NULL);
    dup2(saved, STDERR_FILENO);
    CHECK_EQ(errno, EINVAL);
    n = read(fds[0], line, sizeof line - 1);
    CHECK(n > 0);
    line[n] = 0;
    CHECK(strncmp(line, "softhca: SOFTHCA_FAULT: 'delai' is not a fault; known are ", 57) == 0);
    CHECK(line[n - 1] == '\n' && strchr(line, '\n') == line + n - 1);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(calls_run_out_of_memory),
        CASE(the_send_queue_is_full),
        CASE(the_send_queue_is_full_for_a_batch),
        CASE(the_completion_queue_overruns),
        CASE(selectors_choose),
        CASE(probability_follows_the_seed),
        CASE(one_queue_pair_of_two_from_now_on),
        CASE(a_fault_under_way_ends_by_itself),
        CASE(the_window_ends),
        CASE(bad_rules_are_refused_at_once),
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
