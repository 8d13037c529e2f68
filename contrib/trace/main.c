/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gasnet_trace: parses options and reads files line by line. Owns the buffer of the file that is
 * read. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "contrib/trace/print.h"

enum { EXIT_USAGE = 2 };

/* The second: no line of the library is longer, conduit/trace/format.h. */
enum { top_max = 1000000, line_max = 65536, buffer_size = 4 * line_max };

enum option_code { TOP = 1, JSON, HELP, RELEASE };

static const struct option options[] = {{"top", required_argument, NULL, TOP},
                                        {"json", no_argument, NULL, JSON},
                                        {"help", no_argument, NULL, HELP},
                                        {"version", no_argument, NULL, RELEASE},
                                        {NULL, 0, NULL, 0}};

static const char usage[] =
    "usage: gasnet_trace [--top N | --json] FILE...\n"
    "  FILE       what GASNET_TRACEFILE made, text or .json, of one rank or of several; -: "
    "standard "
    "input\n"
    "  --top N    at most N ranks, pairs of ranks and lines of source (default 20; 0: all)\n"
    "  --json     all sums, as an object of JSON, with times in ns\n"
    "  --version  the release\n";

static char buffer[buffer_size];

struct reader {
    const char *name;
    int fd;
    uint64_t line;
    size_t used;   /* bytes in the buffer */
    bool is_ended; /* no more come */
};

static int refuse(const char *word, const char *why)
{
    fprintf(stderr, "gasnet_trace: %s: %s\n", word, why);
    return EXIT_USAGE;
}

static bool report_error(const struct reader *reader, const char *why)
{
    fprintf(stderr, "gasnet_trace: %s:%llu: %s\n", reader->name, (unsigned long long)reader->line,
            why);
    return false;
}

/* An incomplete line is the last one of a rank that was killed while it wrote, or of a full
 * disk. */
static bool read_line(struct trace_summary *summary, struct reader *reader, char *line,
                      size_t length, bool is_whole)
{
    struct trace_item item;
    reader->line++;
    enum trace_kind kind = length > line_max ? TRACE_FOREIGN : trace_parse(line, length, &item);
    if (!is_whole && kind != TRACE_FRAME && reader->line > 1) {
        summary->cut++;
        return true;
    }
    if (kind == TRACE_FOREIGN)
        return report_error(reader, "not a line of a trace of " PACKAGE_NAME);
    if (trace_summary_add(summary, kind, &item))
        return true;
    return report_error(reader, "no memory for the sums");
}

/* Handles the complete lines in the buffer, and moves the rest to its beginning. */
static bool read_lines(struct trace_summary *summary, struct reader *reader)
{
    char *at = buffer, *end = buffer + reader->used, *newline;
    while ((newline = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        if (!read_line(summary, reader, at, (size_t)(newline - at), true))
            return false;
        at = newline + 1;
    }
    reader->used = (size_t)(end - at);
    memmove(buffer, at, reader->used);
    bool is_last = reader->is_ended && reader->used > 0;
    if (is_last || reader->used > line_max)
        return read_line(summary, reader, buffer, reader->used, !is_last);
    return true;
}

static bool read_opened(struct trace_summary *summary, struct reader *reader)
{
    while (!reader->is_ended) {
        ssize_t n = read(reader->fd, buffer + reader->used, buffer_size - reader->used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            reader->line++;
            return report_error(reader, strerror(errno));
        }
        reader->used += (size_t)n;
        reader->is_ended = n == 0;
        if (!read_lines(summary, reader))
            return false;
    }
    if (reader->line > 0)
        return true;
    reader->line = 1;
    return report_error(reader, "the file is empty");
}

static bool read_file(struct trace_summary *summary, const char *name)
{
    bool is_input = !strcmp(name, "-");
    struct reader reader = {.name = is_input ? "standard input" : name, .fd = STDIN_FILENO};
    trace_summary_next_file(summary);
    if (!is_input)
        reader.fd = open(name, O_RDONLY | O_CLOEXEC);
    if (reader.fd < 0) {
        fprintf(stderr, "gasnet_trace: %s: %s\n", name, strerror(errno));
        return false;
    }
    bool is_read = read_opened(summary, &reader);
    if (!is_input)
        close(reader.fd);
    return is_read;
}

/* A full disk is reported when the buffer is flushed, at the latest. */
static bool is_written(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    fprintf(stderr, "gasnet_trace: cannot write standard output: %s\n",
            errno ? strerror(errno) : "the end of it is lost");
    return false;
}

static int summarize(char **names, size_t top, bool is_json)
{
    static struct trace_summary summary;
    bool is_good = true;
    for (; is_good && *names; names++)
        is_good = read_file(&summary, *names);
    if (is_good && is_json) {
        trace_print_json(&summary);
    } else if (is_good && !trace_print(&summary, top)) {
        fprintf(stderr, "gasnet_trace: no memory for the tables\n");
        is_good = false;
    }
    trace_summary_free(&summary);
    return is_good && is_written() ? 0 : 1;
}

int main(int argc, char **argv)
{
    uint64_t top = 20;
    bool is_json = false;
    opterr = 0;
    for (int next; (next = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (next == HELP || next == RELEASE) {
            fputs(next == HELP ? usage : PACKAGE_STRING "\n", stdout);
            return is_written() ? 0 : 1;
        }
        is_json = is_json || next == JSON;
        if (next == JSON)
            continue;
        if (next != TOP)
            return refuse(argv[optind - 1], "no such option, or its value is missing (--help)");
        if (!trace_number((struct trace_word){optarg, strlen(optarg)}, &top) || top > top_max)
            return refuse(optarg, "--top takes a number from 0 to 1000000");
    }
    if (optind == argc)
        return refuse("no file",
                      "usage: gasnet_trace [--top N | --json] FILE... (-: standard input)");
    return summarize(argv + optind, (size_t)top, is_json);
}
