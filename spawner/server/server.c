/* SPDX-License-Identifier: BSD-3-Clause */
/* The main thread of the PMIx server process: starts libpmix, registers the job, sends the guard
 * what the ranks need in their environment, then passes on answers of other hosts while the thread
 * of libpmix serves. The process ends by being killed: after an abnormal end PMIx_server_finalize()
 * of libpmix 4.2 crashes or hangs, and the guard removes the files anyway. Owns the answer that
 * server_watch_libpmix() waits for; takes no lock. */
#include "config.h"

#include "gate.h"
#include "owner.h"
#include "server_private.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/util/procinfo.h"
#include "spawner/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* A client of libpmix sends its first message right after it has connected. */
enum { FIRST_MESSAGE_MS = 5000 };

/* libpmix serves its clients over the loopback interface. */
static bool loopback_is_up(void)
{
    struct ifaddrs *all;
    bool up = false;

    if (getifaddrs(&all) != 0)
        return true; /* there is no evidence that it is stuck */
    for (const struct ifaddrs *i = all; i; i = i->ifa_next)
        up |= (i->ifa_flags & IFF_LOOPBACK) && (i->ifa_flags & IFF_UP) && i->ifa_addr &&
              i->ifa_addr->sa_family == AF_INET;
    freeifaddrs(all);
    return up;
}

static bool is_limited(int resource)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* A remedy for an error that libpmix does not explain. */
static const char *server_remedy(void)
{
    if (!loopback_is_up())
        return "; the loopback interface is down or has no IPv4 address (ip link set lo up)";
    if (is_limited(RLIMIT_AS))
        return "; the address space is limited (ulimit -v)";
    return "; where libpmix does not say why, look at the limits of processes (ulimit -u, "
           "pids.max of the cgroup) and at free memory";
}

static void server_give_up(const char *what, pmix_status_t rc) __attribute__((noreturn));

static void server_give_up(const char *what, pmix_status_t rc)
{
    char text[512];
    int n = snprintf(text, sizeof(text), "the PMIx server cannot %s: %s (%d)%s", what,
                     PMIx_Error_string(rc), rc, server_remedy());
    server_send(WIRE_FAILED, 0, text, (size_t)n);
    _exit(EXIT_RUNTIME);
}

static void server_check(const char *what, pmix_status_t rc)
{
    if (rc != PMIX_SUCCESS)
        server_give_up(what, rc);
}

/* libpmix passes the tree of CPUs and caches to the ranks. It does not need the I/O devices:
 * finding their names and places takes half of its time to start, because it reads /sys and a list
 * of all makers of PCI devices, and its plugins load graphics libraries. */
static void spare_devices(const char *empty_directory)
{
    setenv("HWLOC_PLUGINS_PATH", empty_directory, 0);
    setenv("HWLOC_COMPONENTS", "-pci,-linuxio,-opencl,-cuda,-nvml,-rsmi,-levelzero,-gl", 0);
}

static void start_libpmix(const struct server_job *job)
{
    bool no = false, yes = true;
    pmix_info_t *info;
    char name[PMIX_MAX_NSLEN];
    pmix_rank_t rank = 0;

    /* Unique among the servers of the job. */
    snprintf(name, sizeof(name), "%s-server.%u", job->job->nspace, job->job->host);
    PMIX_INFO_CREATE(info, 8);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_NSPACE, name, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_RANK, &rank, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&info[2], PMIX_HOSTNAME, server_host(job)->name, PMIX_STRING);
    PMIX_INFO_LOAD(&info[3], PMIX_SERVER_TMPDIR, job->session, PMIX_STRING);
    PMIX_INFO_LOAD(&info[4], PMIX_SYSTEM_TMPDIR, job->session, PMIX_STRING);
    PMIX_INFO_LOAD(&info[5], PMIX_SERVER_TOOL_SUPPORT, &no, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[6], PMIX_SERVER_SYSTEM_SUPPORT, &no, PMIX_BOOL);
    /* A client that parses the topology by itself takes 70 ms instead of 4. */
    PMIX_INFO_LOAD(&info[7], PMIX_SERVER_SHARE_TOPOLOGY, &yes, PMIX_BOOL);
    spare_devices(job->session);
    server_check("start", PMIx_server_init(&server_upcalls, info, 8));
    PMIX_INFO_FREE(info, 8);
}

/* The gate's rules: it admits ranks of this host that use a module that they were given. */
static struct handshake_rules rules;

static char *copy_setting(char *const *env, const char *name)
{
    size_t length = strlen(name);

    for (; env && *env; env++)
        if (!strncmp(*env, name, length) && (*env)[length] == '=')
            return strdup(*env + length + 1);
    return strdup("");
}

/* They are the same for all ranks, and in use to the end of the process. */
static void learn_modules(char *const *env)
{
    rules.security = copy_setting(env, "PMIX_SECURITY_MODE");
    rules.storage = copy_setting(env, "PMIX_GDS_MODULE");
}

