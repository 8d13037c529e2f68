/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads the device part of a bundle (trunkline_info(1) describes the format): sections "[device
 * NAME]", "[port NAME:1]", "[gids NAME:1]" and "[sizes NAME]". What these don't say is that of the
 * profile of the same vendor and part, if there is one. Owns nothing. */
#include "config.h"

#include "bundle.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca_settings.h"

enum section { OTHER, DEVICE, PORT, GIDS, SIZES, END };

enum {
    depth_most = 1 << 20, /* work requests in a queue; no device offers more */
    inline_most = 4096,   /* as SOFTHCA_MAX_INLINE */
};

/* A number that a profile takes as it is. */
struct key {
    const char *name;
    size_t offset, size;
    uint64_t low, high;
};

#define KEY_OF(name, field, low, high)                                                             \
    {                                                                                              \
        name, offsetof(struct shca_profile, field), sizeof(((struct shca_profile *)NULL)->field),  \
            low, high                                                                              \
    }
#define KEY(name, field) KEY_OF(name, field, 0, INT32_MAX)
#define SAME(name)       KEY(#name, name)

static const struct key device_keys[] = {KEY_OF("node_type", node_type, 0, UINT32_MAX),
                                         KEY_OF("transport_type", transport, 0, UINT32_MAX),
                                         KEY_OF("max_mr_size", max_mr_size, 0, UINT64_MAX),
                                         KEY_OF("page_size_cap", page_size_cap, 0, UINT64_MAX),
                                         KEY_OF("vendor_id", vendor_id, 0, UINT32_MAX),
                                         KEY_OF("vendor_part_id", part_id, 0, UINT32_MAX),
                                         KEY_OF("hw_ver", hw_ver, 0, UINT32_MAX),
                                         SAME(max_qp),
                                         KEY_OF("max_qp_wr", max_qp_wr, 1, depth_most),
                                         KEY_OF("device_cap_flags", cap_flags, 0, UINT32_MAX),
                                         KEY_OF("max_sge", max_sge, 1, 65536),
                                         KEY_OF("max_sge_rd", max_sge_rd, 0, 65536),
                                         SAME(max_cq),
                                         SAME(max_cqe),
                                         SAME(max_mr),
                                         SAME(max_pd),
                                         KEY("max_qp_rd_atom", max_rd_atom),
                                         SAME(max_res_rd_atom),
                                         KEY("max_qp_init_rd_atom", max_init_rd_atom),
                                         KEY_OF("atomic_cap", atomic_cap, 0, 2),
                                         SAME(max_mcast_grp),
                                         KEY("max_mcast_qp_attach", max_mcast_attach),
                                         SAME(max_ah),
                                         SAME(max_srq),
                                         SAME(max_srq_wr),
                                         SAME(max_srq_sge),
                                         KEY_OF("max_pkeys", pkeys, 0, 65535),
                                         KEY_OF("local_ca_ack_delay", ack_delay, 0, 255),
                                         KEY_OF("phys_port_cnt", ports, 1, SHCA_MAX_PRT),
                                         KEY_OF("max_dm_size", dm_bytes, 0, UINT32_MAX)};

static const struct key port_keys[] = {
    KEY_OF("max_mtu", mtu, IBV_MTU_256, IBV_MTU_4096),
    KEY_OF("active_mtu", ib_mtu, IBV_MTU_256, IBV_MTU_4096),
    KEY_OF("max_msg_sz", max_msg, 1, UINT32_MAX), KEY_OF("lid", lid, 0, 65535),
    KEY_OF("link_layer", link, 0, 2) /* made an enum shca_link later */};

#define KEYS(list) (sizeof(list) / sizeof((list)[0]))

/* A device while it is read. */
struct draft {
    struct shca_profile *profile;
    uint32_t device_seen, port_seen; /* a bit for each key */
    uint64_t odp, odp_rc, odp_ud, width, speed;
    bool is_broken, has_sizes;
    struct shca_bundle_record records[SHCA_BUNDLE_RECORDS];
    unsigned n_records;
};

