/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the command line; see options.h. Options end at the first word that is not an option, or
 * at "--". */
#include "config.h"

#include "options.h"

#include "common/number.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char options_help[] =
    "usage: gasnetrun_ibv -n N [options] [--] program [arguments]\n"
    "       (a long option may have one dash or two)\n"
    "  -n N, -np N, -nN     number of processes to run (required)\n"
    "  -N M                 number of hosts to run on, the first M of those that there are\n"
    "  -H HOST[:SLOTS],...  hosts to run on, and how many processes each takes; =NAME:SLOTS is a\n"
    "                       virtual host, a part of this one\n"
    "  --nodefile FILE      the same from a file, one host a line\n"
    "  -c K                 CPUs per process; implies --bind core\n"
    "  --bind none|core|socket\n"
    "                       bind each process to K CPUs in whole cores, or to a socket\n"
    "  --stdin none|0       rank that reads standard input: none, or rank 0 (default)\n"
    "  -E A[,B...]          environment variables to propagate beside GASNET_* and SOFTHCA_*\n"
    "                       (on this host all are)\n"
    "  -l                   put \"[rank] \" before each line of output\n"
    "  -v                   print what is done; twice: also the pid of each rank\n"
    "  -t                   test only: print what would be run (implies -v)\n"
    "  -k                   keep the session directory (implies -v)\n"
    "  -spawner=ssh|local|mpi|pmi\n"
    "                       how processes are started; also GASNET_IBV_SPAWNER, GASNET_SPAWNER\n"
    "  --plan[=PEERS]       print the queue pairs and the memory of a job of N processes on M "
    "hosts "
    "(-n N\n"
    "                       -N M), each connected to PEERS others; runs nothing\n"
    "  --simulate[=WORD,...]\n"
    "                       simulate the start, the connections, the collectives and the end of a "
    "job of N\n"
    "                       processes on M hosts (-n N -N M); WORDs are in the manual page; "
    "--json: for\n"
    "                       programs; runs nothing\n"
    "  --explain [JOB]      print what each process of a running job waits for, and why it hangs; "
    "JOB is\n"
    "                       the pid of its gasnetrun_ibv, needed if this user runs several\n"
    "  --top [JOB]          show what each process of a running job does, anew each second; "
    "--once: one\n"
    "                       table of all since its start; --json: for programs\n"
    "  --top --web [PORT]   the same as a page for a browser on this host, at an address that is "
    "printed\n"
    "  --report FILE        write a page about the job to FILE (HTML) when it has ended\n"
    "  --settings           print every environment variable that is honoured (=man: as part of a "
    "manual page)\n"
    "  --counters           print what the statistics of a job count (GASNET_STATSFILE; =man: as "
    "above)\n"
    "  --help, --version\n"
    "Exit status: 0 when every process ended well; else the status of the first that did not (the\n"
    "largest, where all left in order), 128 + s for signal s; 1 when the job could not be run, 2 "
    "for\n"
    "a wrong command line, 74 when all ended well but some output was lost (full disk, or nobody\n"
    "reads it).\n";

struct options_reader {
    char **at; /* the next word */
    char *why;
    size_t size;
};

static bool options_wrong(struct options_reader *r, const char *format, const char *word)
{
    snprintf(r->why, r->size, format, word);
    return false;
}

static bool wrong_number(struct options_reader *r, const char *option, const char *text,
                         uint32_t most)
{
    snprintf(r->why, r->size, "%s %s: not a number between 1 and %u", option, text, most);
    return false;
}

/* The value of an option: what follows the name in the same word, or the next word. */
static bool take_value(struct options_reader *r, const char *option, const char *rest,
                       const char **value)
{
    if (*rest) {
        *value = rest;
        return true;
    }
    if (!*r->at)
        return options_wrong(r, "%s needs a value; see gasnetrun_ibv --help", option);
    *value = *r->at++;
    return true;
}

static bool take_number(struct options_reader *r, const char *option, const char *rest,
                        uint32_t *number)
{
    const char *text;
    uint64_t n;
    if (isalpha((unsigned char)*rest)) /* a longer word that begins with the letter */
        return options_wrong(r, "unknown option %s; see gasnetrun_ibv --help", r->at[-1]);
    if (!take_value(r, option, rest, &text))
        return false;
    if (!tk_number_digits(text, 1, OPTIONS_RANKS_MAX, &n))
        return wrong_number(r, option, text, OPTIONS_RANKS_MAX);
    *number = (uint32_t)n;
    return true;
}

static bool take_bind(struct options *o, struct options_reader *r, const char *word)
{
    static const char *const words[] = {"none", "core", "socket"};
    for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strcmp(word, words[i])) {
            o->bind = BIND_NONE + i;
            return true;
        }
    return options_wrong(r, "--bind %s: not one of none, core, socket", word);
}

