/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of a shell; see words.h. */
#include "config.h"

#include "words.h"

#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Copies one word to `to` and returns where it ends in the text; NULL if a quote is open there. */
static const char *copy_word(const char *from, char **to)
{
    char quote = 0;
    for (; *from && (quote || !is_blank(*from)); from++) {
        if (*from == quote) {
            quote = 0;
        } else if (!quote && (*from == '\'' || *from == '"')) {
            quote = *from;
        } else if (*from == '\\' && quote != '\'') {
            /* Between double quotes a shell keeps most backslashes. */
            bool is_kept = quote && from[1] != '"' && from[1] != '\\' && from[1] != '$';
            if (!from[1])
                return NULL;
            if (is_kept)
                *(*to)++ = '\\';
            *(*to)++ = *++from;
        } else {
            *(*to)++ = *from;
        }
    }
    *(*to)++ = 0;
    return quote ? NULL : from;
}

char **words_split(const char *text)
{
    /* The most words in the text: each has at least one character, and a blank before the next
     * word. */
    size_t length = strlen(text), most = length / 2 + 2, used = 0;
    char **list = malloc(most * sizeof(*list) + length + 2);
    if (!list)
        return NULL;
    char *to = (char *)(list + most);
    for (;;) {
        while (is_blank(*text))
            text++;
        if (!*text)
            break;
        list[used++] = to;
        text = copy_word(text, &to);
        if (!text) {
            free(list);
            return NULL;
        }
    }
    list[used] = NULL;
    return list;
}

static bool append(char *text, size_t size, size_t *used, const char *piece)
{
    size_t n = strlen(piece);
    if (*used + n >= size)
        return false;
    memcpy(text + *used, piece, n + 1);
    *used += n;
    return true;
}

bool words_quote(char *text, size_t size, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=./,:@%";
    size_t used = strlen(text), begin = used;
    bool fits = true;

    if (*word && !word[strspn(word, plain)])
        return append(text, size, &used, word);
    fits = append(text, size, &used, "'");
    for (; *word && fits; word++)
        fits = append(text, size, &used, *word == '\'' ? "'\\''" : (char[]){*word, 0});
    fits = fits && append(text, size, &used, "'");
    if (!fits)
        text[begin] = 0;
    return fits;
}
