/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of gasnetrun_ibv. Pure: reads argv, changes nothing else. */
#ifndef TRUNKLINE_SPAWNER_OPTIONS_H
#define TRUNKLINE_SPAWNER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum options_action {
    ACTION_RUN,
    ACTION_HELP,
    ACTION_VERSION,
    ACTION_SETTINGS,
    ACTION_SETTINGS_MAN,
    ACTION_COUNTERS,
    ACTION_COUNTERS_MAN,
    ACTION_PLAN,
    ACTION_SIMULATE,
    ACTION_EXPLAIN,
    ACTION_TOP
};

enum options_bind { BIND_UNSET, BIND_NONE, BIND_CORE, BIND_SOCKET };

struct options {
    enum options_action wish;
    uint32_t ranks;
    uint32_t hosts; /* 0 when -N was not given */
    uint32_t cpus;  /* -c, 0 when not given */
    enum options_bind bind;
    int verbose; /* how often -v was given; -t and -k imply one */
    bool dry_run, keep, label;
    bool no_input;         /* --stdin none */
    const char *exported;  /* -E A,B; NULL when not given */
    const char *spawner;   /* NULL when not given */
    const char *host_list; /* -H; NULL when not given */
    const char *nodefile;  /* NULL when not given */
    const char *plan;      /* --plan=WHAT; NULL: --plan alone, or not given */
    const char *simulate;  /* --simulate=WORDS; NULL: --simulate alone, or not given */
    const char *job;       /* --explain JOB, --top JOB; NULL: the only one */
    const char *report;    /* --report FILE; NULL when not given */
    bool once, json, web;  /* of --top; json also of --simulate */
    uint16_t port;         /* of --web; 0: any */
    char **command;        /* program and its arguments */
};

/* More ranks than a pid can number are a typing error. */
enum { OPTIONS_RANKS_MAX = 1 << 20 };

/* Fills `o`. On a wrong command line returns false with one sentence in `why`. */
bool options_parse(struct options *o, char **argv, char *why, size_t size);

extern const char options_help[];

#endif
