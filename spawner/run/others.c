/* SPDX-License-Identifier: BSD-3-Clause */
/* See others.h. Owns nothing, takes no lock. */
#include "config.h"

#include "others.h"

#include "options.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/util/log.h"
#include "spawner/guard/waits.h"
#include "spawner/head/explain.h"

#include "base/rank_slot.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Symbols of a large program take gdb some seconds. */
enum { STACK_MS = 20000, STACK_LOOK_MS = 20, STACK_BYTES = 12 << 10 };

/* The contents of the name of a rank's socket. */
struct named {
    struct others_rank rank;
    uint32_t size;
    unsigned long long id;
};

/* Anybody may use such a name, so the process must be ours. Its record is compared when it is
 * read. */
static bool is_ours(pid_t pid)
{
    char path[32];
    struct stat s;
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &s) == 0 && s.st_uid == geteuid();
}

static bool parse(const char *name, struct named *n)
{
    unsigned user, rank, size;
    unsigned long long address;
    int pid;
    if (sscanf(name, TK_RANK_SOCKET_NAME, &user, &pid, &rank, &size, &address, &n->id) != 6 ||
        user != geteuid() || pid <= 0 || size > OPTIONS_RANKS_MAX || rank >= size || !is_ours(pid))
        return false;
    n->rank = (struct others_rank){.pid = pid, .rank = rank, .address = address};
    n->size = size;
    return true;
}

static int by_job_and_rank(const void *a, const void *b)
{
    const struct named *one = a, *other = b;
    if (one->id != other->id)
        return one->id < other->id ? -1 : 1;
    return one->rank.rank < other->rank.rank ? -1 : one->rank.rank > other->rank.rank;
}

/* Returns all ranks of all such jobs, grouped by job; the caller frees the array. */
static struct named *list_all(size_t *count)
{
    struct named *all = NULL, one;
    size_t room = 0;
    char line[512];
    FILE *sockets = fopen("/proc/net/unix", "re");
    *count = 0;
    while (sockets && fgets(line, sizeof(line), sockets)) {
        const char *name = strchr(line, '@');
        if (!name || !parse(name + 1, &one))
            continue;
        if (*count == room) {
            room = room ? 2 * room : 64;
            struct named *larger = realloc(all, room * sizeof(*all));
            if (!larger)
                break;
            all = larger;
        }
        all[(*count)++] = one;
    }
    if (sockets)
        fclose(sockets);
    if (*count)
        qsort(all, *count, sizeof(*all), by_job_and_rank);
    return all;
}

size_t others_find(pid_t *pids, size_t most)
{
    size_t count, jobs = 0;
    struct named *all = list_all(&count);
    for (size_t i = 0; i < count; i++) {
        if (i && all[i].id == all[i - 1].id)
            continue;
        if (jobs < most)
            pids[jobs] = all[i].rank.pid;
        jobs++;
    }
    free(all);
    return jobs;
}

static pid_t parent_of(pid_t pid)
{
    char path[32], content[512];
    int parent = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    const char *end = file && fgets(content, sizeof(content), file) ? strrchr(content, ')') : NULL;
    if (!end || sscanf(end + 1, " %*c %d", &parent) != 1)
        parent = 0;
    if (file)
        fclose(file);
    return parent;
}

static bool is_below(pid_t pid, pid_t ancestor)
{
    while (pid > 1 && pid != ancestor)
        pid = parent_of(pid);
    return pid == ancestor;
}

bool others_open(pid_t pid, struct others_job *job)
{
    size_t count, first = 0;
    struct named *all = list_all(&count);
    while (first < count && !is_below(all[first].rank.pid, pid))
        first++;
    *job = (struct others_job){0};
    if (first < count)
        job->ranks = calloc(count, sizeof(*job->ranks));
    if (!job->ranks) {
        free(all);
        return false;
    }
    job->id = all[first].id;
    job->size = all[first].size;
    for (size_t i = 0; i < count; i++) {
        bool is_twice = job->count && job->ranks[job->count - 1].rank == all[i].rank.rank;
        if (all[i].id == job->id && all[i].size == job->size && !is_twice)
            job->ranks[job->count++] = all[i].rank;
    }
    free(all);
    return true;
}

