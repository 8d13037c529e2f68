/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that has no business with a job and connects to its PMIx server's port over and over,
 * until it is killed or its parent dies: stranger PORT silent|byte|drip|junk|huge|brief
 * [CONNECTIONS]. Prints "connected" once it has been, then "refused after MS", the time from its
 * first attempt, once a connection was closed from the other side. With CONNECTIONS it makes that
 * many and keeps them. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HELD_MAX = 64, ROUND_MS = 5, DRIP_ROUNDS = 80 };

static const char *mode;
static int held[HELD_MAX], held_count;

static int call_on(unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static long long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void say_once(bool *said, const char *word)
{
    if (!*said)
        puts(word);
    fflush(stdout);
    *said = true;
}

/* A header of libpmix is 16 bytes, more than "drip" sends within the time-out: sender, tag, and in
 * the last eight the length of the rest. */
static void greet(int fd)
{
    char junk[4096];
    static const unsigned char huge[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 1};
    ssize_t sent = 0;

    for (size_t i = 0; i < sizeof(junk); i++)
        junk[i] = (char)rand();
    if (!strcmp(mode, "byte") || !strcmp(mode, "drip"))
        sent = send(fd, "\xff", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (!strcmp(mode, "junk"))
        sent = send(fd, junk, sizeof(junk), MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (!strcmp(mode, "huge"))
        sent = send(fd, huge, sizeof(huge), MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)sent; /* fails when the server has closed the connection */
}

/* False when it was closed at the other end. */
static bool keep(int fd, bool drip)
{
    char byte;
    if (drip && send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
        return false;
    ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
    return n > 0 || (n < 0 && errno == EAGAIN);
}

int main(int argc, char **argv)
{
    static bool connected, refused;
    long long began = now_ms();
    char text[64];
    if (argc < 3)
        return 2;
    unsigned port = (unsigned)atoi(argv[1]);
    mode = argv[2];
    bool brief = !strcmp(mode, "brief");
    int wanted = argc > 3 ? atoi(argv[3]) : -1;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned round = 0;; round++) {
        int fd = wanted != 0 && held_count < HELD_MAX ? call_on(port) : -1;
        if (fd >= 0) {
            say_once(&connected, "connected");
            greet(fd);
            held[held_count++] = fd;
            wanted -= wanted > 0;
        }
        for (int i = held_count - 1; i >= 0; i--) {
            bool drip = !strcmp(mode, "drip") && round % DRIP_ROUNDS == 0;
            bool lives = keep(held[i], drip);
            if (!lives && !refused) {
                snprintf(text, sizeof(text), "refused after %lld", now_ms() - began);
                say_once(&refused, text);
            }
            if (lives && !brief)
                continue;
            close(held[i]);
            held[i] = held[--held_count];
        }
        poll(NULL, 0, ROUND_MS);
    }
}
