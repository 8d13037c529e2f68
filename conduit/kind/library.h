/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The vendors' libraries, opened at run time: a machine without an accelerator has none of them.
 * They stay loaded, because their drivers have threads. Tests replace library.c. */
#ifndef TK_KIND_LIBRARY_H
#define TK_KIND_LIBRARY_H

#include "kind/kind_class.h"

struct tk_kind_symbol {
    const char *name;
    void **function; /* NULL after the call: the library lacks it */
    bool is_optional;
};

/* What tk_kind_library_load() returns with a cause. */
enum {
    TK_KIND_LIBRARY_ABSENT = -1, /* none of the files could be opened */
    TK_KIND_LIBRARY_OLD = -2     /* one could, but it lacks a function */
};

/* Opens a library of `files` (a list that ends with NULL), and looks up the functions. It takes the
 * first file that this process has loaded, else the first that exists. Returns its index in the
 * list, or one of the above with `why`. Concurrent calls get the same library. */
int tk_kind_library_load(const char *const *files, const struct tk_kind_symbol *symbols,
                         size_t count, struct tk_kind_why *why);

#endif
