/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fault language: kind[:key=value[,key=value...]] for each rule, rules separated by semicolons.
 * Pure functions over text, so that a fuzzer can drive them; an unknown word is rejected by name,
 * together with the known ones. Owns nothing, takes no lock. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fault/fault.h"

enum { rule_max = 200 };
static const uint64_t usec = UINT64_C(1000);
static const uint64_t msec = UINT64_C(1000000);
/* Longer than any program needs, short enough that a mistake does not look like a hang. */
enum { wait_max_ms = 10000 };
static const uint32_t billion = UINT32_C(1000000000);

struct complaint {
    char *why;
    size_t n;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct complaint *c, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (c->n > 0)
        vsnprintf(c->why, c->n, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- words ---- */

struct word {
    const char *text;
    int value;
};

#define WORDS(table) table, sizeof(table) / sizeof(table)[0]

static const struct word kinds[] = {
    {"delay", SHCA_FAULT_DELAY},
    {"late", SHCA_FAULT_LATE},
    {"reorder", SHCA_FAULT_REORDER},
    {"early", SHCA_FAULT_EARLY},
    {"drop", SHCA_FAULT_DROP},
    {"rnr", SHCA_FAULT_RNR},
    {"error", SHCA_FAULT_ERROR},
    {"enomem", SHCA_FAULT_ENOMEM},
    {"sqfull", SHCA_FAULT_SQFULL},
    {"kill", SHCA_FAULT_KILL},
    {"cqoverrun", SHCA_FAULT_CQOVERRUN},
    {"unplug", SHCA_FAULT_UNPLUG},
    {"dup", SHCA_FAULT_DUP},
};

static const struct word ops[] = {
    {"send", SHCA_OP_SEND},     {"write", SHCA_OP_WRITE}, {"read", SHCA_OP_READ},
    {"atomic", SHCA_OP_ATOMIC}, {"any", SHCA_OP_ANY},
};

static const struct word losses[] = {{"request", SHCA_LOST_REQUEST}, {"ack", SHCA_LOST_ACK}};

static const struct word calls[] = {
    {"alloc_pd", SHCA_CALL_ALLOC_PD},
    {"create_ah", SHCA_CALL_CREATE_AH},
    {"create_comp_channel", SHCA_CALL_CREATE_COMP_CHANNEL},
    {"create_cq", SHCA_CALL_CREATE_CQ},
    {"create_qp", SHCA_CALL_CREATE_QP},
    {"create_srq", SHCA_CALL_CREATE_SRQ},
    {"open_xrcd", SHCA_CALL_OPEN_XRCD},
    {"reg_mr", SHCA_CALL_REG_MR},
    {"resize_cq", SHCA_CALL_RESIZE_CQ},
    {"any", SHCA_CALL_ANY},
};

static const struct word statuses[] = {
    {"loc_len", IBV_WC_LOC_LEN_ERR},
    {"loc_qp_op", IBV_WC_LOC_QP_OP_ERR},
    {"loc_prot", IBV_WC_LOC_PROT_ERR},
    {"mw_bind", IBV_WC_MW_BIND_ERR},
    {"bad_resp", IBV_WC_BAD_RESP_ERR},
    {"loc_access", IBV_WC_LOC_ACCESS_ERR},
    {"rem_inv_req", IBV_WC_REM_INV_REQ_ERR},
    {"rem_access", IBV_WC_REM_ACCESS_ERR},
    {"rem_op", IBV_WC_REM_OP_ERR},
    {"retry_exc", IBV_WC_RETRY_EXC_ERR},
    {"rnr_retry_exc", IBV_WC_RNR_RETRY_EXC_ERR},
    {"rem_abort", IBV_WC_REM_ABORT_ERR},
    {"fatal", IBV_WC_FATAL_ERR},
    {"general", IBV_WC_GENERAL_ERR},
};

static bool fault_parse_find(const char *text, const struct word *w, size_t n, int *value)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(text, w[i].text) == 0) {
            *value = w[i].value;
            return true;
        }
    return false;
}

/* "a, b, c" for a message. */
static const char *all_of(char *out, size_t room, const struct word *w, size_t n)
{
    size_t at = 0;

    out[0] = 0;
    for (size_t i = 0; i < n && at < room; i++)
        at += (size_t)snprintf(out + at, room - at, "%s%s", i ? ", " : "", w[i].text);
    return out;
}

