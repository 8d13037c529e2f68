/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The entry points of libFuzzer; FUZZ_TARGET names the target. */
#include "config.h"

#include <stdlib.h>

#include "fuzz/targets.h"

static const struct fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    target = fuzz_target_find(getenv("FUZZ_TARGET"));
    if (target->prepare)
        target->prepare();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    target->run(data, size);
    return 0;
}
