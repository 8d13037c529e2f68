/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The softgpu command: runs programs on the software accelerator, and shows the devices that they
 * would see. Owns the environment of this process; one thread, no lock. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contrib/softgpu/device/place.h"
#include "contrib/softgpu/fault/fault.h"
#include "contrib/softgpu/support/softgpu_settings.h"

enum {
    EXIT_FAILED = 1, /* the request was understood, but could not be fulfilled */
    EXIT_USAGE = 2,  /* the command line or a setting is wrong */
    /* As in env(1) and shells */
    exit_cannot_run = 126,
    exit_not_found = 127,
};

static const char help[] =
    "usage: softgpu run [--options LIST] [--fault RULES] [--] PROGRAM [ARGUMENTS]\n"
    "       softgpu list [--options LIST]\n"
    "  run        run a program on the software accelerator: its libcuda.so.1,\n"
    "             libamdhip64.so.5, libhsa-runtime64.so.1 and libze_loader.so.1 are\n"
    "             softgpu's\n"
    "  list       the devices that a program would see\n"
    "  --options  as SOFTGPU: devices=0..16, memory=SIZE, bar=SIZE, delay=USEC,\n"
    "             bandwidth=MB/s, seed=N, no-dmabuf, no-peermem, no-ipc, no-uva,\n"
    "             weak-order, ordered-streams\n"
    "  --fault    as SOFTGPU_FAULT, for example copy:nth=5 or lost:after=100\n"
    "  --help, --version\n"
    "It shows that programs are correct, not how fast they are. More: softgpu(1).\n";

__attribute__((format(printf, 2, 3))) static int log_error(int status, const char *format, ...)
{
    va_list ap;

    fputs("softgpu: ", stderr);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    return status;
}

/* ---- options ---- */

/* Returns the value of the option at argv[*at] if it is `name`, and moves *at to its last word. */
static bool take_value(int argc, char **argv, int *at, const char *name, const char **value)
{
    size_t n = strlen(name);

    if (strncmp(argv[*at], name, n) != 0 || (argv[*at][n] != 0 && argv[*at][n] != '='))
        return false;
    *value = argv[*at][n] == '=' ? argv[*at] + n + 1 : ++*at < argc ? argv[*at] : NULL;
    return true;
}

/* Reads options into the environment. Returns the index of the first word after them; a negative
 * result r: exit with status -1 - r. */
static int read_options(int argc, char **argv, bool faults)
{
    for (int i = 2; i < argc; i++) {
        const char *word = argv[i], *value = NULL, *variable = NULL;

        if (strcmp(word, "--") == 0)
            return i + 1;
        if (word[0] != '-')
            return i;
        if (strcmp(word, "--help") == 0) {
            fputs(help, stdout);
            return -1;
        }
        if (take_value(argc, argv, &i, "--options", &value))
            variable = "SOFTGPU";
        else if (faults && take_value(argc, argv, &i, "--fault", &value))
            variable = "SOFTGPU_FAULT";
        else
            return -1 - log_error(EXIT_USAGE, "%s: there is no option '%s'; see softgpu --help",
                                  argv[1], word);
        if (!value)
            return -1 -
                   log_error(EXIT_USAGE, "%s: %s needs a value; see softgpu --help", argv[1], word);
        if (setenv(variable, value, 1) != 0)
            return -1 - log_error(EXIT_FAILED, "out of memory");
    }
    return argc;
}

/* Refuses what the library would refuse, before the program runs. */
static int check_settings(struct sgpu_config *config)
{
    struct sgpu_fault_rules rules;
    char why[512];

    if (!sgpu_settings_parse(getenv("SOFTGPU"), config, why, sizeof why))
        return log_error(EXIT_USAGE, "%s", why);
    if (!sgpu_fault_parse(getenv("SOFTGPU_FAULT"), &rules, why, sizeof why))
        return log_error(EXIT_USAGE, "SOFTGPU_FAULT: %s", why);
    return 0;
}

/* ---- run ---- */

