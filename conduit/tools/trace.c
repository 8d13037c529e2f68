/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is there for its name only. No state. */
#include "config.h"

#include "tools/public.h"

void _gasnett_trace_printf_noop(const char *format, ...)
{
    (void)format;
}

void _gasneti_threadkey_init(void *key)
{
    (void)key;
}
