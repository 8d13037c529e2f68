/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of a rank: each prints one line, "RANK name=value ...", which the script compares
 * with its settings. The client changes its environment before and after start-up. Usage:
 * environment [SCENARIO]. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gasnet_tools.h"

static unsigned long long locked_memory(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_MEMLOCK, &limit);
    return limit.rlim_cur;
}

static int malloc_maps(void)
{
    char *block = job_memory(64u << 20);
    int mapped = mallinfo2().hblks > 0;

    free(block);
    return mapped;
}

/* The stack of the library's thread is the largest private mapping without a name. In MiB. */
static unsigned long largest_stack(void)
{
    char line[512], permissions[8], name[256];
    unsigned long from, to, largest = 0;
    FILE *maps = fopen("/proc/self/maps", "r");

    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        name[0] = 0;
        sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &from, &to, permissions, name);
        if (!name[0] && !strcmp(permissions, "rw-p") && to - from > largest)
            largest = to - from;
    }
    fclose(maps);
    return largest >> 20;
}

static int is_caught(int number)
{
    struct sigaction now;

    sigaction(number, NULL, &now);
    return now.sa_handler != SIG_DFL;
}

static const char *word(const char *name)
{
    const char *value = gasnet_getenv(name);

    CHECK(gasnett_getenv(name) == value, "%s", name);
    return value ? value : "(none)";
}

static void facts(void)
{
    gex_RankInfo_t *info;
    gex_Rank_t neighbours, mine, hosts, host;

    gex_System_QueryNbrhdInfo(&info, &neighbours, &mine);
    gex_System_QueryMyPosition(NULL, NULL, &hosts, &host);
    CHECK(info[mine].gex_jobrank == job.rank && host < hosts);
    setenv("JOB_WORD", "after", 1);
    setenv("JOB_OWN", "after", 1);
    printf("%u threads=%llu segment=%llu least=%llu memlock=%llu maps=%d stack=%lu neighbours=%u "
           "hosts=%u hup=%d int=%d word=%s own=%s\n",
           (unsigned)job.rank, (unsigned long long)gex_System_QueryMaxThreads(),
           (unsigned long long)gasnet_getMaxLocalSegmentSize(),
           (unsigned long long)gasnet_getMaxGlobalSegmentSize(), locked_memory(), malloc_maps(),
           largest_stack(), (unsigned)neighbours, (unsigned)hosts, is_caught(SIGHUP),
           is_caught(SIGINT), word("JOB_WORD"), word("JOB_OWN"));
    fflush(stdout);
    /* a name that start-up has shown is not shown again */
    gasnett_getenv_int_withdefault("GASNET_AM_CREDITS_PP", 99, 0);
}

/* The last rank leaves alone; the others continue, and then do the same. */
static void leave(void)
{
    job_barrier();
    if (job.rank == job.size - 1)
        exit(0);
    usleep(300000);
    printf("%u stayed\n", (unsigned)job.rank);
    exit(0);
}

/* The last rank never reaches the end of the job, and does not poll. */
static void stay(void)
{
    job_barrier();
    if (job.rank == job.size - 1)
        for (;;)
            pause();
    gasnet_exit(3);
}

static unsigned heard;

static void on_words(gex_Token_t token, void *words, size_t size)
{
    (void)token;
    (void)words;
    heard += (unsigned)size;
}

/* A lent buffer, committed as it came. */
static void lend(void)
{
    gex_AM_Entry_t entry = {
        0, (gex_AM_Fn_t)on_words, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};

    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    job_barrier();
    for (int i = 0; i < 3; i++) {
        gex_AM_SrcDesc_t sd =
            gex_AM_PrepareRequestMedium(job.tm, job.rank, NULL, 64, 64, NULL, 0, 0);

        gex_AM_CommitRequestMedium(sd, entry.gex_index, 64);
    }
    GASNET_BLOCKUNTIL(heard == 3 * 64);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "";

    setenv("JOB_WORD", "before", 1);
    setenv("JOB_OWN", "before", 1);
    setenv("GASNET_MAX_THREADS", "77", 1);
    job_start(&argc, &argv, 0);
    if (!strcmp(scenario, "leave"))
        leave();
    else if (!strcmp(scenario, "stay"))
        stay();
    else if (!strcmp(scenario, "lend"))
        lend();
    else if (!strcmp(scenario, "argument"))
        printf("argument=%s\n", argv[2]);
    else
        facts();
    job_end();
}
