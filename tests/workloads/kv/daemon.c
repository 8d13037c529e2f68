/* SPDX-License-Identifier: BSD-3-Clause */
/* See daemon.h. Owns the child and the folder of its socket. One thread. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "daemon.h"

static struct {
    pid_t pid;
    char folder[64], path[kv_address_max];
} child;

extern char **environ;

static const char *program_of(const char *name)
{
    return strcmp(name, "redis") ? "memcached" : "redis-server";
}

bool kv_daemon_installed(const char *name)
{
    const char *path = getenv("PATH");
    char file[512];
    for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
        int length = (int)strcspn(at, ":");
        snprintf(file, sizeof(file), "%.*s/%s", length, at, program_of(name));
        if (access(file, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

/* ---- Start */

/* A port that was free a moment ago; the server itself reports when it no longer is. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = -1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        port = ntohs(address.sin_port);
    if (fd >= 0)
        close(fd);
    return port;
}

static bool choose_place(bool loopback, char *address, char *why, size_t size)
{
    const char *tmp = getenv("TMPDIR");
    child.folder[0] = child.path[0] = 0;
    if (loopback) {
        int port = free_port();
        snprintf(address, kv_address_max, "port %d", port);
        snprintf(why, size, "no free port: %s", strerror(errno));
        return port > 0;
    }
    if (snprintf(child.folder, sizeof(child.folder), "%s/trunkline-kv-XXXXXX",
                 tmp ? tmp : "/tmp") >= (int)sizeof(child.folder) ||
        !mkdtemp(child.folder)) {
        snprintf(why, size, "no folder for a socket in %.80s", tmp ? tmp : "/tmp");
        child.folder[0] = 0;
        return false;
    }
    snprintf(child.path, sizeof(child.path), "%s/socket", child.folder);
    snprintf(address, kv_address_max, "%s", child.path);
    return true;
}

/* Our environment without the libraries preloaded into ranks; NULL if out of memory. */
static char **childs_environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **mine = calloc(count + 1, sizeof(*mine));
    for (size_t i = 0; mine && i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11))
            mine[kept++] = environ[i];
    return mine;
}

/* The child is silent, has no signals of ours blocked, and dies with this thread. */
static bool spawn(char *const *words)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    char **environment = childs_environment();
    int error = environment
                    ? posix_spawnp(&child.pid, words[0], &actions, &attributes, words, environment)
                    : ENOMEM;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    errno = error;
    return error == 0;
}

bool kv_daemon_start(const char *name, bool loopback, uint64_t memory, char *address, char *why,
                     size_t size)
{
    char megabytes[32], bytes[32];
    child.pid = 0;
    if (!choose_place(loopback, address, why, size))
        return false;
    snprintf(megabytes, sizeof(megabytes), "%llu", (unsigned long long)(memory >> 20));
    snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)memory);
    char *place = loopback ? address + strlen("port ") : child.path;
    /* One thread each, as our servers have; a whole window may be served without a pause. */
    char *memcached[] = {"setpriv", "--pdeathsig", "KILL", "memcached", "-u",   "root", "-U",
                         "0",       "-t",          "1",    "-R",        "1000", "-m",   megabytes,
                         "-l",      "127.0.0.1",   "-p",   place,       NULL};
    char *redis[] = {"setpriv",
                     "--pdeathsig",
                     "KILL",
                     "redis-server",
                     "--save",
                     "",
                     "--appendonly",
                     "no",
                     "--maxmemory-policy",
                     "noeviction",
                     "--maxmemory",
                     bytes,
                     "--bind",
                     "127.0.0.1",
                     "--port",
                     place,
                     NULL,
                     NULL,
                     NULL};
    if (!loopback) {
        memcached[14] = "-s";
        memcached[15] = place;
        memcached[16] = NULL;
        redis[12] = "--port";
        redis[13] = "0";
        redis[14] = "--unixsocket";
    }
    if (spawn(strcmp(name, "redis") ? memcached : redis))
        return true;
    snprintf(why, size, "%s can't be started: %s", name, strerror(errno));
    kv_daemon_forget_name();
    return false;
}

/* ---- Connections */

static int try_connect(const char *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    bool loopback = !strncmp(address, "port ", 5);
    int one = 1, fd = socket(loopback ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (loopback)
        in.sin_port = htons((uint16_t)atoi(address + 5));
    else
        snprintf(un.sun_path, sizeof(un.sun_path), "%s", address);
    if (connect(fd, loopback ? (struct sockaddr *)&in : (struct sockaddr *)&un,
                loopback ? sizeof(in) : sizeof(un))) {
        close(fd);
        return -1;
    }
    if (loopback)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static bool child_ended(void)
{
    if (child.pid > 0 && waitpid(child.pid, NULL, WNOHANG) == child.pid)
        child.pid = -1;
    return child.pid < 0;
}

int kv_daemon_connect(const char *address, int64_t timeout_ms)
{
    const struct timespec nap = {0, 5000000};
    uint64_t limit = wl_now() + (uint64_t)timeout_ms * 1000000;
    for (;;) {
        int fd = try_connect(address);
        if (fd >= 0 || child_ended() || wl_now() > limit)
            return fd;
        nanosleep(&nap, NULL);
    }
}

void kv_daemon_forget_name(void)
{
    if (!child.folder[0])
        return;
    unlink(child.path);
    rmdir(child.folder);
    child.folder[0] = 0;
}

/* ---- End */

uint64_t kv_daemon_cpu(void)
{
    clockid_t clock;
    return child.pid > 0 && clock_getcpuclockid(child.pid, &clock) == 0 ? wl_clock(clock) : 0;
}

void kv_daemon_stop(void)
{
    const struct timespec nap = {0, 5000000};
    kv_daemon_forget_name();
    if (child.pid <= 0)
        return;
    kill(child.pid, SIGTERM);
    for (int i = 0; i < 200 && !child_ended(); i++)
        nanosleep(&nap, NULL);
    if (!child_ended()) {
        kill(child.pid, SIGKILL);
        waitpid(child.pid, NULL, 0);
    }
    child.pid = 0;
}
