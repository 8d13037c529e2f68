/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Linked with a test of failing rails: receive queues are shared. */
#include "config.h"

#include "failing_rails.h"

const char *failing_rails_setting(void)
{
    return "GASNET_USE_SRQ=1";
}
