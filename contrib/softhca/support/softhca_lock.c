/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Waiting for a lock of this process. Owns nothing. */
#include "config.h"

#include "softhca_lock.h"

void shca_lock_slow(struct shca_lock *l)
{
    unsigned turns = 0;

    while (!shca_trylock(l))
        shca_relax(&turns);
}
