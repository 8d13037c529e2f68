/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnetrun_ibv: starts N processes of a program and wires them up through PMIx. This file turns
 * the command line and the environment into a struct job and hands it to the head. One thread, no
 * lock. */
#include "config.h"

#include "ask.h"
#include "device.h"
#include "environ.h"
#include "foreign.h"
#include "spawner/util/job.h"
#include "options.h"
#include "page.h"
#include "place.h"
#include "plan.h"
#include "probe.h"
#include "program.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/simulate/simulate.h"
#include "spawner/util/log.h"
#include "spawner/guard/remote.h"
#include "spawner/guard/session.h"
#include "spawner/head/head.h"
#include "settings/settings.h"
#include "stats/table.h"
#include "top.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* Descriptors. For each rank: two pipes in the guard, one connection in the server. For each host,
 * in the process that starts its guard: two sockets, ssh's two pipes and its pidfd, and a call that
 * is not proven yet. Besides them the server, which needs more than the guard, was seen to run with
 * 14 (libpmix 4.2); the rest is for other versions. A report needs its own file, samples, the page
 * in the making, and the files of each host. */
enum { FILES_PER_RANK = 2, FILES_PER_HOST = 6, FILES_BASE = 24, FILES_OF_REPORT = 4 };

/* A live server answers at once; a server that is starting a thousand ranks answers within seconds.
 * / */
#define HANDSHAKE_SECONDS "60"

static struct job job;
static struct place place;
static struct tk_settings settings;
static char program_path[4096];

/* Files that the launcher opens must not get descriptor 0, 1 or 2: they would be taken for the
 * user's. A closed standard output stays unwritable, so that lost output is an error, as on a full
 * disk. */
static void fill_standard_files(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && /* open() takes the lowest free number */
            open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd)
            return;
}

static int main_usage(const char *why)
{
    log_error("%s", why);
    return EXIT_USAGE;
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

/* Computes the limit from everything that runs on this host: all guards inherit the limit. */
static rlim_t files_wanted(void)
{
    rlim_t most = 0, hosts = job.host_count > 1 ? job.host_count : 0;
    for (uint32_t i = 0; i < job.host_count && job.agent == JOB_AGENT_FORK; i++)
        if (most < job.hosts[i].count)
            most = job.hosts[i].count;
    rlim_t report = job.report ? FILES_OF_REPORT + JOB_FILES * job.host_count : 0;
    return inherited_files() + FILES_BASE + FILES_PER_RANK * most + FILES_PER_HOST * hosts + report;
}

/* The variables that the user has set, for hosts that inherit nothing from us. */
static void read_limits(void)
{
    struct rlimit limit;
    for (int i = 0; i < JOB_LIMITS; i++) {
        job.soft_limits[i] = RLIM_INFINITY;
        if (job.agent == JOB_AGENT_SSH && getrlimit(i, &limit) == 0)
            job.soft_limits[i] = limit.rlim_cur;
    }
}

static int raise_file_limit(void)
{
    struct rlimit limit;
    rlim_t wanted = files_wanted();

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
}

static void set_job_settings(const struct options *o)
{
    static char directory[4096];
    static const enum job_bind binds[] = {JOB_BIND_NONE, JOB_BIND_NONE, JOB_BIND_CORE,
                                          JOB_BIND_SOCKET};
    job.label = o->label;
    job.keep = o->keep;
    job.report = o->report != NULL;
    job.cpus = o->cpus;
    job.bind = o->bind == BIND_UNSET && o->cpus ? JOB_BIND_CORE : binds[o->bind];
    job.out_degree = (uint32_t)settings.ssh_out_degree;
    job.heartbeat_ms = (uint32_t)(settings.ssh_heartbeat * 1000);
    job.stall_ms = (uint32_t)(settings.stall_seconds * 1000);
    job.connect_ms = (uint32_t)(settings.ssh_connect_timeout * 1000);
    job.ssh_command = settings.ssh_cmd;
    job.ssh_options = settings.ssh_options;
    job.remote_path = settings.ssh_remote_path;
    job.master_address = settings.masterip;
    if (job.agent == JOB_AGENT_SSH && getcwd(directory, sizeof(directory)))
        job.directory = directory;
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
        log_verbose(1, "little space in %s: PMIx data goes through sockets", parent);
        setenv("PMIX_MCA_gds", "hash", 1);
    }
    return 0;
}

