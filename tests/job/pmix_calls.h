/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What this rank has requested of the PMIx server: gets of keys that ranks publish, puts, fences.
 */
#ifndef PMIX_CALLS_H
#define PMIX_CALLS_H

struct pmix_calls {
    unsigned gets, puts, fences;
};
extern struct pmix_calls pmix_calls;

#endif
