/* SPDX-License-Identifier: BSD-3-Clause */
/* A small client of the tools as an outsider would write it, in the common part of C
 * and C++; behind gasnetex.h when a mode of it is given. Prints "tools: ok" and exits 0, or prints
 * the error and exits 1. */
#if defined(GASNET_SEQ) || defined(GASNET_PARSYNC) || defined(GASNET_PAR)
#    include <gasnetex.h>
#endif
#include <gasnet_tools.h>
#include <gasnet_tools.h> /* twice must not matter */

#include <stdio.h>
#include <string.h>

#if defined(GASNETT_LITE_MODE)

int main(void)
{
    gasnett_tick_t start = gasnett_ticks_now();
    gasnett_local_mb();
    return gasnett_ticks_to_ns(gasnett_ticks_now() - start) > 1000000000u;
}

#else

GASNETT_IDENT(install_ident, "$InstallTest: 1 $");
GASNETT_THREADKEY_DEFINE(key);
static gasnett_mutex_t lock = GASNETT_MUTEX_INITIALIZER;
static gasnett_atomic_t counter = gasnett_atomic_init(40);
static gasnett_strongatomic64_t wide = gasnett_strongatomic64_init(1);

static int wrong(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(void)
{
    char number[40];
    gasnett_tick_t start = gasnett_ticks_now();
    gasnett_mutex_lock(&lock);
    gasnett_threadkey_set(key, &lock);
    if_pf(gasnett_atomic_add(&counter, 2, GASNETT_ATOMIC_ACQ) !=
          42) return wrong("an atomic does not add");
    gasnett_mutex_unlock(&lock);
    if (gasnett_strongatomic64_swap(&wide, 2, 0) != 1)
        return wrong("an atomic does not swap");
    if (gasnett_threadkey_get(key) != (void *)&lock)
        return wrong("a key forgets");
    if (strcmp(gasnett_format_number(65536, number, sizeof(number), 1), "64 KB") != 0)
        return wrong("a number looks wrong");
    if (gasnett_getenv_int_withdefault("INSTALL_TEST_UNSET", 7, 0) != 7)
        return wrong("a default is not taken");
    GASNETT_TRACE_PRINTF("%s", "nothing");
    if (gasnett_ticks_to_us(gasnett_ticks_now() - start) > 60000000)
        return wrong("time runs too fast");
    puts("tools: ok");
    return 0;
}

#endif
