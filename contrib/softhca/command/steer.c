/* SPDX-License-Identifier: BSD-3-Clause
 *
 * softhca link, plug, gid, fault, fatal: one request to every member of a fabric. Owns nothing. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "command.h"
#include "contrib/softhca/wire/control.h"
#include "contrib/softhca/fault/fault.h"

#define SCOPE_HELP                                                                                 \
    "  --fabric NAME     the fabric (SOFTHCA_FABRIC, or \"default\")\n"                            \
    "  --user UID        whose fabric (yours); for root\n"
#define PID_HELP "  --pid P           only this process\n"

/* Sends the request; reports how many executed it. */
static int send_to_all(struct scope *s, const char *request, const char *what)
{
    struct members m = {0};
    size_t obeyed = 0;
    int status = members_send(s, request, &m, &obeyed);

    if (obeyed > 0)
        printf("%s for %zu process%s\n", what, obeyed, obeyed == 1 ? "" : "es");
    members_free(&m);
    return status;
}

/* Whether this is softhcaN:P (with_port) or softhcaN. The members check whether they have it. */
static bool names_device(const char *text, bool with_port)
{
    int hca, port, used = 0;

    if (with_port)
        return sscanf(text, "softhca%2d:%1d%n", &hca, &port, &used) == 2 && text[used] == 0;
    return sscanf(text, "softhca%2d%n", &hca, &used) == 1 && text[used] == 0;
}

/* ---- link, plug ---- */

/* Operands: a port and one of two words. */
static int send_port(struct scope *s, const char *self, char **operands, int n, const char *word,
                     const char *other)
{
    char request[64], what[64];

    if (n != 2 || !names_device(operands[0], true) ||
        (strcmp(operands[1], word) != 0 && strcmp(operands[1], other) != 0))
        return log_error(EXIT_USAGE, "%s takes a port, softhcaN:P, and %s or %s", self, word,
                         other);
    if (scope_check(s) != 0)
        return EXIT_USAGE;
    snprintf(request, sizeof request, "%s %s %s", self, operands[0], operands[1]);
    snprintf(what, sizeof what, "%s is %s", operands[0], operands[1]);
    return send_to_all(s, request, what);
}

static int run_link(const struct subcommand *self, int argc, char **argv)
{
    struct scope s = {0};
    const struct option_spec options[] = {SCOPE_OPTIONS(s), {0}};
    char **operands;
    int n = options_read(self, options, false, argc, argv, &operands);

    return n < 0 ? -1 - n : send_port(&s, "link", operands, n, "up", "down");
}

const struct subcommand subcommand_link = {
    "link",
    "usage: softhca link softhcaN:P up|down [options]\n"
    "Takes a port of every process of a fabric down, or up again. Processes that join later\n"
    "see it as it is then.\n" SCOPE_HELP,
    run_link,
};

static int run_plug(const struct subcommand *self, int argc, char **argv)
{
    struct scope s = {0};
    const struct option_spec options[] = {SCOPE_OPTIONS(s), {"pid", &s.pid, NULL, NULL}, {0}};
    char **operands;
    int n = options_read(self, options, false, argc, argv, &operands);

    return n < 0 ? -1 - n : send_port(&s, "plug", operands, n, "in", "out");
}

const struct subcommand subcommand_plug = {
    "plug",
    "usage: softhca plug softhcaN:P in|out [options]\n"
    "Pulls the cable of a port out of running processes, or puts it in again, as if each were\n"
    "alone on its host: the ports of other processes stay up.\n" SCOPE_HELP PID_HELP,
    run_plug,
};

/* ---- gid ---- */

static bool is_row(const char *text)
{
    return *text && strlen(text) <= 2 && strspn(text, "0123456789") == strlen(text);
}

static int run_gid(const struct subcommand *self, int argc, char **argv)
{
    struct scope s = {0};
    const struct option_spec options[] = {SCOPE_OPTIONS(s), {"pid", &s.pid, NULL, NULL}, {0}};
    char **operands, request[64], what[64];
    int n = options_read(self, options, false, argc, argv, &operands);
    bool removes = n == 3 && strcmp(operands[1], "remove") == 0 && is_row(operands[2]);
    bool adds = n >= 3 && n <= 4 && strcmp(operands[1], "add") == 0 && is_row(operands[2]) &&
                is_row(operands[n - 1]);

    if (n < 0)
        return -1 - n;
    if ((!removes && !adds) || !names_device(operands[0], true))
        return log_error(EXIT_USAGE, "gid takes a port, softhcaN:P, and remove ROW or add ADDRESS "
                                     "[ROW]; see softhca gid --help");
    if (scope_check(&s) != 0)
        return EXIT_USAGE;
    if (adds)
        snprintf(request, sizeof request, "gid %s add %s %s", operands[0], operands[2],
                 operands[n - 1]);
    else
        snprintf(request, sizeof request, "gid %s remove %s", operands[0], operands[2]);
    snprintf(what, sizeof what, "the GID table of %s is changed", operands[0]);
    return send_to_all(&s, request, what);
}