static void set_rank_environment(const char *exported)
{
    char text[16];
    /* A rank that cannot reach PMIx must not run as a job of one. */
    snprintf(text, sizeof(text), "%u", job.ranks);
    setenv("TRUNKLINE_LAUNCHED", text, 1);
    unsetenv("TRUNKLINE_HOST"); /* of a job that we were started in */
    /* Nor may it wait for ever for a server that has run out of memory, as libpmix does by default.
     */
    setenv("PMIX_MCA_ptl_base_handshake_wait_time", HANDSHAKE_SECONDS, 0);
    setenv("PMIX_MCA_ptl_base_handshake_max_retries", "1", 0);
    job.env = environ;
    if (job.agent == JOB_AGENT_SSH)
        job.env = environ_select(exported);
}

static void announce_hosts(void)
{
    if (*place.origin)
        log_verbose(1, "hosts: from %s", place.origin);
    for (uint32_t i = 0; i < job.host_count && job.host_count > 1; i++) {
        const struct job_host *h = &job.hosts[i];
        if (h->count == 1)
            log_verbose(1, "  %s: rank %u", h->name, h->first);
        else
            log_verbose(1, "  %s: ranks %u-%u", h->name, h->first, h->first + h->count - 1);
    }
}

static void announce_command(const char *where)
{
    char command[1024];
    size_t used = 0;
    command[0] = 0;
    for (char **a = job.argv; *a && used < sizeof(command); a++)
        used += (size_t)snprintf(command + used, sizeof(command) - used, " %s", *a);
    log_verbose(1, "%s: %u process%s %s:%s", PACKAGE_STRING, job.ranks, job.ranks == 1 ? "" : "es",
                where, command);
}

static void main_announce(const struct options *o)
{
    char where[300];
    if (job.host_count == 1)
        snprintf(where, sizeof(where), "on %s", job.hosts[0].name);
    else
        snprintf(where, sizeof(where), "on %u hosts", job.host_count);
    announce_command(where);
    announce_hosts();
    log_verbose(1, "program %s, job %s, SIGKILL %u ms after SIGTERM", job.program, job.nspace,
                job.grace_ms);
    if (job.reader_ms)
        log_verbose(1, "output that nobody reads is kept for %g s after the job",
                    job.reader_ms / 1000.0);
    else
        log_verbose(1, "output is kept until it is read");
    if (o->exported && job.agent == JOB_AGENT_FORK)
        log_verbose(1, "the whole environment is propagated, -E %s included", o->exported);
}

/* mpirun or srun in our place: its signals, its exit status. Its ranks find the device by
 * themselves; where all of them are on this host we choose for them, as for our own. */
