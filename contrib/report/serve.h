/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnet_report --serve: shows a running job in a browser. Reads records, one a line, from standard
 * input until its end, and answers requests of this user on 127.0.0.1 meanwhile: the page, and the
 * data that it asks for each second. Nothing that a client does delays the reader of records. */
#ifndef REPORT_SERVE_H
#define REPORT_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct serve_source {
    /* The page, which asks for "data.json" beside it. */
    const char *page;
    size_t length;
    const char *policy; /* of the page, for http_head() */
    /* Takes a record without its newline, which it may change; false ends the server, after one
     * line. */
    bool (*take)(void *owner, char *line, size_t length);
    /* The data, allocated for the caller; NULL: there is none yet. */
    char *(*data)(void *owner, size_t *length);
    void *owner;
};

/* `port` 0: any. Prints the address on standard error. Returns the exit status. */
int serve_run(uint16_t port, const struct serve_source *source);

#endif
