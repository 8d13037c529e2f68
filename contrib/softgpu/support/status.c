/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names and texts of results. Owns nothing. */
#include "config.h"

#include <string.h>

#include "contrib/softgpu/support/status.h"

static const struct sgpu_status_text texts[] = {
#define SGPU_STATUS_ROW(name, number, cuda, hip, text)                                             \
    {SGPU_##name, (number) == 0 ? "CUDA_" cuda : "CUDA_ERROR_" cuda, "hip" hip, text},
    SGPU_STATUSES(SGPU_STATUS_ROW)};

const struct sgpu_status_text *sgpu_status_text(int status)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if ((int)texts[i].status == status)
            return &texts[i];
    return NULL;
}

bool sgpu_status_named(const char *name, enum sgpu_status *out)
{
    for (size_t i = 1; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i].cuda, name) == 0 || strcmp(texts[i].hip, name) == 0) {
            *out = texts[i].status;
            return true;
        }
    return false;
}