static void send_environment(const struct server_job *job, uint32_t rank)
{
    char **env = NULL;
    struct bytes packed = {0};
    pmix_proc_t proc;

    PMIX_LOAD_PROCID(&proc, job->job->nspace, rank);
    server_check("prepare a rank", PMIx_server_setup_fork(&proc, &env));
    for (char **e = env; e && *e; e++)
        bytes_append(&packed, *e, strlen(*e) + 1);
    if (!rules.security)
        learn_modules(env);
    server_send(WIRE_ENV, rank, bytes_front(&packed), packed.length);
    bytes_free(&packed);
    PMIX_ARGV_FREE(env);
}

/* Keeps the terminal and the guard's other files out of libpmix's reach. */
static void server_detach(int fd, pid_t guard)
{
    sigset_t none;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard)
        _exit(EXIT_RUNTIME);
    prctl(PR_SET_NAME, "gasnetrun-pmix");
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(fd, 3);
    close_range(4, ~0U, 0);
    server_open_channel(3);
}

/* libpmix prints errors when a rank dies in the middle of a connection. The head has its own
 * message for that, and this process prints nothing more. -v -v shows both. */
static void silence_libpmix(void)
{
    int null = log_verbosity() < 2 ? open("/dev/null", O_WRONLY) : -1;

    if (null >= 0) {
        dup2(null, STDERR_FILENO);
        close(null);
    }
}

static sem_t answered;

static void on_answer(pmix_status_t status, void *data)
{
    (void)status, (void)data;
    sem_post(&answered);
}

/* Passes answers of other hosts to libpmix, until the deadline. */
static void serve_until(int64_t deadline)
{
    struct wire_frame f;
    while (server_receive(&f, deadline))
        server_take(&f);
}

/* Ranks count as joined when they have connected, but PMIx_Init() continues after that, and when
 * memory had run out, the thread of libpmix was seen to deadlock on its own lock then: no rank
 * returns from PMIx_Init(), and no rank counts as late. So when the time for joining is over, that
 * thread is given a request to answer: to deregister a rank that does not exist. */
static void server_watch_libpmix(const struct server_job *job)
{
    char doing[400], text[600];
    struct timespec until;
    pmix_proc_t nobody;

    if (job->check_at == CLOCK_NEVER)
        return;
    serve_until(job->check_at);
    sem_init(&answered, 0, 0);
    PMIX_LOAD_PROCID(&nobody, "trunkline-nobody", 0);
    PMIx_server_deregister_client(&nobody, on_answer, NULL);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += job->patience / 1000;
    until.tv_nsec += job->patience % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    while (sem_clockwait(&answered, CLOCK_MONOTONIC, &until) != 0)
        if (errno == ETIMEDOUT) {
            procinfo_describe(getpid(), NULL, doing, sizeof(doing));
            int n = snprintf(text, sizeof(text),
                             "the PMIx server (pid %d) does not answer after GASNET_START_TIMEOUT; "
                             "it is %s; ending the job",
                             (int)getpid(), doing);
            server_send(WIRE_FAILED, 0, text, (size_t)n);
            return;
        }
}

static void server_refuse_to_start(const char *why) __attribute__((noreturn));

static void server_refuse_to_start(const char *why)
{
    server_send(WIRE_FAILED, 0, why, strlen(why));
    _exit(EXIT_RUNTIME);
}

static void close_gate(void)
{
    if (!owner_is_shown())
        server_refuse_to_start(
            "the PMIx server cannot find out which user opens a connection to it: neither socket "
            "diagnosis (NETLINK_SOCK_DIAG) nor /proc/net/tcp shows the owner; allow one of them in "
            "this container");
    if (!gate_close(FIRST_MESSAGE_MS))
        server_refuse_to_start("the PMIx server has no memory for its table of connections");
}

static void open_gate(const struct server_job *job)
{
    const struct job_host *host = server_host(job);

    rules.nspace = job->job->nspace;
    rules.first = host->first;
    rules.count = host->count;
    rules.uid = geteuid();
    rules.gid = getegid();
    gate_open(&rules);
}

void server_run(const struct server_job *job, int fd, pid_t guard)
{
    server_detach(fd, guard);
    close_gate();
    server_open_exchange(job);
    start_libpmix(job);
    server_check("register the job", server_register_job(job));
    const struct job_host *host = server_host(job);
    for (uint32_t r = host->first; r < host->first + host->count; r++)
        server_check("register a rank", server_register_rank(job, r));
    for (uint32_t r = host->first; r < host->first + host->count; r++)
        send_environment(job, r);
    open_gate(job);
    server_send(WIRE_READY, 0, NULL, 0);
    silence_libpmix();
    server_watch_libpmix(job);
    for (;;)
        serve_until(CLOCK_NEVER);
}
