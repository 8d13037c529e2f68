/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Serves the requests of the softhca command: datagrams to the socket that claims the member's
 * slot, each with the credentials of its sender, attached by the kernel. Owns nothing; runs in the
 * helper thread and takes shca.lock to count objects. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/control.h"
#include "fault/fault.h"
#include "wire/wire.h"

struct answer {
    char *text;
    size_t room, used;
};

__attribute__((format(printf, 2, 3))) static void put(struct answer *a, const char *format, ...)
{
    va_list ap;
    int n;

    va_start(ap, format);
    n = vsnprintf(a->text + a->used, a->room - a->used, format, ap);
    va_end(ap);
    if (n > 0)
        a->used = a->used + (size_t)n < a->room ? a->used + (size_t)n : a->room - 1;
}

/* ---- list ---- */

static const struct {
    enum ibv_qp_type type;
    const char *name;
} types[] = {{IBV_QPT_RC, "RC"},
             {IBV_QPT_UC, "UC"},
             {IBV_QPT_UD, "UD"},
             {IBV_QPT_XRC_SEND, "XRC_SEND"},
             {IBV_QPT_XRC_RECV, "XRC_RECV"}};
#define TYPES (sizeof types / sizeof types[0])

static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
#define STATES (sizeof states / sizeof states[0])

struct census {
    uint32_t qps[SHCA_MAX_HCA][TYPES][STATES];
    uint64_t messages, bytes;
};

static size_t type_index(enum ibv_qp_type type)
{
    size_t i = 0;

    while (i < TYPES - 1 && types[i].type != type)
        i++;
    return i;
}

static void control_count(struct census *c)
{
    pthread_mutex_lock(&shca.lock);
    c->messages = shca.gone_messages;
    c->bytes = shca.gone_bytes;
    for (uint32_t i = 0; i < shca.qp_high; i++) {
        struct shca_qp *qp = shca.qps[i];
        uint32_t state = qp ? shca_qp_state(qp) : STATES;

        if (state >= STATES)
            continue;
        c->qps[shca_ctx(qp->qp.context)->hca][type_index(qp->qp.qp_type)][state]++;
        c->messages += atomic_load_explicit(&qp->messages, memory_order_relaxed);
        c->bytes += atomic_load_explicit(&qp->bytes, memory_order_relaxed);
    }
    pthread_mutex_unlock(&shca.lock);
}

static void put_hca(struct answer *a, const struct census *c, int hca)
{
    put(a, "hca softhca%d %s\n", hca, shca.fatal >> hca & 1 ? "fatal" : "alive");
    for (int port = 1; port <= (int)shca_config.device[hca].ports; port++)
        put(a, "port softhca%d %d %s\n", hca, port, shca_link_down(hca, port) ? "down" : "active");
    for (size_t t = 0; t < TYPES; t++)
        for (size_t s = 0; s < STATES; s++)
            if (c->qps[hca][t][s])
                put(a, "qp softhca%d %s %s %u\n", hca, types[t].name, states[s], c->qps[hca][t][s]);
}

/* The main thread's name; the helper thread has a different one. */
static void program_name(char out[17])
{
    FILE *f = fopen("/proc/self/comm", "re");
    size_t n = f ? fread(out, 1, 16, f) : 0;

    if (f)
        fclose(f);
    out[n] = 0;
    out[strcspn(out, "\n")] = 0;
}

/* The packet traffic: addresses and counters. */
static void put_wire(struct answer *a)
{
    int (*report)(char *, size_t) = atomic_load(&shca_far_report);
    int last = shca_config.hcas * shca_config.ports;
    char packets[1024];

    put(a, "wire %s\n", shca_config.udp_only ? "udp" : shca_config.udp ? "auto" : "shm");
    if (!shca_config.udp)
        return;
    for (int i = 0; i < last; i++)
        for (int k = 0; k < SHCA_INET_KINDS; k++) {
            const struct shca_inet *at = &shca.seg->inet[i + 1][k];
            char text[SHCA_INET_TEXT];

            if (at->port != 0)
                put(a, "address softhca%d:%d %s %u\n", i / shca_config.ports,
                    i % shca_config.ports + 1, shca_inet_text(at, text), at->mtu);
        }
    if (report && report(packets, sizeof packets) < (int)sizeof packets)
        put(a, "packets%s\n", packets);
}

