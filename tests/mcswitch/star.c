/* SPDX-License-Identifier: BSD-3-Clause */
/* Meeting at rank 0; see star.h. */
#include "config.h"

#include "star.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ranks_most = 64, patience_s = 60 };

static int fds[ranks_most], own_rank, rank_count;

static void all_of(int fd, void *bytes, size_t n, ssize_t (*move)(int, void *, size_t))
{
    for (size_t at = 0; at < n;) {
        ssize_t done = move(fd, (char *)bytes + at, n - at);

        CHECK(done > 0); /* else another rank has ended */
        at += (size_t)done;
    }
}

static ssize_t put(int fd, void *bytes, size_t n)
{
    return send(fd, bytes, n, MSG_NOSIGNAL);
}

static ssize_t get(int fd, void *bytes, size_t n)
{
    return recv(fd, bytes, n, 0);
}

static void set_up(int fd)
{
    struct timeval limit = {.tv_sec = patience_s};
    int on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

static void await_all(const struct sockaddr_in *at)
{
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    CHECK(bind(listener, (const struct sockaddr *)at, sizeof *at) == 0);
    CHECK(listen(listener, ranks_most) == 0);
    for (int i = 1; i < rank_count; i++) {
        int fd = accept(listener, NULL, NULL);
        uint8_t rank;

        CHECK(fd >= 0);
        set_up(fd);
        all_of(fd, &rank, 1, get);
        CHECK(rank > 0 && rank < rank_count);
        fds[rank] = fd;
    }
    close(listener);
}

static void connect_to(const struct sockaddr_in *at)
{
    uint8_t rank = (uint8_t)own_rank;

    for (int tries = 0;; tries++) {
        fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fds[0], (const struct sockaddr *)at, sizeof *at) == 0)
            break;
        close(fds[0]);
        CHECK(tries < patience_s * 50);
        usleep(20000);
    }
    set_up(fds[0]);
    all_of(fds[0], &rank, 1, put);
}

void star_open(const char *address, int rank, int ranks)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    const char *colon = strchr(address, ':');
    char host[16];

    CHECK(colon && colon - address < (ptrdiff_t)sizeof host && ranks <= ranks_most);
    snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
    at.sin_port = htons((uint16_t)atoi(colon + 1));
    CHECK(inet_pton(AF_INET, host, &at.sin_addr) == 1);
    own_rank = rank;
    rank_count = ranks;
    if (rank == 0)
        await_all(&at);
    else
        connect_to(&at);
}

void star_close(void)
{
    for (int i = 0; i < rank_count; i++)
        if (i != own_rank && (own_rank == 0 || i == 0))
            close(fds[i]);
}

void star_share(void *bytes, size_t n)
{
    if (own_rank > 0)
        all_of(fds[0], bytes, n, get);
    else
        for (int i = 1; i < rank_count; i++)
            all_of(fds[i], bytes, n, put);
}

int star_count(int mine)
{
    int32_t sum = mine != 0, one;

    if (own_rank > 0)
        all_of(fds[0], &sum, sizeof sum, put);
    else
        for (int i = 1; i < rank_count; i++) {
            all_of(fds[i], &one, sizeof one, get);
            sum += one;
        }
    star_share(&sum, sizeof sum);
    return sum;
}

void star_gather(const void *mine, size_t n, void *all)
{
    memcpy((char *)all + n * (size_t)own_rank, mine, n);
    if (own_rank > 0)
        all_of(fds[0], (char *)all + n * (size_t)own_rank, n, put);
    else
        for (int i = 1; i < rank_count; i++)
            all_of(fds[i], (char *)all + n * (size_t)i, n, get);
    star_share(all, n * (size_t)rank_count);
}

void star_barrier(void)
{
    (void)star_count(0);
}
