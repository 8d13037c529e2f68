/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trunkline_info: options, and which sections they choose. */
#include "config.h"

#include "contrib/info/info.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_USAGE = 2 };

enum option_code {
    ALL = 1,
    BUILD,
    SETTINGS,
    DEVICES,
    LIMITS,
    PATH,
    PATH_JOB,
    TOPOLOGY,
    RANKS,
    BIND,
    RAILS,
    CHECK,
    BUNDLE,
    BUNDLE_JOB,
    DEVICE_JOB,
    HOST_NAMES,
    SECONDS,
    HELP,
    RELEASE
};

static const struct option options[] = {{"build", no_argument, NULL, BUILD},
                                        {"settings", no_argument, NULL, SETTINGS},
                                        {"devices", no_argument, NULL, DEVICES},
                                        {"limits", no_argument, NULL, LIMITS},
                                        {"path", optional_argument, NULL, PATH},
                                        {"path-job", no_argument, NULL, PATH_JOB},
                                        {"topology", optional_argument, NULL, TOPOLOGY},
                                        {"ranks", required_argument, NULL, RANKS},
                                        {"bind", required_argument, NULL, BIND},
                                        {"rails", required_argument, NULL, RAILS},
                                        {"check", no_argument, NULL, CHECK},
                                        {"bundle", optional_argument, NULL, BUNDLE},
                                        {"bundle-job", no_argument, NULL, BUNDLE_JOB},
                                        {"device-job", no_argument, NULL, DEVICE_JOB},
                                        {"host-names", no_argument, NULL, HOST_NAMES},
                                        {"seconds", required_argument, NULL, SECONDS},
                                        {"help", no_argument, NULL, HELP},
                                        {"version", no_argument, NULL, RELEASE},
                                        {NULL, 0, NULL, 0}};

static const char usage[] =
    "usage: trunkline_info [--build | --settings | --devices | --limits | --path[=SIZE] | "
    "--check]\n"
    "       trunkline_info --topology [FILE.xml] --ranks N [--bind WHERE] [--rails N|all]\n"
    "       trunkline_info --bundle [FILE] [--host-names] [--seconds N]\n"
    "  (none)         all sections but paths, and what to look at\n"
    "  --build        release and build of the library\n"
    "  --settings     all settings, their values here, and where they come from\n"
    "  --devices      RDMA devices, ports and GIDs; which would be used, and why; accelerators\n"
    "  --limits       what the kernel and the administrator allow\n"
    "  --path[=SIZE]  how puts, gets and messages travel between hosts, by size (starts a job)\n"
    "  --topology [FILE.xml] --ranks N\n"
    "                 which ports N ranks of a host get with GASNET_IBV_PORTS_TYPE=auto, on this\n"
    "                 host or one that lstopo has written to a file\n"
    "    --bind none|core|socket|numa|CPUS:CPUS...\n"
    "                 where they are bound; 0-3:4-7 has the CPUs of rank 0 and of rank 1\n"
    "    --rails N|all\n"
    "                 ports for each rank (1)\n"
    "  --check        what is well and what should be mended; status 1 if something is wrong,\n"
    "                 2 if a setting is\n"
    "  --bundle [FILE]\n"
    "                 all that a bug report needs, in one text file (standard output), with a "
    "test\n"
    "                 of each port between two processes; status 1 if a test fails\n"
    "    --host-names the names of this host are not hidden\n"
    "    --seconds N  time limit of a test (30)\n";

static int refuse(const char *word)
{
    fprintf(stderr, "trunkline_info: %s: no such option (--help lists them)\n", word);
    return EXIT_USAGE;
}

static void print_all(void)
{
    info_build();
    info_settings(false);
    info_devices();
    info_accelerators();
    info_limits();
    info_print_findings();
}

static int print_check(void)
{
    info_only_findings();
    print_all();
    printf("%u good, %u to consider, %u wrong\n", info_findings(INFO_GOOD),
           info_findings(INFO_ADVICE), info_findings(INFO_WRONG));
    if (info_refused_settings())
        return EXIT_USAGE;
    return info_findings(INFO_WRONG) > 0;
}

