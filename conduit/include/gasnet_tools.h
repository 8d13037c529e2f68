/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tools interface: time, memory barriers, atomics, locks, thread keys, environment, errors and
 * backtraces, the system. Needs no job: if gasnetex.h is included before it, it is part of the
 * conduit's library; otherwise link with libgasnet_tools-seq or libgasnet_tools-par.
 *
 * Everything may be called from any thread unless a comment says otherwise. Names in here may be
 * macros; do not take their addresses. Owns nothing itself, locks nothing itself. */
#ifndef GASNET_TOOLS_H
#define GASNET_TOOLS_H

#include "gasnet_config.h"
#include "gasnet_portable_platform.h"
#include "gasnet-tools/basic.h"
#include "gasnet-tools/annotate.h"
#include "gasnet-tools/mode.h"
#include "gasnet-tools/fence.h"
#include "gasnet-tools/time.h"

/* Lite mode has time and memory barriers only. */
#if !defined(GASNETT_LITE_MODE)
#    include "gasnet-tools/error.h"
#    include "gasnet-tools/atomic.h"
#    include "gasnet-tools/lock.h"
#    include "gasnet-tools/key.h"
#    include "gasnet-tools/env.h"
#    include "gasnet-tools/system.h"
#    include "gasnet-tools/trace.h"
#    include "gasnet-tools/malloc.h"
#    include "gasnet-tools/text.h"
#    include "gasnet-tools/compat.h"
#endif

/* Needs types of a job: teams, ranks, data types. */
#if defined(GASNETEX_H) && !defined(GASNETT_LITE_MODE)
#    include "gasnet-tools/format.h"
#endif

#endif
