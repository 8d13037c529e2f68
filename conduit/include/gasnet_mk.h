/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory kinds: memory of devices as segments. Host memory is GEX_MK_HOST, which needs no call.
 * GASNET_HAVE_MK_CLASS_CUDA_UVA, _HIP and _ZE are 1 where the library has the class;
 * gex_MK_Create() finds out whether this machine has such a device and its driver. Owns nothing,
 * locks nothing. */
#ifndef GASNET_MK_H
#define GASNET_MK_H

#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    GEX_MK_CLASS_HOST,
    GEX_MK_CLASS_CUDA_UVA,
    GEX_MK_CLASS_HIP,
    GEX_MK_CLASS_ZE
} gex_MK_Class_t;

typedef struct {
    uint64_t gex_flags; /* 0 */
    gex_MK_Class_t gex_class;
    union {
        struct {
            int gex_CUdevice;
        } gex_class_cuda_uva;
        struct {
            int gex_hipDevice;
        } gex_class_hip;
        struct {
            void *gex_zeDevice;
            void *gex_zeContext;
            uint32_t gex_zeMemoryOrdinal;
        } gex_class_ze;
    } gex_args;
} gex_MK_Create_args_t;

/* Local. Makes a kind of a device's memory, for gex_Segment_Create(); any number of kinds of one
 * device. The device's context (CUDA: the primary one) is kept while the kind or a segment of it
 * exists; no library call changes the current context of the calling thread. gex_flags, flags: 0.
 * GASNET_ERR_BAD_ARG: wrong arguments, or a class that this library lacks; GASNET_ERR_RESOURCE: no
 * driver, no such device, or a device that can't be used. *mk_p is unchanged then, and the reason
 * printed (gex_System_SetVerboseErrors()). */
int gex_MK_Create(gex_MK_t *mk_p, gex_Client_t client, const gex_MK_Create_args_t *args,
                  gex_Flags_t flags);

/* These take a kind of gex_MK_Create(), never GEX_MK_HOST. A kind may be destroyed before or after
 * its segments. flags: 0. */
void gex_MK_Destroy(gex_MK_t mk, gex_Flags_t flags);
gex_Client_t gex_MK_QueryClient(gex_MK_t mk);
gex_Flags_t gex_MK_QueryFlags(gex_MK_t mk);
gex_MK_Class_t gex_MK_QueryClass(gex_MK_t mk);
void gex_MK_SetCData(gex_MK_t mk, const void *value);
void *gex_MK_QueryCData(gex_MK_t mk);

#ifdef __cplusplus
}
#endif

#if TRUNKLINE_HAS_LINES
#    define gex_MK_Create(...)      TRUNKLINE_AT(gex_MK_Create, __VA_ARGS__)
#    define gex_MK_Destroy(...)     TRUNKLINE_AT(gex_MK_Destroy, __VA_ARGS__)
#    define gex_MK_QueryClient(...) TRUNKLINE_AT(gex_MK_QueryClient, __VA_ARGS__)
#    define gex_MK_QueryFlags(...)  TRUNKLINE_AT(gex_MK_QueryFlags, __VA_ARGS__)
#    define gex_MK_QueryClass(...)  TRUNKLINE_AT(gex_MK_QueryClass, __VA_ARGS__)
#    define gex_MK_SetCData(...)    TRUNKLINE_AT(gex_MK_SetCData, __VA_ARGS__)
#    define gex_MK_QueryCData(...)  TRUNKLINE_AT(gex_MK_QueryCData, __VA_ARGS__)
#endif

#endif