static void do_list(struct answer *a)
{
    struct census c;
    char program[17];

    memset(&c, 0, sizeof c);
    control_count(&c);
    program_name(program);
    put(a, "ok\nprocess %u %u %s\n", shca.pid, shca.slot, program);
    put(a, "objects %u %u %u %u\n", shca.n_qp, shca.n_cq, shca.n_mr, shca.n_pd);
    put(a, "traffic %llu %llu\n", (unsigned long long)c.messages, (unsigned long long)c.bytes);
    put_wire(a);
    for (int hca = 0; hca < shca_config.hcas; hca++)
        put_hca(a, &c, hca);
}

/* ---- link, plug, fatal ---- */

static bool valid_hca(int hca)
{
    return hca >= 0 && hca < shca_config.hcas;
}

/* Parses "softhcaN:P" and one of two words behind it; returns which one, or -1 after writing an
 * error reply. */
static int take_port(const char *rest, struct answer *a, const char *const words[2], int *hca,
                     int *port)
{
    int used = 0;
    const char *to;

    if (sscanf(rest, "softhca%2d:%1d%n", hca, port, &used) != 2 ||
        (rest[used] && rest[used] != ' ') || !valid_hca(*hca) || *port < 1 ||
        *port > shca_config.ports) {
        put(a, "error '%s' does not begin with softhcaN:P, N below %d and P from 1 to %d", rest,
            shca_config.hcas, shca_config.ports);
        return -1;
    }
    to = rest + used + (rest[used] == ' ');
    for (int i = 0; i < 2; i++)
        if (strcmp(to, words[i]) == 0) {
            put(a, "ok softhca%d:%d %s", *hca, *port, to);
            return i;
        }
    put(a, "error '%s' is neither %s nor %s", to, words[0], words[1]);
    return -1;
}

static void do_link(const char *rest, struct answer *a)
{
    static const char *const words[2] = {"up", "down"};
    int hca = -1, port = 0, to = take_port(rest, a, words, &hca, &port);

    if (to >= 0)
        shca_link_set(hca, port, to == 1);
}

static void do_plug(const char *rest, struct answer *a)
{
    static const char *const words[2] = {"in", "out"};
    int hca = -1, port = 0, to = take_port(rest, a, words, &hca, &port);

    if (to >= 0)
        shca_link_plug(hca, port, to == 0, 0);
}

/* "softhcaN:P remove ROW", or "softhcaN:P add ADDRESS ROW". */
static void do_gid(const char *rest, struct answer *a)
{
    int hca = -1, port = 0, used = 0;
    unsigned what, row;
    const char *why;

    if (sscanf(rest, "softhca%2d:%1d %n", &hca, &port, &used) != 2 || !valid_hca(hca) || port < 1 ||
        port > shca_config.ports) {
        put(a, "error '%s' does not begin with softhcaN:P, N below %d and P from 1 to %d", rest,
            shca_config.hcas, shca_config.ports);
        return;
    }
    if (sscanf(rest + used, "remove %2u", &row) == 1) {
        why = shca_gid_remove(hca, port, row);
    } else if (sscanf(rest + used, "add %2u %2u", &what, &row) == 2) {
        why = shca_gid_add(hca, port, what, row);
    } else {
        put(a, "error '%s' is neither remove ROW nor add ADDRESS ROW", rest + used);
        return;
    }
    if (why)
        put(a, "error %s: %s", rest, why);
    else
        put(a, "ok %s", rest);
}

static void do_fatal(const char *rest, struct answer *a)
{
    int hca = -1, used = 0;

    if (sscanf(rest, "softhca%2d%n", &hca, &used) != 1 || rest[used] || !valid_hca(hca)) {
        put(a, "error '%s' is not softhcaN with N below %d", rest, shca_config.hcas);
        return;
    }
    shca_fatal(hca);
    put(a, "ok softhca%d fatal", hca);
}

/* ---- fault ---- */

