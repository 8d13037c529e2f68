/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Devices that need a word: those that lack what this library needs, and those that have something
 * better than verbs. No state. */
#ifndef TK_VERBS_KNOWN_H
#define TK_VERBS_KNOWN_H

#include <infiniband/verbs.h>

/* NULL, or why no rank can be connected over the device. */
const char *tk_known_lack(struct ibv_context *context, const struct ibv_device_attr *attr);
/* NULL, or what users of the devices of this vendor should do instead. */
const char *tk_known_advice(uint32_t vendor);

#endif
