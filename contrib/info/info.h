/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trunkline_info: what this library is, and what it would do on this host. Each file prints one
 * section; findings are problems that a user or an administrator should know or fix. One process,
 * no lock. */
#ifndef TRUNKLINE_INFO_H
#define TRUNKLINE_INFO_H

#include <stdbool.h>
#include <stddef.h>

enum info_grade {
    INFO_GOOD,
    INFO_ADVICE, /* jobs run, but slower or with fewer diagnostics */
    INFO_WRONG   /* jobs of some kind fail */
};

void info_section(const char *title);

/* "name: value", in a column. */
void info_fact(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One sentence; for any grade but good it includes the remedy. */
void info_finding(enum info_grade grade, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* With --check, facts are omitted and findings are printed at once; otherwise the findings that are
 * not good are printed at the end. */
void info_only_findings(void);
/* Sends facts and findings to the bundle, which writes its own section headers. */
void info_in_bundle(void);
void info_print_findings(void);

/* The number of findings of that grade. */
unsigned info_findings(enum info_grade grade);

void info_build(void);

/* False: a value is illegal; an error was printed. */
bool info_read_settings(void);

/* Whether any section so far has read an illegal value. */
bool info_refused_settings(void);

/* Reads the settings; with `all` also prints those at their defaults. */
void info_settings(bool all);

/* Once the settings are read. */
void info_devices(void);
void info_limits(void);

/* Prints which devices of a host its ranks would get. Arguments are words of the command line,
 * NULL: not given; without a file the host is this one. Returns the exit status. */
/* Behind info_devices(). */
void info_accelerators(void);
bool info_port_is_used(const char *device, int port);

struct info_topology {
    const char *file, *ranks, *bind, *rails;
};
int info_topology(const struct info_topology *wanted);

/* Runs a job of two processes and prints how its puts, gets and messages of each size travel; with
 * `size` those of that size only. Returns the exit status. */
int info_path(const char *size);

/* In the processes of that job. */
int info_path_job(int argc, char **argv);

/* Writes all of it, and the results of tests of all ports, to a file or, NULL, standard output.
 * Returns the exit status. */
struct info_bundle {
    const char *file, *seconds; /* the time limit of a test; NULL: the default */
    bool keeps_host;
};
int info_bundle(const struct info_bundle *wanted);

/* In the processes of such a test. */
int info_bundle_job(int argc, char **argv);

/* Runs in the processes of a job that shows how the library uses its device (doc/devices.md). */
int info_device_job(int argc, char **argv);

/* Finds this program and the launcher, which is next to it in an installation and elsewhere in the
 * build tree. False: this program can't be found. */
bool info_programs(char *own, char *launcher, size_t size);

/* Reads a line of a kernel file, without the newline; false: it can't be read. */
bool info_read_line(const char *path, char *line, size_t size);

#endif
