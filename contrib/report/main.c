/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gasnet_report: parses options, reads files, and writes the page. The output appears under its
 * name when it is whole: a report that fails leaves an older one as it is. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/report_file.h"
#include "contrib/report/live.h"
#include "contrib/report/read.h"
#include "contrib/report/write.h"

enum { EXIT_USAGE = 2 };

enum option_code { TITLE = 1, JSON, SERVE, HELP, RELEASE };

static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                        {"title", required_argument, NULL, TITLE},
                                        {"json", no_argument, NULL, JSON},
                                        {"serve", no_argument, NULL, SERVE},
                                        {"help", no_argument, NULL, HELP},
                                        {"version", no_argument, NULL, RELEASE},
                                        {NULL, 0, NULL, 0}};

static const char usage[] =
    "usage: gasnet_report [-o FILE.html] [--title TEXT] FILE...\n"
    "       gasnet_report --serve [PORT]\n"
    "  FILE          what GASNET_STATSFILE or GASNET_TRACEFILE made, of one rank or of several,\n"
    "                or records of gasnetrun_ibv --top --json; -: standard input\n"
    "  -o FILE       the report (default report.html; -: standard output)\n"
    "  --title TEXT  above the report\n"
    "  --json        the data of the report alone\n"
    "  --serve       the page of a running job on 127.0.0.1, from records of gasnetrun_ibv --top\n"
    "                --json on standard input, until it ends (PORT 0 or none: any)\n"
    "  --version     the release\n";

struct request {
    const char *output, *title;
    bool is_json, is_live;
};

/* A wrong word of the command line */
static int refuse(const char *word, const char *why)
{
    fprintf(stderr, "gasnet_report: %s: %s\n", word, why);
    return EXIT_USAGE;
}

static bool fail(const char *name, const char *what, int error)
{
    fprintf(stderr, "gasnet_report: cannot %s %s: %s\n", what, name,
            error ? strerror(error) : "the end of it is lost");
    return false;
}

static bool write_to(FILE *out, const struct request *request, const struct report_model *model)
{
    bool is_done = request->is_json
                       ? report_write_json(out, model, false) && fputc('\n', out) != EOF
                       : report_write_page(out, model, PAGE_FILE);
    if (!is_done && !ferror(out)) {
        fprintf(stderr, "gasnet_report: no memory for the report\n");
        return false;
    }
    errno = 0;
    if (fflush(out) == 0 && !ferror(out))
        return true;
    return fail(request->output, "write", errno);
}

/* A new file beside the output. Its name can't be guessed, so that in a directory of several users
 * nobody has made it a link to another file; its mode is that of any new file. */
static FILE *create_part(char *part)
{
    int fd = mkostemp(part, O_CLOEXEC);
    mode_t mask = umask(0);
    umask(mask);
    FILE *out = fd >= 0 && fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "w") : NULL;
    int error = errno;
    if (fd >= 0 && !out) {
        close(fd);
        unlink(part);
    }
    errno = error;
    return out;
}

/* Without -o's value the shell's list of input files gives one of them as the output. */
static bool may_replace(const struct request *request)
{
    if (tk_report_is_replaceable(request->output, request->is_json))
        return true;
    fprintf(stderr,
            "gasnet_report: -o %s: this file is not a report: it is not replaced; name another "
            "one, or remove it\n",
            request->output);
    return false;
}

/* Devices and pipes are written as they are; another file is replaced at the end. */
static bool write_file(const struct request *request, const struct report_model *model)
{
    struct stat status;
    bool is_special = stat(request->output, &status) == 0 && !S_ISREG(status.st_mode);
    char *part = NULL;
    if (!is_special && asprintf(&part, "%s.XXXXXX", request->output) < 0)
        return fail(request->output, "write", ENOMEM);
    FILE *out = is_special ? fopen(request->output, "we") : create_part(part);
    bool is_done = out && write_to(out, request, model);
    if (!out)
        fail(request->output, "create", errno);
    else if (fclose(out) != 0 && is_done)
        is_done = fail(request->output, "write", errno);
    if (is_done && part && rename(part, request->output) != 0)
        is_done = fail(request->output, "create", errno);
    if (!is_done && part && out)
        unlink(part);
    free(part);
    return is_done;
}

static bool write_report(const struct request *request, const struct report_model *model)
{
    if (strcmp(request->output, "-") != 0)
        return write_file(request, model);
    struct request to_output = *request;
    to_output.output = "standard output";
    return write_to(stdout, &to_output, model);
}

static int make_report(const struct request *request, char **names)
{
    struct report_model *model = report_model_new();
    struct report_reader reader;
    bool is_good = model != NULL;
    if (!model) {
        fprintf(stderr, "gasnet_report: no memory for the report\n");
        return 1;
    }
    report_reader_begin(&reader, model);
    report_word_copy(model->title, sizeof(model->title),
                     (struct trace_word){request->title, strlen(request->title)});
    for (; is_good && *names; names++)
        is_good = report_read_file(&reader, *names);
    is_good = is_good && write_report(request, model);
    report_reader_free(&reader);
    report_model_free(model);
    return is_good ? 0 : 1;
}

static int print_text(const char *text)
{
    fputs(text, stdout);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fail("standard output", "write", errno);
    return 1;
}

/* getopt() leaves the letter of a short option, which may stand in a group. */
static int wrong_option(bool lacks_value, const char *word)
{
    char letter[] = {'-', (char)optopt, '\0'};
    const char *why = lacks_value ? "its value is missing (--help)"
                                  : "no such option, or it takes no value (--help)";
    return refuse(optopt > ' ' && optopt < 0x7f ? letter : word, why);
}

static int live(const struct request *request, bool has_output, char **words)
{
    if (has_output || request->is_json || *request->title)
        return refuse(has_output         ? "-o"
                      : request->is_json ? "--json"
                                         : "--title",
                      "--serve writes no file: it takes a port and nothing else");
    if (words[0] && words[1])
        return refuse(words[1], "--serve takes one port");
    return report_live(words[0]);
}

int main(int argc, char **argv)
{
    struct request request = {.output = "report.html", .title = ""};
    bool has_output = false;
    opterr = 0;
    for (int next; (next = getopt_long(argc, argv, ":o:", options, NULL)) != -1;) {
        switch (next) {
        case 'o':
            request.output = optarg;
            has_output = true;
            break;
        case TITLE:
            request.title = optarg;
            break;
        case JSON:
            request.is_json = true;
            break;
        case SERVE:
            request.is_live = true;
            break;
        case HELP:
        case RELEASE:
            return print_text(next == HELP ? usage : PACKAGE_STRING "\n");
        default:
            return wrong_option(next == ':', argv[optind - 1]);
        }
    }
    if (request.is_live)
        return live(&request, has_output, argv + optind);
    if (optind == argc)
        return refuse("no file", "usage: gasnet_report [-o FILE.html] [--title TEXT] FILE...");
    if (request.output[0] == '\0')
        return refuse("-o", "the name of the report is empty");
    if (request.is_json && !has_output)
        request.output = "-";
    if (strcmp(request.output, "-") != 0 && !may_replace(&request))
        return EXIT_USAGE;
    return make_report(&request, argv + optind);
}
