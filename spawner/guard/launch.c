/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting the processes of a host: first the PMIx server, then the ranks with the environment that
 * it asks for. Fills the guard's tables; no lock. */
#include "config.h"

#include "guard_private.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/children/children.h"
#include "spawner/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* libpmix needs a tenth of a second; a minute means that it hangs. */
enum { SERVER_START_MS = 60000 };

/* The longest that libpmix may take to answer its own server, on a host that is very busy. */
enum { ANSWER_MAX_MS = 60000 };

static const char *launch_remedy(int error)
{
    switch (error) {
    case EMFILE:
        return " (open files: raise the hard limit, ulimit -Hn, or start fewer ranks)";
    case EAGAIN:
        return " (processes: raise ulimit -u or the cgroup's pids.max, or start fewer ranks)";
    default:
        return "";
    }
}

void guard_start_server(struct guard *g)
{
    int pair[2];
    pid_t self = getpid();

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        guard_report_failure(g, "cannot start the PMIx server: socketpair: %s%s", strerror(errno),
                             launch_remedy(errno));
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        const struct job *job = g->job;
        struct server_job s = {job, g->session,
                               job->start_ms ? job->began + job->start_ms : CLOCK_NEVER,
                               job->start_ms < ANSWER_MAX_MS ? job->start_ms : ANSWER_MAX_MS};
        server_run(&s, pair[1], self);
    }
    int error = errno;
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        guard_report_failure(g, "cannot start the PMIx server: fork: %s%s", strerror(error),
                             launch_remedy(error));
        return;
    }
    g->server_pid = pid;
    wire_send_number(&g->control, WIRE_SERVER, 0, (uint32_t)pid);
    wire_open(&g->server, pair[0], g->job->host);
    g->deadline = clock_ms() + SERVER_START_MS;
}

static bool named_in(const char *entry, char *const *list, size_t count)
{
    size_t n = strcspn(entry, "=") + 1;
    for (size_t i = 0; i < count; i++)
        if (!strncmp(entry, list[i], n))
            return true;
    return false;
}

static size_t list_length(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

/* Appends the variables that are not set yet: the caller passes lists in order of precedence. */
static size_t add_env(char **env, size_t used, char *const *list)
{
    size_t before = used;
    for (; list && *list; list++)
        if (!named_in(*list, env, before))
            env[used++] = *list;
    return used;
}

static void add_variable(char **env, size_t *used, const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 2;
    char *text = malloc(size);
    if (!text)
        return;
    snprintf(text, size, "%s=%s", name, value);
    env[(*used)++] = text;
}

/* Variables by which the library learns about its host: where its slot for the guard is
 * (base/rank_slot.h), and the name of a host that only the launcher knows. */
static size_t add_own_env(const struct guard *g, char **env, size_t used)
{
    const struct job_host *host = &g->job->hosts[g->job->host];

    add_variable(env, &used, "TRUNKLINE_SESSION", g->session);
    if (host->is_virtual)
        add_variable(env, &used, "TRUNKLINE_HOST", host->name);
    return guard_add_file_settings(g, env, used);
}

enum { OWN_VARIABLES = 2 + JOB_FILES };

void guard_keep_env(struct guard *g, const struct wire_frame *frame)
{
    const char *text = (const char *)frame->payload, *end = text + frame->length;
    size_t count = OWN_VARIABLES, used = 0;
    uint32_t i = frame->rank - g->first;

    if (i >= g->count || !frame->length || end[-1] || g->envs[i])
        return;
    for (const char *c = text; c < end; c += strlen(c) + 1)
        count++;
    char **env = calloc(count + 1, sizeof(*env));
    if (!env)
        return; /* out of memory: guard_start_ranks() reports it */
    for (const char *c = text; c < end; c += strlen(c) + 1)
        env[used++] = strdup(c);
    add_own_env(g, env, used);
    g->envs[i] = env;
}

static void free_env(char **env)
{
    for (char **e = env; e && *e; e++)
        free(*e);
    free(env);
}

/* The environment of a rank: settings that came with GO, what the server and this guard gave it,
 * and the job's. The strings are shared: a copy for each rank would be copied again with each
 * process that is started. */
static char **whole_env(const struct guard *g, char *const *own)
{
    size_t most = list_length(g->late_env) + list_length(own) + list_length(g->job->env);
    char **env = calloc(most + 1, sizeof(*env));
    if (!env)
        return NULL;
    size_t used = add_env(env, 0, g->late_env);
    used = add_env(env, used, own);
    add_env(env, used, g->job->env);
    return env;
}

static void close_pair(const int pair[2])
{
    int error = errno;
    close(pair[0]);
    close(pair[1]);
    errno = error;
}

/* in[1] is -1 if standard input is not relayed. */
static bool open_input(struct guard *g, uint32_t rank, int in[2])
{
    in[1] = -1;
    if (rank == 0 && g->input < 0)
        return pipe2(in, O_CLOEXEC) == 0;
    in[0] = rank == 0 ? g->input : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (rank == 0)
        g->input = -1;
    return in[0] >= 0;
}

/* The three files of a rank: `theirs` goes to the child, `ours` stays. Only our ends of pipes are
 * non-blocking: the flag belongs to the end, and a program must not find it on its own. */
static bool open_files(struct guard *g, uint32_t rank, int theirs[3], int ours[3])
{
    int in[2], out[2], err[2];

    if (!open_input(g, rank, in))
        return false;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close_pair(in);
        return false;
    }
    if (pipe2(err, O_CLOEXEC) != 0) {
        close_pair(in);
        close_pair(out);
        return false;
    }
    memcpy(theirs, (int[3]){in[0], out[1], err[1]}, 3 * sizeof(int));
    memcpy(ours, (int[3]){in[1], out[0], err[0]}, 3 * sizeof(int));
    for (int i = in[1] < 0; i < 3; i++)
        fcntl(ours[i], F_SETFL, fcntl(ours[i], F_GETFL) | O_NONBLOCK);
    return true;
}