/* A long option without its dashes: one or two dashes are accepted, as by mpirun. */
static const char *bare(const char *word)
{
    return word + (word[1] == '-' ? 2 : 1);
}

/* Whether `word` is "--name" or "--name=value". */
static bool is_long(const char *word, const char *name)
{
    size_t n = strlen(name);
    word = bare(word);
    return strncmp(word, name, n) == 0 && (!word[n] || word[n] == '=');
}

static bool take_long_text(struct options_reader *r, const char *word, const char *name,
                           const char **value)
{
    const char *rest = bare(word) + strlen(name);
    if (!*rest)
        return take_value(r, word, "", value);
    *value = rest + 1;
    return true;
}

static bool take_stdin(struct options *o, struct options_reader *r, const char *word)
{
    o->no_input = !strcmp(word, "none");
    return o->no_input || !strcmp(word, "0") ||
           options_wrong(r, "--stdin %s: not one of none, 0", word);
}

static bool take_long_value(struct options *o, struct options_reader *r, const char *word)
{
    const char *value;
    if (is_long(word, "spawner"))
        return take_long_text(r, word, "spawner", &o->spawner);
    if (is_long(word, "nodefile"))
        return take_long_text(r, word, "nodefile", &o->nodefile);
    if (is_long(word, "bind"))
        return take_long_text(r, word, "bind", &value) && take_bind(o, r, value);
    if (is_long(word, "report"))
        return take_long_text(r, word, "report", &o->report);
    if (is_long(word, "stdin"))
        return take_long_text(r, word, "stdin", &value) && take_stdin(o, r, value);
    return options_wrong(r, "unknown option %s; see gasnetrun_ibv --help", word);
}

/* A number that follows is the port: the job stands behind --top, or last. */
static bool take_web(struct options *o, struct options_reader *r, const char *word)
{
    enum { PORT_MAX = 65535 };
    const char *text = bare(word) + strlen("web");
    uint64_t port = 0;
    o->web = true;
    if (*text == '=')
        text++;
    else if (*r->at && isdigit((unsigned char)**r->at))
        text = *r->at++;
    else
        return true;
    if (!tk_number_digits(text, 0, PORT_MAX, &port))
        return options_wrong(r,
                             "--web %s: not a port between 0 (any) and 65535; a job is named "
                             "before it: --top JOB --web",
                             text);
    o->port = (uint16_t)port;
    return true;
}

/* Options that are followed by a job or by a number of peers. */
static bool take_long_wish(struct options *o, struct options_reader *r, const char *name)
{
    if (!strcmp(name, "top")) {
        o->wish = ACTION_TOP;
        if (*r->at && (*r->at)[0] != '-')
            o->job = *r->at++;
    } else if (!strncmp(name, "top=", 4)) {
        o->wish = ACTION_TOP;
        o->job = name + 4;
    } else if (!strcmp(name, "explain")) {
        o->wish = ACTION_EXPLAIN;
        if (*r->at)
            o->job = *r->at++;
    } else if (!strncmp(name, "explain=", 8)) {
        o->wish = ACTION_EXPLAIN;
        o->job = name + 8;
    } else if (!strcmp(name, "plan")) {
        o->wish = ACTION_PLAN;
    } else if (!strncmp(name, "plan=", 5)) {
        o->wish = ACTION_PLAN;
        o->plan = name + 5;
    } else if (!strcmp(name, "simulate")) {
        o->wish = ACTION_SIMULATE;
    } else if (!strncmp(name, "simulate=", 9)) {
        o->wish = ACTION_SIMULATE;
        o->simulate = name + 9;
    } else {
        return false;
    }
    return true;
}

static bool take_long(struct options *o, struct options_reader *r, const char *word)
{
    const char *name = bare(word);
    if (!strcmp(name, "help"))
        o->wish = ACTION_HELP;
    else if (!strcmp(name, "version"))
        o->wish = ACTION_VERSION;
    else if (!strcmp(name, "settings"))
        o->wish = ACTION_SETTINGS;
    else if (!strcmp(name, "settings=man"))
        o->wish = ACTION_SETTINGS_MAN;
    else if (!strcmp(name, "counters"))
        o->wish = ACTION_COUNTERS;
    else if (!strcmp(name, "counters=man"))
        o->wish = ACTION_COUNTERS_MAN;
    else if (!strcmp(name, "once"))
        o->once = true;
    else if (!strcmp(name, "json"))
        o->json = true;
    else if (is_long(word, "web"))
        return take_web(o, r, word);
    else if (!take_long_wish(o, r, name))
        return take_long_value(o, r, word);
    return true;
}

