/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Parses the settings of softhca out of an environment. A name that begins with SOFTHCA_ and is not
 * in the table is an error, because a misspelt setting would otherwise be ignored silently. Owns
 * nothing, takes no lock. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "registry_name.h"
#include "softhca_settings.h"

#define PREFIX "SOFTHCA_"

#define SHCA_FIELD(field)                                                                          \
    offsetof(struct shca_config, field), sizeof(((struct shca_config *)NULL)->field)
#define SHCA_NUMBER(field, name, standard, low, high, doc)                                         \
    {name, SHCA_IS_NUMBER, SHCA_FIELD(field), standard, low, high, NULL, doc},
#define SHCA_CHOICE(field, name, words, doc)                                                       \
    {name, SHCA_IS_CHOICE, SHCA_FIELD(field), 0, 0, 1, words, doc},
#define SHCA_TEXT(field, name, standard, doc)                                                      \
    {name, SHCA_IS_TEXT, SHCA_FIELD(field), 0, 0, 0, standard, doc},

const struct shca_setting shca_settings[] = {
#include "softhca_settings.def"
};
const size_t shca_setting_count = sizeof shca_settings / sizeof shca_settings[0];

/* Where the error message goes. */
struct reason {
    char *text;
    size_t room;
};

#define REFUSE(r, ...) (snprintf((r)->text, (r)->room, __VA_ARGS__), EINVAL)

/* ---- names ---- */

/* The value that an entry of the environment gives to a name; NULL: it is about another name. */
static const char *value_in(const char *entry, const char *name)
{
    size_t n;

    if (*entry != *name) /* nearly all, of thousands of pairs */
        return NULL;
    n = strlen(name);
    return strncmp(entry, name, n) == 0 && entry[n] == '=' ? entry + n + 1 : NULL;
}

/* An empty value counts as not set. */
static const char *lookup(char *const *env, const char *name)
{
    for (; *env; env++) {
        const char *value = value_in(*env, name);

        if (value)
            return *value ? value : NULL;
    }
    return NULL;
}

static bool is_own(const char *entry)
{
    return strncmp(entry, PREFIX, sizeof PREFIX - 1) == 0;
}

/* Those that may name settings, if they are few: each setting is looked for among them, by each
 * process that opens a device. */
static char *const *own_entries(char *const *env, char *own[], size_t most)
{
    size_t count = 0;

    for (char *const *at = env; *at; at++) {
        if (!is_own(*at))
            continue;
        if (count == most)
            return env;
        own[count++] = *at;
    }
    own[count] = NULL;
    return own;
}

/* Edit distance (insert, delete, replace) between the first n letters of a and b (up to 31). */
static unsigned distance(const char *a, size_t n, const char *b)
{
    unsigned row[32];
    size_t len = strlen(b);

    for (size_t j = 0; j <= len; j++)
        row[j] = (unsigned)j;
    for (size_t i = 0; i < n; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < len; j++) {
            unsigned best = diagonal + (a[i] != b[j]);

            diagonal = row[j + 1];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j + 1] = best < diagonal + 1 ? best : diagonal + 1;
        }
    }
    return row[len];
}

static int refuse_name(const char *entry, struct reason *r)
{
    int n = (int)strcspn(entry, "=");
    const struct shca_setting *best = NULL;
    unsigned least = 5; /* more than four edits are not a typing error */

    n = n > 64 ? 64 : n;
    for (size_t i = 0; i < shca_setting_count; i++) {
        unsigned d = distance(entry, (size_t)n, shca_settings[i].name);

        if (d < least) {
            least = d;
            best = &shca_settings[i];
        }
    }
    if (best)
        return REFUSE(r, "%.*s is no setting; did you mean %s?", n, entry, best->name);
    return REFUSE(r,
                  "%.*s is no setting; there are SOFTHCA_FABRIC, _HCAS, _PORTS, _LINK, _DOWN, "
                  "_ONLY and others, see softhca(1)",
                  n, entry);
}

