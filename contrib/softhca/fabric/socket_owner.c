/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who made a Unix socket. /proc/net/unix doesn't say it; the kernel's socket diagnosis does, also
 * of processes in other PID namespaces, whose /proc/<pid> isn't here. Owns nothing, takes no lock.
 */
#include "config.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/fabric.h"

/* linux/unix_diag.h has them since Linux 5.3. */
enum { show_uid = 0x40, diag_uid = 7 };

struct question {
    struct nlmsghdr head;
    struct unix_diag_req about;
};

static bool ask(int fd, unsigned inode)
{
    struct question q = {.head = {.nlmsg_len = sizeof q,
                                  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                  .nlmsg_flags = NLM_F_REQUEST},
                         .about = {.sdiag_family = AF_UNIX,
                                   .udiag_states = UINT32_MAX,
                                   .udiag_ino = inode,
                                   .udiag_show = show_uid,
                                   .udiag_cookie = {UINT32_MAX, UINT32_MAX}}};

    return send(fd, &q, sizeof q, 0) == (ssize_t)sizeof q;
}

static int64_t read_answer(int fd)
{
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } a;
    ssize_t n = recv(fd, &a, sizeof a, MSG_DONTWAIT);
    const struct rtattr *at;
    uint32_t uid;
    int left;

    if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct unix_diag_msg)) || !NLMSG_OK(&a.head, (size_t)n) ||
        a.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return -1;
    at = (const void *)((const char *)NLMSG_DATA(&a.head) +
                        NLMSG_ALIGN(sizeof(struct unix_diag_msg)));
    left = (int)(a.head.nlmsg_len - NLMSG_LENGTH(sizeof(struct unix_diag_msg)));
    for (; RTA_OK(at, left); at = RTA_NEXT(at, left))
        if (at->rta_type == diag_uid && RTA_PAYLOAD(at) == sizeof uid) {
            memcpy(&uid, RTA_DATA(at), sizeof uid);
            return uid;
        }
    return -1;
}

int64_t shca_socket_owner(const char *line)
{
    unsigned inode;
    int64_t uid;
    int fd;

    if (sscanf(line, "%*s %*s %*s %*s %*s %*s %u", &inode) != 1)
        return -1;
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0)
        return -1;
    uid = ask(fd, inode) ? read_answer(fd) : -1;
    close(fd);
    return uid;
}
