/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What users of some devices are told at start-up: that the device can't be used, or that another
 * interface to it is faster. No state. */
#ifndef TK_VERBS_KNOWN_H
#define TK_VERBS_KNOWN_H

#include <infiniband/verbs.h>

/* NULL, or why no rank can be connected over the device. */
const char *tk_known_lack(struct ibv_context *context, const struct ibv_device_attr *attr);
/* NULL, or what users of the devices of this vendor should do instead. */
const char *tk_known_advice(uint32_t vendor);

#endif
