/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a file of text that a user has named: all of it, but no more than a limit, so that a
 * wrong name (/dev/zero, a log) gives an error message instead of filling the memory of the host. A
 * pipe is a file like any other. Owns nothing, takes no lock. */
#ifndef TK_FILE_TEXT_H
#define TK_FILE_TEXT_H

#include <stddef.h>

/* The text with a zero byte behind it, to be freed; `size` is without that byte. NULL: it can't be
 * read, has more than `limit` bytes or has a zero byte in it, and `why` says which. */
char *tk_file_text(const char *path, size_t limit, size_t *size, char *why, size_t why_size);

#endif