void others_close(struct others_job *job)
{
    free(job->ranks);
    job->ranks = NULL;
}

static void name_program(pid_t pid, char *name, size_t size)
{
    char path[32], program[4096];
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, program, sizeof(program) - 1);
    program[n > 0 ? n : 0] = 0;
    const char *slash = strrchr(program, '/');
    snprintf(name, size, "%.*s", (int)size - 1, slash ? slash + 1 : "?");
}

bool others_sample(const struct others_job *job, struct top_sample *s)
{
    struct waits_rank w;
    bool is_alive = false;
    s->job = (struct counts_job){.ranks = job->size,
                                 .hosts = 1,
                                 .elsewhere = job->size - job->count,
                                 .pid = (uint32_t)job->ranks[0].pid};
    name_program(job->ranks[0].pid, s->job.program, sizeof(s->job.program));
    free(s->ranks);
    s->ranks = calloc(job->size, sizeof(*s->ranks));
    if (!s->ranks)
        return false;
    for (uint32_t i = 0; i < job->size; i++)
        s->ranks[i].is_elsewhere = true;
    for (uint32_t i = 0; i < job->count; i++) {
        struct counts_rank *c = &s->ranks[job->ranks[i].rank];
        waits_read_at(job->ranks[i].rank, job->ranks[i].pid, job->ranks[i].address, &w);
        waits_counts(&w, c);
        gethostname(c->host, sizeof(c->host) - 1);
        is_alive |= c->state != 0;
    }
    return is_alive;
}

/* ---- --explain */

static bool collect(const struct others_job *job, struct explain *e)
{
    struct waits_rank w;
    if (!explain_init(e, job->size))
        return false;
    for (uint32_t r = 0, here = 0; r < job->size; r++) {
        if (here < job->count && job->ranks[here].rank == r) {
            waits_read_at(r, job->ranks[here].pid, job->ranks[here].address, &w);
            here++;
        } else {
            w = (struct waits_rank){.state = 'S',
                                    .why = "on another host, which can be asked there"};
        }
        explain_take(e, r, &w, sizeof(w));
    }
    return true;
}

/* Waits for gdb, which is our child here. */
static void add_stack(struct explain *e, const struct others_rank *r)
{
    char text[STACK_BYTES], why[200];
    pid_t gdb;
    int file = waits_start_stack(r->pid, &gdb, why, sizeof(why));
    if (file < 0) {
        explain_add_stack(e, r->rank, why, strlen(why));
        return;
    }
    int64_t until = clock_ms() + STACK_MS;
    while (waitpid(gdb, NULL, WNOHANG) == 0) {
        if (clock_ms() >= until)
            kill(gdb, SIGKILL);
        poll(NULL, 0, STACK_LOOK_MS);
    }
    ssize_t n = pread(file, text, sizeof(text), 0);
    close(file);
    explain_add_stack(e, r->rank, text, n > 0 ? (size_t)n : 0);
}

static void add_stacks(struct explain *e, const struct others_job *job)
{
    for (uint32_t i = 0; i < e->suspect_count; i++)
        for (uint32_t k = 0; k < job->count; k++)
            if (job->ranks[k].rank == e->suspects[i])
                add_stack(e, &job->ranks[k]);
}

int others_explain(const struct others_job *job)
{
    struct explain e;
    char program[200];
    if (!collect(job, &e)) {
        explain_free(&e);
        log_error("--explain: no memory for a job of %u ranks", job->size);
        return EXIT_RUNTIME;
    }
    name_program(job->ranks[0].pid, program, sizeof(program));
    printf("gasnetrun_ibv: job of process %d, %u of %u process%s of %s, on this host:\n",
           (int)job->ranks[0].pid, job->count, job->size, job->size == 1 ? "" : "es", program);
    explain_join(&e);
    add_stacks(&e, job);
    fwrite(bytes_front(&e.text), 1, e.text.length, stdout);
    explain_free(&e);
    return 0;
}
