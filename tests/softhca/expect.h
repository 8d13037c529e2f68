/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For programs that test many rows and print the error of each. Single-threaded. */
#ifndef SOFTHCA_EXPECT_H
#define SOFTHCA_EXPECT_H

#include <stdio.h>

static int failures;

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("FAIL line %d: ", __LINE__);                                                    \
            printf(__VA_ARGS__);                                                                   \
            putchar('\n');                                                                         \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

#endif
