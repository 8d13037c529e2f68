/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fuzzed functions: every parser of packets made by others. The drivers are those of softhca
 * (contrib/softhca/fuzz/replay.c, libfuzzer.c). */
#ifndef ROCE_FUZZ_TARGETS_H
#define ROCE_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

struct fuzz_target {
    const char *name;      /* also of its directory in tests/roce/corpus */
    void (*prepare)(void); /* once; may be NULL */
    void (*run)(const uint8_t *data, size_t size);
};
extern const struct fuzz_target fuzz_targets[]; /* ends with an empty one */

/* Finds the target with this name; if it does not exist, prints the reason and ends the program. */
const struct fuzz_target *fuzz_target_find(const char *name);

/* endpoint.c: a conversation with a malicious peer. */
void fuzz_endpoint(const uint8_t *data, size_t size);

/* abort() says that a promise was not kept. */
void fuzz_must(int promise);

#endif
