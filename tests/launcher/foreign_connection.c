/* SPDX-License-Identifier: BSD-3-Clause */
/* A process outside of a job that connects to its PMIx server's port repeatedly, until it is killed
 * or its parent dies: stranger PORT silent|byte|drip|junk|huge|brief|close|reset [CONNECTIONS].
 * Prints "connected" once it has been, then "refused after MS", the time from its first attempt,
 * once a connection was closed from the other side. With CONNECTIONS it makes that many and keeps
 * them. "close" and "reset" send a handshake that crashes libpmix and close before the server
 * accepts.
 *
 * stranger PORT handshakes NAMESPACE: a process of the job's own user whose handshakes are wrong,
 * one after the other; prints "refused NAME" for each that was answered by the end of the
 * connection. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HELD_MAX = 64, ROUND_MS = 5, DRIP_ROUNDS = 80, BURST = 16 };

static const char *mode;
static int held[HELD_MAX], held_count;

static int call_on(unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !strcmp(mode, "reset"))
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
                   sizeof(struct linger));
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
    /* libpmix's header, the name of a module, and the length of a 16 MB credential that does not
     * follow. */
    static const unsigned char bomb[] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 16, 0, 0, 0, 0, 0, 0, 0,
        'n',  'a',  't',  'i',  'v',  'e',  0,    1,    0,  0, 0, 0, 0, 0, 0, 0};
    char junk[4096];
    static const unsigned char huge[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 1};
    ssize_t sent = 0;

    for (size_t i = 0; i < sizeof(junk); i++)
        junk[i] = (char)rand();
    if (!strcmp(mode, "byte") || !strcmp(mode, "drip"))
        sent = send(fd, "\xff", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (!strcmp(mode, "close") || !strcmp(mode, "reset"))
        sent = send(fd, bomb, sizeof(bomb), MSG_DONTWAIT | MSG_NOSIGNAL);
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

/* The variable parts of a handshake. */
struct words {
    const char *name; /* of the case */
    const char *security, *credential_size, *nspace, *version, *packing, *storage;
    unsigned kind, rank;
    uid_t uid;
    size_t cut; /* bytes left out at the end */
};

static size_t put(unsigned char *to, size_t at, const void *bytes, size_t size)
{
    memcpy(to + at, bytes, size);
    return at + size;
}

static size_t put_text(unsigned char *to, size_t at, const char *text)
{
    return put(to, at, text, strlen(text) + 1);
}

static size_t put_number(unsigned char *to, size_t at, uint32_t number)
{
    number = htonl(number);
    return put(to, at, &number, sizeof(number));
}

static size_t compose(unsigned char *to, const struct words *w)
{
    uid_t uid = w->uid;
    gid_t gid = getegid();
    size_t n = 8 + sizeof(size_t);

    memset(to, 0xff, n);
    n = put_text(to, n, w->security);
    n = put_number(to, n, (uint32_t)strtoul(w->credential_size, NULL, 0));
    n = put(to, n, &uid, sizeof(uid));
    n = put(to, n, &gid, sizeof(gid));
    to[n++] = (unsigned char)w->kind;
    n = put_text(to, n, w->nspace);
    n = put_number(to, n, w->rank);
    n = put_text(to, n, w->version);
    n = put_text(to, n, w->packing);
    to[n++] = 1;
    n = put_text(to, n, w->storage) - w->cut;
    uint32_t length = (uint32_t)(n - 8 - sizeof(size_t));
    memset(to + 8, 0, sizeof(size_t));
    memcpy(to + 8, &length, sizeof(length));
    return n;
}

/* Any answer of libpmix has four bytes at least. */
static bool is_refused(unsigned port, const struct words *w)
{
    unsigned char message[512];
    struct pollfd p = {.fd = call_on(port), .events = POLLIN};
    size_t size = compose(message, w);
    bool refused = p.fd >= 0 && send(p.fd, message, size, MSG_NOSIGNAL) == (ssize_t)size &&
                   poll(&p, 1, 10000) == 1 && recv(p.fd, message, sizeof(message), 0) <= 0;
    if (p.fd >= 0)
        close(p.fd);
    return refused;
}

static int wrong_handshakes(unsigned port, const char *nspace)
{
    const struct words good = {"",     "native", "8", nspace,    "4.2.2", "v41",
                               "hash", 0,        0,   geteuid(), 0};
    struct words all[16];
    size_t n = 0;

#define WRONG(what, field, value) all[n] = good, all[n].name = what, all[n++].field = value
    WRONG("credential beyond the message", credential_size, "0x1000000");
    WRONG("credential of 4 GB", credential_size, "0xffffffff");
    WRONG("credential of another user", uid, geteuid() + 1);
    WRONG("security module", security, "none-such");
    WRONG("kind of process", kind, 77);
    WRONG("tool", kind, 3);
    WRONG("namespace", nspace, "another");
    WRONG("rank", rank, 1000);
    WRONG("empty version", version, "");
    WRONG("version without numbers", version, "4");
    WRONG("packing module", packing, "none-such");
    WRONG("storage module", storage, "none-such");
    WRONG("end", cut, 3);
#undef WRONG
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < n; i++)
            printf("%s %s\n", is_refused(port, &all[i]) ? "refused" : "TAKEN", all[i].name);
    return 0;
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
    if (!strcmp(mode, "handshakes"))
        return argc > 3 ? wrong_handshakes(port, argv[3]) : 2;
    bool is_gone = !strcmp(mode, "close") || !strcmp(mode, "reset");
    bool brief = is_gone || !strcmp(mode, "brief");
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
            bool lives = is_gone || keep(held[i], drip);
            if (!lives && !refused) {
                snprintf(text, sizeof(text), "refused after %lld", now_ms() - began);
                say_once(&refused, text);
            }
            if (lives && !brief)
                continue;
            close(held[i]);
            held[i] = held[--held_count];
        }
        /* Several at once: the server is busy with one while the next have already closed. */
        if (!is_gone || round % BURST == 0)
            poll(NULL, 0, ROUND_MS);
    }
}
