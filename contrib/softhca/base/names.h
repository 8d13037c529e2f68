/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of the registry: what the members of a fabric call their sockets. Pure functions,
 * shared by the library and the softhca command. Owns nothing, takes no lock. */
#ifndef SHCA_NAMES_H
#define SHCA_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"

/* What a line of the kernel's table says about one member. */
struct shca_name {
    char fabric[SHCA_NAME];
    unsigned uid, slot, pid;
    int fd;
};

/* The internal name of the fabric that a user calls text (NULL or empty: "default"). */
void shca_name_fabric(const char *text, unsigned uid, char out[SHCA_NAME]);
/* The name of the socket that claims a slot and takes requests. */
void shca_name_claim(char *out, size_t room, const char *fabric, unsigned slot);
/* A word that members hold, see shca_registry_hold; it begins with a letter. */
void shca_name_word(char *out, size_t room, const char *fabric, const char *word);
/* The name that says where the segment of that slot is. */
void shca_name_segment(char *out, size_t room, const struct shca_name *n);
/* Reads a line of /proc/net/unix; false: it is not about a segment of our layout. */
bool shca_name_parse(const char *line, struct shca_name *out);
/* The same for segments of other layouts, which nobody but a message may speak of. */
bool shca_name_parse_foreign(const char *line, struct shca_name *out, unsigned *layout);

#endif