static bool take_word(const char *key, const char *text, const struct word *w, size_t n, int *value,
                      struct complaint *c)
{
    char legal[256];

    if (fault_parse_find(text, w, n, value))
        return true;
    return refuse(c, "%s=%s: known are %s", key, text, all_of(legal, sizeof legal, w, n));
}

/* ---- numbers ---- */

/* Decimal digits up to the end of the number; huge values saturate above every limit. */
static const char *digits(const char *text, uint64_t *value)
{
    const char *at = text;

    for (*value = 0; *at >= '0' && *at <= '9'; at++)
        if (*value < UINT64_MAX / 100)
            *value = *value * 10 + (uint64_t)(*at - '0');
    return at == text ? NULL : at;
}

static bool fault_parse_take_number(const char *key, const char *text, uint64_t low, uint64_t high,
                                    uint64_t *value, struct complaint *c)
{
    const char *end = digits(text, value);

    if (end && *end == 0 && *value >= low && *value <= high)
        return true;
    return refuse(c, "%s=%s is not a number from %llu to %llu", key, text, (unsigned long long)low,
                  (unsigned long long)high);
}

static bool take_range(const char *key, const char *text, uint64_t high, uint64_t unit,
                       struct shca_fault_rule *r, struct complaint *c)
{
    const char *end = digits(text, &r->low);

    r->high = r->low;
    if (end && *end == '-')
        end = digits(end + 1, &r->high);
    if (!end || *end != 0 || r->low > r->high || r->high > high)
        return refuse(c, "%s=%s is neither a number from 0 to %llu nor a range of them (10-500)",
                      key, text, (unsigned long long)high);
    r->low *= unit;
    r->high *= unit;
    return true;
}

/* Not strtod: its decimal point depends on the program's locale. */
static bool take_probability(const char *text, uint32_t *ppb, struct complaint *c)
{
    uint32_t unit = billion;
    uint64_t whole;
    const char *at = digits(text, &whole);

    *ppb = at && whole <= 1 ? (uint32_t)whole * billion : 0;
    if (at && *at == '.')
        for (at++; *at >= '0' && *at <= '9'; at++) {
            unit /= 10;
            *ppb += (uint32_t)(*at - '0') * unit;
        }
    if (at && *at == 0 && whole <= 1 && *ppb > 0 && *ppb <= billion)
        return true;
    return refuse(c, "p=%s is not a probability above 0 and up to 1 (0.01)", text);
}

static bool take_device(const char *text, int *dev, struct complaint *c)
{
    uint64_t number;
    const char *end = strncmp(text, "softhca", 7) == 0 ? digits(text + 7, &number) : NULL;

    if (!end || *end != 0 || number > 15)
        return refuse(c, "dev=%s is not one of softhca0 to softhca15", text);
    *dev = (int)number;
    return true;
}

/* ---- keys ---- */

enum key {
    KEY_DEV,
    KEY_PORT,
    KEY_QP,
    KEY_OP,
    KEY_NTH,
    KEY_EVERY,
    KEY_AFTER,
    KEY_COUNT,
    KEY_P,
    KEY_FOR,
    KEY_US,
    KEY_MS,
    KEY_POLLS,
    KEY_STATUS,
    KEY_CALL,
    KEY_LOST,
    KEY_OVER
};

static const struct word keys[] = {
    {"dev", KEY_DEV},     {"port", KEY_PORT},   {"qp", KEY_QP},         {"op", KEY_OP},
    {"nth", KEY_NTH},     {"every", KEY_EVERY}, {"after", KEY_AFTER},   {"count", KEY_COUNT},
    {"p", KEY_P},         {"for", KEY_FOR},     {"us", KEY_US},         {"ms", KEY_MS},
    {"polls", KEY_POLLS}, {"call", KEY_CALL},   {"status", KEY_STATUS}, {"lost", KEY_LOST},
    {"over", KEY_OVER},
};

#define BIT(key) (1u << (key))
#define WHICH                                                                                      \
    (BIT(KEY_DEV) | BIT(KEY_NTH) | BIT(KEY_EVERY) | BIT(KEY_AFTER) | BIT(KEY_COUNT) | BIT(KEY_P) | \
     BIT(KEY_FOR))
#define WHICH_WORK (WHICH | BIT(KEY_PORT) | BIT(KEY_QP) | BIT(KEY_OP))
#define HOW_LONG   (BIT(KEY_US) | BIT(KEY_MS))