const struct subcommand subcommand_gid = {
    "gid",
    "usage: softhca gid softhcaN:P remove ROW | add ADDRESS [ROW] [options]\n"
    "Removes an address from the GID table of a port of running processes, or adds it again, in\n"
    "the row where it was or in another empty one (SOFTHCA_GIDS). An address is named by\n"
    "the row that it was in at start. Queue pairs that use it keep it, as in Linux.\n" SCOPE_HELP
        PID_HELP,
    run_gid,
};

/* ---- fatal ---- */

static int run_fatal(const struct subcommand *self, int argc, char **argv)
{
    struct scope s = {0};
    const struct option_spec options[] = {SCOPE_OPTIONS(s), {"pid", &s.pid, NULL, NULL}, {0}};
    char **operands, request[64], what[64];
    int n = options_read(self, options, false, argc, argv, &operands);

    if (n < 0)
        return -1 - n;
    if (n != 1 || !names_device(operands[0], false))
        return log_error(EXIT_USAGE, "fatal takes one HCA, softhcaN");
    if (scope_check(&s) != 0)
        return EXIT_USAGE;
    snprintf(request, sizeof request, "fatal %s", operands[0]);
    snprintf(what, sizeof what, "%s is broken", operands[0]);
    return send_to_all(&s, request, what);
}

const struct subcommand subcommand_fatal = {
    "fatal",
    "usage: softhca fatal softhcaN [options]\n"
    "Breaks an HCA for the processes of a fabric: its queue pairs flush, further calls answer\n"
    "EIO, and programs get IBV_EVENT_DEVICE_FATAL. It stays broken as long as these processes "
    "run.\n" SCOPE_HELP PID_HELP,
    run_fatal,
};

/* ---- fault ---- */

static int list_faults(struct scope *s)
{
    struct members m = {0};
    size_t obeyed;
    int status = members_send(s, "fault list", &m, &obeyed);

    for (size_t i = 0; i < m.n; i++) {
        const char *reply = m.at[i].reply;
        size_t n;

        if (!reply || strncmp(reply, "ok\n", 3) != 0)
            continue;
        reply += 3;
        if (!*reply)
            printf("%u: no faults\n", m.at[i].name.pid);
        for (; *reply; reply += n + (reply[n] == '\n')) {
            n = strcspn(reply, "\n");
            printf("%u: %.*s\n", m.at[i].name.pid, (int)n, reply);
        }
    }
    members_free(&m);
    return status;
}

/* Members would refuse it too, but only if there are any. */
static bool understood(const char *spec)
{
    static struct shca_fault_rules rules;
    char why[400];

    if (shca_fault_parse(spec, &rules, why, sizeof why))
        return true;
    log_error(EXIT_USAGE, "%s", why);
    return false;
}

static int run_fault(const struct subcommand *self, int argc, char **argv)
{
    struct scope s = {0};
    const struct option_spec options[] = {SCOPE_OPTIONS(s), {"pid", &s.pid, NULL, NULL}, {0}};
    char **operands, request[SHCA_REQUEST_MAX + 1];
    int n = options_read(self, options, false, argc, argv, &operands);
    bool list = n == 1 && strcmp(operands[0], "list") == 0;
    bool clear = n == 1 && strcmp(operands[0], "clear") == 0;
    bool set = n == 2 && strcmp(operands[0], "set") == 0;

    if (n < 0)
        return -1 - n;
    if (!list && !clear && !set)
        return log_error(EXIT_USAGE,
                         "fault takes set SPEC, clear or list; see softhca fault --help");
    if (scope_check(&s) != 0)
        return EXIT_USAGE;
    if (list)
        return list_faults(&s);
    if (clear)
        return send_to_all(&s, "fault clear", "faults are cleared");
    if (snprintf(request, sizeof request, "fault set %s", operands[1]) >= (int)sizeof request)
        return log_error(EXIT_USAGE, "the faults are longer than %d characters", SHCA_REQUEST_MAX);
    if (!understood(operands[1]))
        return EXIT_USAGE;
    return send_to_all(&s, request, "faults are set");
}

const struct subcommand subcommand_fault = {
    "fault",
    "usage: softhca fault set SPEC | clear | list [options]\n"
    "Sets the faults of the processes of a fabric, in place of those before; the language is that\n"
    "of SOFTHCA_FAULT, see softhca-fault(7).\n" SCOPE_HELP PID_HELP,
    run_fault,
};
