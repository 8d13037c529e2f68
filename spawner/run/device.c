/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing the device; see device.h. Changes this process's environment, before anything is
 * started. */
#include "config.h"

#include "device.h"
#include "probe.h"
#include "program.h"
#include "contrib/softhca/fault/fault.h"
#include "contrib/softhca/support/softhca_settings.h"
#include "spawner/util/log.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The name under which a launcher remembers that a fabric's name is its own and not the user's: a
 * job started by a rank of another job must not join that one's fabric. */
#define OWN_FABRIC "TRUNKLINE_FABRIC"

/* Where settings for the ranks go: to our own environment, which local ranks inherit, or, for ranks
 * on other hosts, to a list. */
enum { SETTINGS_MAX = 8 };
static char *listed[SETTINGS_MAX + 1];
static bool lists_settings;

static void device_set(const char *name, const char *value)
{
    size_t used = 0, size = strlen(name) + strlen(value) + 2;

    if (!lists_settings) {
        setenv(name, value, 1);
        return;
    }
    while (listed[used])
        used++;
    if (used < SETTINGS_MAX && (listed[used] = malloc(size)))
        snprintf(listed[used], size, "%s=%s", name, value);
}

static bool find_library(char *path, size_t size)
{
    static const char *const places[] = {
        "%s/../contrib/softhca/libsofthca.so", /* the build tree */
        "%s/../lib/trunkline/libsofthca.so",   /* an installation, moved or not */
    };
    char dir[PATH_MAX], candidate[PATH_MAX + 64];
    const char *named = getenv("TRUNKLINE_SOFTHCA_LIB");

    if (named && *named)
        return realpath(named, path) != NULL;
    if (program_own_directory(dir, sizeof(dir)))
        for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
            snprintf(candidate, sizeof(candidate), places[i], dir);
            if (realpath(candidate, path))
                return true;
        }
    (void)size;
    return realpath(TRUNKLINE_PKGLIBDIR "/libsofthca.so", path) != NULL;
}

static int no_library(void)
{
    const char *named = getenv("TRUNKLINE_SOFTHCA_LIB");
    if (named && *named)
        log_error("TRUNKLINE_SOFTHCA_LIB=%s: no such file", named);
    else
        log_error("no RDMA port to use: libsofthca.so is neither beside this launcher nor in %s "
                  "(TRUNKLINE_SOFTHCA_LIB names another place)",
                  TRUNKLINE_PKGLIBDIR);
    return EXIT_RUNTIME;
}

static bool is_preloaded(const char *list, const char *library)
{
    const char *at = list ? strstr(list, library) : NULL;
    return at != NULL;
}

/* A program built with the address sanitizer refuses to start when another library is preloaded
 * before the sanitizer's own, because that one could take malloc() from it. Softhca takes none of
 * the functions that the sanitizer intercepts, so the order does not matter. */
static void allow_sanitizer(void)
{
    static const char wish[] = "verify_asan_link_order=0";
    const char *old = getenv("ASAN_OPTIONS");
    char list[1024];

    if (old && strstr(old, "verify_asan_link_order"))
        return;
    if ((size_t)snprintf(list, sizeof(list), "%s%s%s", wish, old && *old ? ":" : "",
                         old ? old : "") < sizeof(list))
        device_set("ASAN_OPTIONS", list);
}

static int preload(const char *library)
{
    const char *old = getenv("LD_PRELOAD");
    if (strpbrk(library, " :")) {
        log_error(
            "%s: the dynamic linker cannot preload a path with a blank or colon; copy it and set "
            "TRUNKLINE_SOFTHCA_LIB",
            library);
        return EXIT_RUNTIME;
    }
    if (is_preloaded(old, library))
        return 0;
    size_t size = strlen(library) + (old ? strlen(old) : 0) + 2;
    char *list = malloc(size);
    if (!list) {
        log_error("out of memory for LD_PRELOAD");
        return EXIT_RUNTIME;
    }
    snprintf(list, size, "%s%s%s", library, old && *old ? ":" : "", old ? old : "");
    device_set("LD_PRELOAD", list);
    free(list);
    allow_sanitizer();
    return 0;
}

