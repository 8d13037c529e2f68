/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Identity of this library: the symbol that clients' objects refer to, the texts that `ident`
 * finds, the release. Constant data. */
#include "config.h"

#include "base/client_mode.h"
#include "gasnet_tools.h"
#include "tools/tools.h"

const int TRUNKLINE_TOOLS_GUARD = 1;

const bool tk_tools_has_threads = TK_SEVERAL_CLIENT_THREADS;

#define IDENT(name, text) TRUNKLINE_KEEP const char trunkline_ident_tools_##name[] = text

IDENT(config, "$GASNetToolsConfig: (libgasnet.a) " GASNETT_CONFIG_STRING " $");
IDENT(mode, "$GASNetToolsThreadModel: " TRUNKLINE_TOOLS_MODEL_STRING " $");

const char *gasnett_release_version_str(void)
{
    return PLATFORM_STRINGIFY(GASNETI_RELEASE_VERSION);
}

uint64_t gasnett_release_version(void)
{
    return GASNETT_RELEASE_VERSION_MAJOR * UINT64_C(1000000) +
           GASNETT_RELEASE_VERSION_MINOR * UINT64_C(10000) + GASNETT_RELEASE_VERSION_PATCH;
}

#if GASNET_DEBUG
#    define CHECKS "        debug checks in every call (--enable-debug)\n"
#else
#    define CHECKS ""
#endif
#if GASNETI_DEBUG_MALLOC
#    define HEAP "        a checked heap (--enable-debug-malloc)\n"
#else
#    define HEAP ""
#endif
#if !GASNET_DEBUG && !defined(__OPTIMIZE__)
#    define OPTIMISED "        a library compiled without optimisation (CFLAGS)\n"
#else
#    define OPTIMISED ""
#endif

const char *gasnett_performance_warning_str(void)
{
    return CHECKS HEAP OPTIMISED;
}
