/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Included before each source of the installed libraries (-include): records where the code of this
 * object begins and ends, in a section whose bounds the linker names. An archive's objects may lie
 * anywhere in the client's program, so nothing else distinguishes its code from the client's;
 * code.h reads the records. Two offsets for .text and two for .text.unlikely, each relative to its
 * own address, so that they need no relocation at run time. Subsection 8191 comes last in a
 * section, whatever the compiler puts before it. Does nothing where the assembler is not known to
 * support all this. */
#if defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__))
#    define TK_CODE_EXTENT_OF(section)                                                             \
        ".pushsection " section ",0,\"ax\",@progbits\n991:\n.popsection\n"                         \
        ".pushsection " section ",8191,\"ax\",@progbits\n992:\n.popsection\n"                      \
        ".pushsection trunkline_code,\"a\",@progbits\n.balign 4\n"                                 \
        ".long 991b - .\n.long 992b - .\n.popsection\n"
__asm__(TK_CODE_EXTENT_OF(".text") TK_CODE_EXTENT_OF(".text.unlikely"));
#    undef TK_CODE_EXTENT_OF
#endif
