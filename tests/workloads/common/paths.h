/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that a run writes at its end: checks before it begins whether they can be written. */
#ifndef WL_PATHS_H
#define WL_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* False, with one line in `why`, when a file of this name can't be made or written. `option` is
 * named in the message. */
bool wl_path_writable(const char *option, const char *path, char *why, size_t size);

/* The same for files whose names begin with `prefix`, and go on with `rest`. Refuses a prefix that
 * already names something other than a file: the user hardly meant it as a prefix. */
bool wl_prefix_writable(const char *option, const char *prefix, const char *rest, char *why,
                        size_t size);

#endif
