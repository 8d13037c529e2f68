/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PMIx server spends on the ranks of its job: spawner/server/jobinfo.c with libpmix, without
 * guard and network.
 *
 *   registration job RANKS OWN      registers a job of so many ranks, OWN on each host. Prints
 *                                   infos given to libpmix, bytes of memory and ns of CPU time
 *   registration clients OWN        one host with so many ranks, of which a few start and end.
 *                                   Prints ns of CPU time of one, and of the server for it
 *
 * Each run is a process of its own, because libpmix keeps what it has. */
#include "config.h"

#include "spawner/server/server_private.h"

#include <dlfcn.h>
#include <ftw.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* started: enough for an average, and few beside those that are registered. */
enum { name_size = 12, ranks_max = 10000000, own_max = 65535, started = 8 };

static char session[4096] = "/tmp/trunkline-registration-XXXXXX";
static size_t infos_given;
static pid_t owner; /* of the directory */

static int remove_one(const char *path, const struct stat *unused, int kind, struct FTW *at)
{
    (void)unused, (void)kind, (void)at;
    remove(path);
    return 0;
}

static void remove_session(void)
{
    if (getpid() == owner)
        nftw(session, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "registration: %s: %s\n", what, why);
    exit(1);
}

static void must(const char *what, pmix_status_t rc)
{
    if (rc != PMIX_SUCCESS)
        die(what, PMIx_Error_string(rc));
}

static void *have(void *memory)
{
    if (!memory)
        die("memory", "there is none");
    return memory;
}

/* jobinfo.c calls this one. */
pmix_status_t PMIx_server_register_nspace(const pmix_nspace_t name, int local, pmix_info_t info[],
                                          size_t count, pmix_op_cbfunc_t done, void *object)
{
    pmix_status_t (*next)(const pmix_nspace_t, int, pmix_info_t[], size_t, pmix_op_cbfunc_t,
                          void *);
    *(void **)&next = have(dlsym(RTLD_NEXT, "PMIx_server_register_nspace"));
    infos_given += count;
    for (size_t i = 0; i < count; i++)
        if (info[i].value.type == PMIX_DATA_ARRAY)
            infos_given += info[i].value.data.darray->size;
    return next(name, local, info, count, done, object);
}