static int check_names(char *const *env, struct reason *r)
{
    for (; *env; env++) {
        bool known = !is_own(*env);

        for (size_t i = 0; i < shca_setting_count && !known; i++)
            known = value_in(*env, shca_settings[i].name) != NULL;
        if (!known)
            return refuse_name(*env, r);
    }
    return 0;
}

/* ---- values ---- */

static int parse_number(const struct shca_setting *s, const char *text, void *field,
                        struct reason *r)
{
    uint64_t value = s->standard;
    char *end = NULL;

    if (text) {
        errno = 0;
        value = strtoull(text, &end, 0);
        if (errno != 0 || *end || !isdigit((unsigned char)*text) || value < s->low ||
            value > s->high)
            return REFUSE(r, "%s=%s is not a number from %" PRIu64 " to %" PRIu64, s->name, text,
                          s->low, s->high);
    }
    if (s->size == sizeof value)
        *(uint64_t *)field = value;
    else
        *(uint32_t *)field = (uint32_t)value;
    return 0;
}

static int parse_choice(const struct shca_setting *s, const char *text, bool *field,
                        struct reason *r)
{
    int no = (int)strcspn(s->text, "|");
    const char *yes = s->text + no + 1;

    *field = text && strcmp(text, yes) == 0;
    if (text && !*field && (strncmp(text, s->text, (size_t)no) != 0 || text[no]))
        return REFUSE(r, "%s=%s is neither %.*s nor %s", s->name, text, no, s->text, yes);
    return 0;
}

static int parse_one(const struct shca_setting *s, const char *text, struct shca_config *c,
                     struct reason *r)
{
    void *field = (char *)c + s->offset;

    switch (s->kind) {
    case SHCA_IS_NUMBER:
        return parse_number(s, text, field, r);
    case SHCA_IS_CHOICE:
        return parse_choice(s, text, field, r);
    default:
        *(const char **)field = text ? text : s->text;
        return 0;
    }
}

/* ---- derived values ---- */

/* Digits only, and few: sscanf would also take blanks and signs. */
static bool small_number(const char **at, int *value)
{
    const char *start = *at;

    for (*value = 0; isdigit((unsigned char)**at) && *at - start < 3; (*at)++)
        *value = *value * 10 + (**at - '0');
    return *at > start;
}

/* softhca0:1 */
static bool parse_port(const char **at, int *hca, int *port)
{
    static const char device[] = "softhca";

    if (strncmp(*at, device, sizeof device - 1) != 0)
        return false;
    *at += sizeof device - 1;
    if (!small_number(at, hca) || *(*at)++ != ':')
        return false;
    return small_number(at, port);
}

static int parse_down(const char *name, const char *list, uint32_t *down,
                      const struct shca_config *c, struct reason *r)
{
    const char *next = list;

    while (next) {
        const char *at = next;
        int hca, port;

        if (!parse_port(&at, &hca, &port) || hca >= c->hcas || port < 1 || port > c->ports ||
            (*at && *at != ','))
            return REFUSE(r,
                          "%s=%s: '%s' does not begin with softhcaN:P, N below %d and P "
                          "from 1 to %d",
                          name, list, next, c->hcas, c->ports);
        down[hca] |= 1u << port;
        next = *at ? at + 1 : NULL;
    }
    return 0;
}

/* ---- profiles ---- */

static bool is_given(char *const *env, const char *name)
{
    return lookup(env, name) != NULL;
}

static int refuse_profile(const char *at, int n, struct reason *r)
{
    char names[SHCA_PROFILE_NAMES];

    shca_profile_names(names, sizeof names);
    return REFUSE(r, "SOFTHCA_PROFILE: '%.*s' is neither a file (a path has a '/') nor one of %s",
                  n > 32 ? 32 : n, at, names);
}

struct found {
    const struct shca_profile *list[SHCA_MAX_HCA];
    int n;
};

