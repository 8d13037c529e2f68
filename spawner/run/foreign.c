/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of mpirun and srun; see foreign.h. */
#include "config.h"

#include "environ.h"
#include "foreign.h"
#include "program.h"
#include "spawner/util/log.h"
#include "spawner/util/words.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A command that grows. Once memory is short it stays failed. */
struct command {
    char **words;
    size_t count, capacity;
    bool failed;
};

static void add_own(struct command *c, char *word)
{
    if (!word || c->count + 1 >= c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 32;
        char **larger = word ? realloc(c->words, capacity * sizeof(*larger)) : NULL;
        if (!larger) {
            c->failed = true;
            free(word);
            return;
        }
        c->words = larger;
        c->capacity = capacity;
    }
    c->words[c->count++] = word;
    c->words[c->count] = NULL;
}

static void add(struct command *c, const char *word)
{
    add_own(c, strdup(word));
}

static void add_format(struct command *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_format(struct command *c, const char *format, ...)
{
    char *word = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&word, format, args) < 0)
        word = NULL;
    va_end(args);
    add_own(c, word);
}

static void add_all(struct command *c, const char *first, char *const *rest)
{
    add(c, first);
    for (; *rest; rest++)
        add(c, *rest);
}

/* ---- The hosts ---- */

/* Slurm's list names each host once for each of its ranks, mpirun's once with a number. */
static char *host_words(const struct foreign_job *job, bool is_repeated, bool has_numbers)
{
    char *text = NULL;
    size_t size = 0;
    bool is_first = true;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (uint32_t i = 0; i < job->list->count; i++)
        for (uint32_t k = 0; k < (is_repeated ? job->counts[i] : job->counts[i] > 0); k++) {
            fprintf(out, "%s%s", is_first ? "" : ",", job->list->hosts[i].name);
            if (has_numbers)
                fprintf(out, ":%u", job->counts[i]);
            is_first = false;
        }
    fclose(out);
    return text;
}

static uint32_t host_count(const struct foreign_job *job)
{
    uint32_t used = 0;
    if (!job->list)
        return job->nodes ? job->nodes : 1;
    for (uint32_t i = 0; i < job->list->count; i++)
        used += job->counts[i] > 0;
    return used;
}

/* ---- mpirun and srun with our options ---- */

static void add_binding(const struct foreign_job *job, struct command *c)
{
    static const char *const words[] = {"none", "core", "socket"};
    uint32_t per_host = job->hosts ? (job->ranks + job->hosts - 1) / job->hosts : 0;
    char cpus[24] = "";

    if (job->bind == JOB_BIND_CORE && job->cpus)
        snprintf(cpus, sizeof(cpus), ":PE=%u", job->cpus);
    if (per_host && !job->list) {
        add(c, "--map-by");
        add_format(c, "ppr:%u:node%s", per_host, cpus);
    } else if (*cpus) {
        add(c, "--map-by");
        add_format(c, "slot%s", cpus);
    }
    add(c, "--bind-to");
    add(c, words[job->bind]);
}

/* Values stay in the environment: arguments of a process can be read by all users. */
static void add_mpirun(const struct foreign_job *job, struct command *c)
{
    add(c, job->runner);
    add(c, "-n");
    add_format(c, "%u", job->ranks);
    if (job->list) {
        add(c, "--host");
        add_own(c, host_words(job, false, true));
    }
    if (!job->is_allocated)
        add(c, "--oversubscribe");
    add_binding(job, c);
    if (job->label)
        add(c, "--tag-output");
    for (char *const *e = job->env; *e; e++)
        if (environ_travels(*e, job->exported)) {
            add(c, "-x");
            add_format(c, "%.*s", (int)strcspn(*e, "="), *e);
        }
    add_all(c, job->program, job->argv + 1);
}

/* Without -K a rank that fails leaves the others; without --input=0 all would read the input. */
static void add_srun(const struct foreign_job *job, struct command *c)
{
    static const char *const words[] = {"none", "cores", "sockets"};
    add_all(c, job->runner, (char *const[]){"-K", "--mpi=pmix", "--input=0", "--export=ALL", NULL});
    add(c, "-n");
    add_format(c, "%u", job->ranks);
    if (job->hosts || job->list) {
        add(c, "-N");
        add_format(c, "%u", job->list ? host_count(job) : job->hosts);
    }
    if (job->list) {
        add(c, "--distribution=arbitrary");
        add(c, "-w");
        add_own(c, host_words(job, true, false));
    }
    if (job->cpus) {
        add(c, "-c");
        add_format(c, "%u", job->cpus);
    }
    if (job->bind_given) /* a cluster that cannot bind prints a message about the option */
        add_format(c, "--cpu-bind=%s", words[job->bind]);
    if (job->label)
        add(c, "--label");
    add_all(c, job->program, job->argv + 1);
}

/* ---- The user's own command ---- */

/* The program with its arguments. A command that we do not know may not pass the environment on, so
 * env(1) sets it. */
static void add_program(const struct foreign_job *job, struct command *c)
{
    add(c, "env");
    for (char *const *e = job->env; *e; e++)
        if (environ_travels(*e, job->exported))
            add(c, *e);
    add_all(c, job->program, job->argv + 1);
}

static void print_quoted(FILE *out, const char *word)
{
    size_t size = 4 * strlen(word) + 3; /* each character may become four, and two quotes */
    char *text = malloc(size);
    if (!text)
        return;
    text[0] = 0;
    if (words_quote(text, size, word))
        fputs(text, out);
    free(text);
}

