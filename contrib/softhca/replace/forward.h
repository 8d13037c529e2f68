/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which library of the host a replacement stands before. Owns nothing. */
#ifndef SHCA_FORWARD_H
#define SHCA_FORWARD_H

#include <stdbool.h>

struct shca_behind {
    const char *library;            /* "libibverbs.so.1" */
    bool named;                     /* SOFTHCA_REAL may be its path */
    void *(*own)(const char *name); /* functions that come from elsewhere, NULL: none */
};
extern const struct shca_behind shca_behind;

/* ---- forward.c ---- */
void *shca_forward_open(const char *library); /* one of the host's, by its usual places */
void *shca_forward_host(void);                /* the library behind this one, or NULL */
void shca_forward_copy(void);                 /* its variables, into ours */

#endif
