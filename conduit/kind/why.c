/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all classes share: how they write the cause of a failure, and how they number devices. No
 * state, no lock. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "kind/kind_class.h"

enum tk_status tk_kind_why(struct tk_kind_why *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof(why->text), format, args);
    va_end(args);
    return TK_FAIL;
}

int tk_kind_list_ordinals(int gex_class, int count, struct tk_kind_args *args, int max)
{
    int listed = count < max ? count : max;
    for (int i = 0; i < listed; i++)
        args[i] = (struct tk_kind_args){.gex_class = gex_class, .ordinal = i};
    return listed;
}