struct reader {
    struct shca_bundle *out;
    struct draft draft; /* of the last device */
    bool in_device;
    enum section section;
    unsigned line;
    char *why;
    size_t room;
};

_Static_assert(KEYS(device_keys) <= 32 && KEYS(port_keys) <= 32, "bits of device_seen, port_seen");

#define REFUSE(r, ...)                                                                             \
    (snprintf((r)->why, (r)->room, "line %u: ", (r)->line),                                        \
     snprintf((r)->why + strlen((r)->why), (r)->room - strlen((r)->why), __VA_ARGS__), EINVAL)

/* ---- numbers ---- */

/* Rejects signs and blanks, which strtoull accepts. */
static bool read_number(const char **at, uint64_t *value)
{
    char *end;

    errno = 0;
    *value = isdigit((unsigned char)**at) ? strtoull(*at, &end, 0) : 0;
    if (!isdigit((unsigned char)**at) || errno != 0 || (*end && *end != ' '))
        return false;
    *at = end + (*end == ' ');
    return true;
}

static bool read_numbers(const char *at, uint32_t *values, int n)
{
    for (int i = 0; i < n; i++) {
        uint64_t value;

        if (!read_number(&at, &value) || value > INT32_MAX)
            return false;
        values[i] = (uint32_t)value;
    }
    return *at == 0;
}

static int read_key(struct reader *r, const struct key *k, const char *text)
{
    const char *at = text;
    uint64_t value;
    uint32_t word;

    if (!read_number(&at, &value) || *at || value < k->low || value > k->high)
        return REFUSE(r, "%s is not a number from %" PRIu64 " to %" PRIu64, k->name, k->low,
                      k->high);
    word = (uint32_t)value;
    memcpy((char *)r->draft.profile + k->offset,
           k->size == sizeof value ? (const void *)&value : (const void *)&word, k->size);
    return 0;
}

/* Keys that are not in the list don't matter here. */
static int take_key(struct reader *r, const struct key *keys, size_t n, uint32_t *seen,
                    const char *name, const char *value)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(keys[i].name, name) == 0) {
            *seen |= 1u << i;
            return read_key(r, &keys[i], value);
        }
    return 0;
}

/* An optional number that is stored in the draft. */
static int take_draft(struct reader *r, const char *name, const char *value)
{
    const struct {
        const char *name;
        uint64_t *to;
    } places[] = {{"odp_caps.general_caps", &r->draft.odp},
                  {"odp_caps.per_transport_caps.rc_odp_caps", &r->draft.odp_rc},
                  {"odp_caps.per_transport_caps.ud_odp_caps", &r->draft.odp_ud},
                  {"active_width", &r->draft.width},
                  {"active_speed", &r->draft.speed}};

    for (size_t i = 0; i < KEYS(places); i++)
        if (strcmp(places[i].name, name) == 0 && (!read_number(&value, places[i].to) || *value))
            return REFUSE(r, "%s is not a number", name);
    return 0;
}

/* ---- the device and its port ---- */

static int take_device(struct reader *r, const char *name, const char *value)
{
    int e = take_draft(r, name, value);

    if (strcmp(name, "error") == 0)
        r->draft.is_broken = true;
    if (strcmp(name, "fw_ver") == 0)
        snprintf(r->out->text[r->out->n].firmware, SHCA_BUNDLE_NAME, "%s", value);
    return e ? e : take_key(r, device_keys, KEYS(device_keys), &r->draft.device_seen, name, value);
}

static int take_port(struct reader *r, const char *name, const char *value)
{
    int e = take_draft(r, name, value);

    return e ? e : take_key(r, port_keys, KEYS(port_keys), &r->draft.port_seen, name, value);
}

/* "INDEX = TYPE GID INTERFACE", the type as in enum ibv_gid_type: 1 and 2 are RoCE v1 and v2. */
static int take_gid(struct reader *r, const char *value)
{
    uint64_t type;

    if (!read_number(&value, &type) || type > 2)
        return REFUSE(r, "a GID does not begin with its type, 0 to 2");
    if (type > 0)
        r->draft.profile->gid_types |= 1u << (type - 1);
    return 0;
}

