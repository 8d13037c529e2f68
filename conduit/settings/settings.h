/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings: the environment of the job, read once at start-up, checked before anything is
 * allocated. The only place of the library that reads the environment. No lock: written once by
 * tk_settings_load(), read-only afterwards. */
#ifndef TK_SETTINGS_H
#define TK_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

/* The largest payload beside a header of 88 bytes in a message of the maximum size, or of the
 * largest size that the manual's setting allows; smaller messages (--with-ibv-max-medium) lower
 * it. */
enum { TK_PACKEDLONG_MAX = (TK_MAX_MEDIUM > 65536 ? TK_MAX_MEDIUM : 65536) - 88 };

struct tk_settings {
#define TK_INT(field, name, def, min, max, unit, scope, help)  int64_t field;
#define TK_REAL(field, name, def, min, max, unit, scope, help) double field;
#define TK_SIZE(field, name, def, min, max, unit, scope, help) uint64_t field;
#define TK_BOOL(field, name, def, scope, help)                 bool field;
#define TK_TEXT(field, name, def, scope, help)                 const char *field;
#define TK_FORM(field, name, def, form, scope, help)           const char *field;
#define TK_CHOICE(field, name, def, words, scope, help)        const char *field;
#define TK_ONE_OF(field, name, def, words, unit, scope, help)  int64_t field;
#define TK_IGNORED(name, help)
#define TK_RETIRED(name, help)
#define TK_TOOLS(name, def, form, help)
#define TK_SWITCH(name, def, help)
#include "settings/settings.def"
#undef TK_INT
#undef TK_REAL
#undef TK_SIZE
#undef TK_BOOL
#undef TK_TEXT
#undef TK_FORM
#undef TK_CHOICE
#undef TK_ONE_OF
#undef TK_IGNORED
#undef TK_RETIRED
#undef TK_TOOLS
#undef TK_SWITCH
};

enum tk_setting_type {
    TK_SETTING_INT,
    TK_SETTING_REAL,
    TK_SETTING_SIZE,
    TK_SETTING_BOOL,
    TK_SETTING_TEXT,
    TK_SETTING_CHOICE,
    TK_SETTING_IGNORED,
    TK_SETTING_RETIRED, /* as IGNORED, with a warning: clients expect one */
    TK_SETTING_TOOLS,   /* read by the tools themselves, when they need it */
    TK_SETTING_SWITCH   /* as TOOLS, but it must be a truth value */
};

enum tk_setting_scope { TK_SCOPE_JOB, TK_SCOPE_RANK, TK_SCOPE_LAUNCHER };

/* The forms of texts; settings_forms.c has a checker for each. */
enum tk_form {
    TK_FORM_ANY,
    TK_FORM_PORTS,      /* device[:port,port]+device... */
    TK_FORM_PART,       /* hwloc's name of a part of a machine, or auto */
    TK_FORM_GID_INDEX,  /* a number, or device:port=number,... */
    TK_FORM_SHARE,      /* a number, or a fraction of the available amount */
    TK_FORM_SEGSIZE,    /* a size or a fraction, /P or /H */
    TK_FORM_RANKS,      /* 0,3-5, or * */
    TK_FORM_LETTERS,    /* of trunkline-counters(7) */
    TK_FORM_SIGNALS,    /* names or numbers, or * */
    TK_FORM_SIGNAL,     /* one that can be caught */
    TK_FORM_PATTERN,    /* 64 bits, or NAN */
    TK_FORM_BITS,       /* 64 bits */
    TK_FORM_ALGORITHMS, /* kind=algorithm,... */
    TK_FORM_ADDRESS,    /* host:port */
    TK_FORM_NAMES,      /* words, separated by commas */
    TK_FORM_RATE,       /* walltime, cpuinfo or Hz */
    TK_FORM_TOLERANCE,  /* 0 to 1 */
    TK_FORM_SPAWNER
};

/* One row of the table that settings.def makes. Numbers are doubles: every legal value is below
 * 2^53. */
struct tk_setting {
    const char *name;
    enum tk_setting_type type;
    size_t offset; /* in struct tk_settings */
    double def, min, max;
    const char *text_def; /* TEXT, CHOICE */
    const char *words;    /* CHOICE, and an INT with a list of values */
    const char *unit;
    enum tk_setting_scope scope;
    const char *help;
    enum tk_form form; /* TEXT, TOOLS */
};

extern const struct tk_setting tk_setting_table[];
extern const size_t tk_setting_count;

/* The values in force; valid after tk_settings_load() returned TK_OK. */
extern struct tk_settings tk_settings;

/* Reads and checks the whole environment, including settings that are not used here; unset ones get
 * their defaults. Calls refuse() with one line for each bad value and returns TK_FAIL if there was
 * one; that setting then has its default. `env` is a NULL-terminated array of NAME=value, as
 * environ. */
enum tk_status tk_settings_parse(char *const *env, struct tk_settings *out,
                                 void (*refuse)(const char *line));

/* The same into tk_settings, with the lines as errors. */
enum tk_status tk_settings_load(char *const *env);

/* The value in an entry NAME=value of an environment; NULL: the entry has another name. */
static inline const char *tk_value_in(const char *entry, const char *name)
{
    while (*name && *entry == *name)
        entry++, name++;
    return *name || *entry != '=' ? NULL : entry + 1;
}

/* The setting that an entry NAME=value names; NULL: none. Each rank asks for its whole environment
 * at its start, so entries that have not the beginning of all names cost next to nothing. */
const struct tk_setting *tk_setting_in(const char *entry);

