/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The trampolines of the replacement library: one for each function that the host's libibverbs exports and we do not
 * define. Each jumps through its entry of shca_forward_table, which at first leads to the resolver (forward.c) and then
 * straight to the host's function. The list of them, exports.inc, is generated. */
#if defined(__x86_64__)
#    include "x86_64.S"
#elif defined(__aarch64__)
#    include "aarch64.S"
#else
#    error "no trampolines for this machine: configure should have left the replacement out"
#endif

/* A variable of the host's library: room of its size here, filled by forward.c. */
.macro data number, versioned, size
    .pushsection .bss
    .balign 16
    .globl shca_export_\number
    .type shca_export_\number, %object
    .size shca_export_\number, \size
shca_export_\number:
    .zero \size
    .symver shca_export_\number, \versioned
    .popsection
    .pushsection .data.shca_forward, "aw"
    entry shca_export_\number
    .popsection
.endm

    .section .data.shca_forward, "aw"
    .balign 8
    .globl shca_forward_table
    .hidden shca_forward_table
shca_forward_table:
    .text
#include "exports.inc"

    .section .note.GNU-stack, "", %progbits
