/* SPDX-License-Identifier: BSD-3-Clause */
/* bench - measures the conduit beside raw verbs on the same port, or (nbrhd_pair) beside plain
 * loads and stores of memory that both share, in the same run. Started on two processes; rank 0
 * measures, prints the table and writes the JSON file. Owns the results. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { count_max = 200000, first_count = 4 };

static struct {
    const char *json, *only, *port;
    size_t bytes; /* of the cases that are measured; 0: all */
    int reps;
    double seconds; /* of one sample */
} options = {.reps = 51, .seconds = 0.001};

static struct bench_result results[bench_cases_max];

static const char usage[] = "usage: gasnetrun_ibv -n 2 bench [--json FILE] [--reps N] [--ms N] "
                            "[--only NAME] [--bytes N] [--port DEVICE[:PORT]]\n"
                            "  --json FILE  write the results as JSON, too\n"
                            "  --reps N     repetitions, of which the median counts (51; 1..101)\n"
                            "  --ms N       milliseconds of one sample (1; 1..1000): short ones "
                            "often escape other programs\n"
                            "  --only NAME  only cases whose name starts so, for example put\n"
                            "  --bytes N    only cases of that size (1..4194304)\n"
                            "  --port P     port of the raw measurements (default: "
                            "GASNET_IBV_PORTS, else the first active one)\n";

static _Noreturn void usage_exit(const char *why, const char *what)
{
    if (bench_job.me == 0)
        fprintf(stderr, "bench: %s%s\n%s", why, what, usage);
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
    gasnet_exit(2);
}

static long number(const char *text, long most, const char *name)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < 1 || value > most)
        usage_exit("bad value for ", name);
    return value;
}

static void parse(int argc, char **argv)
{
    static const struct option known[] = {{"json", 1, NULL, 'j'}, {"reps", 1, NULL, 'r'},
                                          {"ms", 1, NULL, 'm'},   {"only", 1, NULL, 'o'},
                                          {"port", 1, NULL, 'p'}, {"bytes", 1, NULL, 'b'},
                                          {NULL, 0, NULL, 0}};
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'j')
            options.json = optarg;
        else if (option == 'r')
            options.reps = (int)number(optarg, bench_reps_max, "--reps");
        else if (option == 'm')
            options.seconds = 1e-3 * (double)number(optarg, 1000, "--ms");
        else if (option == 'o')
            options.only = optarg;
        else if (option == 'b')
            options.bytes = (size_t)number(optarg, 4 << 20, "--bytes");
        else if (option == 'p')
            options.port = optarg;
        else
            usage_exit("unknown option or missing value: ", argv[optind - 1]);
    }
    if (optind < argc)
        usage_exit("nothing is expected after the options: ", argv[optind]);
}

/* Both ranks, the same command. Returns rank 0's seconds. */
static double run(struct bench_command command)
{
    const struct bench_case *what = &bench_cases[command.index];
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
    double start = bench_now();
    (command.raw ? what->raw : what->conduit)(what->bytes, command.count);
    double seconds = bench_now() - start;
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
    return seconds;
}

static double order(int index, bool raw, long count)
{
    struct bench_command command = {index, raw, (int32_t)count};
    bench_command_send(command);
    return run(command);
}

/* How many operations make a sample of the wanted length; warms up as it finds out. */
static long calibrate(int index, bool raw)
{
    long count = first_count;
    double seconds = order(index, raw, count);
    while (seconds < options.seconds / 4 && count < count_max) {
        count *= 4;
        seconds = order(index, raw, count);
    }
    count = (long)((double)count * options.seconds / seconds);
    return count < first_count ? first_count : count > count_max ? count_max : count;
}

static double in_unit(const struct bench_case *what, long count, double seconds)
{
    switch (what->unit) {
    case BENCH_NS:
        return 1e9 * seconds / (double)count;
    case BENCH_US:
        return 1e6 * seconds / (double)count;
    case BENCH_KOPS:
        return 1e-3 * (double)count / seconds;
    default:
        return 1e-6 * (double)count * (double)what->bytes / seconds;
    }
}

static bool chosen(const struct bench_case *what)
{
    return (!options.only || !strncmp(what->name, options.only, strlen(options.only))) &&
           (options.bytes == 0 || what->bytes == options.bytes);
}

/* Conduit and raw verbs take turns; which is first alternates. */
static void measure_once(struct bench_result *result, int rep, const long counts[2])
{
    int index = (int)(result->what - bench_cases);
    for (int turn = 0; turn < 2; turn++) {
        bool raw = (turn + rep) % 2;
        double value = in_unit(result->what, counts[raw], order(index, raw, counts[raw]));
        (raw ? result->raw : result->conduit)[rep] = value;
    }
}

static int measure(int cases)
{
    long counts[bench_cases_max][2];
    int chosen_count = 0;
    for (int i = 0; i < cases; i++) {
        if (!chosen(&bench_cases[i]))
            continue;
        results[chosen_count].what = &bench_cases[i];
        results[chosen_count].reps = options.reps;
        counts[chosen_count][0] = calibrate(i, false);
        counts[chosen_count++][1] = calibrate(i, true);
    }
    for (int rep = 0; rep < options.reps; rep++)
        for (int i = 0; i < chosen_count; i++)
            measure_once(&results[i], rep, counts[i]);
    bench_command_send((struct bench_command){.index = -1});
    return chosen_count;
}

static int report(int count)
{
    bench_report_table(results, count);
    return options.json ? bench_report_json(options.json, results, count) : 0;
}

int main(int argc, char **argv)
{
    int status = 0;
    bench_job_start(&argc, &argv);
    parse(argc, argv);
    int cases = bench_cases_fill();
    bench_raw_open(options.port);
    if (bench_job.me == 0)
        status = report(measure(cases));
    else
        bench_obey(run);
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
    bench_raw_close();
    gasnet_exit(status);
}