static int print_section(enum option_code code)
{
    switch (code) {
    case BUILD:
        info_build();
        break;
    case SETTINGS:
        info_settings(true);
        return info_findings(INFO_WRONG) > 0 ? EXIT_USAGE : 0;
    case DEVICES:
        if (!info_read_settings())
            return EXIT_USAGE;
        info_devices();
        info_accelerators();
        break;
    case LIMITS:
        info_limits();
        break;
    case CHECK:
        return print_check();
    case RELEASE:
        puts(PACKAGE_STRING);
        break;
    case HELP:
        fputs(usage, stdout);
        break;
    default:
        print_all();
        break;
    }
    return 0;
}

/* A full disk is reported when the buffer is flushed, at the latest. */
static bool is_written(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    fprintf(stderr, "trunkline_info: cannot write standard output: %s\n",
            errno ? strerror(errno) : "the end of it is lost");
    return false;
}

struct command {
    int code;
    const char *size; /* of --path */
    struct info_topology topology;
    struct info_bundle bundle;
};

/* Handles the options of --topology and --bundle. False: another option. */
static bool take_detail(struct info_topology *topology, struct info_bundle *bundle, int code)
{
    if (code == HOST_NAMES)
        bundle->keeps_host = true;
    else if (code == SECONDS)
        bundle->seconds = optarg;
    else if (code == RANKS)
        topology->ranks = optarg;
    else if (code == BIND)
        topology->bind = optarg;
    else if (code == RAILS)
        topology->rails = optarg;
    else
        return false;
    return true;
}

static void take_value(struct command *command, const char *value)
{
    command->size = command->topology.file = command->bundle.file = value;
}

static int check_details(const struct command *command)
{
    const struct info_topology *t = &command->topology;
    if (command->code != TOPOLOGY && (t->ranks || t->bind || t->rails))
        fprintf(stderr, "trunkline_info: --ranks, --bind and --rails go with --topology\n");
    else if (command->code != BUNDLE && (command->bundle.keeps_host || command->bundle.seconds))
        fprintf(stderr, "trunkline_info: --host-names and --seconds go with --bundle\n");
    else
        return 0;
    return EXIT_USAGE;
}

static int read_command(int argc, char **argv, struct command *command)
{
    opterr = 0;
    for (int next; (next = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (next == '?' || next == PATH_JOB || next == BUNDLE_JOB || next == DEVICE_JOB)
            return refuse(argv[optind - 1]);
        if (take_detail(&command->topology, &command->bundle, next))
            continue;
        if (command->code != ALL && command->code != next) {
            fprintf(stderr, "trunkline_info: one option at a time\n");
            return EXIT_USAGE;
        }
        command->code = next;
        take_value(command, optarg);
    }
    /* Accepts "--path SIZE" too: getopt recognizes optional values only after '='. */
    if ((command->code == PATH || command->code == TOPOLOGY || command->code == BUNDLE) &&
        !command->size && optind < argc)
        take_value(command, argv[optind++]);
    if (optind < argc)
        return refuse(argv[optind]);
    return check_details(command);
}

int main(int argc, char **argv)
{
    struct command command = {.code = ALL};
    if (argc > 1 && !strcmp(argv[1], "--path-job"))
        return info_path_job(argc, argv);
    if (argc > 1 && !strcmp(argv[1], "--bundle-job"))
        return info_bundle_job(argc, argv);
    if (argc > 1 && !strcmp(argv[1], "--device-job"))
        return info_device_job(argc, argv);
    int status = read_command(argc, argv, &command);
    if (status != 0)
        return status;
    if (command.code == PATH)
        return info_path(command.size);
    if (command.code == BUNDLE)
        return info_bundle(&command.bundle);
    if (command.code == TOPOLOGY)
        status = info_topology(&command.topology);
    else
        status = print_section((enum option_code)command.code);
    return is_written() ? status : 1;
}