static uint64_t cpu_ns(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return 1000 * (1000000 * (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                   (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec));
}

static uint64_t resident(void)
{
    unsigned long all, pages = 0;
    FILE *in = fopen("/proc/self/statm", "re");
    if (!in || fscanf(in, "%lu %lu", &all, &pages) != 2)
        die("/proc/self/statm", "can't be read");
    fclose(in);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- the server */

static pmix_status_t on_client(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                               void *data)
{
    (void)proc, (void)object, (void)done, (void)data;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_server_module_t upcalls = {.client_connected = on_client,
                                       .client_finalized = on_client};

static void make_job(struct job *job, uint32_t ranks, uint32_t own)
{
    uint32_t count = (ranks - 1) / own + 1;
    char *names = have(calloc(count, name_size));
    *job = (struct job){.ranks = ranks, .host_count = count, .nspace = "registration"};
    job->hosts = have(calloc(count, sizeof(*job->hosts)));
    for (uint32_t h = 0; h < count; h++) {
        snprintf(names + (size_t)h * name_size, name_size, "n%u", h);
        job->hosts[h] = (struct job_host){
            .name = names + (size_t)h * name_size, .first = h * own, .count = own};
    }
    job->hosts[count - 1].count = ranks - (count - 1) * own;
}

/* As spawner/server/server.c does; I/O devices take long to look for. */
static void serve(const struct job *job)
{
    bool no = false, yes = true;
    pmix_info_t info[6];
    owner = getpid();
    if (!mkdtemp(session))
        die(session, "can't be made");
    atexit(remove_session);
    setenv("HWLOC_PLUGINS_PATH", session, 0);
    setenv("HWLOC_COMPONENTS", "-pci,-linuxio,-opencl,-cuda,-nvml,-rsmi,-levelzero,-gl", 0);
    PMIX_INFO_LOAD(&info[0], PMIX_HOSTNAME, job->hosts[0].name, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SERVER_TMPDIR, session, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_SYSTEM_TMPDIR, session, PMIX_STRING);
    PMIX_INFO_LOAD(&info[3], PMIX_SERVER_TOOL_SUPPORT, &no, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[4], PMIX_SERVER_SYSTEM_SUPPORT, &no, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[5], PMIX_SERVER_SHARE_TOPOLOGY, &yes, PMIX_BOOL);
    must("PMIx_server_init", PMIx_server_init(&upcalls, info, 6));
}

static void register_job(uint32_t ranks, uint32_t own)
{
    struct job job;
    make_job(&job, ranks, own);
    const struct server_job server = {.job = &job, .session = session};
    serve(&job);
    uint64_t began = cpu_ns(RUSAGE_SELF), before = resident();
    must("register", server_register_job(&server));
    printf("job %u infos %zu bytes %" PRIu64 " ns %" PRIu64 "\n", ranks, infos_given,
           resident() - before, cpu_ns(RUSAGE_SELF) - began);
}

/* ---- ranks of it */

static int be_client(void)
{
    pmix_proc_t self;
    must("PMIx_Init", PMIx_Init(&self, NULL, 0));
    must("PMIx_Finalize", PMIx_Finalize(NULL, 0));
    return 0;
}

/* posix_spawn() copies no page table, which grows with the job. */
static void run_client(const struct job *job, uint32_t rank, char *program)
{
    char **env = NULL, *const arguments[] = {program, (char *)"client", NULL};
    int status;
    pid_t pid;
    pmix_proc_t proc;
    PMIX_LOAD_PROCID(&proc, job->nspace, rank);
    must("PMIx_server_setup_fork", PMIx_server_setup_fork(&proc, &env));
    for (char **e = env; e && *e; e++)
        putenv(*e);
    if (posix_spawn(&pid, program, NULL, NULL, arguments, environ) != 0 ||
        waitpid(pid, &status, 0) != pid || status != 0)
        die("a client", "failed");
}

/* What the server registered for one rank is no part of what it spends when that one starts. */
static void run_clients(uint32_t own, char *program)
{
    struct job job;
    make_job(&job, own, own);
    const struct server_job server = {.job = &job, .session = session};
    serve(&job);
    must("register", server_register_job(&server));
    for (uint32_t r = 0; r < own; r++)
        must("register a rank", server_register_rank(&server, r));
    uint64_t began = cpu_ns(RUSAGE_SELF);
    for (uint32_t r = 0; r < own && r < started; r++)
        run_client(&job, r, program);
    uint32_t count = own < started ? own : started;
    printf("clients %u ns %" PRIu64 " server %" PRIu64 "\n", own, cpu_ns(RUSAGE_CHILDREN) / count,
           (cpu_ns(RUSAGE_SELF) - began) / count);
}

static uint32_t number(const char *text, unsigned long most)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*end || value < 1 || value > most) {
        fprintf(stderr, "registration: '%s' is not a number from 1 to %lu\n", text, most);
        exit(2);
    }
    return (uint32_t)value;
}

int main(int argc, char **argv)
{
    static char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (argc == 2 && !strcmp(argv[1], "client"))
        return be_client();
    if (argc == 4 && !strcmp(argv[1], "job"))
        register_job(number(argv[2], ranks_max), number(argv[3], own_max));
    else if (argc == 3 && !strcmp(argv[1], "clients") && length > 0)
        run_clients(number(argv[2], own_max), self);
    else {
        fprintf(stderr, "usage: registration job RANKS OWN | clients OWN\n");
        return 2;
    }
    PMIx_server_finalize();
    return 0;
}
