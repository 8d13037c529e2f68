/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trampolines for x86-64 (System V ABI). r11 is free at a call and carries the number; rax holds the count of vector
 * registers of a variadic call and is kept, as are all registers of arguments. */
.macro entry symbol
    .quad \symbol
.endm

.macro forward number, versioned
    .balign 16
    .globl shca_export_\number
    .type shca_export_\number, %function
shca_export_\number:
    endbr64
    jmpq *(shca_forward_table + 8 * \number)(%rip)
    .size shca_export_\number, . - shca_export_\number
    .symver shca_export_\number, \versioned
shca_first_\number:
    endbr64
    movl $\number, %r11d
    jmp first_call
    .pushsection .data.shca_forward, "aw"
    entry shca_first_\number
    .popsection
.endm

    .text
    .type first_call, %function
first_call:
    .cfi_startproc
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    pushq %rax
    pushq %r10
    subq $136, %rsp /* eight vector registers, and the stack on a multiple of 16 */
    .cfi_adjust_cfa_offset 200
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movl %r11d, %edi
    call shca_forward_resolve
    movq %rax, %r11
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq $136, %rsp
    .cfi_adjust_cfa_offset -136
    popq %r10
    popq %rax
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    .cfi_adjust_cfa_offset -64
    jmpq *%r11
    .cfi_endproc
    .size first_call, . - first_call