/* One fabric per job, unless the user wants to join a certain one. */
static void name_fabric(const char *job)
{
    const char *fabric = getenv("SOFTHCA_FABRIC"), *own = getenv(OWN_FABRIC);
    if (fabric && *fabric && !(own && !strcmp(own, fabric)))
        return;
    device_set("SOFTHCA_FABRIC", job);
    device_set(OWN_FABRIC, job);
}

/* Checked here, because each rank would print the same error. */
static bool has_good_settings(void)
{
    static struct shca_config config;
    static struct shca_fault_rules rules;
    char why[400];
    if (shca_settings_parse(environ, &config, why, sizeof(why)) != 0)
        log_error("softhca: %s", why);
    else if (config.fault && !shca_fault_parse(config.fault, &rules, why, sizeof(why)))
        log_error("softhca: SOFTHCA_FAULT: %s", why);
    else
        return true;
    return false;
}

static int use_softhca(const char *job)
{
    char library[PATH_MAX];
    if (!has_good_settings())
        return EXIT_USAGE;
    if (!find_library(library, sizeof(library)))
        return no_library();
    name_fabric(job);
    return preload(library);
}

static int device_refuse(void)
{
    log_error("no active RDMA port, and GASNET_SOFTHCA=never forbids the software one");
    return EXIT_RUNTIME;
}

/* Ranks of one host share memory unless the user sets a limit. */
static bool share_memory(const struct job *job, const struct tk_settings *s)
{
    return job->host_count <= 1 &&
           (s->supernode_maxsize == 0 || s->supernode_maxsize >= job->ranks);
}

/* Ranks that share memory need no port, but a program may open one by itself (trunkline_rails.h, or
 * verbs). Loading softhca costs each process some 30 us and creates nothing on its fabric until a
 * device is opened. If softhca is not available here, that is an error only when a program opens a
 * device. */
static int provide_softhca(const char *job)
{
    char library[PATH_MAX];

    if (probe_is_software()) {
        name_fabric(job);
        return 0;
    }
    if (probe_sysfs_active_port() || !find_library(library, sizeof(library)) ||
        strpbrk(library, " :"))
        return 0;
    log_verbose(1, "softhca is there for programs that open an RDMA device");
    return use_softhca(job);
}

/* Printed only on a terminal, once and before the job prints anything: in a file or a pipe it would
 * mix with the program's lines. */
static void announce_softhca(bool is_quiet)
{
    static const char notice[] =
        "no active RDMA port, using softhca (GASNET_SOFTHCA=never forbids it)";
    if (isatty(STDERR_FILENO) && !is_quiet)
        log_info("%s", notice);
    else
        log_verbose(1, "%s", notice);
}

static int choose_for_network(const struct job *job, const struct tk_settings *s, bool is_forbidden)
{
    if (probe_active_port()) {
        log_verbose(1, "using the active RDMA port(s) of this host");
        name_fabric(job->nspace); /* has an effect only if that port is one of softhca, preloaded
                                     into the launcher itself */
        return 0;
    }
    if (is_forbidden)
        return device_refuse();
    int status = use_softhca(job->nspace);
    if (status == 0)
        announce_softhca(s->quiet);
    return status;
}

int device_prepare(struct job *job, const struct tk_settings *s)
{
    static const char *const wishes[] = {"auto", "always", "never"};
    char library[PATH_MAX];

    for (unsigned i = 0; i < sizeof(wishes) / sizeof(*wishes); i++)
        if (!strcmp(s->softhca, wishes[i]))
            job->softhca = JOB_SOFTHCA_AUTO + i;
    job->own_port = job->softhca != JOB_SOFTHCA_ALWAYS && probe_active_port();
    if (job->softhca == JOB_SOFTHCA_NEVER)
        return 0;
    if (job->softhca != JOB_SOFTHCA_ALWAYS && !find_library(library, sizeof(library)))
        return 0;
    lists_settings = true;
    int status = use_softhca(job->nspace);
    job->softhca_env = listed;
    return status;
}

int device_choose(const struct job *job, const struct tk_settings *s)
{
    bool is_forbidden = !strcmp(s->softhca, "never");

    if (!strcmp(s->softhca, "always")) {
        log_verbose(1, "using softhca (GASNET_SOFTHCA=always)");
        return use_softhca(job->nspace);
    }
    if (!share_memory(job, s))
        return choose_for_network(job, s, is_forbidden);
    log_verbose(1, "no RDMA port is needed: the processes share memory");
    return is_forbidden ? 0 : provide_softhca(job->nspace);
}
