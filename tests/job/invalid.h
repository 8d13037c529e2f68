/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that invalid.awk generates from the public headers, and their arguments. */
#ifndef TESTS_JOB_INVALID_H
#define TESTS_JOB_INVALID_H

#include <stdbool.h>

#include "gasnet.h"
#include "gasnet_coll.h"
#include "gasnet_mk.h"
#include "gasnet_ratomic.h"
#include "gasnet_vis.h"

struct invalid_call {
    const char *name, *object; /* the function, and what is invalid */
    unsigned line;             /* of the call, in the file that is made */
    bool has_status;           /* which call() returns then */
    int (*call)(void);
};
extern const struct invalid_call invalid_calls[];
extern const unsigned invalid_count;

/* No constants: compilers warn of these. */
struct invalid_objects {
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    gex_MK_t mk;
    gex_AD_t ad;
    gex_Token_t token;
    gex_AM_SrcDesc_t srcdesc;
    gex_Event_t event;
};
extern struct invalid_objects valid_objects, invalid_objects;
extern uint64_t invalid_buffer[64];

#endif
