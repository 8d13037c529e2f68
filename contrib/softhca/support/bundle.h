/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Profiles out of a file that trunkline_info --bundle wrote elsewhere: its devices, with what was
 * seen of their manners. The file is text of strangers: any content is parsed or refused by one
 * line. */
#ifndef SHCA_BUNDLE_H
#define SHCA_BUNDLE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

#include "profiles.h"
#include "segment_layout.h"

enum {
    SHCA_BUNDLE_NAME = 64, /* IBV_SYSFS_NAME_MAX, and the size of fw_ver */
    SHCA_BUNDLE_BYTES =
        1 << 20, /* of a file; a file with 16 devices of 8 ports has a tenth of it */
    SHCA_BUNDLE_RECORDS = 64,
};

/* What ibv_create_qp made of a size. */
struct shca_bundle_record {
    struct ibv_qp_init_attr asked;
    int error; /* or 0 */
    bool has_caps;
    struct ibv_qp_cap caps; /* returned ones */
};

struct shca_bundle {
    int n;
    struct shca_profile device[SHCA_MAX_HCA]; /* their strings are in this struct */
    struct {
        char name[SHCA_BUNDLE_NAME], firmware[SHCA_BUNDLE_NAME], speed[16];
    } text[SHCA_MAX_HCA];
};

/* Appends the devices of the text (n bytes) or of the file. Returns 0, or EINVAL with the first
 * wrong line and the reason in `why`: "LINE: REASON", or "REASON" for the whole text. */
int shca_bundle_parse(const char *text, size_t n, struct shca_bundle *out, char *why, size_t room);
int shca_bundle_read(const char *path, struct shca_bundle *out, char *why, size_t room);

/* Sets how queue pairs behave (rounds_qp, inline_least, wqe_block ...) so that as many records as
 * possible are reproduced; returns how many are not. The limits are already set. */
unsigned shca_bundle_fit(struct shca_profile *p, const struct shca_bundle_record *records,
                         unsigned n);

#endif
