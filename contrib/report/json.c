/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See json.h. Without recursion, so that no input exhausts the stack. The writers escape bytes, not
 * characters (\u00c3), so an escape below 256 becomes that byte; a larger one becomes UTF-8. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/report/json.h"

/* A record of --top of the largest job has half of these nodes. */
enum { depth_max = 32, nodes_max = 1 << 25 };

struct parser {
    struct json_tree *tree;
    char *at, *end;
    uint32_t parent;
    unsigned depth;
    bool is_out_of_memory;
};

static void skip_blanks(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
}

static bool take(struct parser *p, char wanted)
{
    if (p->at == p->end || *p->at != wanted)
        return false;
    p->at++;
    return true;
}

static bool take_hex(struct parser *p, unsigned *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++) {
        char c = p->at < p->end ? *p->at++ : '\0';
        if (c >= '0' && c <= '9')
            *code = *code << 4 | (unsigned)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            *code = *code << 4 | (unsigned)((c | 0x20) - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* At most three bytes, which are fewer than the six of the escape. */
static char *put_code(char *to, unsigned code)
{
    if (code < 256) {
        *to++ = (char)(unsigned char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code >= 0xd800 && code < 0xe000) {
        *to++ = '?';
    } else {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

static bool take_escape(struct parser *p, char **to)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    char c = p->at < p->end ? *p->at++ : '\0';
    unsigned code;
    if (c == 'u') {
        if (!take_hex(p, &code))
            return false;
        *to = put_code(*to, code);
        return true;
    }
    const char *found = c ? strchr(names, c) : NULL;
    if (!found)
        return false;
    *(*to)++ = bytes[found - names];
    return true;
}

/* Decoded in place: it never becomes longer. */
static bool take_string(struct parser *p, struct trace_word *word)
{
    if (!take(p, '"'))
        return false;
    char *to = p->at;
    word->at = to;
    while (p->at < p->end && *p->at != '"') {
        char byte = *p->at++;
        if ((unsigned char)byte < 0x20)
            return false;
        if (byte != '\\')
            *to++ = byte;
        else if (!take_escape(p, &to))
            return false;
    }
    word->length = (size_t)(to - word->at);
    return take(p, '"');
}

static struct json_node *add_node(struct parser *p, enum json_type type, struct trace_word key)
{
    struct json_tree *tree = p->tree;
    if (tree->count == tree->room) {
        size_t room = tree->room ? 2 * tree->room : 256;
        struct json_node *nodes =
            room > nodes_max ? NULL : realloc(tree->nodes, room * sizeof(*nodes));
        if (!nodes) {
            p->is_out_of_memory = true;
            return NULL;
        }
        tree->nodes = nodes;
        tree->room = room;
    }
    uint32_t index = (uint32_t)tree->count++;
    tree->nodes[index] = (struct json_node){.type = type, .key = key, .parent = p->parent};
    if (index > 0) {
        struct json_node *parent = &tree->nodes[p->parent];
        if (parent->last)
            tree->nodes[parent->last].next = index;
        else
            parent->child = index;
        parent->last = index;
    }
    return &tree->nodes[index];
}

static bool take_word(struct parser *p, struct json_node *node)
{
    static const char *const words[] = {"null", "true", "false"};
    for (unsigned i = 0; i < 3; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(p->end - p->at) < length || memcmp(p->at, words[i], length) != 0)
            continue;
        node->type = i ? JSON_BOOL : JSON_NULL;
        node->text = (struct trace_word){p->at, length};
        p->at += length;
        return true;
    }
    return false;
}

static bool take_number(struct parser *p, struct json_node *node)
{
    const char *begin = p->at;
    bool has_digit = false;
    for (; p->at < p->end && strchr("+-.eE0123456789", *p->at) && *p->at; p->at++)
        has_digit = has_digit || (*p->at >= '0' && *p->at <= '9');
    node->type = JSON_NUMBER;
    node->text = (struct trace_word){begin, (size_t)(p->at - begin)};
    return has_digit;
}

/* A value, or the beginning of one that has members. */
static bool take_value(struct parser *p, struct trace_word key)
{
    char c = p->at < p->end ? *p->at : '\0';
    struct json_node *node = add_node(p, JSON_NULL, key);
    if (!node)
        return false;
    if (c == '{' || c == '[') {
        node->type = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        p->parent = (uint32_t)(node - p->tree->nodes);
        p->at++;
        return ++p->depth <= depth_max;
    }
    if (c == '"') {
        node->type = JSON_STRING;
        return take_string(p, &node->text);
    }
    return c == '-' || (c >= '0' && c <= '9') ? take_number(p, node) : take_word(p, node);
}

/* Ends of arrays and objects that stand here. */
static bool take_ends(struct parser *p)
{
    for (;;) {
        skip_blanks(p);
        const struct json_node *open = &p->tree->nodes[p->parent];
        if (p->depth == 0 || !take(p, open->type == JSON_OBJECT ? '}' : ']'))
            return true;
        p->parent = open->parent;
        p->depth--;
    }
}

static bool take_member(struct parser *p)
{
    const struct json_node *open = &p->tree->nodes[p->parent];
    struct trace_word key = {NULL, 0};
    if (open->child && !take(p, ','))
        return false;
    skip_blanks(p);
    if (open->type == JSON_OBJECT) {
        if (!take_string(p, &key))
            return false;
        skip_blanks(p);
        if (!take(p, ':'))
            return false;
        skip_blanks(p);
    }
    return take_value(p, key);
}

enum json_status json_parse(struct json_tree *tree, char *line, size_t length)
{
    struct parser p = {.tree = tree, .at = line, .end = line + length};
    tree->count = 0;
    skip_blanks(&p);
    bool is_good = take_value(&p, (struct trace_word){NULL, 0}) && take_ends(&p);
    while (is_good && p.depth > 0)
        is_good = take_member(&p) && take_ends(&p);
    if (p.is_out_of_memory)
        return JSON_NO_MEMORY;
    return is_good && p.at == p.end ? JSON_GOOD : JSON_WRONG;
}

void json_free(struct json_tree *tree)
{
    free(tree->nodes);
    *tree = (struct json_tree){0};
}

/* ---- what is in it ---- */

const struct json_node *json_root(const struct json_tree *tree)
{
    return tree->count ? &tree->nodes[0] : NULL;
}

const struct json_node *json_first(const struct json_tree *tree, const struct json_node *of)
{
    return of && of->child ? &tree->nodes[of->child] : NULL;
}

const struct json_node *json_next(const struct json_tree *tree, const struct json_node *node)
{
    return node->next ? &tree->nodes[node->next] : NULL;
}

const struct json_node *json_member(const struct json_tree *tree, const struct json_node *of,
                                    const char *key)
{
    if (!of || of->type != JSON_OBJECT)
        return NULL;
    for (const struct json_node *n = json_first(tree, of); n; n = json_next(tree, n))
        if (trace_word_is(n->key, key))
            return n;
    return NULL;
}

bool json_number(const struct json_tree *tree, const struct json_node *of, const char *key,
                 uint64_t *number)
{
    const struct json_node *node = json_member(tree, of, key);
    return node && node->type == JSON_NUMBER && trace_number(node->text, number);
}

bool json_number32(const struct json_tree *tree, const struct json_node *of, const char *key,
                   uint32_t *number)
{
    const struct json_node *node = json_member(tree, of, key);
    return node && node->type == JSON_NUMBER && trace_number32(node->text, number);
}

bool json_micros(const struct json_tree *tree, const struct json_node *of, const char *key,
                 uint64_t *micros)
{
    const struct json_node *node = json_member(tree, of, key);
    return node && node->type == JSON_NUMBER && trace_fraction(node->text, 6, micros);
}

struct trace_word json_text(const struct json_tree *tree, const struct json_node *of,
                            const char *key)
{
    const struct json_node *node = json_member(tree, of, key);
    return node && node->type == JSON_STRING ? node->text : (struct trace_word){NULL, 0};
}