/* Options of one letter have no such names. */
static bool is_long_name(const char *word)
{
    static const char *const names[] = {
        "help", "version", "settings", "counters", "once", "json",  "top",    "explain",
        "plan", "spawner", "simulate", "nodefile", "bind", "stdin", "report", "web"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (is_long(word, names[i]))
            return true;
    return false;
}

/* Letters that take no value may be joined: -vv, -vt. */
static bool take_flags(struct options *o, struct options_reader *r, const char *word)
{
    for (const char *c = word + 1; *c; c++)
        switch (*c) {
        case 'v':
            o->verbose++;
            break;
        case 't':
            o->dry_run = true;
            break;
        case 'k':
            o->keep = true;
            break;
        case 'l':
            o->label = true;
            break;
        case 'h':
            o->wish = ACTION_HELP;
            break;
        default:
            return options_wrong(r, "unknown option %s; see gasnetrun_ibv --help", word);
        }
    return true;
}

static bool take_word(struct options *o, struct options_reader *r, const char *word)
{
    if (word[1] == '-' || is_long_name(word))
        return take_long(o, r, word);
    if (!strcmp(word, "-restart"))
        return options_wrong(r, "%s: restarting from a checkpoint is not possible", word);
    if (!strncmp(word, "-np", 3))
        return take_number(r, "-np", word + 3, &o->ranks);
    if (word[1] == 'n')
        return take_number(r, "-n", word + 2, &o->ranks);
    if (word[1] == 'H')
        return take_value(r, "-H", word + 2, &o->host_list);
    if (word[1] == 'N')
        return take_number(r, "-N", word + 2, &o->hosts);
    if (word[1] == 'c')
        return take_number(r, "-c", word + 2, &o->cpus);
    if (word[1] == 'E')
        return take_value(r, "-E", word + 2, &o->exported);
    return take_flags(o, r, word);
}

/* The job may follow the options of --top. */
static bool take_job(struct options *o, struct options_reader *r)
{
    if (!o->job && *r->at)
        o->job = *r->at++;
    if (*r->at)
        return options_wrong(r, "%s: --top takes one job", *r->at);
    if (o->web && (o->once || o->json))
        return options_wrong(r, "--web and %s exclude each other", o->once ? "--once" : "--json");
    return true;
}

/* --plan and --simulate start no job, and would ignore what is for one. */
static bool is_for_no_job(const struct options *o, struct options_reader *r)
{
    const struct {
        bool is_given;
        const char *name;
    } of_jobs[] = {{o->cpus, "-c"},     {o->bind, "--bind"},     {o->no_input, "--stdin none"},
                   {o->exported, "-E"}, {o->label, "-l"},        {o->dry_run, "-t"},
                   {o->keep, "-k"},     {o->spawner, "-spawner"}};
    if (o->host_list || o->nodefile)
        return options_wrong(r,
                             "%s names the hosts of a job, and --plan and --simulate start none: "
                             "-N M says how many hosts there are",
                             o->host_list ? "-H" : "--nodefile");
    for (size_t i = 0; i < sizeof(of_jobs) / sizeof(*of_jobs); i++)
        if (of_jobs[i].is_given)
            return options_wrong(r, "%s is for a job, and --plan and --simulate start none",
                                 of_jobs[i].name);
    return !*r->at ||
           options_wrong(r, "%s: --plan and --simulate run no program; their words follow a '='",
                         *r->at);
}

bool options_parse(struct options *o, char **argv, char *why, size_t size)
{
    struct options_reader r = {argv + 1, why, size};

    *o = (struct options){0};
    while (*r.at && (*r.at)[0] == '-' && (*r.at)[1]) {
        char *word = *r.at++;
        if (!strcmp(word, "--"))
            break;
        if (!take_word(o, &r, word))
            return false;
    }
    if ((o->dry_run || o->keep) && !o->verbose)
        o->verbose = 1;
    o->command = r.at;
    if (o->report && o->wish != ACTION_RUN)
        return options_wrong(&r, "--report %s: it is for a job, which is not started here",
                             o->report);
    if (o->wish == ACTION_TOP)
        return take_job(o, &r);
    if (o->once || o->web)
        return options_wrong(&r, "%s is for gasnetrun_ibv --top alone",
                             o->once ? "--once" : "--web");
    if (o->json && o->wish != ACTION_SIMULATE)
        return options_wrong(&r, "%s is for gasnetrun_ibv --top and --simulate", "--json");
    bool is_planned = o->wish == ACTION_PLAN || o->wish == ACTION_SIMULATE;
    if (o->wish != ACTION_RUN && !is_planned)
        return true;
    if (!o->ranks)
        return options_wrong(&r, "the number of processes is missing: %s",
                             "gasnetrun_ibv -n N program");
    if (is_planned)
        return is_for_no_job(o, &r);
    if (!*r.at)
        return options_wrong(&r, "the program to run is missing: %s", "gasnetrun_ibv -n N program");
    return true;
}
