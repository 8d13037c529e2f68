/* SPDX-License-Identifier: BSD-3-Clause */
/* See hail.h. Owns nothing, takes no lock. */
#include "config.h"

#include "hail.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The first byte of an abstract name is 0. */
static socklen_t name_of(const char *question, pid_t pid, struct sockaddr_un *name)
{
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "trunkline-%s-%u-%d", question,
                     (unsigned)geteuid(), (int)pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Anybody may use such a name. */
static bool is_ours(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

int hail_listen(const char *question)
{
    struct sockaddr_un name;
    socklen_t size = name_of(question, getpid(), &name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&name, size) == 0 && listen(fd, 4) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int hail_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && !is_ours(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

int hail_connect(const char *question, pid_t pid)
{
    struct sockaddr_un name;
    socklen_t size = name_of(question, pid, &name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    bool is_connected = connect(fd, (const struct sockaddr *)&name, size) == 0;
    if (is_connected && is_ours(fd))
        return fd;
    int error = is_connected ? EPERM : errno;
    close(fd);
    errno = error;
    return -1;
}

/* A line of /proc/net/unix ends with the name, with @ for its first byte. */
size_t hail_find(const char *question, pid_t *pids, size_t most)
{
    char line[512], wanted[64];
    size_t count = 0;
    FILE *all = fopen("/proc/net/unix", "re");
    snprintf(wanted, sizeof(wanted), "@trunkline-%s-%u-", question, (unsigned)geteuid());
    while (all && fgets(line, sizeof(line), all)) {
        const char *name = strchr(line, '@');
        if (!name || strncmp(name, wanted, strlen(wanted)) != 0)
            continue;
        pid_t pid = (pid_t)atoi(name + strlen(wanted));
        bool is_known = false; /* each connection is a line too */
        for (size_t i = 0; i < count && i < most; i++)
            is_known |= pids[i] == pid;
        if (is_known)
            continue;
        if (count < most)
            pids[count] = pid;
        count++;
    }
    if (all)
        fclose(all);
    return count;
}
