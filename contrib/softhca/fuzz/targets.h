/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fuzzed functions: every function of softhca that parses text written by others. */
#ifndef SHCA_FUZZ_TARGETS_H
#define SHCA_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    const char *name;      /* also of its directory in tests/softhca/corpus */
    void (*prepare)(void); /* once; may be NULL */
    void (*run)(const uint8_t *data, size_t size);
};
extern const struct fuzz_target fuzz_targets[]; /* ends with an empty one */

/* Finds the target with this name; if it does not exist, prints the reason and ends the program. */
const struct fuzz_target *fuzz_target_find(const char *name);

#endif
