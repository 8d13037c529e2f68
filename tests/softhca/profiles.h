/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of profiles share. Owns nothing. */
#ifndef SOFTHCA_PROFILES_TEST_H
#define SOFTHCA_PROFILES_TEST_H

#include "contrib/softhca/support/softhca_settings.h"
#include "tests/softhca/harness.h"

static inline const struct shca_profile *of_name(const char *name)
{
    const struct shca_profile *p = shca_profile_find(name, strlen(name));

    CHECK(p != NULL);
    return p;
}

static inline const struct shca_profile *use_profile(const char *name)
{
    setenv("SOFTHCA_PROFILE", name, 1);
    return of_name(name);
}

struct parts {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
};

static inline struct parts open_parts(void)
{
    struct parts o = {.ctx = open_softhca(0)};

    o.pd = ibv_alloc_pd(o.ctx);
    o.cq = ibv_create_cq(o.ctx, 16, NULL, NULL, 0);
    CHECK(o.pd && o.cq);
    return o;
}

#endif
