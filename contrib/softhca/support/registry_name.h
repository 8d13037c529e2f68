/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The names in the registry, that is, of the sockets of a fabric's members. Pure functions, shared
 * by the library and the softhca command. Owns nothing, takes no lock. */
#ifndef SHCA_REGISTRY_NAME_H
#define SHCA_REGISTRY_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment_layout.h"

/* A line of /proc/net/unix about one member. */
struct shca_name {
    char fabric[SHCA_NAME];
    unsigned uid, slot, pid, space;
    int fd;
};

/* The internal name of the fabric that a user calls text (NULL or empty: "default"). */
void shca_name_fabric(const char *text, unsigned uid, char out[SHCA_NAME]);
/* The name of the socket that claims a slot and takes requests. */
void shca_name_claim(char *out, size_t room, const char *fabric, unsigned slot);
/* The name of a string that members register, see shca_registry_hold; it begins with a letter. */
void shca_name_word(char *out, size_t room, const char *fabric, const char *word);
/* The name that locates the segment of that slot. */
void shca_name_segment(char *out, size_t room, const struct shca_name *n);
/* Of this process, for names: tells PID namespaces apart. 0: unknown, without /proc. */
unsigned shca_name_space(void);
/* Reads a line of /proc/net/unix; false: it is not about a segment of our layout. */
bool shca_name_parse(const char *line, struct shca_name *out);
/* The same for segments of other layouts; for error messages only. */
bool shca_name_parse_foreign(const char *line, struct shca_name *out, unsigned *layout);

#endif
