/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Texts of a form: one checker for each, which the launcher, each process and trunkline_info apply
 * when they start, even to settings that the job does not use. Pure, without hwloc and devices:
 * whether a name exists on this host is not checked here. No state. */
#include "config.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/number.h"
#include "common/signal_name.h"
#include "settings/settings.h"
#include "stats/table.h"

/* `why` gets the text that follows NAME='text' in the line. */
typedef bool tk_form_checker(const char *text, char *why, size_t size);

static bool form_refuse(char *why, size_t size, const char *complaint)
{
    snprintf(why, size, "%s", complaint);
    return false;
}

/* ---- Ports ---- */

static bool is_port_entry(const char *entry, size_t length)
{
    size_t name = strcspn(entry, "+:");
    if (name == 0 || name > length)
        return length == 0; /* "a++b": an empty entry is ignored */
    if (name == length)
        return true;
    int digits = 0;
    for (const char *at = entry + name + 1; at < entry + length; at++) {
        if (isdigit((unsigned char)*at))
            digits++;
        else if (*at != ',' || !digits)
            return false;
        else
            digits = 0;
    }
    return digits > 0;
}

static bool form_is_ports(const char *text, char *why, size_t size)
{
    for (const char *at = text; *at;) {
        size_t entry = strcspn(at, "+");
        if (!is_port_entry(at, entry)) {
            snprintf(why, size, ": '%.*s' is not device or device:port,port", (int)entry, at);
            return false;
        }
        at += entry + (at[entry] == '+');
    }
    return true;
}

static bool is_small_number(const char *text, size_t length, int least)
{
    enum { max = 255, digits_max = 3 };
    int value = 0;
    if (length == 0 || length > digits_max)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        value = 10 * value + text[i] - '0';
    }
    return value >= least && value <= max;
}

static bool is_gid_entry(const char *text, size_t length)
{
    const char *equals = memchr(text, '=', length);
    const char *colon = equals ? memchr(text, ':', (size_t)(equals - text)) : NULL;
    return colon && colon != text && is_small_number(colon + 1, (size_t)(equals - colon - 1), 1) &&
           is_small_number(equals + 1, length - (size_t)(equals + 1 - text), 0);
}

/* -1 was the default once. */
static bool form_is_gid_index(const char *text, char *why, size_t size)
{
    if (!strcmp(text, "-1") || is_small_number(text, strlen(text), 0))
        return true;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, ",");
        if (!is_gid_entry(at, length)) {
            snprintf(why, size,
                     ": '%.*s' is neither an index from 0 to 255, for all ports, nor "
                     "device:port=index",
                     (int)length, at);
            return false;
        }
        at += length + (at[length] == ',');
    }
    return true;
}

static bool is_cache(const char *text)
{
    if (toupper((unsigned char)*text) != 'L' || text[1] < '1' || text[1] > '5')
        return false;
    text += 2;
    if (*text && strchr("dDiIuU", *text))
        text++;
    return !*text || !strncasecmp(text, "cache", strlen(text));
}

/* hwloc's names: two letters are enough, and a number may follow. Objects without CPUs of their
 * own, such as devices of the operating system, are not parts. */
static bool is_part(const char *text)
{
    static const char *const names[] = {"machine", "package", "socket", "numanode", "node",
                                        "die",     "group",   "core",   "pu"};
    size_t letters = 0;
    while (isalpha((unsigned char)text[letters]))
        letters++;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (letters >= 2 && letters <= strlen(names[i]) && !strncasecmp(text, names[i], letters))
            return !text[letters + strspn(text + letters, "0123456789")];
    return is_cache(text);
}

bool tk_parse_auto(const char *text, uint32_t *rails)
{
    enum { rails_max = 64 }; /* as GASNET_NUM_QPS */
    int64_t number;
    *rails = 1;
    if (strncasecmp(text, "auto", 4) != 0)
        return false;
    text += 4;
    if (!strcasecmp(text, ":all"))
        *rails = UINT32_MAX;
    else if (*text == ':' && tk_number_whole(text + 1, 0, &number) && number > 0)
        *rails = number <= rails_max ? (uint32_t)number : 0;
    else if (*text == ':')
        *rails = 0;
    return true;
}

static bool key_kind(struct tk_port_key *key)
{
    static const char *const names[] = {"None", "JRank", "HRank", "NRank"};
    for (int kind = TK_KEY_NONE; kind < TK_KEY_PART; kind++)
        if (!strcasecmp(key->part, names[kind])) {
            key->kind = (enum tk_port_key_kind)kind;
            return true;
        }
    key->kind = TK_KEY_PART;
    return is_part(key->part);
}

static bool key_operand(const char *text, uint32_t *operand)
{
    char *end;
    text += strspn(text, " \t");
    unsigned long value = isdigit((unsigned char)*text) ? strtoul(text, &end, 0) : 0;
    if (value == 0 || value > INT32_MAX)
        return false;
    *operand = (uint32_t)value;
    return !end[strspn(end, " \t")];
}

