/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnetrun_ibv: starts N processes of a program and wires them up through PMIx. This file turns
 * the command line and the environment into a struct job and hands it to the head. One thread, no
 * lock. */
#include "config.h"

#include "device.h"
#include "environ.h"
#include "spawner/base/job.h"
#include "options.h"
#include "probe.h"
#include "program.h"
#include "spawner/base/clock.h"
#include "spawner/base/log.h"
#include "spawner/guard/remote.h"
#include "spawner/guard/session.h"
#include "spawner/head/head.h"
#include "settings/settings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* Two pipes a rank in the guard, one connection a rank in the server. Beside them the server, which
 * needs more than the guard, was seen to run with 14 (libpmix 4.2); the rest is for other versions.
 */
enum { FILES_PER_RANK = 2, FILES_BASE = 24 };

/* A live server answers at once; one that is starting a thousand ranks within seconds. */
#define HANDSHAKE_SECONDS "60"

static struct job job;
static struct job_host own_host;
static char own_name[256];
static struct tk_settings settings;
static char program_path[4096];

/* Files that the launcher opens must not get descriptor 0, 1 or 2: they would be taken for the
 * user's. A standard output that is closed stays one that can't be written, so that lost output is
 * an error as on a full disk. */
static void fill_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && /* the lowest that is free is what open() takes */
            open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd)
            return;
}

static int main_usage(const char *why)
{
    log_error("%s", why);
    return EXIT_USAGE;
}

static bool is_spawner(const char *name)
{
    return !strcmp(name, "local") || !strcmp(name, "ssh") || !strcmp(name, "mpi") ||
           !strcmp(name, "pmi");
}

static int check_spawner(const struct options *o)
{
    const char *spawner = o->spawner, *from = "-spawner=";
    if (!spawner && environ_is_set("GASNET_IBV_SPAWNER")) {
        spawner = settings.ibv_spawner;
        from = "GASNET_IBV_SPAWNER=";
    }
    if (!spawner && environ_is_set("GASNET_SPAWNER")) {
        spawner = settings.spawner;
        from = "GASNET_SPAWNER=";
    }
    if (!spawner && strcmp(settings.ibv_spawner, "local") != 0)
        log_verbose(1, "spawner: local, in place of %s (--with-ibv-spawner)", settings.ibv_spawner);
    if (!spawner || !*spawner || !strcmp(spawner, "local"))
        return 0;
    log_error("%s%s: %s; use -spawner=local", from, spawner,
              is_spawner(spawner) ? "this launcher has only local" : "unknown spawner");
    return EXIT_USAGE;
}

static int check_options(const struct options *o)
{
    if (o->hosts > 1) {
        log_error("-N %u: only this host can be used; leave -N out, or use -N 1", o->hosts);
        return EXIT_USAGE;
    }
    return check_spawner(o);
}

/* Files that we were started with beside the standard ones; our processes inherit them and pass
 * them on to the ranks. */
static rlim_t inherited_files(void)
{
    rlim_t most = STDERR_FILENO;
    DIR *d = opendir("/proc/self/fd");
    if (!d)
        return 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        int fd = atoi(e->d_name);
        if (fd != dirfd(d))
            most += fd > STDERR_FILENO;
    }
    closedir(d);
    return most - STDERR_FILENO;
}

static int raise_file_limit(void)
{
    struct rlimit limit;
    rlim_t wanted = inherited_files() + FILES_BASE + FILES_PER_RANK * (rlim_t)job.ranks;

    if (getrlimit(RLIMIT_NOFILE, &job.files) != 0)
        return 0;
    limit = job.files;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_max >= wanted)
        return 0;
    log_error(
        "%u processes need %llu open files, the hard limit is %llu; raise it (ulimit -Hn) or start "
        "fewer",
        job.ranks, (unsigned long long)wanted, (unsigned long long)limit.rlim_max);
    return EXIT_RUNTIME;
}

