/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_steps - CPU time of single requests to PMIx, ns: of the rank and of its host's server. Rank
 * 0 asks for a value of each other rank while these sleep in a fence; then all do many fences.
 * Prints "gets COUNT NS" and "fences COUNT NS": ns of one, for the server divided by the ranks of
 * its host. "head 1 NS" is the CPU time of the launcher's head when all ranks have started. */
#include "config.h"

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { fences = 50 };

static pmix_proc_t self;
static pid_t server;

static void must(const char *what, pmix_status_t rc)
{
    if (rc == PMIX_SUCCESS)
        return;
    fprintf(stderr, "pmix_steps: %s: %s\n", what, PMIx_Error_string(rc));
    exit(1);
}

static bool is_server(int pid)
{
    char path[64], name[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    FILE *in = fopen(path, "re");
    bool is_it = in && fgets(name, sizeof(name), in) && !strncmp(name, "gasnetrun-pmix", 14);
    if (in)
        fclose(in);
    return is_it;
}

/* A child of the guard, which is our parent. */
static void find_server(void)
{
    char path[64];
    int pid, guard = (int)getppid();
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", guard, guard);
    FILE *in = fopen(path, "re");
    while (in && !server && fscanf(in, "%d", &pid) == 1)
        server = is_server(pid) ? pid : 0;
    if (in)
        fclose(in);
    if (!server) {
        fprintf(stderr, "pmix_steps: no process gasnetrun-pmix beside this one: start it with "
                        "gasnetrun_ibv\n");
        exit(1);
    }
}

/* The launcher's head is the guard's parent where hosts are virtual. */
static pid_t head(void)
{
    char path[64], line[256];
    int pid = 0;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)getppid());
    FILE *in = fopen(path, "re");
    while (in && !pid && fgets(line, sizeof(line), in))
        (void)sscanf(line, "PPid: %d", &pid);
    if (in)
        fclose(in);
    return pid;
}

static double cpu_of(pid_t pid)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(pid, &clock) == 0)
        clock_gettime(clock, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static uint32_t number(const char *key)
{
    pmix_proc_t all = self;
    pmix_value_t *value;
    all.rank = PMIX_RANK_WILDCARD;
    must(key, PMIx_Get(&all, key, NULL, 0, &value));
    uint32_t n = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return n;
}

static void put(void)
{
    pmix_value_t value = {.type = PMIX_UINT32};
    value.data.uint32 = self.rank;
    must("PMIx_Put", PMIx_Put(PMIX_GLOBAL, "step", &value));
    must("PMIx_Commit", PMIx_Commit());
}

static void fence(void)
{
    pmix_info_t collect;
    bool yes = true;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    must("PMIx_Fence", PMIx_Fence(NULL, 0, &collect, 1));
}

static void ask_all(uint32_t size)
{
    pmix_proc_t of = self;
    pmix_value_t *value;
    double own = cpu_of(0), others = cpu_of(server);
    for (of.rank = 1; of.rank < size; of.rank++) {
        must("PMIx_Get", PMIx_Get(&of, "step", NULL, 0, &value));
        if (value->data.uint32 != of.rank)
            abort();
        PMIX_VALUE_RELEASE(value);
    }
    printf("gets %u %.0f\n", size - 1,
           (cpu_of(0) - own + cpu_of(server) - others) / (double)(size - 1));
}

int main(void)
{
    must("PMIx_Init", PMIx_Init(&self, NULL, 0));
    uint32_t size = number(PMIX_JOB_SIZE), local = number(PMIX_LOCAL_SIZE);
    find_server();
    put();
    fence();
    if (self.rank == 0)
        printf("head 1 %.0f\n", cpu_of(head()));
    if (self.rank == 0 && size > 1)
        ask_all(size);
    fence();
    double own = cpu_of(0), others = cpu_of(server);
    for (int i = 0; i < fences; i++)
        fence();
    if (self.rank == 0)
        printf("fences %d %.0f\n", fences,
               (cpu_of(0) - own + (cpu_of(server) - others) / local) / fences);
    must("PMIx_Finalize", PMIx_Finalize(NULL, 0));
    return 0;
}