/* The value without surrounding blanks; the length may be 0. */
const char *tk_setting_trim(const char *value, size_t *length);

/* Sets the field of one setting to its default. */
void tk_setting_reset(const struct tk_setting *setting, struct tk_settings *out);

/* Parses one value, trimmed, into *out; an empty one changes nothing. Texts are copied and never
 * freed. On error writes a sentence without newline to `why`. */
enum tk_status tk_setting_parse(const struct tk_setting *setting, const char *value,
                                struct tk_settings *out, char *why, size_t why_size);

enum { tk_setting_why_max = 1024 /* of the lines about a value; the longest lists algorithms */ };

/* Whether the text has this form. If not, `why` gets the rest of a line that begins with
 * NAME='text'. */
bool tk_form_is(enum tk_form form, const char *text, char *why, size_t why_size);

/* Is this the name, or NAME=value, of GASNET_IBV_PORTS_<n>, or of numbers with _ between? */
bool tk_setting_is_numbered(const char *name);

/* ---- Parsers of values of special forms ---- */

/* GASNET_IBV_PORTS_TYPE: auto, in upper or lower case, and the number of rails: 1, N for auto:N,
 * UINT32_MAX for auto:all; 0 if something else follows the colon. Any other text after "auto" is
 * ignored. */
bool tk_parse_auto(const char *text, uint32_t *rails);

/* The same without auto: which numbers make GASNET_IBV_PORTS_<n>_<n>... of a rank. Behind the type
 * one operation may follow, "/ N" or "% N"; N as in C. False: it is neither. */
enum tk_port_key_kind {
    TK_KEY_NONE, /* GASNET_IBV_PORTS alone */
    TK_KEY_JOB_RANK,
    TK_KEY_HOST_RANK,
    TK_KEY_NBRHD_RANK,
    TK_KEY_PART /* of the machine, by hwloc's name */
};
struct tk_port_key {
    enum tk_port_key_kind kind;
    char part[24];
    char operation; /* '/' or '%'; 0: none */
    uint32_t operand;
};
bool tk_parse_port_key(const char *text, struct tk_port_key *key);

/* A number or a quotient of two, with suffixes: a value below 1 is a fraction of the available
 * amount. */
bool tk_parse_share(const char *text, double *value);

struct tk_segsize {
    double bytes; /* without a unit and up to 1: a fraction of the host's memory */
    bool has_unit, is_per_host;
};
bool tk_parse_segsize(const char *text, struct tk_segsize *size);

/* The pattern for new buffers: 64 bits, or NAN. */
bool tk_parse_pattern(const char *text, uint64_t *value);

/* A finite decimal number at the beginning of `text`; *end is set behind it. */
bool tk_parse_decimal(const char *text, double *value, char **end);

/* "2.5M", "64K", "1GiB" or a number in `unit` to bytes. */
enum tk_status tk_parse_size(const char *text, const char *unit, double *bytes);

/* Calls report() once for each unknown GASNET_* name in env, with the nearest known name (or NULL).
 */
void tk_settings_unknown(char *const *env, void (*report)(const char *name, const char *nearest));

/* Calls report() for each setting with a value that this library knows of but does not support any
 * more. */
void tk_settings_retired(void (*report)(const char *name, const char *help));

/* Hash of all job-wide values: equal on all ranks of a healthy job. */
uint64_t tk_settings_job_hash(void);

/* Text of the job-wide values, one NAME=value a line, to show a user which one differs. Returns
 * malloc'ed memory. */
char *tk_settings_job_text(void);

/* The settings in force that differ from their defaults, as members of an object of JSON
 * ("NAME":"value",...). Those that the tools read by themselves are left out, and those that
 * gasnetrun_ibv --report set. Returns malloc'ed memory, or NULL. */
char *tk_settings_changed_json(void);

/* Is it a file in the folder that gasnetrun_ibv --report collects files of this job in? */
bool tk_setting_is_of_launcher(const char *value);

/* Whether this setting is unset in the environment of the job. An empty value counts as unset. */
bool tk_setting_is_default(const struct tk_setting *setting);

/* Formats the current value of one setting; for a switch of the tools its default, for their other
 * settings nothing. */
void tk_setting_format(const struct tk_setting *setting, const struct tk_settings *values,
                       char *out, size_t size);

/* The table as text: name, default, range, help, by groups (gasnetrun_ibv --settings), and the same
 * as the SETTINGS section of trunkline-settings(7). Depend on settings.def alone. */
void tk_settings_print(FILE *out);
void tk_settings_print_man(FILE *out);

/* ---- The environment ---- */

/* Saves the environment that this process was started with, which stays in force: see tk_getenv().
 * Called once at start-up; without memory or /proc only the current environment is used. */
void tk_environment_open(void);

/* The job's environment, first match first: what the process was started with, then what the
 * client added. NULL-terminated, NAME=value; valid until the client changes its environment. */
char *const *tk_environment(void);

/* The bytes that this list takes for that many variables. */
static inline size_t tk_environment_bytes(size_t count)
{
    return (count + 1) * sizeof(char *);
}

/* Value of a variable, NULL if unset. A client that calls setenv() on one rank cannot change
 * variables that the spawner gave to all ranks; names that the spawner did not set are the
 * client's. */
const char *tk_getenv(const char *name);

/* From now on tk_getenv_decoded() replaces escapes such as %0A in variables that the process was
 * started with. Called once at start-up. */
void tk_environment_decode(void);

/* The value that a client gets when it asks for a variable. */
const char *tk_getenv_decoded(const char *name);

#endif
