/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Profiles: what devices that users have say of themselves, and how they differ (SOFTHCA_PROFILE).
 * Constant tables; owns nothing. */
#ifndef SHCA_PROFILES_H
#define SHCA_PROFILES_H

#include <stddef.h>
#include <stdint.h>

enum shca_link {
    SHCA_LINK_IB,      /* LIDs */
    SHCA_LINK_ROCE,    /* Ethernet, GIDs */
    SHCA_LINK_IWARP,   /* Ethernet; librdmacm connects and changes queue pair states */
    SHCA_LINK_UNKNOWN, /* neither InfiniBand nor Ethernet; addressed as RoCE */
};

#define SHCA_FIELD(type, name, doc) type name;
struct shca_profile {
#include "profile_fields.def"
};
#undef SHCA_FIELD

/* A field of struct shca_profile. */
struct shca_profile_field {
    const char *name, *doc;
    size_t offset, size;
};

extern const struct shca_profile shca_profiles[];
extern const size_t shca_profile_count;
extern const struct shca_profile_field shca_profile_fields[];
extern const size_t shca_profile_field_count;

enum { SHCA_PROFILE_NAMES = 256 /* bytes of shca_profile_names() */ };

/* The profile with this name of n characters; NULL: unknown. */
const struct shca_profile *shca_profile_find(const char *name, size_t n);
/* All names, separated by commas. */
void shca_profile_names(char *out, size_t n);

#endif
