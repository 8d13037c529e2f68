/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See library.h. No state, no lock. */
#include "config.h"

#include "kind/library.h"

#include <dlfcn.h>

/* RTLD_NOW: a library that misses a symbol of its own must fail here. RTLD_LOCAL: its symbols must
 * not replace the program's. */
enum { how_to_open = RTLD_NOW | RTLD_LOCAL };

/* Prefer the version that the program has loaded: a second copy of a vendor's runtime knows neither
 * the memory nor the devices of the first. */
static void *find_loaded(const char *const *files, int *number)
{
    for (*number = 0; files[*number]; ++*number) {
        void *library = dlopen(files[*number], how_to_open | RTLD_NOLOAD);
        if (library)
            return library;
    }
    return NULL;
}

static void *open_first(const char *const *files, int *number, struct tk_kind_why *why)
{
    void *library = find_loaded(files, number);
    if (library)
        return library;
    for (*number = 0; files[*number]; ++*number) {
        library = dlopen(files[*number], how_to_open);
        if (library)
            return library;
        if (*number == 0)
            tk_kind_why(why, "%s can't be loaded: %s", files[0], dlerror());
    }
    return NULL;
}

int tk_kind_library_load(const char *const *files, const struct tk_kind_symbol *symbols,
                         size_t count, struct tk_kind_why *why)
{
    int number;
    void *library = open_first(files, &number, why);
    if (!library)
        return TK_KIND_LIBRARY_ABSENT;
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (!function && !symbols[i].is_optional) {
            tk_kind_why(why, "%s has no function %s(): its driver is too old", files[number],
                        symbols[i].name);
            return TK_KIND_LIBRARY_OLD;
        }
        /* If a device is already open, other threads may be calling these functions. */
        if (*symbols[i].function != function)
            *symbols[i].function = function;
    }
    return number;
}