static void keep_files(struct guard *g, uint32_t rank, const int ours[3])
{
    const struct job *job = g->job;

    for (uint16_t s = JOB_STDOUT; s <= JOB_STDERR; s++)
        g->pumps[2 * (rank - g->first) + s - JOB_STDOUT] = (struct pump){
            .fd = ours[s],
            .stream = s,
            .lines = {.rank = rank, .label = job->label, .raw = job->ranks == 1 && !job->label}};
    if (rank == 0)
        g->feed.fd = ours[JOB_STDIN];
}

/* Numbers of files that a child needs are lower than those of the pipes of all ranks before it,
 * because it gets a table of files up to the highest of them (child_start()). */
static bool reserve_low(int low[3])
{
    for (int s = 0; s < 3; s++)
        low[s] = -1;
    for (int s = 0; s < 3; s++)
        if ((low[s] = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
            return false;
    return true;
}

static void close_low(const int low[3])
{
    for (int s = 0; s < 3; s++)
        if (low[s] >= 0)
            close(low[s]);
}

/* The numbers that the files had are free again. */
static void move_low(const int files[3], const int low[3])
{
    for (int s = 0; s < 3; s++) {
        dup3(files[s], low[s], O_CLOEXEC);
        close(files[s]);
    }
}

static bool start_rank(struct guard *g, uint32_t rank, const int low[3], int last_inherited)
{
    const struct job *job = g->job;
    struct child_image image = {.program = job->program,
                                .argv = job->argv,
                                .files = job->files,
                                .ignored = job->ignored,
                                .exec_report = g->exec_report[1],
                                .last_inherited = last_inherited};
    int theirs[3], ours[3];
    uint32_t i = rank - g->first;

    char **env = g->envs[i] ? whole_env(g, g->envs[i]) : NULL;
    if (!env) {
        errno = ENOMEM;
        return false;
    }
    if (!open_files(g, rank, theirs, ours)) {
        free(env);
        return false;
    }
    move_low(theirs, low);
    guard_bind_rank(g, rank, &image);
    pid_t pid = child_start(&image, rank, env, low);
    int error = errno;
    free(env);
    keep_files(g, rank, ours);
    errno = error;
    if (pid < 0)
        return false;
    g->pids[i] = pid;
    g->alive++;
    guard_report(g, REPORT_LAUNCHED, rank, (uint32_t)pid);
    free_env(g->envs[i]);
    g->envs[i] = NULL;
    return true;
}

void guard_start_ranks(struct guard *g)
{
    int low[3];

    g->phase = GUARD_RUNNING;
    g->deadline = CLOCK_NEVER;
    if (!guard_plan_binding(g))
        return;
    int last_inherited = child_last_inherited();
    bool can_start = reserve_low(low);
    for (uint32_t i = 0; i < g->count && !g->killing; i++)
        if (!can_start || !start_rank(g, g->first + i, low, last_inherited)) {
            guard_report_failure(g, "cannot start rank %u: %s%s", g->first + i, strerror(errno),
                                 launch_remedy(errno));
            break;
        }
    close_low(low);
    guard_hurry_reports(g);
}
