/* SPDX-License-Identifier: BSD-3-Clause */
/* The owner of a connection's other end; see owner.h. First by socket diagnosis (netlink), which
 * finds one socket by its addresses, then by the lists in /proc/net. Both show user 0 for a socket
 * that its process has closed, so only an established one counts. */
#include "config.h"

#include "owner.h"

#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* One end of a connection: four words in network order; IPv4 uses the first. */
struct owner_end {
    sa_family_t family;
    uint16_t port; /* network order */
    uint32_t address[4];
};

/* For the kernel an IPv4 address and its IPv4-mapped IPv6 form name the same socket. */
static bool owner_to_end(const struct sockaddr_storage *s, struct owner_end *e)
{
    *e = (struct owner_end){.family = s->ss_family};
    if (s->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)s;
        e->port = in->sin_port;
        e->address[0] = in->sin_addr.s_addr;
        return true;
    }
    if (s->ss_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *in6 = (const void *)s;
    e->port = in6->sin6_port;
    memcpy(e->address, &in6->sin6_addr, sizeof(e->address));
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        e->family = AF_INET;
        e->address[0] = e->address[3];
    }
    return true;
}

static bool owner_ends(int fd, struct owner_end *ours, struct owner_end *theirs)
{
    struct sockaddr_storage a = {0}, b = {0};
    socklen_t na = sizeof(a), nb = sizeof(b);
    return getsockname(fd, (struct sockaddr *)&a, &na) == 0 &&
           getpeername(fd, (struct sockaddr *)&b, &nb) == 0 && owner_to_end(&a, ours) &&
           owner_to_end(&b, theirs);
}

struct diag_request {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
};

static bool ask_kernel(int netlink, const struct owner_end *ours, const struct owner_end *theirs)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct diag_request q = {
        .header = {.nlmsg_len = sizeof(q),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST},
        .request = {.sdiag_family = (uint8_t)theirs->family,
                    .sdiag_protocol = IPPROTO_TCP,
                    .idiag_states = ~0U,
                    .id = {.idiag_sport = theirs->port,
                           .idiag_dport = ours->port,
                           .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
    memcpy(q.request.id.idiag_src, theirs->address, sizeof(theirs->address));
    memcpy(q.request.id.idiag_dst, ours->address, sizeof(ours->address));
    if (theirs->family == AF_INET) { /* the rest of a mapped address is no part of it */
        memset(q.request.id.idiag_src + 1, 0, 3 * sizeof(uint32_t));
        memset(q.request.id.idiag_dst + 1, 0, 3 * sizeof(uint32_t));
    }
    return sendto(netlink, &q, sizeof(q), MSG_DONTWAIT, (struct sockaddr *)&kernel,
                  sizeof(kernel)) == (ssize_t)sizeof(q);
}

static bool owner_by_diagnosis(const struct owner_end *ours, const struct owner_end *theirs,
                               uid_t *uid)
{
    enum { ANSWER_S = 1 }; /* the answer is there when sendto() returns; this is for surprises */
    struct timeval patience = {.tv_sec = ANSWER_S};
    union {
        struct nlmsghdr header;
        char bytes[4096];
    } answer;
    int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (netlink < 0)
        return false;
    setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ssize_t n = ask_kernel(netlink, ours, theirs)
                    ? recvfrom(netlink, &answer, sizeof(answer), 0, NULL, NULL)
                    : -1;
    close(netlink);
    if (n < 0 || !NLMSG_OK(&answer.header, (size_t)n) ||
        answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
        return false;
    const struct inet_diag_msg *m = NLMSG_DATA(&answer.header);
    if (m->idiag_state != TCP_ESTABLISHED)
        return false;
    *uid = m->idiag_uid;
    return true;
}

/* An end as /proc/net/tcp and tcp6 write it. */
static void print_end(const struct owner_end *e, bool six, char *text, size_t size)
{
    unsigned port = ntohs(e->port);
    if (!six)
        snprintf(text, size, "%08" PRIX32 ":%04X", e->address[0], port);
    else if (e->family == AF_INET)
        snprintf(text, size, "%08X%08X%08" PRIX32 "%08" PRIX32 ":%04X", 0U, 0U, htonl(0xffff),
                 e->address[0], port);
    else
        snprintf(text, size, "%08" PRIX32 "%08" PRIX32 "%08" PRIX32 "%08" PRIX32 ":%04X",
                 e->address[0], e->address[1], e->address[2], e->address[3], port);
}

static bool find_in_list(const char *path, const char *ours, const char *theirs, uid_t *uid)
{
    char line[512], local[64], remote[64];
    unsigned owner, state;
    bool found = false;
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (!found && fgets(line, sizeof(line), f))
        if (sscanf(line, " %*[^:]: %63s %63s %x %*s %*s %*s %u", local, remote, &state, &owner) ==
            4)
            found = state == TCP_ESTABLISHED && !strcmp(local, theirs) && !strcmp(remote, ours);
    fclose(f);
    if (found)
        *uid = owner;
    return found;
}

static bool owner_in_lists(const struct owner_end *ours, const struct owner_end *theirs, uid_t *uid)
{
    static const char *const lists[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    for (int six = theirs->family == AF_INET6; six < 2; six++) {
        char our_text[64], their_text[64];
        print_end(ours, six, our_text, sizeof(our_text));
        print_end(theirs, six, their_text, sizeof(their_text));
        if (find_in_list(lists[six], our_text, their_text, uid))
            return true;
    }
    return false;
}

/* Asked after the other end was found: as long as ours is connected, no other socket can have had
 * the same two addresses. */
static bool is_connected(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == TCP_ESTABLISHED;
}

bool owner_by_proc(int fd, uid_t *uid)
{
    struct owner_end ours, theirs;
    return owner_ends(fd, &ours, &theirs) && owner_in_lists(&ours, &theirs, uid) &&
           is_connected(fd);
}

bool owner_of_peer(int fd, uid_t *uid)
{
    struct owner_end ours, theirs;
    return owner_ends(fd, &ours, &theirs) &&
           (owner_by_diagnosis(&ours, &theirs, uid) || owner_in_lists(&ours, &theirs, uid)) &&
           is_connected(fd);
}

/* A connection of this process with itself; false: there is no loopback interface. */
static bool connect_self(int listener, int *ours, int *theirs)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);

    if (bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0 ||
        connect(*theirs, (struct sockaddr *)&at, size) != 0)
        return false;
    *ours = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    return *ours >= 0;
}

bool owner_is_shown(void)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int theirs = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ours = -1;
    uid_t uid;
    bool shown = true;

    if (listener >= 0 && theirs >= 0 && connect_self(listener, &ours, &theirs))
        shown = owner_of_peer(ours, &uid) && uid == geteuid();
    if (listener >= 0)
        close(listener);
    if (theirs >= 0)
        close(theirs);
    if (ours >= 0)
        close(ours);
    return shown;
}
