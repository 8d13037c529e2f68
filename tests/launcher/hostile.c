/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of the launcher's wire that breaks the protocol.
 *     hostile guard MODE ADDRESSES:PORT HOST    in place of the launcher's guard, started by a fake
 * ssh hostile head MODE LAUNCHER                starts LAUNCHER --guard and takes its calls In MODE
 * foreign it does not know the secret; in all others it proves itself first. It prints the mode on
 * standard output once the other end has seen it, and ends when the other end has closed. */
#include "config.h"

#include "spawner/agent/listen.h"
#include "spawner/util/byte_queue.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/wire/dial.h"
#include "spawner/wire/hello.h"
#include "spawner/wire/job_frame.h"
#include "spawner/wire/wire.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 15000, HEADER_LENGTH = 0, HEADER_KIND = 4 };

static void die(const char *what)
{
    fprintf(stderr, "hostile: %s\n", what);
    exit(3);
}

/* A frame as the wire has it, so that its header can be spoiled. */
static void frame(struct bytes *b, uint16_t type, uint16_t aux, uint32_t host, const void *payload,
                  size_t length)
{
    struct wire_channel c;
    wire_open(&c, -1, host);
    wire_send_host(&c, host, (enum wire_type)type, aux, 0, payload, length);
    bytes_append(b, bytes_front(&c.out), c.out.length);
    bytes_free(&c.out);
}

static void hello_frame(struct bytes *b, uint16_t version, uint32_t host)
{
    struct bytes payload = {0};
    struct hello h;
    hello_here(&h, HELLO_PORTS_NONE);
    hello_pack(&h, &payload);
    frame(b, WIRE_HELLO, version, host, bytes_front(&payload), payload.length);
    bytes_free(&payload);
}

/* Frames of every type with random lengths and contents, the same for the same seed. */
static void random_frames(struct bytes *b, unsigned seed, uint32_t host)
{
    uint8_t payload[64];
    srand(seed);
    for (int n = 0; n < 40; n++) {
        size_t length = (size_t)rand() % sizeof(payload);
        for (size_t i = 0; i < length; i++)
            payload[i] = rand() % 3 ? (uint8_t)rand() : 0;
        uint16_t type = (uint16_t)(WIRE_HELLO + rand() % (WIRE_TYPES - WIRE_HELLO));
        frame(b, type, (uint16_t)rand(), host, payload, length);
    }
}

/* A valid job of one host, so that the guard gets further. */
static void job_frame(struct bytes *b)
{
    static char *argv[] = {"sleep", "1000", NULL}, *env[] = {"PATH=/bin:/usr/bin", NULL};
    struct job_host host = {.name = "node", .count = 2};
    struct bytes payload = {0};
    struct job job = {.ranks = 2,
                      .hosts = &host,
                      .host_count = 1,
                      .host = JOB_NO_HOST,
                      .program = "/bin/sleep",
                      .argv = argv,
                      .env = env,
                      .nspace = "hostile",
                      .files = {RLIM_INFINITY, RLIM_INFINITY}};
    const char *parent = getenv("GASNET_TMPDIR");
    for (int i = 0; i < JOB_LIMITS; i++)
        job.soft_limits[i] = RLIM_INFINITY;
    snprintf(job.session, sizeof(job.session), "%s/hostile-%d", parent ? parent : "/tmp",
             (int)getpid());
    job_frame_pack(&job, 0, &payload);
    frame(b, WIRE_JOB, 0, 0, bytes_front(&payload), payload.length);
    bytes_free(&payload);
}

/* The messages after the proof. */
static void fill(struct bytes *b, const char *mode, bool is_guard, uint32_t host)
{
    size_t at;

    if (is_guard && strcmp(mode, "silent") && strcmp(mode, "first"))
        hello_frame(b, strcmp(mode, "version") ? WIRE_VERSION : 99, host);
    at = b->length;
    if (!strcmp(mode, "first") || !strcmp(mode, "huge") || !strcmp(mode, "kind"))
        frame(b, is_guard ? WIRE_DONE : WIRE_PING, 0, host, NULL, 0);
    if (!strcmp(mode, "huge"))
        wire_put_number(b->memory + b->start + at + HEADER_LENGTH, 0x7fffffff);
    if (!strcmp(mode, "kind"))
        wire_put_number(b->memory + b->start + at + HEADER_KIND, 200);
    if (!strcmp(mode, "host"))
        frame(b, WIRE_DONE, 0, host + 1000, NULL, 0);
    if (!strcmp(mode, "job"))
        frame(b, WIRE_JOB, 0, host, "nonsense", 8);
    if (!strncmp(mode, "random", 6))
        random_frames(b, (unsigned)atoi(mode + 6), host);
    if (!strncmp(mode, "after", 5)) {
        job_frame(b);
        random_frames(b, (unsigned)atoi(mode + 5), host);
        frame(b, WIRE_GO, 0, host, NULL, 0);
    }
    if (!strcmp(mode, "cut")) {
        frame(b, WIRE_FAILED, 0, host, "some text", 9);
        b->length -= 5;
    }
}

static bool is_by_chance(const char *mode)
{
    return !strncmp(mode, "random", 6) || !strncmp(mode, "after", 5);
}

