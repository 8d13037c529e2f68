/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads and writes configurations. */
#include "config.h"

#include "replay/setup.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { words_max = 10, line_max = 512 };

struct reader {
    struct setup *s;
    char *word[words_max];
    unsigned words;
    const char *why;
};

static bool fail(struct reader *r, const char *why)
{
    r->why = why;
    return false;
}

static bool number(struct reader *r, unsigned i, uint64_t most, uint64_t *n)
{
    char *end;

    if (i >= r->words)
        return fail(r, "a number is missing");
    *n = strtoull(r->word[i], &end, 0);
    if (*end || end == r->word[i] || r->word[i][0] == '-' || *n > most)
        return fail(r, "not a number, or one that is too large");
    return true;
}

static bool number32(struct reader *r, unsigned i, uint64_t most, uint32_t *n)
{
    uint64_t v;

    if (!number(r, i, most, &v))
        return false;
    *n = (uint32_t)v;
    return true;
}

static bool mac(struct reader *r, unsigned i, uint8_t to[6])
{
    unsigned b[6];

    if (i >= r->words || sscanf(r->word[i], "%2x:%2x:%2x:%2x:%2x:%2x", &b[0], &b[1], &b[2], &b[3],
                                &b[4], &b[5]) != 6)
        return fail(r, "not a MAC address, such as 02:00:00:00:00:01");
    for (unsigned k = 0; k < 6; k++)
        to[k] = (uint8_t)b[k];
    return true;
}

static bool ip(struct reader *r, unsigned i, int family, uint8_t to[16])
{
    memset(to, 0, 16);
    if (i >= r->words || inet_pton(family, r->word[i], to) != 1)
        return fail(r, "not an IP address of the right version");
    return true;
}

static bool choice(struct reader *r, const char *const *names, unsigned n, unsigned *which)
{
    for (*which = 0; r->words == 2 && *which < n; ++*which)
        if (strcmp(r->word[1], names[*which]) == 0)
            return true;
    return fail(r, "an unknown word");
}

/* ---- lines ---- */

static bool read_vips(struct reader *r)
{
    bool v6 = strcmp(r->word[0], "vip6") == 0;
    struct mcsw_vips *v = v6 ? &r->s->c.v6 : &r->s->c.v4;

    v->on = true;
    return ip(r, 1, v6 ? AF_INET6 : AF_INET, v->requests) &&
           ip(r, 2, v6 ? AF_INET6 : AF_INET, v->copies);
}

static bool read_group(struct reader *r)
{
    struct setup *s = r->s;
    struct setup_group *g;
    uint64_t key;

    if (s->groups == SETUP_GROUPS)
        return fail(r, "too many groups; up to 64");
    if (!number32(r, 1, 65535, &s->number[s->groups]) || !number(r, 2, UINT64_MAX, &key))
        return false;
    g = calloc(1, sizeof *g);
    if (!g)
        return fail(r, "no memory");
    g->c.key = key;
    g->c.ip_version = r->words > 3 && strcmp(r->word[3], "v6") == 0 ? 6 : 4;
    g->c.leaf = r->words > 4 && strcmp(r->word[4], "leaf") == 0;
    g->c.sender = g->sender;
    g->c.receiver = g->receiver;
    s->group[s->groups++] = g;
    if (s->number[s->groups - 1] > s->c.groups)
        s->c.groups = s->number[s->groups - 1];
    return true;
}

/* sender|receiver IP MAC PORT QPN PSN [BASE RKEY] */
static bool read_member(struct reader *r)
{
    bool sender = strcmp(r->word[0], "sender") == 0;
    struct setup_group *g = r->s->groups ? r->s->group[r->s->groups - 1] : NULL;
    struct mcsw_receiver v = {0};
    uint32_t port;

    if (!g)
        return fail(r, "a member before its group");
    if (sender ? g->c.senders == MCSW_SENDERS - 1 : g->c.receivers == MCSW_RECEIVERS)
        return fail(r, "too many members");
    if (!ip(r, 1, g->c.ip_version == 6 ? AF_INET6 : AF_INET, v.ip) || !mac(r, 2, v.mac) ||
        !number32(r, 3, 4093, &port) || !number32(r, 4, 0xffffff, &v.qpn) ||
        !number32(r, 5, 0xffffff, &v.psn))
        return false;
    v.port = port;
    if (sender) {
        struct mcsw_sender *s = &g->sender[g->c.senders++];

        *s = (struct mcsw_sender){.port = v.port, .qpn = v.qpn, .psn = v.psn};
        memcpy(s->ip, v.ip, sizeof s->ip);
        memcpy(s->mac, v.mac, sizeof s->mac);
        return true;
    }
    if (!number(r, 6, UINT64_MAX, &v.base) || !number32(r, 7, UINT32_MAX, &v.rkey))
        return false;
    g->receiver[g->c.receivers++] = v;
    return true;
}

