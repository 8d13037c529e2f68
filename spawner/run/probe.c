/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes for a usable RDMA port; see probe.h. Call while the process has one thread. */
#include "config.h"

#include "probe.h"
#include "spawner/util/launcher_clock.h"

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

/* A healthy driver opens in milliseconds; a driver with a failing firmware may never open. */
enum { PROBE_MS = 5000 };

enum { PROBE_ACTIVE = 0, PROBE_NONE = 1 };

static bool device_has_active_port(struct ibv_device *device)
{
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    bool found = false;
    struct ibv_context *context = ibv_open_device(device);

    if (!context)
        return false;
    if (ibv_query_device(context, &attr) == 0)
        for (int p = 1; p <= attr.phys_port_cnt && !found; p++)
            found =
                ibv_query_port(context, (uint8_t)p, &port) == 0 && port.state == IBV_PORT_ACTIVE;
    ibv_close_device(context);
    return found;
}

static void probe_child(pid_t parent) __attribute__((noreturn));

static void probe_child(pid_t parent)
{
    int count = 0, null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(PROBE_NONE);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    struct ibv_device **devices = ibv_get_device_list(&count);
    for (int i = 0; devices && i < count; i++)
        if (device_has_active_port(devices[i]))
            _exit(PROBE_ACTIVE);
    _exit(PROBE_NONE);
}

bool probe_active_port(void)
{
    int ends[2], status = PROBE_NONE;
    pid_t self = getpid();

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        probe_child(self);
    close(ends[1]); /* only the child holds it now: the pipe ends when the child ends */
    struct pollfd p = {.fd = ends[0], .events = POLLIN};
    int64_t deadline = clock_ms() + PROBE_MS;
    while (pid > 0 && poll(&p, 1, clock_poll_timeout(deadline)) < 0 && errno == EINTR)
        continue;
    close(ends[0]);
    if (pid <= 0)
        return false;
    if (!p.revents)
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
