/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests without a launcher: gathering fails. Owns nothing. */
#include "config.h"

#include "bootstrap/gather.h"

enum tk_status tk_gather(const char *key, const void *mine, size_t size, void (*poll)(void))
{
    (void)key, (void)mine, (void)size, (void)poll;
    return TK_FAIL;
}

void *tk_gathered(uint32_t rank, size_t *size)
{
    (void)rank, (void)size;
    return NULL;
}

void tk_gather_withdraw(const char *key)
{
    (void)key;
}

void tk_gather_drop(void)
{
}
