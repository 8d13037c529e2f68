/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Installed in ibv-conduit. A prefix that the compiler searches by itself, such as /usr/local,
 * makes the headers there system headers, whatever -I says, and gcc marks their macros in
 * preprocessed text, which breaks probes of clients. The -I of ibv-conduit counts, so the header is
 * found here first and is an ordinary one. Owns nothing. */
#include "../gasnet.h"