static int add_profile(struct found *f, const struct shca_profile *p, struct reason *r)
{
    if (f->n == SHCA_MAX_HCA)
        return REFUSE(r, "SOFTHCA_PROFILE has more than %d devices", SHCA_MAX_HCA);
    f->list[f->n++] = p;
    return 0;
}

/* A word with a slash is the path of a bundle; all of its devices count. */
static int add_bundle(struct found *f, const char *at, size_t n, struct shca_bundle *b,
                      struct reason *r)
{
    char path[512], why[160];
    int e = 0, first = b->n;

    snprintf(path, sizeof path, "%.*s", (int)(n < sizeof path ? n : sizeof path), at);
    if (n >= sizeof path)
        return REFUSE(r, "SOFTHCA_PROFILE: the path of a bundle has more than %zu letters",
                      sizeof path - 1);
    if (shca_bundle_read(path, b, why, sizeof why) != 0)
        return REFUSE(r, "SOFTHCA_PROFILE: %.200s: %s", path, why);
    for (int i = first; i < b->n && e == 0; i++)
        e = add_profile(f, &b->device[i], r);
    return e;
}

/* The profiles in the list, in order; without a list, softhca's. */
static int parse_profiles(struct shca_config *c, struct found *f, struct reason *r)
{
    const char *at = c->profile_list ? c->profile_list : "softhca";
    int e = 0;

    while (at && e == 0) {
        size_t n = strcspn(at, ",");
        const struct shca_profile *p = shca_profile_find(at, n);

        if (p)
            e = add_profile(f, p, r);
        else if (memchr(at, '/', n))
            e = add_bundle(f, at, n, &c->bundle, r);
        else
            e = refuse_profile(at, (int)n, r);
        at = at[n] ? at + n + 1 : NULL;
    }
    return e;
}

/* A setting and the fields of a profile that it replaces, all of them uint32_t. */
static const struct {
    const char *name;
    size_t from, to, also;
} replaced[] = {
#define REPLACED(name, field)                                                                      \
    {                                                                                              \
        name, offsetof(struct shca_config, field), offsetof(struct shca_profile, field), 0         \
    }
    REPLACED("SOFTHCA_MAX_QP", max_qp),
    REPLACED("SOFTHCA_MAX_QP_WR", max_qp_wr),
    {"SOFTHCA_MAX_SGE", offsetof(struct shca_config, max_sge),
     offsetof(struct shca_profile, max_sge), offsetof(struct shca_profile, max_sge_rd)},
    {"SOFTHCA_MAX_SGE", offsetof(struct shca_config, max_sge),
     offsetof(struct shca_profile, max_srq_sge), 0},
    {"SOFTHCA_MAX_INLINE", offsetof(struct shca_config, max_inline),
     offsetof(struct shca_profile, inline_rc), offsetof(struct shca_profile, inline_ud)},
    REPLACED("SOFTHCA_MAX_CQ", max_cq),
    REPLACED("SOFTHCA_MAX_CQE", max_cqe),
    REPLACED("SOFTHCA_MAX_SRQ", max_srq),
    REPLACED("SOFTHCA_MAX_SRQ_WR", max_srq_wr),
    REPLACED("SOFTHCA_MAX_MR", max_mr),
    REPLACED("SOFTHCA_MAX_PD", max_pd),
    REPLACED("SOFTHCA_MAX_MSG", max_msg),
    REPLACED("SOFTHCA_ODP", odp),
    REPLACED("SOFTHCA_SCATTER", scatter),
    {"SOFTHCA_ROCE", offsetof(struct shca_config, roce_types),
     offsetof(struct shca_profile, gid_types), 0},
};

static void set_field(struct shca_profile *p, size_t field, uint32_t value)
{
    memcpy((char *)p + field, &value, sizeof value);
}

