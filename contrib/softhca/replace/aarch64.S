/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trampolines for aarch64 (AAPCS64). x16 and x17 are free between a call and the function it reaches; x0-x8 and q0-q7
 * may hold arguments and are kept. */
.macro entry symbol
    .xword \symbol
.endm

.macro forward number, versioned
    .balign 16
    .globl shca_export_\number
    .type shca_export_\number, %function
shca_export_\number:
    hint #34 /* bti c */
    adrp x16, (shca_forward_table + 8 * \number)
    ldr x16, [x16, :lo12:(shca_forward_table + 8 * \number)]
    br x16
    .size shca_export_\number, . - shca_export_\number
    .symver shca_export_\number, \versioned
shca_first_\number:
    hint #34
    mov w17, #\number
    b first_call
    .pushsection .data.shca_forward, "aw"
    entry shca_first_\number
    .popsection
.endm

    .text
    .type first_call, %function
first_call:
    .cfi_startproc
    stp x29, x30, [sp, #-224]!
    .cfi_adjust_cfa_offset 224
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov w0, w17
    bl shca_forward_resolve
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    .cfi_adjust_cfa_offset -224
    .cfi_restore x29
    .cfi_restore x30
    br x16
    .cfi_endproc
    .size first_call, . - first_call
