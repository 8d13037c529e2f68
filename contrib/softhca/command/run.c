/* SPDX-License-Identifier: BSD-3-Clause
 *
 * softhca run: sets the environment that puts a program on the software HCA, then runs the program.
 * Settings that the library would refuse are refused here, before the program runs. Owns the
 * environment of this process; one thread, no lock. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "contrib/softhca/fault/fault.h"
#include "contrib/softhca/support/softhca_settings.h"

/* As in env(1) and shells. */
enum {
    exit_cannot_run = 126,
    exit_not_found = 127,
};

struct wishes {
    const char *hcas, *ports, *link, *fabric, *down, *unplugged, *rate, *speed, *seed, *fault,
        *stats, *topology, *profile;
    bool only, replace;
};

/* ---- where the libraries are ---- */

static bool own_directory(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    char *slash;

    if (n <= 0)
        return false;
    path[n] = 0;
    slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = 0;
    return true;
}

/* Finds a library beside this program (%s in places stands for its directory) or where it was
 * installed. */
static bool find_library(const char *const *places, const char *installed, char out[PATH_MAX])
{
    char dir[PATH_MAX], candidate[PATH_MAX + 64];

    if (own_directory(dir, sizeof dir))
        for (; *places; places++) {
            snprintf(candidate, sizeof candidate, "%s/%s", dir, *places);
            if (realpath(candidate, out))
                return true;
        }
    return realpath(installed, out) != NULL;
}

/* Puts text in front of a list of paths in the environment. */
static int prepend(const char *name, const char *text, const char *separator)
{
    const char *old = getenv(name);
    char *list;
    int status;

    if (strpbrk(text, " :"))
        return log_error(EXIT_FAILED, "%s: a path with a space or a colon cannot stand in %s", text,
                         name);
    if (!old || !*old)
        return setenv(name, text, 1) == 0 ? 0 : log_error(EXIT_FAILED, "out of memory");
    if (asprintf(&list, "%s%s%s", text, separator, old) < 0)
        return log_error(EXIT_FAILED, "out of memory");
    status = setenv(name, list, 1);
    free(list);
    return status == 0 ? 0 : log_error(EXIT_FAILED, "out of memory");
}

static int use_preload(void)
{
    static const char *const places[] = {
        "libsofthca.so",                  /* the build tree */
        "../lib/trunkline/libsofthca.so", /* an installation, moved or not */
        NULL,
    };
    char path[PATH_MAX];

    if (!find_library(places, SHCA_PKGLIBDIR "/libsofthca.so", path))
        return log_error(EXIT_FAILED, "libsofthca.so is neither beside this program nor in %s",
                         SHCA_PKGLIBDIR);
    return prepend("LD_PRELOAD", path, ":");
}

static int use_replacement(void)
{
    static const char *const places[] = {
        "replace/libibverbs.so.1",
        "../lib/trunkline/softhca/libibverbs.so.1",
        NULL,
    };
    char path[PATH_MAX];

    if (!find_library(places, SHCA_PKGLIBDIR "/softhca/libibverbs.so.1", path))
        return log_error(
            EXIT_FAILED,
            "--replace: softhca's libibverbs.so.1 is neither beside this program nor in "
            "%s/softhca",
            SHCA_PKGLIBDIR);
    *strrchr(path, '/') = 0;
    return prepend("LD_LIBRARY_PATH", path, ":");
}

/* ---- the environment ---- */

static bool give(const char *name, const char *value)
{
    return !value || setenv(name, value, 1) == 0;
}

/* The program may run in another directory than this one. A name of the table goes before a file
 * that is called so. */
static bool give_profile(const char *profile)
{
    char path[PATH_MAX];
    bool is_file = profile && !shca_profile_find(profile, strlen(profile)) &&
                   access(profile, F_OK) == 0 && realpath(profile, path);

    return give("SOFTHCA_PROFILE", is_file ? path : profile);
}

