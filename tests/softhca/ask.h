/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to the members of a fabric, as the softhca command makes them. Owns nothing. */
#ifndef SOFTHCA_ASK_H
#define SOFTHCA_ASK_H

#include "harness.h"

#include <stddef.h>
#include <sys/un.h>

/* The socket of a member: the registry name "softhca<layout>.<fabric>.<slot>.<pid>.<fd>-<letters>"
 * up to its slot. */
static inline struct sockaddr_un socket_of(pid_t pid)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    FILE *f = fopen("/proc/net/unix", "r");
    char line[512], tail[32];

    CHECK(f != NULL);
    snprintf(tail, sizeof tail, ".%d.", (int)pid);
    while (fgets(line, sizeof line, f)) {
        char *name = strstr(line, "@softhca"), *end = name ? strstr(name, tail) : NULL;

        if (!end || strchr(end + strlen(tail), '.'))
            continue;
        CHECK((size_t)(end - name) < sizeof a.sun_path);
        memcpy(a.sun_path + 1, name + 1, (size_t)(end - name) - 1);
    }
    fclose(f);
    CHECK(a.sun_path[1] != 0);
    return a;
}

static inline int open_client(void)
{
    struct sockaddr_un me = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = 2};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0);
    /* Binds with the family only: the kernel chooses a name, to which the answer goes. */
    CHECK_EQ(bind(fd, (struct sockaddr *)&me, sizeof(sa_family_t)), 0);
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    return fd;
}

static inline const char *ask_bytes(pid_t pid, const char *request, size_t bytes)
{
    static char reply[40000];
    struct sockaddr_un to = socket_of(pid);
    int fd = open_client();
    ssize_t n;

    CHECK_EQ(
        sendto(fd, request, bytes, 0, (struct sockaddr *)&to,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(to.sun_path + 1))),
        bytes);
    n = recv(fd, reply, sizeof reply - 1, 0);
    CHECK(n > 0);
    reply[n] = 0;
    close(fd);
    return reply;
}

static inline const char *ask(const char *request)
{
    return ask_bytes(getpid(), request, strlen(request));
}

static inline void good(const char *request)
{
    const char *reply = ask(request);

    if (strncmp(reply, "ok", 2) != 0)
        fprintf(stderr, "%s: %s\n", request, reply);
    CHECK_EQ(strncmp(reply, "ok", 2), 0);
}

#endif
