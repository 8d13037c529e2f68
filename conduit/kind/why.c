/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cause of a failure, as all classes write it. No state, no lock. */
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
