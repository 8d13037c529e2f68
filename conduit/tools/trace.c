/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions that exist for their names only. No state. */
#include "config.h"

#include "gasnet_tools.h"

void _gasnett_trace_printf_noop(const char *format, ...)
{
    (void)format;
}

void _gasneti_threadkey_init(void *key)
{
    (void)key;
}