/* ---- sizes of queue pairs ---- */

static const struct {
    const char *name;
    enum ibv_qp_type type;
    uint32_t bits;
} types[] = {{"RC", IBV_QPT_RC, 1u << IBV_QPT_RC},
             {"UC", IBV_QPT_UC, 1u << IBV_QPT_UC},
             {"UD", IBV_QPT_UD, 1u << IBV_QPT_UD},
             {"XRC_SEND", IBV_QPT_XRC_SEND, 1u << IBV_QPT_XRC_SEND | 1u << IBV_QPT_XRC_RECV}};

/* "errno 12 ENOMEM" */
static bool read_errno(const char *value, int *error)
{
    static const char word[] = "errno ";
    uint64_t number;

    if (strncmp(value, word, sizeof word - 1) != 0)
        return false;
    value += sizeof word - 1;
    if (!read_number(&value, &number) || number > 4095)
        return false;
    *error = (int)number;
    return true;
}

/* Reads the type at the beginning of a key, and advances the key past it. */
static int read_type(struct reader *r, const char **at, size_t *type)
{
    for (*type = 0; *type < KEYS(types); ++*type) {
        size_t n = strlen(types[*type].name);

        if (strncmp(*at, types[*type].name, n) == 0 && ((*at)[n] == ' ' || (*at)[n] == 0)) {
            *at += n + ((*at)[n] == ' ');
            return 0;
        }
    }
    return REFUSE(r, "'%.40s' is no type of queue pairs", *at);
}

static int take_type(struct reader *r, const char *key, const char *value)
{
    int e, error;
    size_t type;

    if (!read_errno(value, &error))
        return REFUSE(r, "no errno");
    if (strcmp(key, "SRQ") == 0)
        return 0; /* max_srq says it */
    e = read_type(r, &key, &type);
    if (e == 0 && error == 0)
        r->draft.profile->types |= types[type].bits;
    r->draft.has_sizes = true;
    return e;
}

static int take_inline(struct reader *r, const char *key, const char *value)
{
    struct shca_profile *p = r->draft.profile;
    size_t type;
    uint32_t bytes;
    int e = read_type(r, &key, &type);

    if (e != 0)
        return e;
    if (!read_numbers(value, &bytes, 1) || bytes > inline_most)
        return REFUSE(r, "inline data is not a number from 0 to %d", inline_most);
    if (types[type].type == IBV_QPT_RC)
        p->inline_rc = bytes;
    if (types[type].type == IBV_QPT_UD)
        p->inline_ud = bytes;
    return 0;
}

static int add_record(struct reader *r, size_t type, const uint32_t *asked,
                      struct shca_bundle_record **out)
{
    struct shca_bundle_record *record = &r->draft.records[r->draft.n_records];

    if (r->draft.n_records == SHCA_BUNDLE_RECORDS)
        return REFUSE(r, "more than %d sizes", SHCA_BUNDLE_RECORDS);
    r->draft.n_records++;
    *record = (struct shca_bundle_record){.asked = {.qp_type = types[type].type}};
    record->asked.cap = (struct ibv_qp_cap){asked[0], asked[1], asked[2], asked[3], asked[4]};
    *out = record;
    return 0;
}

/* "create TYPE SEND_WR RECV_WR SEND_SGE RECV_SGE INLINE = the same five, or an errno" */
static int take_create(struct reader *r, const char *key, const char *value)
{
    struct shca_bundle_record *record;
    uint32_t asked[5], got[5] = {0};
    size_t type;
    int e = read_type(r, &key, &type), error = 0;

    if (e != 0)
        return e;
    if (!read_numbers(key, asked, 5) ||
        (!read_errno(value, &error) && !read_numbers(value, got, 5)))
        return REFUSE(r, "not five numbers each, or an errno");
    e = add_record(r, type, asked, &record);
    if (e != 0)
        return e;
    record->error = error;
    record->has_caps = error == 0;
    record->caps = (struct ibv_qp_cap){got[0], got[1], got[2], got[3], got[4]};
    return 0;
}

