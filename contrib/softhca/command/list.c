/* SPDX-License-Identifier: BSD-3-Clause
 *
 * softhca list: the objects and traffic of a fabric's members. Samples each twice, to compute
 * rates. Owns the two samples; one thread, no lock. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"

/* A parsed reply: see wire/control.c of the library. */
struct report {
    char program[32];
    unsigned qps, cqs, mrs, pds;
    unsigned long long messages, bytes;
    double message_rate, byte_rate;
    char wire[8];
    const char *addresses; /* from the first line about the wire onwards */
    const char *hcas;      /* from the first line about an HCA onwards */
};

static bool read_report(const struct member *m, struct report *r)
{
    const char *at = m->reply ? strstr(m->reply, "ok\nprocess ") : NULL;

    memset(r, 0, sizeof *r);
    if (!at || sscanf(at, "ok\nprocess %*u %*u %31[^\n]", r->program) != 1)
        return false;
    at = strstr(at, "\nobjects ");
    if (!at || sscanf(at, "\nobjects %u %u %u %u\ntraffic %llu %llu", &r->qps, &r->cqs, &r->mrs,
                      &r->pds, &r->messages, &r->bytes) != 6)
        return false;
    r->addresses = strstr(at, "\nwire ");
    if (r->addresses)
        sscanf(++r->addresses, "wire %7s", r->wire);
    at = strstr(at, "\nhca ");
    r->hcas = at ? at + 1 : "";
    return true;
}

/* The same process in a later (or earlier) sample. */
static const struct member *same(const struct members *m, const struct member *who)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->at[i].name.pid == who->name.pid && m->at[i].name.slot == who->name.slot &&
            strcmp(m->at[i].name.fabric, who->name.fabric) == 0)
            return &m->at[i];
    return NULL;
}

static void add_rates(struct report *r, const struct members *before, const struct member *m,
                      double seconds)
{
    const struct member *old = same(before, m);
    struct report first;

    if (!old || !read_report(old, &first) || seconds <= 0)
        return;
    r->message_rate = (double)(r->messages - first.messages) / seconds;
    r->byte_rate = (double)(r->bytes - first.bytes) / seconds;
}

/* The user's part of a fabric's internal name. */
static void list_readable(const struct shca_name *n, char out[SHCA_NAME])
{
    const char *at = strchr(n->fabric, '.');
    size_t length;

    at = at ? at + 1 : n->fabric;
    length = strcspn(at, "~");
    memcpy(out, at, length);
    out[length] = 0;
}

/* ---- text output ---- */

static void scaled(double value, char out[16])
{
    static const char units[] = " kMGT";
    size_t u = 0;

    for (; value >= 1000 && u < sizeof units - 2; u++)
        value /= 1000;
    snprintf(out, 16, u ? "%.1f%c" : "%.0f", value, units[u]);
}

static void print_hcas(const char *at)
{
    char hca[32], a[16], b[16], word[16];
    const char *comma = "";
    unsigned n;

    for (; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (sscanf(at, "hca %31s %15s", hca, word) == 2) {
            printf("%s  %s:", *comma ? "\n" : "", hca);
            comma = "";
            if (strcmp(word, "fatal") != 0)
                continue;
            fputs(" broken", stdout);
            comma = ",";
            continue;
        }
        if (sscanf(at, "port %*s %u %15s", &n, word) == 2)
            printf("%s port %u %s", comma, n, word);
        else if (sscanf(at, "qp %*s %15s %15s %u", a, b, &n) == 3)
            printf("%s %u %s %s", comma, n, a, b);
        comma = ",";
    }
    putchar('\n');
}

/* Parses a line of the wire; false: it is another line. */
static bool address_in(const char *at, char port[32], char where[64], unsigned *mtu)
{
    return sscanf(at, "address %31s %63s %u", port, where, mtu) == 3;
}

/* The next counter of a line about packets; NULL at the end. */
static const char *next_counter(const char *at, char word[32], unsigned long long *n)
{
    int used = 0;

    return sscanf(at, " %31s %llu%n", word, n, &used) == 2 && used > 0 ? at + used : NULL;
}

/* Counters that are always printed, and those that are not zero. */
static void print_packets(const char *at)
{
    const char *comma = "  packets: ";
    unsigned long long n;
    char word[32];

    for (int i = 0; *at == ' ' && (at = next_counter(at, word, &n)) != NULL; i++) {
        if (i >= 4 && n == 0)
            continue;
        printf("%s%s %llu", comma, word, n);
        comma = ", ";
    }
    putchar('\n');
}