bool tk_parse_port_key(const char *text, struct tk_port_key *key)
{
    size_t type = strcspn(text, "/%"), length = type;
    while (length > 0 && strchr(" \t", text[length - 1]))
        length--;
    *key = (struct tk_port_key){.operation = text[type]};
    if (length >= sizeof(key->part))
        return false;
    memcpy(key->part, text, length);
    return key_kind(key) && (!key->operation || key_operand(text + type + 1, &key->operand));
}

static bool form_is_part(const char *text, char *why, size_t size)
{
    struct tk_port_key key;
    uint32_t rails;
    if (tk_parse_auto(text, &rails))
        return rails > 0 || form_refuse(why, size,
                                        ": behind auto: is neither all nor a number of ports from "
                                        "1 to 64; auto alone is one port for each rank");
    return tk_parse_port_key(text, &key) ||
           form_refuse(why, size,
                       " is no type of hwloc's for parts of a machine: Package (or Socket), "
                       "NUMANode, Group, L3Cache, L2Cache, L1Cache, Core, PU; nor is it JRank, "
                       "HRank, NRank, one of these with / or % and a number, None or auto");
}

/* ---- Memory ---- */

bool tk_parse_share(const char *text, double *value)
{
    char top[64];
    double bottom = 1;
    size_t length = strcspn(text, "/");
    if (length == 0 || length >= sizeof(top))
        return false;
    memcpy(top, text, length);
    top[length] = 0;
    if (tk_parse_size(top, "B", value) != TK_OK)
        return false;
    if (text[length] && tk_parse_size(text + length + 1, "B", &bottom) != TK_OK)
        return false;
    *value /= bottom;
    return *value >= 0 && *value < 0x1p62;
}

static bool form_is_share(const char *text, char *why, size_t size)
{
    double value;
    return tk_parse_share(text, &value) ||
           form_refuse(why, size,
                       " is neither a fraction below 1 (as 0.5 or 5/8) nor a number from 1 "
                       "(with K, M, G or T)");
}

bool tk_parse_segsize(const char *text, struct tk_segsize *size)
{
    char number[64];
    size_t length = strcspn(text, "/");
    const char *share = text + length;
    size->is_per_host = !strcasecmp(share, "/H");
    if ((*share && !size->is_per_host && strcasecmp(share, "/P")) || length == 0 ||
        length >= sizeof(number))
        return false;
    memcpy(number, text, length);
    number[length] = 0;
    size->has_unit = isalpha((unsigned char)number[length - 1]);
    return tk_parse_size(number, "B", &size->bytes) == TK_OK && size->bytes > 0 &&
           size->bytes < 0x1p62;
}

static bool form_is_segsize(const char *text, char *why, size_t size)
{
    struct tk_segsize found;
    return tk_parse_segsize(text, &found) ||
           form_refuse(why, size,
                       " is not a size (as 512M, 2GB) or a fraction (as 0.85), followed by "
                       "nothing, /P or /H");
}

/* Names for "not a number" that users know from other tools. */
bool tk_parse_pattern(const char *text, uint64_t *value)
{
    int64_t number;
    *value = UINT64_C(0x7ff7ffffffffffff); /* a signalling NaN */
    if (!strcasecmp(text, "NAN") || !strcasecmp(text, "sNAN") || !strcasecmp(text, "qNAN"))
        return true;
    bool is_number = tk_number_whole(text, 0, &number);
    *value = (uint64_t)number;
    return is_number;
}

static bool form_is_pattern(const char *text, char *why, size_t size)
{
    uint64_t value;
    return tk_parse_pattern(text, &value) ||
           form_refuse(why, size, " is not a 64-bit integer (decimal or 0x...) or NAN");
}

static bool form_is_bits(const char *text, char *why, size_t size)
{
    int64_t value;
    return tk_number_whole(text, 0, &value) ||
           form_refuse(why, size, " is not a whole number of 64 bits, decimal or 0x...");
}

/* ---- Ranks, letters, signals ---- */

static bool form_is_ranks(const char *text, char *why, size_t size)
{
    return tk_number_is_ranges(text) ||
           form_refuse(why, size, ": not ranks in the form 0,3-5, or * for all");
}

static bool form_is_letters(const char *text, char *why, size_t size)
{
    uint32_t mask;
    return (tk_stats_mask_parse(text, &mask) && (mask || *text == '^')) ||
           form_refuse(why, size,
                       ": not letters of trunkline-counters(7), with ^ in front for all but these");
}

static bool is_signal(const char *word, size_t length)
{
    char *end;
    if (isdigit((unsigned char)*word)) {
        unsigned long number = strtoul(word, &end, 10);
        return end == word + length && number > 0 && number < NSIG;
    }
    if (length > 3 && !strncmp(word, "SIG", 3))
        word += 3, length -= 3;
    for (int number = 1; number < NSIG; number++) {
        const char *name = sigabbrev_np(number);
        if (name && strlen(name) == length && !strncmp(name, word, length))
            return true;
    }
    return false;
}

