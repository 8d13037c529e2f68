/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tables of trace.def. No state. */
#include "config.h"

#include "trace/event.h"

const char *const tk_trace_op_names[tk_trace_ops] = {
#define TK_TRACE_OP(id, letter, name) name,
#include "trace/trace.def"
};

/* Names without the kind of transfer, which is the prefix of the id. */
const char *const tk_trace_path_names[tk_trace_paths] = {
#define TK_PATH(id, letter, name, sentence) &#id[sizeof("puts_") - 1],
#include "stats/counters.def"
    [tk_trace_path_rendezvous] = "rendezvous",
    [tk_trace_path_region] = "region",
    [tk_trace_path_segment] = "segment",
    [tk_trace_path_buffers] = "buffers"};

const char tk_trace_op_letters[tk_trace_ops] = {
#define TK_TRACE_OP(id, letter, name) letter,
#include "trace/trace.def"
};