static void replace_fields(struct shca_profile *p, const struct shca_config *c, char *const *env)
{
    for (size_t i = 0; i < sizeof replaced / sizeof replaced[0]; i++) {
        uint32_t value;

        if (!is_given(env, replaced[i].name))
            continue;
        memcpy(&value, (const char *)c + replaced[i].from, sizeof value);
        set_field(p, replaced[i].to, value);
        if (replaced[i].also)
            set_field(p, replaced[i].also, value);
    }
    if (is_given(env, "SOFTHCA_PORTS"))
        p->ports = (uint32_t)c->ports;
    if (is_given(env, "SOFTHCA_LINK") || c->udp)
        p->link = c->roce ? SHCA_LINK_ROCE : SHCA_LINK_IB;
    if (p->inline_least > p->inline_rc)
        p->inline_least = p->inline_rc;
    /* Packets: only the process that created an XRC target can connect it, which is less than the
     * flag promises. */
    if (c->udp)
        p->cap_flags &= ~(uint32_t)IBV_DEVICE_XRC;
    if (is_given(env, "SOFTHCA_MAX_QP"))
        p->max_res_rd_atom = p->max_rd_atom * p->max_qp;
}

/* Processes of a fabric number its ports alike, whatever the profiles of each. */
enum { ports_of_profiles = 2 };

static int ports_needed(const struct found *f)
{
    uint32_t most = ports_of_profiles;

    for (int i = 0; i < f->n; i++)
        most = f->list[i]->ports > most ? f->list[i]->ports : most;
    return (int)most;
}

static int parse_devices(struct shca_config *c, char *const *env, struct reason *r)
{
    struct found f = {.n = 0};
    int e = parse_profiles(c, &f, r);

    if (e != 0)
        return e;
    if (c->profile_list && !is_given(env, "SOFTHCA_HCAS"))
        c->hcas = f.n;
    if (c->profile_list && !is_given(env, "SOFTHCA_PORTS"))
        c->ports = ports_needed(&f);
    for (int i = 0; i < c->hcas; i++) {
        c->device[i] = *f.list[i % f.n];
        if (i >= f.n && c->device[i].device)
            c->device[i].device = NULL; /* a second one of that name */
        replace_fields(&c->device[i], c, env);
    }
    return 0;
}

/* ---- lists of ports: value, or softhcaN:P=value, separated by commas ---- */

typedef bool port_value(const char *text, struct shca_port_config *out);

struct port_list {
    const char *name, *text, *legal;
    port_value *take;
};

static bool take_rate(const char *text, struct shca_port_config *out)
{
    char *end;
    unsigned long rate = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;

    if (rate < 1 || rate > SHCA_RATE_MAX || *end)
        return false;
    out->rate = (uint32_t)rate;
    return true;
}

static bool take_speed(const char *text, struct shca_port_config *out)
{
    return shca_speed_codes(text, &out->width, &out->speed);
}

static bool take_mtu(const char *text, struct shca_port_config *out)
{
    static const char *const mtus[] = {"256", "512", "1024", "2048", "4096"};

    for (uint8_t i = 0; i < sizeof mtus / sizeof mtus[0]; i++)
        if (strcmp(text, mtus[i]) == 0) {
            out->mtu = (uint8_t)(IBV_MTU_256 + i);
            return true;
        }
    return false;
}

static bool take_state(const char *text, struct shca_port_config *out)
{
    if (strcmp(text, "init") == 0)
        out->state = IBV_PORT_INIT;
    else if (strcmp(text, "armed") == 0)
        out->state = IBV_PORT_ARMED;
    else if (strcmp(text, "no-lid") == 0)
        out->state = SHCA_PORT_NO_LID;
    else
        return false;
    return true;
}

/* Until the subnet manager activates a port it carries nothing, as one without a cable. */
static void unplug_inactive(struct shca_config *c)
{
    for (int hca = 0; hca < c->hcas; hca++)
        for (int port = 1; port <= c->ports; port++)
            if (c->port[hca][port].state == IBV_PORT_INIT ||
                c->port[hca][port].state == IBV_PORT_ARMED)
                c->unplugged[hca] |= 1u << port;
}

