/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connect files: which ranks connect to which (GASNET_CONNECTFILE_IN, _OUT). Lines "rank: peer
 * first-last ...", "size: ranks of the job" and "base: of the rank numbers that follow". Pure
 * functions of texts: no files, no state. */
#ifndef TK_CONNECT_FILE_H
#define TK_CONNECT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { tk_connect_base_min = 2, tk_connect_base_max = 36 };

enum tk_connect_verdict {
    TK_CONNECT_FITS,
    TK_CONNECT_OTHER_JOB, /* it names another size, or ranks that this job does not have */
    TK_CONNECT_MALFORMED
};

/* Sets wanted[r] for each peer that rank `me` of `size` shares a connection with, in whichever of
 * the two ranks' lines the text names it; a rank is not its own peer. If the text does not fit the
 * job, `why` has the line and the reason, and `wanted` is undefined. */
enum tk_connect_verdict tk_connect_parse(const char *text, size_t length, uint32_t me,
                                         uint32_t size, bool *wanted, char *why, size_t why_size);

/* The lines of one rank, without or with the lines of size and base before them; to be freed. A
 * rank without peers has a line too. NULL: out of memory. */
char *tk_connect_format(uint32_t me, uint32_t size, unsigned base, bool with_head,
                        const bool *connected);

/* The number of consecutive ranks whose lines such a text consists of. */
uint32_t tk_connect_count(const char *text, size_t length);

/* `name` with each '%' replaced by the rank; to be freed. NULL: out of memory. */
char *tk_connect_name(const char *name, uint32_t me);

#endif
