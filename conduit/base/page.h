/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The size of a page. */
#ifndef TK_PAGE_H
#define TK_PAGE_H

#include <stddef.h>

size_t tk_page_size(void);

#endif
