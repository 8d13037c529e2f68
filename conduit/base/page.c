/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See page.h. Queries the system once. */
#include "config.h"

#include <unistd.h>

#include "base/page.h"

size_t tk_page_size(void)
{
    static size_t size;
    if (!size)
        size = (size_t)sysconf(_SC_PAGESIZE);
    return size;
}