static const uint32_t takes[SHCA_FAULT_KINDS] = {
    [SHCA_FAULT_DELAY] = WHICH_WORK | HOW_LONG,
    [SHCA_FAULT_LATE] = WHICH_WORK | HOW_LONG | BIT(KEY_POLLS),
    [SHCA_FAULT_REORDER] = WHICH_WORK | HOW_LONG | BIT(KEY_POLLS),
    [SHCA_FAULT_EARLY] = WHICH | BIT(KEY_PORT) | BIT(KEY_QP) | HOW_LONG,
    [SHCA_FAULT_DROP] = WHICH_WORK | BIT(KEY_LOST) | BIT(KEY_OVER),
    [SHCA_FAULT_UNPLUG] = WHICH_WORK | HOW_LONG | BIT(KEY_LOST),
    [SHCA_FAULT_RNR] = WHICH_WORK | HOW_LONG,
    [SHCA_FAULT_ERROR] = WHICH_WORK | BIT(KEY_STATUS),
    [SHCA_FAULT_ENOMEM] = WHICH | BIT(KEY_CALL),
    [SHCA_FAULT_SQFULL] = WHICH_WORK,
    [SHCA_FAULT_KILL] = WHICH_WORK,
    [SHCA_FAULT_CQOVERRUN] = WHICH_WORK,
    [SHCA_FAULT_DUP] = WHICH_WORK | HOW_LONG,
};

static bool find_key(const char *kind, const char *text, enum shca_fault_kind k, int *key,
                     struct complaint *c)
{
    struct word legal[sizeof keys / sizeof keys[0]];
    char list[256];
    size_t n = 0;

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (takes[k] & BIT(keys[i].value))
            legal[n++] = keys[i];
    if (fault_parse_find(text, legal, n, key))
        return true;
    return refuse(c, "%s takes no '%s'; it takes %s", kind, text,
                  all_of(list, sizeof list, legal, n));
}

static bool take_choice(struct shca_fault_rule *r, int key, const char *name, const char *value,
                        struct complaint *c)
{
    int word = 0;
    bool good = key == KEY_OP     ? take_word(name, value, WORDS(ops), &word, c)
                : key == KEY_CALL ? take_word(name, value, WORDS(calls), &word, c)
                : key == KEY_LOST ? take_word(name, value, WORDS(losses), &word, c)
                                  : take_word(name, value, WORDS(statuses), &word, c);

    if (key == KEY_OP)
        r->op = (enum shca_fault_op)word;
    else if (key == KEY_CALL)
        r->call = (enum shca_fault_call)word;
    else if (key == KEY_LOST)
        r->lost = (enum shca_lost)word;
    else
        r->status = (enum ibv_wc_status)word;
    return good;
}

static bool take_wait(struct shca_fault_rule *r, int key, const char *name, const char *value,
                      struct complaint *c)
{
    r->polls = key == KEY_POLLS;
    if (r->polls)
        return take_range(name, value, 1000000, 1, r, c);
    return key == KEY_US ? take_range(name, value, wait_max_ms * usec, usec, r, c)
                         : take_range(name, value, wait_max_ms, msec, r, c);
}

static bool take_small(uint32_t *to, const char *name, const char *value, uint64_t high,
                       struct complaint *c)
{
    uint64_t number;
    bool good = fault_parse_take_number(name, value, 1, high, &number, c);

    *to = (uint32_t)number;
    return good;
}

static bool fault_parse_take(struct shca_fault_rule *r, int key, const char *name,
                             const char *value, struct complaint *c)
{
    const uint64_t many = UINT64_C(1000000000000);

    switch (key) {
    case KEY_DEV:
        return take_device(value, &r->dev, c);
    case KEY_PORT:
        return take_small(&r->port, name, value, 8, c);
    case KEY_QP:
        return take_small(&r->qpn, name, value, 0xffffff, c);
    case KEY_NTH:
        return fault_parse_take_number(name, value, 1, many, &r->nth, c);
    case KEY_EVERY:
        return fault_parse_take_number(name, value, 1, many, &r->every, c);
    case KEY_AFTER:
        return fault_parse_take_number(name, value, 1, many, &r->after, c);
    case KEY_COUNT:
        return fault_parse_take_number(name, value, 1, many, &r->count, c);
    case KEY_OVER:
        return take_small(&r->over, name, value, 4095, c);
    case KEY_P:
        return take_probability(value, &r->ppb, c);
    case KEY_FOR:
        if (!fault_parse_take_number(name, value, 1, 86400000, &r->for_ns, c))
            return false;
        r->for_ns *= msec;
        return true;
    case KEY_US:
    case KEY_MS:
    case KEY_POLLS:
        return take_wait(r, key, name, value, c);
    default:
        return take_choice(r, key, name, value, c);
    }
}