static bool form_is_signals(const char *text, char *why, size_t size)
{
    for (size_t length; *text; text += length + (text[length] != 0)) {
        length = strcspn(text, ", ");
        if (length == 0 || (length == 1 && *text == '*') || is_signal(text, length))
            continue;
        snprintf(why, size,
                 ": %.*s is not a signal (a name as SIGHUP or HUP, a number, or * for all)",
                 (int)length, text);
        return false;
    }
    return true;
}

static bool form_is_signal(const char *text, char *why, size_t size)
{
    int number = tk_signal_number(text);
    if (number == SIGKILL || number == SIGSTOP)
        return form_refuse(why, size, " can't be caught: give another signal, as SIGUSR1");
    return number || form_refuse(why, size, " is not a signal: a name as SIGUSR1 or a number");
}

/* ---- Words ---- */

static const char *const algorithms[] = {
#define TK_ALGORITHM(kind, kind_name, name, next, least, ranks_min) kind_name "=" name,
#include "settings/coll_algorithms.def"
#undef TK_ALGORITHM
    "levels=no"};
enum { algorithm_count = sizeof(algorithms) / sizeof(algorithms[0]) };

static bool is_algorithm(const char *word, size_t length)
{
    for (size_t i = 0; i < algorithm_count; i++)
        if (strlen(algorithms[i]) == length && !strncmp(algorithms[i], word, length))
            return true;
    return false;
}

static bool form_is_algorithms(const char *text, char *why, size_t size)
{
    for (size_t length; *text; text += length + (text[length] != 0)) {
        length = strcspn(text, ",");
        if (length == 0 || is_algorithm(text, length))
            continue;
        size_t at = (size_t)snprintf(why, size, ": '%.*s' is none of ", (int)length, text);
        for (size_t i = 0; i < algorithm_count && at < size; i++)
            at += (size_t)snprintf(why + at, size - at, "%s%s", i ? ", " : "", algorithms[i]);
        return false;
    }
    return true;
}

/* The name is resolved by rank 0, when it connects. */
static bool form_is_address(const char *text, char *why, size_t size)
{
    const char *end = *text == '[' ? strstr(text, "]:") : strchr(text, ':');
    const char *port = end ? end + (*text == '[' ? 2 : 1) : "";
    size_t digits = strspn(port, "0123456789");
    long number = strtol(port, NULL, 10);
    return (end && end > text && digits > 0 && digits <= 5 && !port[digits] && number >= 1 &&
            number <= 65535) ||
           form_refuse(why, size, " is not host:port, with a port from 1 to 65535");
}

/* A client may have methods with names of its own, which only its processes know. */
static bool form_is_names(const char *text, char *why, size_t size)
{
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_-, ", *text))
            return form_refuse(why, size, " is not a list of names as USER,GDB,EXECINFO");
    return true;
}

static bool form_is_rate(const char *text, char *why, size_t size)
{
    int64_t hz;
    return !strcasecmp(text, "walltime") || !strcasecmp(text, "cpuinfo") ||
           (tk_number_whole(text, 0, &hz) && hz >= 1000000) ||
           form_refuse(why, size, " is not walltime, cpuinfo or a rate from 1000000 Hz");
}

static bool form_is_tolerance(const char *text, char *why, size_t size)
{
    double value;
    return (tk_number_real(text, &value) && value >= 0 && value <= 1) ||
           form_refuse(why, size, " is not a number from 0 to 1 (0: no check)");
}

static bool form_is_spawner(const char *text, char *why, size_t size)
{
    return !strcmp(text, "ssh") || !strcmp(text, "local") || !strcmp(text, "mpi") ||
           !strcmp(text, "pmi") ||
           form_refuse(why, size, ": unknown spawner; there are ssh, local, mpi and pmi");
}

static tk_form_checker *const checkers[] = {
    [TK_FORM_ANY] = NULL,
    [TK_FORM_PORTS] = form_is_ports,
    [TK_FORM_PART] = form_is_part,
    [TK_FORM_GID_INDEX] = form_is_gid_index,
    [TK_FORM_SHARE] = form_is_share,
    [TK_FORM_SEGSIZE] = form_is_segsize,
    [TK_FORM_RANKS] = form_is_ranks,
    [TK_FORM_LETTERS] = form_is_letters,
    [TK_FORM_SIGNALS] = form_is_signals,
    [TK_FORM_SIGNAL] = form_is_signal,
    [TK_FORM_PATTERN] = form_is_pattern,
    [TK_FORM_BITS] = form_is_bits,
    [TK_FORM_ALGORITHMS] = form_is_algorithms,
    [TK_FORM_ADDRESS] = form_is_address,
    [TK_FORM_NAMES] = form_is_names,
    [TK_FORM_RATE] = form_is_rate,
    [TK_FORM_TOLERANCE] = form_is_tolerance,
    [TK_FORM_SPAWNER] = form_is_spawner,
};

bool tk_form_is(enum tk_form form, const char *text, char *why, size_t size)
{
    return !checkers[form] || checkers[form](text, why, size);
}