static void do_fault(const char *rest, struct answer *a)
{
    char text[SHCA_REQUEST_MAX];

    text[0] = 0;
    if (strncmp(rest, "set ", 4) == 0) {
        if (shca_fault_set(rest + 4, text, sizeof text) == 0)
            put(a, "ok faults are set");
        else
            put(a, "error %s", text);
    } else if (strcmp(rest, "clear") == 0) {
        shca_fault_clear();
        put(a, "ok no faults");
    } else if (strcmp(rest, "list") == 0) {
        shca_fault_list(text, sizeof text);
        put(a, "ok\n%s", text);
    } else {
        put(a, "error fault '%.64s' is none of set SPEC, clear, list", rest);
    }
}

/* ---- requests ---- */

static void do_list_request(const char *rest, struct answer *a)
{
    if (*rest)
        put(a, "error list takes no argument, but there is '%s'", rest);
    else
        do_list(a);
}

static const struct {
    const char *name;
    void (*act)(const char *rest, struct answer *a);
} requests[] = {
    {"list", do_list_request}, {"link", do_link},   {"plug", do_plug},
    {"fatal", do_fatal},       {"fault", do_fault}, {"gid", do_gid},
};

static bool is_text(const char *request, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (request[i] < ' ' || request[i] > '~')
            return false;
    return true;
}

void shca_control(const char *request, size_t n, char *reply, size_t room)
{
    struct answer a = {reply, room, 0};
    char text[SHCA_REQUEST_MAX + 1];
    size_t word;

    reply[0] = 0;
    if (n > SHCA_REQUEST_MAX || !is_text(request, n)) {
        put(&a, "error a request is a line of at most %d printable characters", SHCA_REQUEST_MAX);
        return;
    }
    if (!shca.seg) {
        put(&a, "error this process is not on a fabric");
        return;
    }
    memcpy(text, request, n);
    text[n] = 0;
    word = strcspn(text, " ");
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        if (strlen(requests[i].name) == word && memcmp(requests[i].name, text, word) == 0) {
            requests[i].act(text + word + (text[word] == ' '), &a);
            return;
        }
    put(&a, "error '%.32s' is none of list, link, plug, gid, fatal, fault", text);
}

/* ---- the socket ---- */

struct sender {
    struct sockaddr_un address;
    socklen_t length;
    struct ucred cred;
};

/* The sender of a datagram; pid 0 when the kernel did not attach it. */
static void control_identify(struct msghdr *m, struct sender *s)
{
    s->length = m->msg_namelen;
    memset(&s->cred, 0, sizeof s->cred);
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
            memcpy(&s->cred, CMSG_DATA(c), sizeof s->cred);
}

/* Any user of the host can write to an abstract socket: only the owner and root are obeyed. */
static bool is_authorised(const struct sender *s)
{
    return s->cred.pid != 0 && (s->cred.uid == geteuid() || s->cred.uid == 0);
}

static bool serve_one(int fd)
{
    static char reply[SHCA_REPLY_MAX]; /* only the helper thread uses it */
    char request[SHCA_REQUEST_MAX + 1];
    union {
        char room[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } control;
    struct sender from;
    struct iovec iov = {request, sizeof request};
    struct msghdr m = {.msg_name = &from.address,
                       .msg_namelen = sizeof from.address,
                       .msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0)
        return false;
    control_identify(&m, &from);
    if (is_authorised(&from))
        shca_control(request, (size_t)n, reply, sizeof reply);
    else
        snprintf(reply, sizeof reply, "error uid %u may not control this process of uid %u",
                 from.cred.uid, (unsigned)geteuid());
    /* A sender without a name, or one that does not read its replies, gets none: this thread must
     * not block. */
    if (from.length > sizeof(sa_family_t))
        (void)!sendto(fd, reply, strlen(reply), MSG_DONTWAIT | MSG_NOSIGNAL,
                      (struct sockaddr *)&from.address, from.length);
    return true;
}

void shca_control_serve(int fd)
{
    /* A limited number per call, so that a flood of requests does not delay the thread's timers. */
    for (int i = 0; i < 16 && serve_one(fd); i++)
        ;
}
