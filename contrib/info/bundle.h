/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file that trunkline_info --bundle writes: sections "[NAME OBJECT]" of lines "KEY = VALUE"
 * between "trunkline-bundle 1" and "[end]" (trunkline_info(1) describes them). bundle_text.c owns
 * the file and what is hidden; one process, no lock. */
#ifndef TRUNKLINE_INFO_BUNDLE_H
#define TRUNKLINE_INFO_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/verbs/library.h"

/* ---- bundle_text.c ---- */

/* NULL: standard output. False: it can't be written; an error was printed. */
bool bundle_open(const char *file, bool keeps_host);
/* Whether the value of a variable of this name is hidden. */
bool bundle_is_secret(const char *name);
void bundle_section(const char *name, const char *object);
/* Hides secrets, user, home directory and host in the value, and characters that end a line. */
void bundle_fact(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes "[end]". False: a part is lost; an error was printed. */
bool bundle_close(void);

/* ---- the other files; each writes sections ---- */

void bundle_host(void);
void bundle_environment(void);
void bundle_topology(void);
void bundle_kernel(void);
void bundle_device(struct ibv_context *context);
void bundle_probe(struct ibv_context *context, const struct ibv_device_attr *attr);

/* Starts a job of two processes that use this port alone; device NULL: shared memory. False: it
 * failed; the reason was written. */
bool bundle_test(const char *device, int port, unsigned seconds);

#endif