static bool take_subnet(const char *text, struct shca_port_config *out)
{
    const char *end = text;
    int subnet;

    if (!small_number(&end, &subnet) || *end || subnet > UINT8_MAX)
        return false;
    out->subnet = (uint8_t)subnet;
    return true;
}

/* One NUL-terminated entry: for one port, or for all. */
static bool take_entry(const struct port_list *l, const char *entry, struct shca_config *c)
{
    bool all = !strchr(entry, '=');
    int hca = 0, port = 0;

    if (!all && (!parse_port(&entry, &hca, &port) || *entry++ != '=' || hca >= c->hcas ||
                 port < 1 || port > c->ports))
        return false;
    for (int h = all ? 0 : hca; h < (all ? SHCA_MAX_HCA : hca + 1); h++)
        for (int p = all ? 1 : port; p < (all ? SHCA_MAX_PRT : port) + 1; p++)
            if (!l->take(entry, &c->port[h][p]))
                return false;
    return true;
}

static int parse_ports(const struct port_list *l, struct shca_config *c, struct reason *r)
{
    const char *at = l->text;

    while (at) {
        size_t n = strcspn(at, ",");
        char entry[64];

        snprintf(entry, sizeof entry, "%.*s", (int)(n < sizeof entry ? n : sizeof entry), at);
        if (n >= sizeof entry || !take_entry(l, entry, c))
            return REFUSE(
                r,
                "%s=%s: '%.*s' is neither %s nor softhcaN:P= (N below %d, P from 1 to %d) "
                "and such a word",
                l->name, l->text, (int)(n < 64 ? n : 64), at, l->legal, c->hcas, c->ports);
        at = at[n] ? at + n + 1 : NULL;
    }
    return 0;
}

/* What a port has by default depends on its device. */
static int parse_gids(struct shca_config *c, struct reason *r)
{
    const struct port_list gids = {"SOFTHCA_GIDS", c->gid_list,
                                   "a list of link, ipv4, ipv6 (with @V, V from 1 to 99: of a "
                                   "VLAN) and - joined by +, of 16 entries",
                                   shca_gid_list_parse};
    int e;

    for (int hca = 0; hca < c->hcas; hca++)
        for (int port = 1; port <= SHCA_MAX_PRT; port++)
            shca_gid_list_parse(NULL, &c->port[hca][port]);
    e = parse_ports(&gids, c, r);
    for (int hca = 0; hca < c->hcas; hca++)
        for (int port = 1; port <= SHCA_MAX_PRT; port++)
            shca_gid_list_fit(&c->device[hca], &c->port[hca][port]);
    return e;
}

static int parse_port_lists(struct shca_config *c, struct reason *r)
{
    const struct port_list speed = {
        "SOFTHCA_SPEED", c->speed_list,
        "1x, 2x, 4x, 8x or 12x with sdr, ddr, qdr, fdr10, fdr, edr, hdr "
        "or ndr (4xedr)",
        take_speed};
    const struct port_list rate = {"SOFTHCA_RATE", c->rate_list, "a number of MB/s up to 1000000",
                                   take_rate};
    const struct port_list mtu = {"SOFTHCA_MTU", c->mtu_list, "256, 512, 1024, 2048 or 4096",
                                  take_mtu};
    const struct port_list state = {"SOFTHCA_STATE", c->state_list, "init, armed or no-lid",
                                    take_state};
    const struct port_list subnet = {"SOFTHCA_SUBNET", c->subnet_list, "a number up to 255",
                                     take_subnet};
    int e;

    for (int hca = 0; hca < c->hcas; hca++)
        for (int port = 1; port <= SHCA_MAX_PRT; port++)
            take_speed(c->device[hca].speed, &c->port[hca][port]);
    e = parse_ports(&speed, c, r);
    e = e == 0 ? parse_ports(&rate, c, r) : e;
    e = e == 0 ? parse_ports(&mtu, c, r) : e;
    e = e == 0 ? parse_ports(&state, c, r) : e;
    e = e == 0 ? parse_ports(&subnet, c, r) : e;
    if (e == 0)
        unplug_inactive(c);
    return e == 0 ? parse_gids(c, r) : e;
}

