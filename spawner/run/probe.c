/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes for a usable RDMA port; see probe.h. Call while the process has one thread. */
#include "config.h"

#include "probe.h"
#include "spawner/base/clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A healthy driver opens in milliseconds, one with a firmware in trouble may never. */
enum { PROBE_MS = 5000 };

enum { PROBE_ACTIVE = 0, PROBE_NONE = 1 };

static const char *state_name(enum ibv_port_state state)
{
    return state == IBV_PORT_ACTIVE ? "active"
           : state == IBV_PORT_DOWN ? "down"
           : state == IBV_PORT_INIT ? "initializing"
                                    : "not active";
}

/* Writes a port of the list to the pipe `to`; true: it is active. */
static bool report_port(struct ibv_context *context, int number, bool is_first, int to)
{
    struct ibv_port_attr port;
    char text[100];

    if (ibv_query_port(context, (uint8_t)number, &port) != 0)
        return false;
    int n = snprintf(text, sizeof(text), "%s%s:%d %s", is_first ? "" : ", ",
                     ibv_get_device_name(context->device), number, state_name(port.state));
    /* Who reads it has the exit status all the same. */
    return write(to, text, (size_t)n) >= -1 && port.state == IBV_PORT_ACTIVE;
}

static bool report_device(struct ibv_device *device, bool is_first, int to)
{
    struct ibv_device_attr attr;
    bool found = false;
    struct ibv_context *context = ibv_open_device(device);

    if (!context)
        return false;
    if (ibv_query_device(context, &attr) == 0)
        for (int p = 1; p <= attr.phys_port_cnt; p++)
            found |= report_port(context, p, is_first && p == 1, to);
    ibv_close_device(context);
    return found;
}

static void probe_child(pid_t parent, int to) __attribute__((noreturn));

static void probe_child(pid_t parent, int to)
{
    int count = 0, null = open("/dev/null", O_RDWR);
    bool found = false;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(PROBE_NONE);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    struct ibv_device **devices = ibv_get_device_list(&count);
    for (int i = 0; devices && i < count; i++)
        found |= report_device(devices[i], i == 0, to);
    _exit(found ? PROBE_ACTIVE : PROBE_NONE);
}

/* Until its other end is closed; false: it was not in time. */
static bool read_list(int from, char *list, size_t size)
{
    struct pollfd p = {.fd = from, .events = POLLIN};
    int64_t deadline = clock_ms() + PROBE_MS;
    size_t used = 0;
    char rest[100];

    for (;;) {
        bool is_full = used + 1 >= size;
        ssize_t n = -1;
        int ready = poll(&p, 1, clock_poll_timeout(deadline));

        list[used] = 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready > 0)
            n = is_full ? read(from, rest, sizeof(rest)) : read(from, list + used, size - 1 - used);
        if (n <= 0)
            return n == 0;
        used += is_full ? 0 : (size_t)n;
    }
}

bool probe_active_port(char *list, size_t size)
{
    int ends[2], status = PROBE_NONE;
    pid_t self = getpid();

    list[0] = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        probe_child(self, ends[1]);
    close(ends[1]); /* the child alone holds it now: its end is the pipe's end */
    bool in_time = pid > 0 && read_list(ends[0], list, size);
    close(ends[0]);
    if (pid <= 0)
        return false;
    if (!in_time)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == PROBE_ACTIVE;
}

static bool file_says_active(const char *path)
{
    char text[32] = ""; /* "4: ACTIVE" */
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool active =
        fgets(text, sizeof(text), file) && strstr(text, "ACTIVE") && !strstr(text, "ACTIVE_DEFER");
    fclose(file);
    return active;
}

bool probe_sysfs_active_port(void)
{
    bool found = false;
    glob_t states;
    if (glob("/sys/class/infiniband/*/ports/*/state", 0, NULL, &states) != 0)
        return false;
    for (size_t i = 0; i < states.gl_pathc && !found; i++)
        found = file_says_active(states.gl_pathv[i]);
    globfree(&states);
    return found;
}

bool probe_is_software(void)
{
    Dl_info info;
    void *verbs = dlsym(RTLD_DEFAULT, "ibv_get_device_list");
    return verbs && dladdr(verbs, &info) && info.dli_fname && strstr(info.dli_fname, "softhca");
}
