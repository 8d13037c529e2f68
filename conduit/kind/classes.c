/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The classes of memory kinds that this library was configured with. No state, no lock. */
#include "config.h"

#include "base/kind_mode.h"
#include "kind/kind_class.h"

static const struct tk_kind_class *const classes[TK_KIND_NUMBERS] = {
    [TK_KIND_CUDA_UVA] = &tk_kind_cuda,
    [TK_KIND_HIP] = &tk_kind_hip,
    [TK_KIND_ZE] = &tk_kind_ze,
};

static const bool is_configured[TK_KIND_NUMBERS] = {
    [TK_KIND_CUDA_UVA] = tk_has_kind_cuda_uva,
    [TK_KIND_HIP] = tk_has_kind_hip,
    [TK_KIND_ZE] = tk_has_kind_ze,
};

const struct tk_kind_class *tk_kind_class_of(int gex_class)
{
    if (gex_class <= TK_KIND_HOST || gex_class >= TK_KIND_NUMBERS || !is_configured[gex_class])
        return NULL;
    return classes[gex_class];
}
