/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of the library as a whole: options, the lock, lost devices. Owns sgpu_lock and
 * sgpu_config. A child of fork() has the memory of its parent but none of its threads, and as with
 * the vendors' libraries no call succeeds there. */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "contrib/softgpu/device/device.h"

struct sgpu_config sgpu_config;
pthread_mutex_t sgpu_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool ready, forked;
static int lost[SGPU_DEVICES_MAX]; /* the error of its calls */
static uint64_t last_id;

static void state_forked(void)
{
    forked = true;
    pthread_mutex_init(&sgpu_lock, NULL);
}

/* exit() would run the client's handlers, which may call back into this library. */
static void refuse_options(const char *why)
{
    fprintf(stderr, "softgpu: %s\n", why);
    fflush(NULL);
    _exit(2);
}

static void state_read(void)
{
    struct sgpu_fault_rules rules;
    char why[512], line[600];

    if (!sgpu_settings_parse(getenv("SOFTGPU"), &sgpu_config, why, sizeof why))
        refuse_options(why);
    if (!sgpu_fault_parse(getenv("SOFTGPU_FAULT"), &rules, why, sizeof why)) {
        snprintf(line, sizeof line, "SOFTGPU_FAULT: %s", why);
        refuse_options(line);
    }
    sgpu_fault_set(&rules, sgpu_config.seed);
    pthread_atfork(NULL, NULL, state_forked);
    ready = true;
}

int sgpu_start(void)
{
    pthread_once(&once, state_read);
    return forked ? SGPU_NOT_INITIALIZED : sgpu_config.devices == 0 ? SGPU_NO_DEVICE : SGPU_OK;
}

int sgpu_started(void)
{
    return !ready || forked ? SGPU_NOT_INITIALIZED : SGPU_OK;
}

void sgpu_enter(void)
{
    pthread_mutex_lock(&sgpu_lock);
}

int sgpu_leave(int status)
{
    pthread_mutex_unlock(&sgpu_lock);
    /* A client that polls for a copy must not take the CPU away from the thread that copies. */
    if (status == SGPU_NOT_READY)
        sched_yield();
    return status;
}

int sgpu_device_check(int device)
{
    if (lost[device] == SGPU_OK)
        lost[device] = (int)sgpu_fault_judge(SGPU_FAULT_LOST, device).error;
    return lost[device];
}

bool sgpu_device_exists(int device)
{
    return device >= 0 && (uint64_t)device < sgpu_config.devices;
}

int sgpu_fault_call(enum sgpu_fault_kind kind, int device)
{
    struct sgpu_verdict v = sgpu_fault_judge(kind, device);

    if (v.delay > 0) {
        struct timespec t = {(time_t)(v.delay / 1000000000), (long)(v.delay % 1000000000)};

        sgpu_leave(0);
        nanosleep(&t, NULL);
        sgpu_enter();
    }
    return (int)v.error;
}

uint64_t sgpu_round(uint64_t length)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return (length + page - 1) / page * page;
}

uint64_t sgpu_next_id(void)
{
    return ++last_id;
}
