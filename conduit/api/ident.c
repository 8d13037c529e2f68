/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Identification of the library: the symbol that clients' objects refer to, and the strings that
 * launchers and build systems search for in libraries and executables. The symbol pulls the strings
 * into a statically linked program. Constant data, no lock. */
#include "config.h"

#include "gasnetex.h"
#include "base/client_mode.h"
#include "base/segment_mode.h"

const int TRUNKLINE_GUARD = 1;

#define IDENT(name, text) TRUNKLINE_KEEP const char trunkline_ident_##name[] = text

IDENT(conduit, "$GASNetConduitName: IBV $");
IDENT(mode, "$GASNetThreadModel: " TK_MODE_TEXT " $");
IDENT(segment, "$GASNetSegment: GASNET_SEGMENT_" TRUNKLINE_SEGMENT_NAME " $");
IDENT(config, "$GASNetConfig: (libgasnet.a) " GASNET_CONFIG_STRING " $");
IDENT(version, "$GASNetEXAPIVersion: " TRUNKLINE_STRING(
                   GEX_SPEC_VERSION_MAJOR) "." TRUNKLINE_STRING(GEX_SPEC_VERSION_MINOR) " $");
IDENT(version1, "$GASNetAPIVersion: 1 $");
IDENT(core, "$GASNetCoreLibraryName: IBV $");
IDENT(core_version, "$GASNetCoreLibraryVersion: " GASNET_CORE_VERSION_STR " $");
IDENT(extended, "$GASNetExtendedLibraryName: IBV $");
IDENT(extended_version, "$GASNetExtendedLibraryVersion: " GASNET_EXTENDED_VERSION_STR " $");
IDENT(spawner_ssh, "$GASNetSSHSpawner: 1 $");
IDENT(spawner_mpi, "$GASNetMPISpawner: 1 $");
IDENT(spawner_pmi, "$GASNetPMISpawner: 1 $");
IDENT(build, "$GASNetBuildId: " GASNETI_BUILD_ID " $");
IDENT(system, "$GASNetSystemTuple: " GASNETI_SYSTEM_TUPLE " $");
IDENT(medium, "$GASNetAMMaxMedium: " TK_MAX_MEDIUM_LUB_TEXT " $");
IDENT(segsize, "$GASNetDefaultMaxSegsizeStr: 0.85/H $");