/* Writes all, then reads what comes until the other end closes. */
static void talk(int control, int output, const struct bytes *b, const char *mode)
{
    int64_t deadline = clock_ms() + PATIENCE_MS;
    char ignored[4096];

    if (write(control, bytes_front(b), b->length) != (ssize_t)b->length)
        die("the connection took nothing");
    if (!strcmp(mode, "cut"))
        shutdown(control, SHUT_WR);
    printf("%s\n", mode);
    fflush(stdout);
    if (is_by_chance(mode)) /* the behaviour is undefined until we close; then it must end */
        deadline = clock_ms() + 100;
    while (clock_ms() < deadline) {
        struct pollfd p[] = {{control, POLLIN, 0}, {output, POLLIN, 0}};
        poll(p, 2, 100);
        for (int i = 0; i < 2; i++)
            if (p[i].revents && recv(p[i].fd, ignored, sizeof(ignored), MSG_DONTWAIT) == 0)
                exit(0);
    }
    if (!is_by_chance(mode))
        die("the other end did not close");
    exit(0);
}

static int hostile_guard(const char *mode, const char *addresses, const char *host)
{
    struct auth_secret secret;
    struct dial d = {.secret = &secret, .lifeline = -1, .deadline = clock_ms() + PATIENCE_MS};
    struct bytes b = {0};
    char line[200], why[300] = "";

    d.host = (uint32_t)atoi(host);
    if (!fgets(line, sizeof(line), stdin))
        die("no secret");
    line[strcspn(line, " \n")] = 0;
    if (!auth_secret_parse(&secret, line))
        die("a damaged secret");
    if (!strcmp(mode, "foreign"))
        secret.bytes[0] ^= 1;
    if (!dial_parse(&d, addresses, NULL, why, sizeof(why)))
        die(why);
    int control = dial_connect(&d, AUTH_CONTROL, why, sizeof(why));
    int output = control < 0 ? -1 : dial_connect(&d, AUTH_OUTPUT, why, sizeof(why));
    if (output < 0) {
        fprintf(stderr, "gasnetrun_ibv: %s\n", why); /* as the launcher's own guard would */
        return 1;
    }
    fill(&b, mode, true, d.host);
    talk(control, output, &b, mode);
    return 0;
}

/* Starts the launcher's guard with the secret in its standard input. */
static pid_t start_guard(const char *launcher, const struct auth_secret *secret, const char *where,
                         int *lifeline)
{
    char text[AUTH_SECRET_TEXT];
    int in[2];
    if (pipe2(in, 0) != 0)
        die("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(in[0], 0);
        close(in[0]);
        close(in[1]);
        execl(launcher, launcher, "--guard", where, "0", (char *)NULL);
        die("cannot run the launcher");
    }
    close(in[0]);
    auth_secret_print(secret, text);
    dprintf(in[1], "%s %d\n", text, PATIENCE_MS);
    *lifeline = in[1];
    return pid;
}

static void accept_both(struct listener *l, int fds[AUTH_STREAMS])
{
    int64_t deadline = clock_ms() + PATIENCE_MS;
    struct pollfd p[LISTEN_POLL_MAX];
    enum auth_stream stream;
    uint32_t host;
    int fd;

    while ((fds[AUTH_CONTROL] < 0 || fds[AUTH_OUTPUT] < 0) && clock_ms() < deadline) {
        poll(p, listen_poll_fds(l, p), 100);
        listen_serve(l);
        while (listen_next(l, &host, &stream, &fd))
            fds[stream] = fd;
    }
}

static int hostile_head(const char *mode, const char *launcher)
{
    struct auth_secret secret, other;
    static struct listener l;
    struct bytes b = {0};
    char where[2048];
    int fds[AUTH_STREAMS] = {-1, -1}, lifeline, status = 0;

    if (!auth_secret_make(&secret) || !listen_open(&l, &secret, "127.0.0.1") ||
        !listen_addresses(&l, "127.0.0.1", where, sizeof(where)))
        die("no port");
    other = secret;
    if (!strcmp(mode, "foreign"))
        other.bytes[31] ^= 1;
    pid_t guard = start_guard(launcher, &other, where, &lifeline);
    if (strcmp(mode, "foreign"))
        accept_both(&l, fds);
    else
        for (int i = 0; i < 20 && waitpid(guard, &status, WNOHANG) == 0; i++) {
            struct pollfd p[LISTEN_POLL_MAX];
            poll(p, listen_poll_fds(&l, p), 100);
            listen_serve(&l);
        }
    if (fds[AUTH_OUTPUT] >= 0) {
        fill(&b, mode, false, 0);
        if (!strcmp(mode, "lifeline")) {
            close(lifeline);
            lifeline = -1;
        }
        pid_t talker = fork();
        if (talker == 0)
            talk(fds[AUTH_CONTROL], fds[AUTH_OUTPUT], &b, mode);
        waitpid(talker, &status, 0);
    }
    for (int i = 0; i < AUTH_STREAMS; i++)
        close(fds[i]);
    if (lifeline >= 0)
        close(lifeline);
    waitpid(guard, NULL, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    alarm(60);
    if (argc == 5 && !strcmp(argv[1], "guard"))
        return hostile_guard(argv[2], argv[3], argv[4]);
    if (argc == 4 && !strcmp(argv[1], "head"))
        return hostile_head(argv[2], argv[3]);
    die("usage");
}
