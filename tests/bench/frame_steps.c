/* SPDX-License-Identifier: BSD-3-Clause */
/* frame_steps - CPU time to send or receive a frame between two processes of the launcher, ns, and
 * what each KiB of it adds. They send frames to and fro over a TCP connection of this host, by the
 * channels of spawner/wire, and each sleeps in poll() until one has come, as guards do. */
#include "config.h"

#include "spawner/wire/wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    small = 32,
    small_turns = 10000,
    large = 1 << 20,
    large_turns = 100,
    rounds = 3,
    KiB = 1024
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double cpu_ns(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return 1e9 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e3 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void connect_both(int pair[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || pair[0] < 0 || bind(listener, (struct sockaddr *)&at, size) ||
        listen(listener, 1) || getsockname(listener, (struct sockaddr *)&at, &size) ||
        connect(pair[0], (struct sockaddr *)&at, size) ||
        (pair[1] = accept(listener, NULL, NULL)) < 0)
        die("frame_steps: connection");
    close(listener);
    for (int i = 0; i < 2; i++)
        setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void wait_for(struct wire_channel *c, bool want_input)
{
    struct pollfd p = {.fd = c->fd, .events = wire_poll_events(c, want_input)};
    if (poll(&p, 1, -1) < 0)
        die("frame_steps: poll");
}

static void send_frame(struct wire_channel *c, const void *payload, size_t size)
{
    wire_send(c, WIRE_FENCE, 0, 0, payload, size);
    for (wire_flush(c); c->out.length && !c->ended; wire_flush(c))
        wait_for(c, false);
}

static bool take_frame(struct wire_channel *c)
{
    struct wire_frame frame;
    while (!wire_next(c, &frame)) {
        if (c->ended)
            return false;
        wait_for(c, true);
        wire_fill(c);
    }
    return true;
}

/* The other process answers with as much. */
static void answer(int fd, const void *payload, size_t size)
{
    struct wire_channel c;
    wire_open(&c, fd, 1);
    while (take_frame(&c))
        send_frame(&c, payload, size);
    _exit(0);
}

/* Each turn is two frames, and both of their ends are here. */
static double time_frames(size_t size, int turns)
{
    int pair[2];
    void *payload = calloc(1, size);
    struct wire_channel c;
    connect_both(pair);
    double began = cpu_ns(RUSAGE_SELF), others = cpu_ns(RUSAGE_CHILDREN);
    pid_t pid = fork();
    if (pid < 0 || !payload)
        die("frame_steps: a process");
    if (pid == 0) {
        close(pair[0]);
        answer(pair[1], payload, size);
    }
    close(pair[1]);
    wire_open(&c, pair[0], 0);
    for (int i = 0; i < turns; i++) {
        send_frame(&c, payload, size);
        if (!take_frame(&c))
            die("frame_steps: the other process is gone");
    }
    wire_close(&c);
    waitpid(pid, NULL, 0);
    free(payload);
    return (cpu_ns(RUSAGE_SELF) - began + cpu_ns(RUSAGE_CHILDREN) - others) / (4.0 * turns);
}

int main(void)
{
    double few = 1e18, many = 1e18;
    for (int i = 0; i < rounds; i++) {
        double a = time_frames(small, small_turns), b = time_frames(large, large_turns);
        few = a < few ? a : few;
        many = b < many ? b : many;
    }
    printf("frame %.0f\nframe.kib %.1f\n", few, (many - few) * KiB / (double)(large - small));
    return 0;
}
