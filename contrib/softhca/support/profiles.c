/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See profiles.h. */
#include "config.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "softhca_settings.h"

#define TYPE(t) (1u << IBV_QPT_##t)
#define RC      (TYPE(RC))
#define CLASSIC (TYPE(RC) | TYPE(UC) | TYPE(UD))
#define XRC     (TYPE(XRC_SEND) | TYPE(XRC_RECV))

const struct shca_profile shca_profiles[] = {
#define SHCA_PROFILE(...) {__VA_ARGS__},
#include "profiles.def"
};
const size_t shca_profile_count = sizeof shca_profiles / sizeof shca_profiles[0];

#define SHCA_FIELD(type, field, doc)                                                               \
    {#field, doc, offsetof(struct shca_profile, field),                                            \
     sizeof(((struct shca_profile *)NULL)->field)},
const struct shca_profile_field shca_profile_fields[] = {
#include "profile_fields.def"
};
const size_t shca_profile_field_count = sizeof shca_profile_fields / sizeof shca_profile_fields[0];

const struct shca_profile *shca_profile_find(const char *name, size_t n)
{
    for (size_t i = 0; i < shca_profile_count; i++)
        if (strlen(shca_profiles[i].name) == n && strncmp(shca_profiles[i].name, name, n) == 0)
            return &shca_profiles[i];
    return NULL;
}

void shca_profile_names(char *out, size_t n)
{
    size_t used = 0;

    *out = 0;
    for (size_t i = 0; i < shca_profile_count && used < n; i++)
        used +=
            (size_t)snprintf(out + used, n - used, "%s%s", i ? ", " : "", shca_profiles[i].name);
}
