/* SPDX-License-Identifier: BSD-3-Clause */
/* wordcount [--all] FILES...: counts the words of text files with all processes of a job. A word is
 * a run of ASCII letters, in lower case. The ranks share the lines of the files; each word is
 * counted by the rank that its hash names (spread.c); the sorted tables are merged by rank 0
 * (gather.c), which prints the 20 most frequent words, totals, and what the conduit used - or with
 * --all every word with its count, as `sort | uniq -c` does, and the rest on standard error.
 * Takes no lock: one client thread. */
#include "config.h"

#include "table.h"
#include "wordcount.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "trunkline_query.h"

enum { TOP = 20 };

static const char usage[] =
    "usage: wordcount [--all] FILES...\n"
    "Counts the words (runs of ASCII letters, in lower case) of text files with all processes of\n"
    "the job; start it with gasnetrun_ibv. Prints the 20 most frequent words, totals, and what "
    "the\n"
    "conduit used; with --all every word with its count, and the rest on standard error.\n";

struct options {
    int all, help, first_file;
};

struct job job;

static struct options options;
static struct notice sum; /* of all ranks */
static uint64_t distinct;
static struct entry top[TOP];
static int tops;
static double started;

/* ---- the job ---- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void die(int status, const char *format, ...)
{
    va_list list;

    fprintf(stderr, "wordcount: ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputc('\n', stderr);
    gasnet_exit(status);
}

void barrier(void)
{
    gex_Coll_BarrierBlocking(job.tm, 0);
}

struct board *board_of(gex_Rank_t rank)
{
    void *address = NULL;

    if (gex_Segment_QueryBound(job.tm, rank, &address, NULL, NULL) != 0)
        die(FAILED, "rank %u has no segment", (unsigned)rank);
    return address;
}

static void start(int *argc, char ***argv)
{
    uintptr_t size;
    gex_Client_t client;
    gex_Segment_t segment;

    if (gex_Client_Init(&client, &job.ep, &job.tm, "WORDCOUNT", argc, argv, 0) != GASNET_OK)
        exit(FAILED);
    job.rank = gex_TM_QueryRank(job.tm);
    job.size = gex_TM_QuerySize(job.tm);
    size = sizeof *job.board + job.size * sizeof *job.board->notices;
    size = (size + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
    if (gex_Segment_Attach(&segment, job.tm, size) != GASNET_OK)
        die(FAILED, "cannot get a segment of %zu bytes", (size_t)size);
    job.board = gex_Segment_QueryAddr(segment);
    spread_register();
    gather_register();
    barrier();
    started = seconds();
}

/* Every rank says whether it can go on (0) or how it would exit; all get the same answer, and the
 * lowest rank that cannot go on says why. A file may be there on one host only. */
static void agree(int verdict, const char *why)
{
    int32_t mine = verdict, worst = 0;
    gex_Rank_t speaker = job.size;

    for (gex_Rank_t to = 0; to < job.size; to++)
        gex_RMA_PutBlocking(job.tm, to, &board_of(to)->notices[job.rank].verdict, &mine,
                            sizeof mine, 0);
    barrier();
    for (gex_Rank_t i = job.size; i-- > 0;)
        if (job.board->notices[i].verdict) {
            worst = job.board->notices[i].verdict;
            speaker = i;
        }
    if (!worst)
        return;
    if (speaker == job.rank)
        fprintf(stderr, "wordcount: %s%s\n", why,
                worst == MISUSED ? " (wordcount --help tells more)" : "");
    barrier(); /* no rank ends the job before the result is printed */
    gasnet_exit(worst);
}

/* ---- the command line ---- */

static int parse(int argc, char **argv, char *why, size_t why_size)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
        if (!strcmp(argv[i], "--")) {
            i++;
            break;
        }
        if (!strcmp(argv[i], "--all")) {
            options.all = 1;
        } else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            options.help = 1;
        } else {
            snprintf(why, why_size, "unknown option %s", argv[i]);
            return MISUSED;
        }
    }
    options.first_file = i;
    if (i < argc || options.help)
        return 0;
    snprintf(why, why_size, "no files given");
    return MISUSED;
}

static void help(void)
{
    if (job.rank == 0)
        fputs(usage, stdout);
    fflush(stdout);
    barrier();
    gasnet_exit(0);
}

