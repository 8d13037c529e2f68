/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls each function of the interface with each object invalid, each time in a process of its own.
 * A debug library prints one line with the name of the call, the name of the invalid value and the
 * client's file and line; a release library returns GASNET_ERR_BAD_ARG from calls that have a
 * status. Prints each call and its error. Usage: invalid, without a launcher. */
#include "config.h"

#include "invalid.h"
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct invalid_objects valid_objects, invalid_objects;
uint64_t invalid_buffer[64];
static unsigned failures;

#if GASNET_DEBUG
static const bool is_debug = true;
#else
static const bool is_debug = false;
#endif

enum { RETURNED_WRONG = 3, SECONDS = 30 };

static void wrong(const struct invalid_call *c, const char *what, const char *text)
{
    failures++;
    printf("FAILED %s with an invalid %s (line %u): %s\n%s\n", c->name, c->object, c->line, what,
           text);
}

/* The name without its number of arguments. Calls of GASNet-1 are found by the call that they make.
 */
static bool names_call(const struct invalid_call *c, const char *line)
{
    if (!strncmp(c->name, "gasnet_", 7))
        return true;
    const char *version = strstr(c->name, "_v2");
    size_t length = version ? (size_t)(version - c->name) : strlen(c->name);
    while (!strncmp(c->name, "gex_AM_", 7) && strchr("0123456789", c->name[length - 1]))
        length--;
    char call[128];
    snprintf(call, sizeof call, ": %.*s%s:", (int)length, c->name, version ? version : "");
    return strstr(line, call) != NULL;
}

/* Checks the library's first line, which must be the only one except that of an abort. */
static void check_text(const struct invalid_call *c, char *text)
{
    char place[64], *end = strchr(text, '\n');
    const char *second = end ? end + 1 : "";
    if (end)
        *end = 0;
    snprintf(place, sizeof place, "; called at %s:%u", "tests/job/invalid_table.c", c->line);
    if (strncmp(text, "trunkline: ", 11) || !names_call(c, text))
        wrong(c, "no line with the call", text);
    else if (!strstr(text, place))
        wrong(c, "no place", text);
    else if (!strstr(text, "INVALID") && !strstr(text, "NO_OP") && !strstr(text, "is NULL"))
        wrong(c, "no name of the value", text);
    else if (strstr(second, "trunkline: ") && !strstr(second, "died of SIGABRT"))
        wrong(c, "two lines", second);
}

static void call(const struct invalid_call *c)
{
    int pipes[2], status;
    char text[4096];
    size_t length = 0;
    CHECK(pipe(pipes) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        alarm(SECONDS);
        int rc = c->call();
        _exit(!c->has_status || rc == GASNET_ERR_BAD_ARG ? 0 : RETURNED_WRONG);
    }
    close(pipes[1]);
    for (ssize_t n; (n = read(pipes[0], text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)n;
    text[length] = 0;
    close(pipes[0]);
    CHECK(waitpid(child, &status, 0) == child);
    bool is_status = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (c->has_status && !is_status)
        wrong(c, "not GASNET_ERR_BAD_ARG", text);
    else if (is_debug)
        check_text(c, text);
}

int main(int argc, char **argv)
{
    const struct rlimit none = {0, 0};
    unsigned called = 0;
    CHECK(gex_Client_Init(&job.client, &job.ep, &job.tm, "INVALID", &argc, &argv,
                          GEX_FLAG_USES_GASNET1) == GASNET_OK);
    job_deadline();
    job_attach(65536);
    setrlimit(RLIMIT_CORE, &none);
    valid_objects.client = job.client;
    valid_objects.ep = job.ep;
    valid_objects.tm = job.tm;
    valid_objects.segment = job.segment;
    valid_objects.mk = GEX_MK_HOST;
    invalid_objects.event = GEX_EVENT_NO_OP;
    gex_AD_Create(&valid_objects.ad, job.tm, GEX_DT_U64, GEX_OP_FADD, 0);
    gex_System_SetVerboseErrors(0);
    CHECK(gex_EP_PublishBoundSegment(job.tm, &invalid_objects.ep, 1, 0) == GASNET_ERR_BAD_ARG);
    gex_System_SetVerboseErrors(1);
    for (unsigned i = 0; i < invalid_count; i++)
        if (is_debug || invalid_calls[i].has_status) {
            call(&invalid_calls[i]);
            called++;
        }
    printf("%u calls, %u failed\n", called, failures);
    fflush(stdout);
    gasnet_exit(failures > 0);
}