static void name_job(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(job.nspace, sizeof(job.nspace), "trunkline-%d-%llx", (int)getpid(),
             (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec);
    if (gethostname(own_name, sizeof(own_name) - 1) != 0 || !own_name[0])
        strcpy(own_name, "localhost");
    own_host = (struct job_host){.name = own_name, .count = job.ranks};
    job.hosts = &own_host;
    job.host_count = 1;
    job.host = JOB_NO_HOST;
    job.out_degree = (uint32_t)settings.ssh_out_degree;
    for (int i = 0; i < JOB_LIMITS; i++)
        job.soft_limits[i] = RLIM_INFINITY;
}

static int name_session(void)
{
    const char *parent = environ_session_parent(&settings);
    if (!session_name(parent, job.session, sizeof(job.session))) {
        log_error("cannot name a session directory in %s: the path is too long; set GASNET_TMPDIR",
                  parent);
        return EXIT_RUNTIME;
    }
    log_verbose(1, "session directory %s", job.session);
    if (!session_has_space(parent, job.ranks)) {
        log_verbose(1, "little room in %s: PMIx data goes through sockets", parent);
        setenv("PMIX_MCA_gds", "hash", 1);
    }
    return 0;
}

static void set_rank_environment(void)
{
    char text[16];
    /* A rank that cannot reach PMIx must not run as a job of one. */
    snprintf(text, sizeof(text), "%u", job.ranks);
    setenv("TRUNKLINE_LAUNCHED", text, 1);
    setenv("TRUNKLINE_SESSION", job.session, 1);
    /* Nor may it wait for ever for a server that has run out of memory, as libpmix does by default.
     */
    setenv("PMIX_MCA_ptl_base_handshake_wait_time", HANDSHAKE_SECONDS, 0);
    setenv("PMIX_MCA_ptl_base_handshake_max_retries", "1", 0);
    job.env = environ;
}

static void main_announce(const struct options *o)
{
    char command[1024];
    size_t used = 0;
    command[0] = 0;
    for (char **a = job.argv; *a && used < sizeof(command); a++)
        used += (size_t)snprintf(command + used, sizeof(command) - used, " %s", *a);
    log_verbose(1, "%s: %u process%s on %s:%s", PACKAGE_STRING, job.ranks,
                job.ranks == 1 ? "" : "es", own_name, command);
    log_verbose(1, "program %s, job %s, SIGKILL %u ms after SIGTERM", job.program, job.nspace,
                job.grace_ms);
    if (job.reader_ms)
        log_verbose(1, "output that nobody reads is kept for %g s after the job",
                    job.reader_ms / 1000.0);
    else
        log_verbose(1, "output is kept until it is read");
    if (o->exported)
        log_verbose(1, "the whole environment is propagated, -E %s included", o->exported);
}

static int main_run(const struct options *o)
{
    char why[5000];
    int status;

    if (!environ_load(&settings))
        return EXIT_USAGE;
    log_set_verbosity(o->verbose ? o->verbose : settings.spawn_verbose);
    environ_set_limits(&job, &settings, isatty(STDERR_FILENO));
    if ((status = check_options(o)))
        return status;
    if (!program_find(o->command[0], program_path, sizeof(program_path), why, sizeof(why)))
        return main_usage(why);
    job.ranks = o->ranks;
    job.program = program_path;
    job.argv = o->command;
    job.label = o->label;
    job.keep = o->keep;
    name_job();
    main_announce(o);
    if ((status = raise_file_limit()) || (status = device_choose(&job, &settings)))
        return status;
    if (o->dry_run)
        return 0;
    head_catch_signals(&job);
    if ((status = name_session()))
        return status;
    set_rank_environment();
    return head_run(&job);
}

/* Checks output of the launcher itself, not of ranks. */
static int main_flush(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    log_error("cannot write standard output: %s", strerror(errno));
    return EXIT_RUNTIME;
}

int main(int argc, char **argv)
{
    struct options options;
    char why[512];

    job.began = clock_ms();
    fill_standard_files();
    environ_forget_pmix();
    if (argc == 4 && !strcmp(argv[1], "--guard"))
        return remote_run(argv[2], argv[3], probe_active_port);
    if (!options_parse(&options, argv, why, sizeof(why)))
        return main_usage(why);
    switch (options.wish) {
    case ACTION_HELP:
        fputs(options_help, stdout);
        return main_flush();
    case ACTION_VERSION:
        printf("gasnetrun_ibv (%s)\n", PACKAGE_STRING);
        return main_flush();
    case ACTION_SETTINGS:
        tk_settings_print(stdout);
        return main_flush();
    case ACTION_SETTINGS_MAN:
        tk_settings_print_man(stdout);
        return main_flush();
    case ACTION_RUN:
        break;
    }
    return main_run(&options);
}