/* Finds the folder of the libraries: next to this program in a build tree, or in an installation,
 * which may have been moved. */
static bool find_folder(char out[PATH_MAX])
{
    static const char *const places[] = {"lib", "../lib/" PACKAGE "/softgpu"};
    char self[PATH_MAX], library[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    self[n > 0 ? n : 0] = 0;
    if (strrchr(self, '/'))
        *strrchr(self, '/') = 0;
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(library, sizeof library, "%s/%s/libcuda.so.1", self, places[i]);
        if (access(library, R_OK) == 0) {
            *strrchr(library, '/') = 0;
            return realpath(library, out) != NULL;
        }
    }
    return access(SGPU_PKGLIBDIR "/softgpu/libcuda.so.1", R_OK) == 0 &&
           realpath(SGPU_PKGLIBDIR "/softgpu", out) != NULL;
}

static int use_folder(void)
{
    const char *old = getenv("LD_LIBRARY_PATH");
    char folder[PATH_MAX], *list;
    int status;

    if (!find_folder(folder))
        return log_error(EXIT_FAILED,
                         "softgpu's libcuda.so.1 is neither in lib beside this program nor in %s",
                         SGPU_PKGLIBDIR "/softgpu");
    if (strpbrk(folder, ":;"))
        return log_error(EXIT_FAILED, "%s: a path with a colon cannot stand in LD_LIBRARY_PATH",
                         folder);
    if (asprintf(&list, "%s%s%s", folder, old && *old ? ":" : "", old && *old ? old : "") < 0)
        return log_error(EXIT_FAILED, "out of memory");
    status = setenv("LD_LIBRARY_PATH", list, 1);
    free(list);
    return status == 0 ? 0 : log_error(EXIT_FAILED, "out of memory");
}

static int run(int argc, char **argv)
{
    struct sgpu_config config;
    int first = read_options(argc, argv, true), status;

    if (first < 0)
        return -1 - first;
    if (first >= argc)
        return log_error(EXIT_USAGE, "run: a program is missing; see softgpu --help");
    status = check_settings(&config);
    if (status == 0)
        status = use_folder();
    if (status != 0)
        return status;
    execvp(argv[first], argv + first);
    return log_error(errno == ENOENT ? exit_not_found : exit_cannot_run, "cannot run %s: %s",
                     argv[first], strerror(errno));
}

/* ---- list ---- */

static const char *yes(bool value)
{
    return value ? "yes" : "no";
}

static int list(int argc, char **argv)
{
    struct sgpu_config c;
    int first = read_options(argc, argv, false), status;
    char name[32], pci[32];

    if (first < 0)
        return -1 - first;
    if (first < argc)
        return log_error(EXIT_USAGE, "list: '%s' is too much; see softgpu --help", argv[first]);
    status = check_settings(&c);
    if (status != 0)
        return status;
    puts("device    PCI           memory MiB  BAR MiB  dma-buf  peer memory  IPC  write order");
    for (int i = 0; (uint64_t)i < c.devices; i++) {
        sgpu_device_name(name, sizeof name, i);
        sgpu_device_pci(pci, sizeof pci, i);
        printf("%-9s %s  %10llu  %7llu  %-7s  %-11s  %-3s  %s\n", name, pci,
               (unsigned long long)c.memory >> 20,
               (unsigned long long)(c.bar > 0 ? c.bar : c.memory) >> 20, yes(!c.no_dmabuf),
               yes(!c.no_peermem), yes(!c.no_ipc), c.weak_order ? "weak" : "strong");
    }
    return 0;
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
        return log_error(EXIT_USAGE, "a subcommand is missing; see softgpu --help");
    if (strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return flushed(0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("softgpu (trunkline) " PACKAGE_VERSION);
        return flushed(0);
    }
    if (strcmp(argv[1], "run") == 0)
        return flushed(run(argc, argv));
    if (strcmp(argv[1], "list") == 0)
        return flushed(list(argc, argv));
    return log_error(EXIT_USAGE, "'%s' is neither run nor list; see softgpu --help", argv[1]);
}