static int run_foreign(const struct options *o)
{
    char why[5000], runner[4096] = "", line[1800];
    enum foreign_kind kind = place.spawner == PLACE_MPI ? FOREIGN_MPI : FOREIGN_PMI;
    const char *pattern = kind == FOREIGN_MPI ? settings.mpirun_cmd : settings.pmirun_cmd;
    int status = 0;

    /* Removes variables left by a job that this launcher was started in: with them, a rank would
     * wait for this launcher's server. */
    unsetenv("TRUNKLINE_LAUNCHED");
    unsetenv("TRUNKLINE_SESSION");
    unsetenv("TRUNKLINE_HOST");
    if (!*pattern && !foreign_find(kind, runner, sizeof(runner), why, sizeof(why)))
        return main_usage(why);
    if (place.is_here || !strcmp(settings.softhca, "always"))
        status = device_choose(&job, &settings);
    if (status)
        return status;
    struct foreign_job f = {.kind = kind,
                            .pattern = pattern,
                            .runner = runner,
                            .ranks = job.ranks,
                            .hosts = o->hosts,
                            .nodes = place.nodes,
                            .list = place.list.count ? &place.list : NULL,
                            .counts = place.counts,
                            .is_allocated = place.is_allocated,
                            .label = o->label,
                            .bind = job.bind,
                            .bind_given = o->bind != BIND_UNSET || o->cpus,
                            .cpus = o->cpus,
                            .program = job.program,
                            .argv = job.argv,
                            .env = environ,
                            .exported = o->exported};
    char **command = foreign_command(&f, why, sizeof(why));
    if (!command)
        return main_usage(why);
    announce_command(kind == FOREIGN_MPI ? "by mpirun" : "by srun");
    announce_hosts();
    foreign_show(command, line, sizeof(line));
    log_verbose(1, "command: %s", line);
    return o->dry_run ? 0 : foreign_exec(command);
}

/* The properties of other hosts are unknown until they answer. */
static int choose_device(void)
{
    return job.agent == JOB_AGENT_SSH ? device_prepare(&job, &settings)
                                      : device_choose(&job, &settings);
}

static int run_with_report(const char *name, int signals)
{
    struct page page;
    int status = page_open(&page, name, &job, environ_session_parent(&settings));
    return status ? status : page_write(&page, head_run(&job, &page.collect), signals);
}

static int run_own(const struct options *o)
{
    int status;
    main_announce(o);
    read_limits();
    if ((status = raise_file_limit()) || (status = choose_device()))
        return status;
    if (o->dry_run)
        return 0;
    int signals = head_catch_signals(&job);
    if ((status = name_session()))
        return status;
    set_rank_environment(o->exported);
    return o->report ? run_with_report(o->report, signals) : head_run(&job, NULL);
}

/* For every process that we start, mpirun and srun too. */
static void close_input(void)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0)
        return;
    dup2(null, STDIN_FILENO);
    close(null);
}

static int main_run(const struct options *o)
{
    char why[5000];

    if (o->no_input)
        close_input();
    if (!environ_load(&settings))
        return EXIT_USAGE;
    log_set_verbosity(o->verbose ? o->verbose : settings.spawn_verbose);
    environ_set_limits(&job, &settings, isatty(STDERR_FILENO));
    if (!place_decide(&place, o, &settings, why, sizeof(why)) ||
        !program_find(o->command[0], program_path, sizeof(program_path), why, sizeof(why)))
        return main_usage(why);
    job.ranks = o->ranks;
    job.program = program_path;
    job.argv = o->command;
    name_job();
    if (!place_fill(&place, &job)) {
        log_error("out of memory for the table of hosts");
        return EXIT_RUNTIME;
    }
    set_job_settings(o);
    if (o->report && place_is_foreign(&place)) {
        log_error("--report %s: mpirun and srun start these ranks and bring no files back; set "
                  "GASNET_STATSFILE to a name with %% that ends in .json, and run gasnet_report",
                  o->report);
        return EXIT_USAGE;
    }
    return place_is_foreign(&place) ? run_foreign(o) : run_own(o);
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
    signal(SIGCHLD, SIG_DFL); /* inherited as ignored, it would hide the end of every child */
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
    case ACTION_COUNTERS:
        tk_stats_table_print(stdout);
        return main_flush();
    case ACTION_COUNTERS_MAN:
        tk_stats_table_print_man(stdout);
        return main_flush();
    case ACTION_PLAN:
        return plan_print(&options) ? main_flush() : EXIT_USAGE;
    case ACTION_SIMULATE: {
        int status = simulate_run(&options);
        return status ? status : main_flush();
    }
    case ACTION_EXPLAIN: {
        int status = ask_explain(options.job);
        return status ? status : main_flush();
    }
    case ACTION_TOP: {
        int status = top_run(&options);
        return status ? status : main_flush();
    }
    case ACTION_RUN:
        break;
    }
    return main_run(&options);
}
