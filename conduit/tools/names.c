/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The names of the host and of the executable. Owns both, made on first use under pthread_once().
 * Must not report errors: an error report asks this file for the host's name. */
#include "config.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "gasnet_tools.h"

static char host_name[256], exe_name[4096];

static void names_find_host(void)
{
    if (gethostname(host_name, sizeof(host_name) - 1) != 0)
        strcpy(host_name, "unknown");
}

static void names_find_exe(void)
{
    ssize_t n = readlink("/proc/self/exe", exe_name, sizeof(exe_name) - 1);
    if (n <= 0)
        strcpy(exe_name, "unknown");
}

const char *gasnett_gethostname(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, names_find_host);
    return host_name;
}

const char *gasnett_exe_name(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, names_find_exe);
    return exe_name;
}