/* "depth TYPE SEND_SGE INLINE = the most work requests", which were accepted */
static int take_depth(struct reader *r, const char *key, const char *value)
{
    struct shca_bundle_record *record;
    uint32_t shape[2], depth;
    size_t type;
    int e = read_type(r, &key, &type);

    if (e != 0)
        return e;
    if (!read_numbers(key, shape, 2) || !read_numbers(value, &depth, 1) || depth > depth_most)
        return REFUSE(r, "not a list, inline data, and a depth up to %d", depth_most);
    if (depth == 0)
        return 0;
    return add_record(r, type, (const uint32_t[]){depth, 1, shape[0], 1, shape[1]}, &record);
}

/* "cq 100 = 127": a device that rounds has a power of two of entries, siw, or one less. */
static int take_cq(struct reader *r, const char *key, const char *value)
{
    uint32_t asked, got;
    int error;

    if (read_errno(value, &error))
        return 0;
    if (!read_numbers(key, &asked, 1) || !read_numbers(value, &got, 1))
        return REFUSE(r, "not two numbers of completions");
    r->draft.profile->rounds_cq = got <= asked             ? 0
                                  : (got & (got + 1)) == 0 ? 1
                                  : (got & (got - 1)) == 0 ? 2
                                                           : 0;
    return 0;
}

static int take_resize(struct reader *r, const char *key, const char *value)
{
    int error;

    if (*key || !read_errno(value, &error))
        return REFUSE(r, "no errno");
    r->draft.profile->no_resize_cq = error != 0;
    return 0;
}

static int take_size(struct reader *r, const char *name, const char *value)
{
    static const struct {
        const char *word;
        int (*take)(struct reader *r, const char *key, const char *value);
    } words[] = {{"type", take_type},   {"inline", take_inline}, {"create", take_create},
                 {"depth", take_depth}, {"cq", take_cq},         {"resize_cq", take_resize}};
    size_t n = strcspn(name, " ");

    for (size_t i = 0; i < KEYS(words); i++)
        if (strlen(words[i].word) == n && strncmp(name, words[i].word, n) == 0)
            return words[i].take(r, name + n + (name[n] == ' '), value);
    return 0;
}

/* ---- the end of a device ---- */

/* The profile of the same device, for properties that can't be observed from outside. */
static const struct shca_profile *find_like(const struct shca_profile *p)
{
    for (size_t i = 0; i < shca_profile_count; i++) {
        const struct shca_profile *q = &shca_profiles[i];

        if (q->vendor_id == p->vendor_id && q->part_id == p->part_id &&
            q->transport == p->transport)
            return q;
    }
    return NULL;
}

static void set_unseen(struct draft *d)
{
    struct shca_profile *p = d->profile;
    const struct shca_profile *like = find_like(p);

    p->weak_atomics = like ? like->weak_atomics : p->atomic_cap == IBV_ATOMIC_HCA;
    p->scatter = like ? like->scatter : 0;
    p->event_delay = like ? like->event_delay : 0;
    p->no_last_wqe = like ? like->no_last_wqe : 0;
    if (p->gid_types == 0)
        p->gid_types = like ? like->gid_types : 3;
    if (d->has_sizes)
        return;
    /* No queue pair could be made there. */
    p->types = like ? like->types : 1u << IBV_QPT_RC | 1u << IBV_QPT_UD;
    p->inline_rc = like ? like->inline_rc : 0;
    p->inline_ud = like ? like->inline_ud : 0;
}

static uint32_t link_of(const struct shca_profile *p)
{
    if (p->transport == IBV_TRANSPORT_IWARP)
        return SHCA_LINK_IWARP;
    return p->link == IBV_LINK_LAYER_INFINIBAND ? SHCA_LINK_IB
           : p->link == IBV_LINK_LAYER_ETHERNET ? SHCA_LINK_ROCE
                                                : SHCA_LINK_UNKNOWN;
}

static uint32_t odp_of(const struct draft *d)
{
    if (!(d->odp & IBV_ODP_SUPPORT))
        return 0;
    return d->odp_rc & IBV_ODP_SUPPORT_ATOMIC ? 1 : d->odp_rc ? 2 : 3;
}