/* Full member of the default partition, and full member of another one. */
static const uint16_t usual_pkeys[] = {0xffff, 0x8001};

static int parse_pkeys(struct shca_config *c, struct reason *r)
{
    const char *at = c->pkey_list;
    uint32_t n = 0;

    memcpy(c->pkeys, usual_pkeys, sizeof usual_pkeys);
    if (at)
        memset(c->pkeys, 0, sizeof c->pkeys);
    while (at) {
        char *end = NULL;
        unsigned long key = isxdigit((unsigned char)*at) ? strtoul(at, &end, 16) : 0;

        if (!end || (*end && *end != ',') || key > UINT16_MAX || n == SHCA_PKEYS)
            return REFUSE(r, "SOFTHCA_PKEYS=%s is not a list of at most %d keys from 0 to ffff",
                          c->pkey_list, SHCA_PKEYS);
        c->pkeys[n++] = (uint16_t)key;
        at = *end ? end + 1 : NULL;
    }
    for (int i = 0; i < c->hcas && n > 0; i++)
        c->device[i].pkeys = n;
    return 0;
}

/* Ports on UDP are Ethernet ports: all addresses are GIDs. */
static int parse_wire(struct shca_config *c, struct reason *r)
{
    bool shm = strcmp(c->wire, "shm") == 0;

    c->udp_only = strcmp(c->wire, "udp") == 0;
    if (!shm && !c->udp_only && strcmp(c->wire, "auto") != 0)
        return REFUSE(r, "SOFTHCA_WIRE=%s is none of shm, udp and auto", c->wire);
    c->udp = c->udp_only || (!shm && c->udp_list);
    c->roce = c->roce || c->udp;
    return 0;
}

int shca_settings_parse(char *const *all, struct shca_config *out, char *why, size_t n)
{
    enum { most = 32 };
    char *own[most + 1], *const *env = own_entries(all, own, most);
    struct reason r = {why, n};
    int e = check_names(env, &r);

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < shca_setting_count && e == 0; i++)
        e = parse_one(&shca_settings[i], lookup(env, shca_settings[i].name), out, &r);
    if (e == 0)
        e = parse_wire(out, &r);
    if (e == 0)
        e = parse_devices(out, env, &r);
    if (e == 0)
        e = parse_down("SOFTHCA_DOWN", out->down_list, out->down, out, &r);
    if (e == 0)
        e = parse_down("SOFTHCA_UNPLUGGED", out->unplugged_list, out->unplugged, out, &r);
    if (e == 0)
        e = parse_port_lists(out, &r);
    if (e == 0)
        e = parse_pkeys(out, &r);
    if (e == 0)
        shca_name_fabric(out->fabric_name, geteuid(), out->fabric);
    return e;
}

void shca_setting_range(const struct shca_setting *s, char *out, size_t n)
{
    if (s->kind == SHCA_IS_NUMBER && s->high == UINT64_MAX)
        snprintf(out, n, "number (%" PRIu64 ")", s->standard);
    else if (s->kind == SHCA_IS_NUMBER)
        snprintf(out, n, "%" PRIu64 "..%" PRIu64 " (%" PRIu64 ")", s->low, s->high, s->standard);
    else if (s->kind == SHCA_IS_CHOICE)
        snprintf(out, n, "%s (%.*s)", s->text, (int)strcspn(s->text, "|"), s->text);
    else
        snprintf(out, n, "text (%s)", s->text ? s->text : "none");
}
