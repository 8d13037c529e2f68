/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations that clients expect from any public header: the system headers that headers of this
 * interface have always included, and two macros that were never public. Adding a header here takes
 * names from clients; removing one breaks clients that rely on it. Owns nothing. */
#ifndef GASNET_TOOLS_BASIC_H
#define GASNET_TOOLS_BASIC_H

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* <sys/param.h> defines MIN and MAX unconditionally; a client's definitions must survive it. */
#ifdef MIN
#    pragma push_macro("MIN")
#    undef MIN
#    define TRUNKLINE_POP_MIN
#endif
#ifdef MAX
#    pragma push_macro("MAX")
#    undef MAX
#    define TRUNKLINE_POP_MAX
#endif
#include <sys/param.h>
#ifdef TRUNKLINE_POP_MIN
#    undef TRUNKLINE_POP_MIN
#    undef MIN
#    pragma pop_macro("MIN")
#endif
#ifdef TRUNKLINE_POP_MAX
#    undef TRUNKLINE_POP_MAX
#    undef MAX
#    pragma pop_macro("MAX")
#endif

#ifndef _STRINGIFY
#    define _STRINGIFY_HELPER(x) #    x
#    define _STRINGIFY(x)        _STRINGIFY_HELPER(x)
#endif
#ifndef _CONCAT
#    define _CONCAT_HELPER(a, b) a##b
#    define _CONCAT(a, b)        _CONCAT_HELPER(a, b)
#endif

#endif
