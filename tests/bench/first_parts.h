/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the time of a first message goes: moments at which a rank calls the device. Linked into
 * first_parts only; first_message has none of it, so that nothing is measured but the message. */
#ifndef FIRST_PARTS_H
#define FIRST_PARTS_H

#include <stdbool.h>

/* The asking rank just before its message and when the answer has come; the asked one before it
 * polls and when it has answered. */
__attribute__((weak)) void first_parts_begin(void);
__attribute__((weak)) void first_parts_end(void);

/* Collective: rank 0 prints the parts and the counts of both. */
__attribute__((weak)) bool first_parts_print(unsigned me);

#endif