static void print_program(const struct foreign_job *job, FILE *out)
{
    struct command c = {0};
    add_program(job, &c);
    for (size_t i = 0; i < c.count; i++) {
        if (i)
            fputc(' ', out);
        print_quoted(out, c.words[i]);
    }
    foreign_free(c.words);
}

/* One letter after "%" in a longer word, which may be text for a shell. False: there is no such
 * letter. */
static bool print_letter(const struct foreign_job *job, char letter, FILE *out)
{
    char *names;
    switch (letter) {
    case 'N':
        return fprintf(out, "%u", job->ranks) > 0;
    case 'M':
        return fprintf(out, "%u", host_count(job)) > 0;
    case 'H':
        names = job->list ? host_words(job, false, false) : NULL;
        fputs(names ? names : "localhost", out);
        free(names);
        return true;
    case 'P':
        print_quoted(out, job->program);
        return true;
    case 'C':
        print_program(job, out);
        return true;
    case '%':
        return fputc('%', out) != EOF;
    default:
        return false;
    }
}

/* False: a letter that has no meaning. */
static bool add_expanded(const struct foreign_job *job, struct command *c, const char *word)
{
    char *text = NULL;
    size_t size = 0;
    bool is_right = true;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        c->failed = true;
        return true;
    }
    for (; *word && is_right; word++)
        if (*word == '%')
            is_right = *++word && print_letter(job, *word, out);
        else
            fputc(*word, out);
    fclose(out);
    add_own(c, text);
    return is_right;
}

static const char *pattern_name(const struct foreign_job *job)
{
    return job->kind == FOREIGN_MPI ? "GASNET_MPIRUN_CMD" : "GASNET_PMIRUN_CMD";
}

static bool pattern_has(const struct foreign_job *job, char letter)
{
    for (const char *at = job->pattern; (at = strchr(at, '%')) && at[1]; at += 2)
        if (at[1] == letter)
            return true;
    return false;
}

static bool check_pattern(const struct foreign_job *job, char *why, size_t size)
{
    const char *lack = NULL;
    if (!pattern_has(job, 'C') && !pattern_has(job, 'P'))
        lack = "%C (the program with its arguments) or %P";
    else if (!pattern_has(job, 'N'))
        lack = "%N (the number of processes)";
    else if (job->list && !pattern_has(job, 'H'))
        lack = "%H (the names of the hosts), but hosts are named";
    if (lack)
        snprintf(why, size, "%s='%.300s' lacks %s", pattern_name(job), job->pattern, lack);
    return !lack;
}

static bool add_pattern(const struct foreign_job *job, struct command *c, char *why, size_t size)
{
    bool is_right = true;
    char **words = check_pattern(job, why, size) ? words_split(job->pattern) : NULL;
    if (!words) {
        if (check_pattern(job, why, size))
            snprintf(why, size, "%s='%.300s' has a quote that is not closed", pattern_name(job),
                     job->pattern);
        return false;
    }
    for (char **w = words; *w && is_right; w++)
        if (!strcmp(*w, "%C"))
            add_program(job, c);
        else if (!strcmp(*w, "%P"))
            add(c, job->program);
        else
            is_right = add_expanded(job, c, *w);
    free(words);
    if (!is_right)
        snprintf(why, size, "%s='%.300s': after %% comes one of N, M, H, C, P and %%",
                 pattern_name(job), job->pattern);
    return is_right;
}

/* ---- */

char **foreign_command(const struct foreign_job *job, char *why, size_t size)
{
    struct command c = {0};
    bool is_right = true;

    if (*job->pattern)
        is_right = add_pattern(job, &c, why, size);
    else if (job->kind == FOREIGN_MPI)
        add_mpirun(job, &c);
    else
        add_srun(job, &c);
    if (is_right && !c.failed)
        return c.words;
    if (c.failed)
        snprintf(why, size, "out of memory for the command that starts the job");
    foreign_free(c.words);
    return NULL;
}

void foreign_free(char **command)
{
    for (char **word = command; word && *word; word++)
        free(*word);
    free(command);
}

bool foreign_find(enum foreign_kind kind, char *path, size_t path_size, char *why, size_t size)
{
    const char *name = kind == FOREIGN_MPI ? "mpirun" : "srun", *base;
    char real[PATH_MAX];

    if (!program_find(name, path, path_size, why, size)) {
        snprintf(why, size, "-spawner=%s: %s was not found in PATH; %s names another command",
                 kind == FOREIGN_MPI ? "mpi" : "pmi", name,
                 kind == FOREIGN_MPI ? "GASNET_MPIRUN_CMD" : "GASNET_PMIRUN_CMD");
        return false;
    }
    /* Its own PMI is older than PMIx, which the library needs. */
    base = realpath(path, real) ? strrchr(real, '/') : NULL;
    if (kind != FOREIGN_MPI || !base || (!strstr(base, "hydra") && !strstr(base, "mpich")))
        return true;
    snprintf(
        why, size,
        "-spawner=mpi: %.200s is that of MPICH (%.200s), which has no PMIx server; put that of "
        "Open MPI first in PATH, or name it by GASNET_MPIRUN_CMD",
        path, real);
    return false;
}

void foreign_show(char *const *command, char *text, size_t size)
{
    text[0] = 0;
    for (size_t used = 0; *command && used + 2 < size; command++, used = strlen(text)) {
        if (used)
            strcpy(text + used, " ");
        if (!words_quote(text, size, *command))
            return;
    }
}

int foreign_exec(char *const *command)
{
    execvp(command[0], command);
    log_error("cannot run %s: %s", command[0], strerror(errno));
    return EXIT_USAGE;
}