static struct input *open_input(int argc, char **argv)
{
    char why[600] = "";
    struct input *input = NULL;
    int verdict = parse(argc, argv, why, sizeof why);

    if (verdict == 0 && !options.help) {
        input = input_open(argv + options.first_file, argc - options.first_file, why, sizeof why);
        verdict = input ? 0 : FAILED;
    }
    if (input && input_bytes(input) == 0) {
        snprintf(why, sizeof why, "%s: nothing to count: %s", argv[options.first_file],
                 argc - options.first_file == 1 ? "the file is empty" : "all files are empty");
        verdict = FAILED;
    }
    agree(verdict, why);
    if (options.help)
        help();
    return input;
}

/* ---- counting ---- */

static void count_words(struct input *input)
{
    struct notice mine = {{0, 0, 0}, 0, 0};
    char why[600];

    if (input_words(input, job.rank, job.size, spread_word, &mine.read, why, sizeof why) != 0)
        die(FAILED, "%s", why);
    mine.messages = spread_finish();
    barrier(); /* from here on nobody sends us words */
    gather_publish();
    gex_RMA_PutBlocking(job.tm, 0, &board_of(0)->notices[job.rank], &mine, sizeof mine, 0);
    barrier();
}

static void add_totals(void)
{
    for (gex_Rank_t i = 0; i < job.size; i++) {
        const struct notice *t = &job.board->notices[i];

        sum.read.bytes += t->read.bytes;
        sum.read.lines += t->read.lines;
        sum.read.words += t->read.words;
        sum.messages += t->messages;
    }
}

/* ---- results ---- */

/* Words come in order, so an equal count keeps the earlier one in front. */
static void remember(const char *word, size_t length, uint64_t count)
{
    int at = tops;

    while (at > 0 && top[at - 1].count < count)
        at--;
    if (at == TOP)
        return;
    if (tops == TOP)
        free(top[--tops].word);
    memmove(&top[at + 1], &top[at], (size_t)(tops - at) * sizeof *top);
    top[at] = (struct entry){count, length, malloc(length)};
    if (!top[at].word)
        die(FAILED, "no memory");
    memcpy(top[at].word, word, length);
    tops++;
}

static void result(const char *word, size_t length, uint64_t count)
{
    distinct++;
    remember(word, length, count);
    if (options.all) {
        printf("%llu ", (unsigned long long)count);
        fwrite(word, 1, length, stdout);
        putchar('\n');
    }
}

static void print_top(FILE *to)
{
    fprintf(to, "The %d most frequent words:\n", tops);
    for (int i = 0; i < tops; i++)
        fprintf(to, "%9llu  %.*s\n", (unsigned long long)top[i].count, (int)top[i].length,
                top[i].word);
}

static void print_totals(FILE *to, int files)
{
    fprintf(to,
            "%llu words, %llu different, in %llu lines and %llu bytes of %d file%s\n"
            "%u process%s, %llu messages, %.3f seconds\n",
            (unsigned long long)sum.read.words, (unsigned long long)distinct,
            (unsigned long long)sum.read.lines, (unsigned long long)sum.read.bytes, files,
            files == 1 ? "" : "s", (unsigned)job.size, job.size == 1 ? "" : "es",
            (unsigned long long)sum.messages, seconds() - started);
}

static void print_transports(FILE *to)
{
    char text[512];

    for (gex_Rank_t i = 0; i < job.size; i++)
        if (trunkline_describe_peer(i, text, sizeof text) != 0)
            fprintf(to, "rank 0 to rank %u: %s\n", (unsigned)i, text);
}

static void report(int files)
{
    FILE *to = options.all ? stderr : stdout;

    gather_all(result);
    add_totals();
    print_top(to);
    print_totals(to, files);
    print_transports(to);
    if (fflush(stdout) != 0 || ferror(stdout))
        die(FAILED, "cannot write the result");
}

int main(int argc, char **argv)
{
    struct input *input;

    start(&argc, &argv);
    input = open_input(argc, argv);
    count_words(input);
    if (job.rank == 0)
        report(argc - options.first_file);
    input_close(input);
    barrier();
    gasnet_exit(0);
}
