/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Chooses the path of a non-contiguous transfer that cannot be copied in place. Pure; the
 * thresholds are settings, their defaults measured by make bench-vector. */
#ifndef TK_VECTOR_CHOOSE_H
#define TK_VECTOR_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

enum tk_vector_path {
    TK_VECTOR_BY_PIECES,   /* a put or get for each piece */
    TK_VECTOR_BY_MESSAGES, /* packed in active messages */
    TK_VECTOR_BY_LISTS,    /* by lists of the device, for a far side that is contiguous */
    TK_VECTOR_BY_STAGES,   /* packed in registered memory, for a far side that is contiguous */
    TK_VECTOR_BY_DEVICES,  /* memory of a device on either side; never chosen */
    TK_VECTOR_BY_FILL      /* no transfer of data: the value in messages; never chosen */
};

struct tk_vector_facts {
    size_t nbytes, pieces; /* in all; pieces as the side that has more is cut */
    bool is_remote_whole;  /* the remote side is contiguous */
    bool may_pack;         /* the target can check addresses: it is about its endpoint 0 */
    bool may_list;         /* the device takes lists of this local memory */
    bool may_stage;        /* over a network that has the remote memory registered */
    bool is_slow;          /* each piece would cost a system call or a registration */
};

enum tk_vector_path tk_vector_choose(const struct tk_vector_facts *facts);

#endif