static uint32_t at_most(uint32_t value, uint32_t most)
{
    return value < most ? value : most;
}

static void finish_profile(struct reader *r)
{
    struct shca_profile *p = r->draft.profile;
    int n = r->out->n;

    p->link = link_of(p);
    p->ethernet_mtu = p->ib_mtu;
    if (p->link == SHCA_LINK_IB)
        p->lid = 0; /* each process has its own */
    p->odp = odp_of(&r->draft);
    if (p->pkeys == 0)
        p->pkeys = 1; /* siw has no P_Key and ignores the index; softhca's state checks need one */
    p->max_sge = at_most(p->max_sge, SHCA_MAX_SGE);
    p->max_sge_rd = at_most(p->max_sge_rd, SHCA_MAX_SGE);
    if (!shca_speed_word((uint32_t)r->draft.width, (uint32_t)r->draft.speed, r->out->text[n].speed,
                         sizeof r->out->text[n].speed))
        snprintf(r->out->text[n].speed, sizeof r->out->text[n].speed, "1xsdr");
    set_unseen(&r->draft);
    shca_bundle_fit(p, r->draft.records, r->draft.n_records);
    p->name = p->stem = p->device = r->out->text[n].name;
    p->firmware = r->out->text[n].firmware;
    p->speed = r->out->text[n].speed;
    p->source = "bundle";
}

static const char *unseen(const struct key *keys, size_t n, uint32_t seen)
{
    for (size_t i = 0; i < n; i++)
        if (!(seen >> i & 1))
            return keys[i].name;
    return NULL;
}

/* Omits a device that could not be opened or queried there. */
static int end_device(struct reader *r)
{
    const char *lacks;

    if (!r->in_device)
        return 0;
    r->in_device = false;
    if (r->draft.is_broken)
        return 0;
    lacks = unseen(device_keys, KEYS(device_keys), r->draft.device_seen);
    if (!lacks)
        lacks = unseen(port_keys, KEYS(port_keys), r->draft.port_seen);
    if (lacks)
        return REFUSE(r, "device %s has no %s before", r->out->text[r->out->n].name, lacks);
    finish_profile(r);
    r->out->n++;
    return 0;
}

/* ---- sections and lines ---- */

static bool is_name(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
            return false;
    return n > 0 && n < SHCA_BUNDLE_NAME;
}

static int begin_device(struct reader *r, const char *name)
{
    int e = end_device(r);

    if (e != 0)
        return e;
    if (!is_name(name))
        return REFUSE(r, "the name of a device has 1 to %d letters, digits, '_', '-' and '.'",
                      SHCA_BUNDLE_NAME - 1);
    if (r->out->n == SHCA_MAX_HCA)
        return REFUSE(r, "more than %d devices", SHCA_MAX_HCA);
    memset(&r->draft, 0, sizeof r->draft);
    r->draft.profile = &r->out->device[r->out->n];
    memset(r->draft.profile, 0, sizeof *r->draft.profile);
    memset(&r->out->text[r->out->n], 0, sizeof r->out->text[0]);
    snprintf(r->out->text[r->out->n].name, SHCA_BUNDLE_NAME, "%s", name);
    r->in_device = true;
    r->section = DEVICE;
    return 0;
}

/* Reads port sections only for port 1: the ports of a profile are alike. */
static enum section of_port(const struct reader *r, const char *object, enum section section)
{
    size_t n = strlen(r->out->text[r->out->n].name);

    return strncmp(object, r->out->text[r->out->n].name, n) == 0 && strcmp(object + n, ":1") == 0
               ? section
               : OTHER;
}

static int begin_section(struct reader *r, char *line)
{
    size_t n = strlen(line);
    char *object;

    if (line[n - 1] != ']')
        return REFUSE(r, "a section does not end with ']'");
    line[n - 1] = 0;
    object = line + strcspn(line, " ");
    object += *object == ' ' ? (*object = 0, 1) : 0;
    r->section = OTHER;
    if (strcmp(line, "[device") == 0)
        return begin_device(r, object);
    if (strcmp(line, "[end") == 0)
        r->section = END;
    else if (r->in_device && strcmp(line, "[port") == 0)
        r->section = of_port(r, object, PORT);
    else if (r->in_device && strcmp(line, "[gids") == 0)
        r->section = of_port(r, object, GIDS);
    else if (r->in_device && strcmp(line, "[sizes") == 0 &&
             strcmp(object, r->out->text[r->out->n].name) == 0)
        r->section = SIZES;
    return 0;
}

