/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One line of JSON as a tree. Strings are decoded in place; the tree is valid until the next line
 * is parsed or the line's buffer changes. */
#ifndef TRUNKLINE_REPORT_JSON_H
#define TRUNKLINE_REPORT_JSON_H

#include "contrib/trace/word.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json_node {
    enum json_type type;
    struct trace_word key;              /* in an object */
    struct trace_word text;             /* of a number, a string or a truth value */
    uint32_t parent, child, last, next; /* 0: none; the root is node 0 */
};

struct json_tree {
    struct json_node *nodes;
    size_t count, room;
};

enum json_status { JSON_GOOD, JSON_WRONG, JSON_NO_MEMORY };

/* All of the line is one value. */
enum json_status json_parse(struct json_tree *tree, char *line, size_t length);
void json_free(struct json_tree *tree);

const struct json_node *json_root(const struct json_tree *tree);
/* NULL: none. `of` may be NULL. */
const struct json_node *json_first(const struct json_tree *tree, const struct json_node *of);
const struct json_node *json_next(const struct json_tree *tree, const struct json_node *node);
const struct json_node *json_member(const struct json_tree *tree, const struct json_node *of,
                                    const char *key);

/* False: there is no such member, or it is of another type or out of range. */
bool json_number(const struct json_tree *tree, const struct json_node *of, const char *key,
                 uint64_t *number);
bool json_number32(const struct json_tree *tree, const struct json_node *of, const char *key,
                   uint32_t *number);
/* With six digits behind the point, as seconds are written; in millionths. */
bool json_micros(const struct json_tree *tree, const struct json_node *of, const char *key,
                 uint64_t *micros);
struct trace_word json_text(const struct json_tree *tree, const struct json_node *of,
                            const char *key);

#endif
