/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The softhca command: runs programs on the software HCA and controls live fabrics. This file
 * selects the subcommand. Owns nothing. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "command.h"

static const char help[] = "usage: softhca SUBCOMMAND [options] [arguments]\n"
                           "  run        run a program on the software HCA\n"
                           "  list       processes of a fabric, their queue pairs and rates\n"
                           "  link       take a port down, or up again\n"
                           "  plug       pull the cable of a port out of processes, or put it in\n"
                           "  gid        remove an address of a port of processes, or add it\n"
                           "  fault      set, clear or list faults of running processes\n"
                           "  fatal      break an HCA\n"
                           "  topology   make an hwloc file with the HCAs at the places you name\n"
                           "  --help, --version\n"
                           "More: softhca SUBCOMMAND --help, and softhca(1).\n";

static const struct subcommand *const subcommands[] = {
    &subcommand_run, &subcommand_list,  &subcommand_link,  &subcommand_plug,
    &subcommand_gid, &subcommand_fault, &subcommand_fatal, &subcommand_topology,
};

int log_error(int status, const char *format, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    fprintf(stderr, "softhca: %s\n", text);
    return status;
}

/* Fails if output could not be written. */
static int flushed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    return log_error(EXIT_FAILED, "cannot write the output");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return log_error(EXIT_USAGE, "a subcommand is missing; see softhca --help");
    if (strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return flushed(0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("softhca (trunkline) " PACKAGE_VERSION);
        return flushed(0);
    }
    for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; i++)
        if (strcmp(argv[1], subcommands[i]->name) == 0)
            return flushed(subcommands[i]->run(subcommands[i], argc - 1, argv + 1));
    return log_error(
        EXIT_USAGE,
        "'%s' is none of run, list, link, plug, gid, fault, fatal, topology; see softhca --help",
        argv[1]);
}
