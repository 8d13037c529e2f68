/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reasons why packets do not arrive, as reported by routers and the peer's kernel: ICMP errors,
 * which arrive in the error queue of the sending socket. A peer that has ended is unreachable too,
 * which matters only if a request waits for it: so errors are kept, and printed when a queue pair
 * gives up. A packet that is too long for its path is printed at once. Owns the most recent errors;
 * its lock protects them. */
#include "config.h"

#include <time.h> /* of which the next has a use */

#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#include "wire/udp/udp.h"

enum {
    kept = 32,
    reports_at_once = 64, /* of one call */
    control_bytes = 256,
    over_payload = ROCE_HEADERS_MAX + ROCE_ICRC_BYTES + 8,
};

struct failure {
    struct shca_inet to;
    int error;
    uint32_t mtu; /* EMSGSIZE: the MTU of the path, 0: unknown */
    uint64_t when;
    bool port; /* the host exists, but that port is not open */
};

/* Older errors may have another cause. */
static const uint64_t recent = UINT64_C(60000000000);

static struct shca_lock lock;
static struct failure failures[kept];
static unsigned next_failure;

static bool same(const struct shca_inet *a, const struct shca_inet *b)
{
    uint16_t port = b->port ? b->port : SHCA_INET_PLAIN;

    return a->port == port && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

/* The largest path MTU of verbs that fits into packets of that many bytes; 0: no MTU fits. */
static unsigned path_mtu_of(const struct shca_inet *to, uint32_t mtu)
{
    uint32_t ip = shca_inet_kind(to) == SHCA_INET_IPV4 ? 20 : 40;
    unsigned fits = ROCE_MTU_MAX;

    while (fits >= 256 && fits + ip + over_payload > mtu)
        fits /= 2;
    return fits >= 256 ? fits : 0;
}

static void report_too_long(const struct failure *f)
{
    unsigned mtu = path_mtu_of(&f->to, f->mtu);
    char to[SHCA_INET_TEXT];

    shca_inet_text(&f->to, to);
    if (mtu)
        shca_log(
            "packets to %s are too long: their path carries %u bytes; use a path MTU of at most "
            "%u (SOFTHCA_UDP=...,mtu=%u)",
            to, f->mtu, mtu, mtu);
    else
        shca_log("packets to %s are too long: their path carries %u bytes, RoCE needs %u", to,
                 f->mtu, 256 + over_payload + 40);
}

/* One entry for each address; the oldest is replaced. */
static void keep(const struct failure *f)
{
    bool news = true;
    unsigned i = 0;

    shca_lock(&lock);
    while (i < kept && !same(&failures[i].to, &f->to))
        i++;
    if (i == kept)
        i = next_failure++ % kept;
    else
        news = failures[i].error != f->error || failures[i].mtu != f->mtu;
    failures[i] = *f;
    shca_unlock(&lock);
    if (news && f->error == EMSGSIZE && f->mtu)
        report_too_long(f);
}

void shca_udp_refused(const struct shca_inet *to, int error)
{
    struct failure f = {.to = *to, .error = error, .when = tk_now()};

    if (error != EMSGSIZE) /* reported by the error queue, with the MTU */
        keep(&f);
}

static void take(const struct sock_extended_err *e, const union shca_udp_name *to)
{
    struct failure f = {.error = (int)e->ee_errno, .when = tk_now()};

    if (e->ee_origin == SO_EE_ORIGIN_ICMP)
        f.port = e->ee_type == ICMP_DEST_UNREACH && e->ee_code == ICMP_PORT_UNREACH;
    else if (e->ee_origin == SO_EE_ORIGIN_ICMP6)
        f.port = e->ee_type == ICMP6_DST_UNREACH && e->ee_code == ICMP6_DST_UNREACH_NOPORT;
    else if (e->ee_origin != SO_EE_ORIGIN_LOCAL)
        return;
    if (f.error == EMSGSIZE)
        f.mtu = e->ee_info;
    shca_udp_named(to, &f.to);
    keep(&f);
}

bool shca_udp_errors(const struct shca_udp_socket *s)
{
    bool any = false;

    for (int i = 0; i < reports_at_once; i++) {
        _Alignas(struct cmsghdr) char control[control_bytes];
        union shca_udp_name to;
        struct msghdr m = {.msg_name = &to,
                           .msg_namelen = sizeof to,
                           .msg_control = control,
                           .msg_controllen = sizeof control};

        if (recvmsg(s->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            break;
        any = true;
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
            if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
                (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
                struct sock_extended_err e;

                memcpy(&e, CMSG_DATA(c), sizeof e);
                take(&e, &to);
            }
    }
    return any;
}

void shca_udp_explain(const struct shca_qp *qp)
{
    struct failure f = {.error = 0};
    char to[SHCA_INET_TEXT];

    shca_lock(&lock);
    for (unsigned i = 0; i < kept; i++)
        if (same(&failures[i].to, &qp->udp->peer))
            f = failures[i];
    shca_unlock(&lock);
    if (f.error == 0 || tk_now() - f.when > recent)
        return;
    shca_inet_text(&f.to, to);
    shca_log("queue pair 0x%x gives up on %s: %s", qp->qp.qp_num, to,
             f.port ? "port unreachable, no process has that UDP port (any more)"
                    : strerror(f.error));
}