static const char packets_word[] = "packets";
static bool is_packets(const char *at)
{
    return strncmp(at, packets_word, sizeof packets_word - 1) == 0;
}

/* Prints nothing if only shared memory is in use. */
static void print_wire(const struct report *r)
{
    char port[32], where[64];
    unsigned mtu;

    for (const char *at = r->addresses; at && *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (address_in(at, port, where, &mtu))
            printf("  %s: %s by packets of %u bytes (wire %s)\n", port, where, mtu, r->wire);
        else if (is_packets(at))
            print_packets(at + sizeof packets_word - 1);
}

static void print_person(const struct member *m, const struct report *r)
{
    char messages[16], bytes[16];

    scaled(r->message_rate, messages);
    scaled(r->byte_rate, bytes);
    printf("%-8u %-16s %5u %6u %6u %6u %6u %9s %9s\n", m->name.pid, r->program, m->name.slot,
           r->qps, r->cqs, r->mrs, r->pds, messages, bytes);
    print_hcas(r->hcas);
    print_wire(r);
}

static void print_people(const struct members *m, const struct members *before, double seconds)
{
    char last[SHCA_NAME] = "", name[SHCA_NAME];

    for (size_t i = 0; i < m->n; i++) {
        struct report r;

        if (!read_report(&m->at[i], &r))
            continue;
        if (strcmp(last, m->at[i].name.fabric) != 0) {
            memcpy(last, m->at[i].name.fabric, sizeof last);
            list_readable(&m->at[i].name, name);
            printf("fabric %s of user %u\n", name, m->at[i].name.uid);
            printf("%-8s %-16s %5s %6s %6s %6s %6s %9s %9s\n", "PID", "PROGRAM", "SLOT", "QPS",
                   "CQS", "MRS", "PDS", "MSG/S", "BYTES/S");
        }
        add_rates(&r, before, &m->at[i], seconds);
        print_person(&m->at[i], &r);
    }
}

/* ---- JSON output ---- */

static void json_text(const char *text)
{
    putchar('"');
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
            printf("\\u%04x", (unsigned char)*text);
        else
            putchar(*text);
    putchar('"');
}

/* The lines of one HCA that begin with a word, as elements of a list. */
static void json_lines(const char *at, const char *hca, bool ports)
{
    const char *comma = "";
    char name[32], a[16], b[16];
    unsigned n;

    for (; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (ports && sscanf(at, "port %31s %u %15s", name, &n, a) == 3 && strcmp(name, hca) == 0)
            printf("%s{\"port\":%u,\"state\":\"%s\"}", comma, n, a);
        else if (!ports && sscanf(at, "qp %31s %15s %15s %u", name, a, b, &n) == 4 &&
                 strcmp(name, hca) == 0)
            printf("%s{\"type\":\"%s\",\"state\":\"%s\",\"count\":%u}", comma, a, b, n);
        else
            continue;
        comma = ",";
    }
}

static void json_hcas(const char *all)
{
    const char *comma = "";
    char hca[32], state[16];

    for (const char *at = all; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        if (sscanf(at, "hca %31s %15s", hca, state) != 2)
            continue;
        printf("%s{\"name\":\"%s\",\"state\":\"%s\",\"ports\":[", comma, hca, state);
        json_lines(all, hca, true);
        fputs("],\"qps\":[", stdout);
        json_lines(all, hca, false);
        fputs("]}", stdout);
        comma = ",";
    }
}

static void json_wire(const struct report *r)
{
    unsigned long long n;
    const char *comma = "";
    char port[32], where[64], word[32];
    unsigned mtu;

    printf(",\"wire\":\"%s\",\"addresses\":[", r->wire);
    for (const char *at = r->addresses; at && *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (address_in(at, port, where, &mtu)) {
            printf("%s{\"port\":\"%s\",\"address\":\"%s\",\"mtu\":%u}", comma, port, where, mtu);
            comma = ",";
        }
    fputs("],\"packets\":{", stdout);
    comma = "";
    for (const char *at = r->addresses; at && *at; at += strcspn(at, "\n"), at += *at == '\n') {
        const char *next = is_packets(at) ? at + sizeof packets_word - 1 : at;

        while (*next == ' ' && (next = next_counter(next, word, &n)) != NULL) {
            printf("%s\"%s\":%llu", comma, word, n);
            comma = ",";
        }
    }
    putchar('}');
}

static void json_member(const struct member *m, const struct report *r)
{
    char name[SHCA_NAME];

    list_readable(&m->name, name);
    printf("{\"fabric\":\"%s\",\"uid\":%u,\"pid\":%u,\"slot\":%u,\"program\":", name, m->name.uid,
           m->name.pid, m->name.slot);
    json_text(r->program);
    printf(",\"qps\":%u,\"cqs\":%u,\"mrs\":%u,\"pds\":%u,\"messages\":%llu,\"bytes\":%llu,"
           "\"messages_per_second\":%.1f,\"bytes_per_second\":%.1f,\"hcas\":[",
           r->qps, r->cqs, r->mrs, r->pds, r->messages, r->bytes, r->message_rate, r->byte_rate);
    json_hcas(r->hcas);
    putchar(']');
    json_wire(r);
    putchar('}');
}

static void print_json(const struct members *m, const struct members *before, double seconds)
{
    const char *comma = "";

    fputs("{\"processes\":[", stdout);
    for (size_t i = 0; i < m->n; i++) {
        struct report r;

        if (!read_report(&m->at[i], &r))
            continue;
        add_rates(&r, before, &m->at[i], seconds);
        fputs(comma, stdout);
        json_member(&m->at[i], &r);
        comma = ",";
    }
    fputs("],\"silent\":[", stdout);
    comma = "";
    for (size_t i = 0; i < m->n; i++)
        if (m->at[i].silent) {
            printf("%s{\"pid\":%u,\"slot\":%u}", comma, m->at[i].name.pid, m->at[i].name.slot);
            comma = ",";
        }
    fputs("]}\n", stdout);
}

/* ---- the subcommand ---- */

static double clock_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_for(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};

    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

static int by_fabric(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int order = strcmp(x->name.fabric, y->name.fabric);

    return order ? order : (x->name.pid > y->name.pid) - (x->name.pid < y->name.pid);
}

/* One sample; members that did not answer the previous one are not waited for again. */
static int sample(const struct scope *s, const struct members *before, struct members *m)
{
    if (members_find(s, m) != 0)
        return EXIT_FAILED;
    if (m->n == 0)
        return members_none(s);
    qsort(m->at, m->n, sizeof *m->at, by_fabric);
    for (size_t i = 0; before && i < m->n; i++) {
        const struct member *old = same(before, &m->at[i]);

        m->at[i].asked = m->at[i].silent = old && old->silent;
    }
    members_ask(m, "list");
    return 0;
}

static int list_list(const struct scope *s, double interval, bool json)
{
    struct members before = {0}, m = {0};
    double start = clock_now(), seconds;
    int status = sample(s, NULL, &before);

    if (status != 0)
        return status;
    pause_for(interval);
    /* Members answer at the start of a sample; its end waits for those that do not. */
    seconds = clock_now() - start;
    status = sample(s, &before, &m);
    if (status == 0) {
        (json ? print_json : print_people)(&m, &before, seconds);
        fflush(stdout);
        status = members_silent(&m) ? EXIT_FAILED : 0;
    }
    members_free(&before);
    members_free(&m);
    return status;
}

static int run_list(const struct subcommand *self, int argc, char **argv)
{
    struct scope s = {0};
    bool json = false;
    const char *interval = "0.5";
    const struct option_spec options[] = {SCOPE_OPTIONS(s),
                                          {"all", NULL, &s.all, NULL},
                                          {"json", NULL, &json, NULL},
                                          {"interval", &interval, NULL, NULL},
                                          {0}};
    char **operands, *end;
    int n = options_read(self, options, false, argc, argv, &operands);
    double seconds;

    if (n < 0)
        return -1 - n;
    if (n > 0)
        return log_error(EXIT_USAGE, "list takes no argument, but there is '%s'", operands[0]);
    seconds = strtod(interval, &end);
    if (*end || end == interval || !(seconds >= 0.01 && seconds <= 3600))
        return log_error(EXIT_USAGE, "--interval %s: not a number of seconds from 0.01 to 3600",
                         interval);
    if (scope_check(&s) != 0)
        return EXIT_USAGE;
    return list_list(&s, seconds, json);
}

const struct subcommand subcommand_list = {
    "list",
    "usage: softhca list [options]\n"
    "Processes of a fabric: what they have, and what they send each second.\n"
    "  --fabric NAME     the fabric (SOFTHCA_FABRIC, or \"default\")\n"
    "  --user UID        whose fabric (yours); for root\n"
    "  --all             all fabrics of yours; for root, of everybody\n"
    "  --interval S      seconds between the two samples for the rates (0.5)\n"
    "  --json            for programs\n",
    run_list,
};
