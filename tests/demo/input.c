/* SPDX-License-Identifier: BSD-3-Clause */
/* See input.h. The files are one stream of bytes; a part begins at the first line start at or
 * behind its share of the bytes, which every rank can find out for itself. Owns one open file at a
 * time. Takes no lock. */
#include "config.h"

#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 65536 }; /* large enough to make the system call cheap, small enough for the cache */

struct file {
    const char *name;
    uint64_t start, size; /* in the stream */
};

struct input {
    struct file *files;
    int count;
    uint64_t size;
    int open; /* which file `fd` is, or -1 */
    int fd;
};

/* ---- opening ---- */

static int measure(struct file *file, char *why, size_t why_size)
{
    struct stat info;
    int fd = open(file->name, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO must not stop us */

    if (fd < 0 || fstat(fd, &info) != 0) {
        snprintf(why, why_size, "%s: %s", file->name, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    close(fd);
    if (!S_ISREG(info.st_mode)) {
        snprintf(why, why_size, "%s: %s", file->name,
                 S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file");
        return -1;
    }
    file->size = (uint64_t)info.st_size;
    return 0;
}

struct input *input_open(char **names, int count, char *why, size_t why_size)
{
    struct input *input = calloc(1, sizeof *input);
    struct file *files = calloc((size_t)count, sizeof *files);

    if (!input || !files) {
        snprintf(why, why_size, "no memory");
        free(input);
        free(files);
        return NULL;
    }
    *input = (struct input){files, count, 0, -1, -1};
    for (int i = 0; i < count; i++) {
        files[i].name = names[i];
        files[i].start = input->size;
        if (measure(&files[i], why, why_size) != 0) {
            input_close(input);
            return NULL;
        }
        input->size += files[i].size;
    }
    return input;
}

uint64_t input_bytes(const struct input *input)
{
    return input->size;
}

void input_close(struct input *input)
{
    if (input->fd >= 0)
        close(input->fd);
    free(input->files);
    free(input);
}

/* ---- reading the stream ---- */

/* The last file that starts at or before `offset` and is not empty. */
static int file_at(const struct input *input, uint64_t offset)
{
    int low = 0, high = input->count - 1;

    while (low < high) {
        int middle = (low + high + 1) / 2;

        if (input->files[middle].start <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static int switch_to(struct input *input, int file, char *why, size_t why_size)
{
    if (input->open == file)
        return 0;
    if (input->fd >= 0)
        close(input->fd);
    input->open = file;
    input->fd = open(input->files[file].name, O_RDONLY | O_CLOEXEC);
    if (input->fd >= 0)
        return 0;
    input->open = -1;
    snprintf(why, why_size, "%s: %s", input->files[file].name, strerror(errno));
    return -1;
}

/* Up to `size` bytes from `offset` on, all from one file; 0 at the end of the stream, -1 on error.
 */
static ssize_t read_at(struct input *input, uint64_t offset, char *memory, size_t size, char *why,
                       size_t why_size)
{
    const struct file *file;
    uint64_t left;
    ssize_t got;
    int index;

    if (offset >= input->size)
        return 0;
    index = file_at(input, offset);
    file = &input->files[index];
    left = file->start + file->size - offset;
    if (switch_to(input, index, why, why_size) != 0)
        return -1;
    got =
        pread(input->fd, memory, left < size ? (size_t)left : size, (off_t)(offset - file->start));
    if (got > 0)
        return got;
    snprintf(why, why_size, "%s: %s", file->name,
             got < 0 ? strerror(errno) : "became shorter while it was read");
    return -1;
}

/* Where part `part` begins: the first line start at or behind its share. */
static int find_start(struct input *input, unsigned part, unsigned parts, uint64_t *start,
                      char *why, size_t why_size)
{
    char chunk[4096], *newline = NULL;
    ssize_t got = 0;

    *start = (uint64_t)((double)input->size * part / parts);
    if (part == 0 || part == parts) {
        *start = part ? input->size : 0;
        return 0;
    }
    if (*start > 0)
        --*start; /* a line may begin exactly at the share */
    do {
        *start += newline ? 0 : (uint64_t)got;
        got = read_at(input, *start, chunk, sizeof chunk, why, why_size);
        newline = got > 0 ? memchr(chunk, '\n', (size_t)got) : NULL;
    } while (got > 0 && !newline);
    if (newline)
        *start += (uint64_t)(newline - chunk) + 1;
    return got < 0 ? -1 : 0;
}

/* ---- words ---- */

struct scanner {
    char *word;
    size_t length, room;
    word_fn *each;
    struct tally *tally;
};

static int grow(struct scanner *scanner)
{
    size_t room = scanner->room ? 2 * scanner->room : 64;
    char *word = realloc(scanner->word, room);

    if (!word)
        return -1;
    scanner->word = word;
    scanner->room = room;
    return 0;
}

static void end_word(struct scanner *scanner)
{
    if (scanner->length == 0)
        return;
    scanner->each(scanner->word, scanner->length);
    scanner->tally->words++;
    scanner->length = 0;
}

/* The C locale's letters, whatever locale we run in. */
static int letter(unsigned char c)
{
    c |= 0x20;
    return c >= 'a' && c <= 'z' ? c : 0;
}

static int scan(struct scanner *scanner, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int c = letter((unsigned char)text[i]);

        if (!c) {
            end_word(scanner);
            scanner->tally->lines += text[i] == '\n';
            continue;
        }
        if (scanner->length == scanner->room && grow(scanner) != 0)
            return -1;
        scanner->word[scanner->length++] = (char)c;
    }
    scanner->tally->bytes += size;
    return 0;
}

int input_words(struct input *input, unsigned part, unsigned parts, word_fn *each,
                struct tally *tally, char *why, size_t why_size)
{
    struct scanner scanner = {NULL, 0, 0, each, tally};
    static char chunk[CHUNK];
    uint64_t at, end;
    ssize_t got = 0;

    if (find_start(input, part, parts, &at, why, why_size) != 0 ||
        find_start(input, part + 1, parts, &end, why, why_size) != 0)
        return -1;
    for (; at < end; at += (uint64_t)got) {
        got =
            read_at(input, at, chunk, end - at < CHUNK ? (size_t)(end - at) : CHUNK, why, why_size);
        if (got <= 0)
            break;
        if (scan(&scanner, chunk, (size_t)got) != 0) {
            snprintf(why, why_size, "no memory for a word of %zu letters", scanner.length);
            got = -1;
            break;
        }
    }
    end_word(&scanner);
    free(scanner.word);
    return got < 0 ? -1 : 0;
}