/* ---- rules ---- */

static void start(struct shca_fault_rule *r, enum shca_fault_kind kind)
{
    memset(r, 0, sizeof *r);
    r->kind = kind;
    r->dev = -1;
    r->op = kind == SHCA_FAULT_EARLY ? SHCA_OP_WRITE : SHCA_OP_ANY;
    r->call = SHCA_CALL_ANY;
    r->status = IBV_WC_SUCCESS;
    r->lost = SHCA_LOST_REQUEST;
    r->ppb = billion;
    r->low = r->high = kind == SHCA_FAULT_RNR                                ? msec
                       : kind == SHCA_FAULT_UNPLUG || kind == SHCA_FAULT_DUP ? 0
                                                                             : 100 * usec;
    if (kind == SHCA_FAULT_REORDER) {
        /* Enough polls for completions of different queue pairs to change places. */
        r->polls = true;
        r->low = 0;
        r->high = 16;
    }
}

static bool sensible(const char *kind, const struct shca_fault_rule *r, uint32_t given,
                     struct complaint *c)
{
    const uint32_t waits = HOW_LONG | BIT(KEY_POLLS);

    if (r->kind == SHCA_FAULT_ERROR && r->status == IBV_WC_SUCCESS)
        return refuse(c, "%s needs a status (status=retry_exc)", kind);
    if (r->nth && (given & (BIT(KEY_EVERY) | BIT(KEY_AFTER) | BIT(KEY_COUNT))))
        return refuse(c, "%s: nth names one operation; every, after and count do not go with it",
                      kind);
    if ((given & waits) & ((given & waits) - 1))
        return refuse(c, "%s: only one of us, ms and polls", kind);
    return true;
}

static bool parse_rule(char *text, struct shca_fault_rule *r, struct complaint *c)
{
    char *kind = text, *at = strchr(text, ':'), *next, *value, legal[256];
    uint32_t given = 0;
    int word = 0, key = 0;

    if (at)
        *at++ = 0;
    if (!fault_parse_find(kind, WORDS(kinds), &word))
        return refuse(c, "'%s' is not a fault; known are %s", kind,
                      all_of(legal, sizeof legal, WORDS(kinds)));
    start(r, (enum shca_fault_kind)word);
    for (; at; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = 0;
        value = strchr(at, '=');
        if (value)
            *value++ = 0;
        if (!find_key(kind, at, r->kind, &key, c))
            return false;
        if (!value || !*value)
            return refuse(c, "%s: %s needs a value (%s=...)", kind, at, at);
        if (given & BIT(key))
            return refuse(c, "%s: %s is given twice", kind, at);
        given |= BIT(key);
        if (!fault_parse_take(r, key, at, value, c))
            return false;
    }
    return sensible(kind, r, given, c);
}

bool shca_fault_parse(const char *text, struct shca_fault_rules *out, char *why, size_t n)
{
    struct complaint c = {why, n};
    size_t at = 0, total = strlen(text);

    out->n = 0;
    if (total >= sizeof out->text)
        return refuse(&c, "the rules are longer than %zu characters", sizeof out->text - 1);
    memcpy(out->text, text, total + 1);
    while (at < total) {
        size_t blank = strspn(text + at, " ;"), length = strcspn(text + at + blank, ";");
        char rule[rule_max];

        at += blank;
        if (length == 0)
            break;
        if (length >= sizeof rule)
            return refuse(&c, "the rule '%.20s...' is longer than %d characters", text + at,
                          rule_max - 1);
        if (out->n == SHCA_FAULT_RULES)
            return refuse(&c, "more than %d rules", SHCA_FAULT_RULES);
        memcpy(rule, text + at, length);
        rule[length] = 0;
        if (!parse_rule(rule, &out->rule[out->n], &c))
            return false;
        out->rule[out->n].at = (uint32_t)at;
        out->rule[out->n++].length = (uint32_t)length;
        at += length;
    }
    return true;
}
