/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The classes of memory kinds that this configuration leaves out (--disable-kind-cuda-uva and so
 * on). */
#ifndef TK_KIND_MODE_H
#define TK_KIND_MODE_H

#include "gasnet_config.h"

#if defined(TRUNKLINE_KIND_CUDA_UVA)
enum { tk_has_kind_cuda_uva = 1 };
#else
enum { tk_has_kind_cuda_uva = 0 };
#endif

#if defined(TRUNKLINE_KIND_HIP)
enum { tk_has_kind_hip = 1 };
#else
enum { tk_has_kind_hip = 0 };
#endif

#if defined(TRUNKLINE_KIND_ZE)
enum { tk_has_kind_ze = 1 };
#else
enum { tk_has_kind_ze = 0 };
#endif

#endif