static bool apply_wishes(const struct wishes *w)
{
    return give_profile(w->profile) && give("SOFTHCA_HCAS", w->hcas) &&
           give("SOFTHCA_PORTS", w->ports) && give("SOFTHCA_LINK", w->link) &&
           give("SOFTHCA_FABRIC", w->fabric) && give("SOFTHCA_DOWN", w->down) &&
           give("SOFTHCA_UNPLUGGED", w->unplugged) && give("SOFTHCA_RATE", w->rate) &&
           give("SOFTHCA_SPEED", w->speed) && give("SOFTHCA_SEED", w->seed) &&
           give("SOFTHCA_FAULT", w->fault) && give("SOFTHCA_STATS", w->stats) &&
           give("SOFTHCA_ONLY", w->only ? "1" : NULL) && give("HWLOC_XMLFILE", w->topology);
}

static int run_check(const struct wishes *w)
{
    struct shca_fault_rules rules;
    struct shca_config config;
    char why[512];

    if (shca_settings_parse(environ, &config, why, sizeof why) != 0)
        return log_error(EXIT_USAGE, "%s", why);
    if (config.fault && !shca_fault_parse(config.fault, &rules, why, sizeof why))
        return log_error(EXIT_USAGE, "SOFTHCA_FAULT: %s", why);
    if (w->topology && access(w->topology, R_OK) != 0)
        return log_error(EXIT_USAGE, "--topology %s: %s", w->topology, strerror(errno));
    return 0;
}

static int run_program(const struct subcommand *self, int argc, char **argv)
{
    struct wishes w = {0};
    const struct option_spec options[] = {
        {"profile", &w.profile, NULL, NULL},     {"hcas", &w.hcas, NULL, NULL},
        {"ports", &w.ports, NULL, NULL},         {"link", &w.link, NULL, NULL},
        {"fabric", &w.fabric, NULL, NULL},       {"down", &w.down, NULL, NULL},
        {"rate", &w.rate, NULL, NULL},           {"speed", &w.speed, NULL, NULL},
        {"unplugged", &w.unplugged, NULL, NULL}, {"seed", &w.seed, NULL, NULL},
        {"fault", &w.fault, NULL, NULL},         {"stats", &w.stats, NULL, NULL},
        {"topology", &w.topology, NULL, NULL},   {"only", NULL, &w.only, NULL},
        {"replace", NULL, &w.replace, NULL},     {0}};
    char **program;
    int status, n = options_read(self, options, true, argc, argv, &program);

    if (n < 0)
        return -1 - n;
    if (n == 0)
        return log_error(EXIT_USAGE, "run: a program is missing; see softhca run --help");
    if (!apply_wishes(&w))
        return log_error(EXIT_FAILED, "out of memory");
    status = run_check(&w);
    if (status == 0)
        status = w.replace ? use_replacement() : use_preload();
    if (status != 0)
        return status;
    execvp(program[0], program);
    return log_error(errno == ENOENT ? exit_not_found : exit_cannot_run, "cannot run %s: %s",
                     program[0], strerror(errno));
}

const struct subcommand subcommand_run = {
    "run",
    "usage: softhca run [options] [--] program [arguments]\n"
    "Runs a program on the software HCA.\n"
    "  --profile LIST    devices that report and behave like these: connectx-5,qedr; or a file\n"
    "                    of trunkline_info --bundle: the devices of another machine\n"
    "  --hcas N          number of HCAs, 1..16 (1)\n"
    "  --ports N         ports of each, 1..8 (1)\n"
    "  --link ib|roce    link layer (ib)\n"
    "  --fabric NAME     processes that give the same name see each other\n"
    "  --down LIST       softhcaN:P,...: ports that are down from the start\n"
    "  --unplugged LIST  the same for ports of this process alone\n"
    "  --rate LIST       MB/s of every port, or softhcaN:P=MB/s,...\n"
    "  --speed LIST      4xedr, or softhcaN:P=4xedr,...: what ports report\n"
    "  --seed N          seed of random choices; 0: none are made\n"
    "  --fault SPEC      rules by which the fabric misbehaves; see softhca-fault(7)\n"
    "  --only            hide the host's own devices\n"
    "  --replace         a libibverbs.so.1 in LD_LIBRARY_PATH instead of LD_PRELOAD\n"
    "  --stats FILE      append one line of counters at exit\n"
    "  --topology FILE   hwloc file of the machine to pretend (softhca topology)\n"
    "The exit status is the program's; 126 or 127 when it cannot be run.\n",
    run_program,
};
