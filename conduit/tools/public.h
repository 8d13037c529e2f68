/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The public header as this copy of the library sees it: behind gasnetex.h in a conduit, alone in
 * the libraries of the tools. */
#ifndef TK_TOOLS_PUBLIC_H
#define TK_TOOLS_PUBLIC_H

#if defined(GASNET_SEQ) || defined(GASNET_PARSYNC) || defined(GASNET_PAR)
#    include "gasnetex.h"
#endif
#include "gasnet_tools.h"

#endif
