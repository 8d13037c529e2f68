/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The processor's counter: whether it can be trusted, and its documented rate. No state. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/counter.h"

#if defined(__x86_64__)

#    include <cpuid.h>

/* Leaf 0x80000007, bit 8 of EDX: the counter is invariant (Intel SDM vol. 3, 18.17; AMD APM vol. 3,
 * E.4.6). A hypervisor that may move the guest to another clock hides it. */
bool tk_tools_counter_is_good(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
}

double tk_tools_counter_hz(void)
{
    return 0;
}

#elif defined(__aarch64__)

/* The generic timer is part of the architecture and runs at a fixed rate. */
bool tk_tools_counter_is_good(void)
{
    return tk_tools_counter_hz() > 0;
}

double tk_tools_counter_hz(void)
{
    uint64_t hz;
    __asm__ __volatile__("mrs %0, cntfrq_el0" : "=r"(hz));
    return (double)hz;
}

#else

bool tk_tools_counter_is_good(void)
{
    return false;
}

double tk_tools_counter_hz(void)
{
    return 0;
}

#endif

/* "model name : ... @ 2.60GHz" is the rate of the counter; "cpu MHz" is the core's momentary
 * frequency, used only if the name has no rate. */
double tk_tools_cpuinfo_hz(void)
{
    char line[512];
    double by_name = 0, by_clock = 0;
    FILE *in = fopen("/proc/cpuinfo", "re");
    while (in && fgets(line, sizeof(line), in)) {
        const char *at = strstr(line, "@ "), *unit = at ? strstr(at, "GHz") : NULL;
        const char *value = strchr(line, ':');
        if (!by_name && !strncmp(line, "model name", 10) && unit)
            by_name = strtod(at + 2, NULL) * 1e9;
        if (!by_clock && !strncmp(line, "cpu MHz", 7) && value)
            by_clock = strtod(value + 1, NULL) * 1e6;
    }
    if (in)
        fclose(in);
    return by_name > 0 ? by_name : by_clock;
}