static int take_pair(struct reader *r, char *line)
{
    char *equals = strstr(line, " =");
    const char *value = equals ? equals + 2 + (equals[2] == ' ') : NULL;

    if (!equals)
        return REFUSE(r, "neither [SECTION] nor KEY = VALUE");
    *equals = 0;
    switch (r->section) {
    case DEVICE:
        return take_device(r, line, value);
    case PORT:
        return take_port(r, line, value);
    case GIDS:
        return take_gid(r, value);
    case SIZES:
        return take_size(r, line, value);
    default:
        return 0;
    }
}

static int take_line(struct reader *r, char *line)
{
    static const char first[] = "trunkline-bundle 1";
    size_t n = strlen(line);

    if (n > 0 && line[n - 1] == '\r') /* sent through mail */
        line[--n] = 0;
    if (r->line == 1)
        return strcmp(line, first) == 0 ? 0 : REFUSE(r, "it is not '%s'", first);
    if (n == 0)
        return 0;
    if (r->section == END)
        return REFUSE(r, "text after [end]");
    return *line == '[' ? begin_section(r, line) : take_pair(r, line);
}

static int parse_lines(struct reader *r, char *text)
{
    int first = r->out->n, e = 0;

    for (char *line; e == 0 && (line = strsep(&text, "\n"));) {
        r->line++;
        e = take_line(r, line);
    }
    if (e == 0 && r->section != END)
        e = REFUSE(r, "the file ends without [end]");
    if (e == 0)
        e = end_device(r);
    if (e == 0 && r->out->n == first)
        e = REFUSE(r, "the file has no device");
    return e;
}

int shca_bundle_parse(const char *text, size_t n, struct shca_bundle *out, char *why, size_t room)
{
    struct reader r = {.out = out, .why = why, .room = room};
    char *copy;
    int e;

    if (memchr(text, 0, n) || n > SHCA_BUNDLE_BYTES) {
        snprintf(why, room, "not a text of at most %d bytes", SHCA_BUNDLE_BYTES);
        return EINVAL;
    }
    copy = strndup(text, n);
    if (!copy) {
        snprintf(why, room, "out of memory");
        return EINVAL;
    }
    e = parse_lines(&r, copy);
    free(copy);
    /* Text from an untrusted file is printed on a terminal. */
    for (char *at = why; e != 0 && *at; at++)
        if (!isprint((unsigned char)*at))
            *at = '?';
    return e;
}

/* ---- the file ---- */

/* Reads up to one byte more than allowed; negative: see errno. */
static ssize_t read_all(int fd, char *text)
{
    ssize_t sum = 0;

    while (sum <= SHCA_BUNDLE_BYTES) {
        ssize_t got = read(fd, text + sum, (size_t)(SHCA_BUNDLE_BYTES + 1 - sum));

        if (got < 0 && errno != EINTR)
            return -1;
        if (got == 0)
            break;
        sum += got > 0 ? got : 0;
    }
    return sum;
}

/* A pipe would let the process wait. */
static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;

    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        return fd;
    if (fd >= 0) {
        close(fd);
        errno = EINVAL;
    }
    return -1;
}

int shca_bundle_read(const char *path, struct shca_bundle *out, char *why, size_t room)
{
    char *text = malloc(SHCA_BUNDLE_BYTES + 1);
    int e = EINVAL, fd = text ? open_file(path) : -1;
    ssize_t n = fd >= 0 ? read_all(fd, text) : -1;

    if (n < 0)
        snprintf(why, room, "%s", errno == EINVAL ? "not a file" : strerror(errno));
    else
        e = shca_bundle_parse(text, (size_t)n, out, why, room);
    if (fd >= 0)
        close(fd);
    free(text);
    return e;
}