static bool read_word(struct reader *r)
{
    static const char *const modes[] = {"fast", "strict"}, *const ports[] = {"tag", "source"};
    static const char *const aggregates[] = {"exact", "scan", "rounds"};
    const char *what = r->word[0];
    struct mcsw_config *c = &r->s->c;
    unsigned which = 0;
    uint32_t n = 0;
    bool good;

    if (strcmp(what, "mode") == 0) {
        good = choice(r, modes, 2, &which);
        c->mode = which;
    } else if (strcmp(what, "aggregate") == 0) {
        good = choice(r, aggregates, 3, &which);
        c->aggregate = which;
    } else if (strcmp(what, "ports") == 0) {
        good = choice(r, ports, 2, &which);
        r->s->ports_by_source = which == 1;
    } else if (strcmp(what, "mac") == 0) {
        good = mac(r, 1, c->mac);
    } else if (strcmp(what, "lease_us") == 0) {
        good = number32(r, 1, 1000000000, &n);
        c->lease = n * 1000ull;
    } else if (strcmp(what, "rnr_timer") == 0) {
        good = number32(r, 1, 31, &n);
        c->rnr_timer = (uint8_t)n;
    } else if (strcmp(what, "boot") == 0) {
        good = number32(r, 1, UINT32_MAX, &c->boot);
    } else if (strcmp(what, "believe_icrc") == 0) {
        good = c->believe_icrc = true;
    } else {
        return fail(r, "an unknown word");
    }
    return good;
}

static bool read_line(struct reader *r, char *line)
{
    char *comment = strchr(line, '#'), *rest;

    if (comment)
        *comment = '\0';
    r->words = 0;
    for (char *w = strtok_r(line, " \t\r\n", &rest); w; w = strtok_r(NULL, " \t\r\n", &rest)) {
        if (r->words == words_max)
            return fail(r, "too many words");
        r->word[r->words++] = w;
    }
    if (r->words == 0)
        return true;
    if (strcmp(r->word[0], "vip4") == 0 || strcmp(r->word[0], "vip6") == 0)
        return read_vips(r);
    if (strcmp(r->word[0], "group") == 0)
        return read_group(r);
    if (strcmp(r->word[0], "sender") == 0 || strcmp(r->word[0], "receiver") == 0)
        return read_member(r);
    return read_word(r);
}

bool setup_read(struct setup *s, FILE *from, char why[SETUP_TEXT])
{
    struct reader r = {.s = s};
    char line[line_max];

    memset(s, 0, sizeof *s);
    s->c.senders = MCSW_SENDERS - 2;
    for (unsigned n = 1; fgets(line, sizeof line, from); n++)
        if (!read_line(&r, line)) {
            snprintf(why, SETUP_TEXT, "line %u: %s", n, r.why);
            return false;
        }
    if (s->groups == 0) {
        snprintf(why, SETUP_TEXT, "there is no group in it");
        return false;
    }
    return true;
}

void setup_end(struct setup *s)
{
    for (unsigned i = 0; i < s->groups; i++)
        free(s->group[i]);
}

/* ---- writing ---- */

static void write_member(FILE *to, bool v6, const struct mcsw_receiver *m, bool receiver)
{
    char text[INET6_ADDRSTRLEN];

    inet_ntop(v6 ? AF_INET6 : AF_INET, m->ip, text, sizeof text);
    fprintf(to, "%s %s %02x:%02x:%02x:%02x:%02x:%02x %u 0x%x 0x%x",
            receiver ? "receiver" : "sender", text, m->mac[0], m->mac[1], m->mac[2], m->mac[3],
            m->mac[4], m->mac[5], m->port, m->qpn, m->psn);
    if (receiver)
        fprintf(to, " 0x%llx 0x%x", (unsigned long long)m->base, m->rkey);
    fputc('\n', to);
}

static void write_group(FILE *to, uint32_t n, const struct mcsw_group_config *c)
{
    bool v6 = c->ip_version == 6;

    fprintf(to, "group %u 0x%llx %s%s\n", n, (unsigned long long)c->key, v6 ? "v6" : "v4",
            c->leaf ? " leaf" : "");
    for (unsigned i = 0; i < c->senders; i++) {
        struct mcsw_receiver m = {
            .port = c->sender[i].port, .qpn = c->sender[i].qpn, .psn = c->sender[i].psn};

        memcpy(m.ip, c->sender[i].ip, sizeof m.ip);
        memcpy(m.mac, c->sender[i].mac, sizeof m.mac);
        write_member(to, v6, &m, false);
    }
    for (unsigned i = 0; i < c->receivers; i++)
        write_member(to, v6, &c->receiver[i], true);
}

static void write_vips(FILE *to, const char *name, int family, const struct mcsw_vips *v)
{
    char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN];

    if (!v->on)
        return;
    inet_ntop(family, v->requests, a, sizeof a);
    inet_ntop(family, v->copies, b, sizeof b);
    fprintf(to, "%s %s %s\n", name, a, b);
}

void setup_write(const struct setup *s, FILE *to)
{
    const struct mcsw_config *c = &s->c;

    fprintf(to, "mode %s\naggregate %s\nports %s\n", c->mode == MCSW_STRICT ? "strict" : "fast",
            c->aggregate == MCSW_EXACT  ? "exact"
            : c->aggregate == MCSW_SCAN ? "scan"
                                        : "rounds",
            s->ports_by_source ? "source" : "tag");
    fprintf(to, "mac %02x:%02x:%02x:%02x:%02x:%02x\n", c->mac[0], c->mac[1], c->mac[2], c->mac[3],
            c->mac[4], c->mac[5]);
    write_vips(to, "vip4", AF_INET, &c->v4);
    write_vips(to, "vip6", AF_INET6, &c->v6);
    fprintf(to, "lease_us %llu\nboot %u\n", (unsigned long long)c->lease / 1000, c->boot);
    if (c->believe_icrc)
        fprintf(to, "believe_icrc\n");
    for (unsigned i = 0; i < s->groups; i++)
        write_group(to, s->number[i], &s->group[i]->c);
}
