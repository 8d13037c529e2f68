/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The conduit's name and features, as macros for #if; gasnetex.h includes it through the conduit's
 * own include directory, which is what selects a conduit. A feature macro is 1 or undefined, never
 * 0. Owns nothing, locks nothing. */
#ifndef GASNET_CORE_FWD_H
#define GASNET_CORE_FWD_H

#define GASNET_CONDUIT_IBV 1

#define GASNET_CONDUIT_NAME         IBV
#define GASNET_CONDUIT_NAME_STR     "IBV"
#define GASNET_CORE_NAME            IBV
#define GASNET_CORE_NAME_STR        "IBV"
#define GASNET_CORE_VERSION         2.17
#define GASNET_CORE_VERSION_STR     "2.17"
#define GASNET_EXTENDED_NAME        IBV
#define GASNET_EXTENDED_NAME_STR    "IBV"
#define GASNET_EXTENDED_VERSION     2.15
#define GASNET_EXTENDED_VERSION_STR "2.15"

/* Facts that the interface defines for this conduit; nothing here depends on them. */
#define GASNET_MAXNODES 65535

/* Endpoints per process, the first included: one for each of about 32 devices. The first additional
 * endpoint that a process publishes costs a table of 2 KiB in every process of the job. */
#define GASNET_MAXEPS 33

/* Memory kinds. Whether a machine has accelerators shows at run time. With segments EVERYTHING the
 * conduit has none: there an address does not tell which memory it is in. */
#define GASNET_HAVE_MK_CLASS_HOST 1
#if !defined(GASNET_SEGMENT_EVERYTHING)
#    if defined(TRUNKLINE_KIND_CUDA_UVA)
#        define GASNET_HAVE_MK_CLASS_CUDA_UVA 1
#        define GASNET_HAVE_MK_CLASS_MULTIPLE 1
#    endif
#    if defined(TRUNKLINE_KIND_HIP)
#        define GASNET_HAVE_MK_CLASS_HIP 1
#        undef GASNET_HAVE_MK_CLASS_MULTIPLE
#        define GASNET_HAVE_MK_CLASS_MULTIPLE 1
#    endif
#    if defined(TRUNKLINE_KIND_ZE)
#        define GASNET_HAVE_MK_CLASS_ZE 1
#        undef GASNET_HAVE_MK_CLASS_MULTIPLE
#        define GASNET_HAVE_MK_CLASS_MULTIPLE 1
#    endif
#endif

/* Processes of one host share memory. */
#define GASNET_PSHM 1

/* Segments of different processes may start at different addresses. */
#define GASNET_ALIGNED_SEGMENTS 0

/* gex_Client_Init() takes NULL for argc and argv. */
#define GASNET_NULL_ARGV_OK 1

/* One port of one device is used. */
#define GASNET_IBV_MAX_HCAS 1

/* Names outside of the interface that the reference implementation defines and clients use. */
#define GASNETC_IBV_MAX_HCAS_CONFIGURE GASNET_IBV_MAX_HCAS
#define GASNETI_PSHM_ENABLED           1

/* Threads of the library may serve the network, and one of them run handlers, if the environment
 * asks for it (GASNET_RCV_THREAD, GASNET_SND_THREAD). */
#if !defined(TRUNKLINE_ANY_MODE)
#    ifdef GASNET_PAR
#        define GASNET_RCV_THREAD                  1
#        define GASNET_SND_THREAD                  1
#        define GASNET_HIDDEN_AM_CONCURRENCY_LEVEL 1
#        define GASNETC_IBV_RCV_THREAD             1
#    else
#        define GASNET_HIDDEN_AM_CONCURRENCY_LEVEL 0
#    endif
#endif

/* Every field of gex_Token_Info_t is filled in. */
#define GASNET_SUPPORTS_TI_SRCRANK 1
#define GASNET_SUPPORTS_TI_ENTRY   1
#define GASNET_SUPPORTS_TI_IS_REQ  1
#define GASNET_SUPPORTS_TI_IS_LONG 1
#define GASNET_SUPPORTS_TI_EP      1

/* A buffer that Prepare provides is the one that the device sends from. */
#define GASNET_NATIVE_NP_ALLOC_REQ_MEDIUM 1
#define GASNET_NATIVE_NP_ALLOC_REP_MEDIUM 1
#define GASNET_NATIVE_NP_ALLOC_REQ_LONG   1
#define GASNET_NATIVE_NP_ALLOC_REP_LONG   1

/* gex_AM_Cancel*, and gex_AM_Commit*_v2; the values are dates that the interface defines. */
#define GASNET_SUPPORTS_AM_CANCEL    20240418L
#define GASNET_SUPPORTS_AM_COMMIT_V2 20240906L

#endif
