/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of HTTP that `gasnet_report --serve` needs: requests without a body, one to a
 * connection. Strict: what a browser does not send is refused. Pure, no state. */
#ifndef REPORT_HTTP_H
#define REPORT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A longer request is refused. Browsers send cookies of all servers of a host, whatever the port.
 */
enum { HTTP_REQUEST_MAX = 16384, HTTP_TARGET_MAX = 256, HTTP_HOST_MAX = 64, HTTP_HEAD_MAX = 2048 };

/* Of a key: 160 bits as hexadecimal digits. */
enum { HTTP_KEY = 40 };

enum http_status {
    HTTP_UNFINISHED = 0,
    HTTP_OK = 200,
    HTTP_BAD_REQUEST = 400,
    HTTP_FORBIDDEN = 403,
    HTTP_NOT_FOUND = 404,
    HTTP_NOT_ALLOWED = 405,
    HTTP_TOO_LONG = 431,
    HTTP_NO_DATA = 503,
    HTTP_OTHER_VERSION = 505
};

struct http_request {
    bool is_get;
    char target[HTTP_TARGET_MAX]; /* without a query */
    char host[HTTP_HOST_MAX];
};

/* Parses the first `length` bytes of a connection. HTTP_UNFINISHED: more are needed. */
enum http_status http_parse(const char *text, size_t length, struct http_request *request);

/* Whom the server answers: a name of this host with its port in Host, so that no page of another
 * site reaches it under a name of its own (DNS rebinding), and the key in the path. */
struct http_site {
    uint16_t port;
    char key[HTTP_KEY + 1];
};

/* Judges a request. HTTP_OK: `*rest` is what follows "/KEY/" in the path. The time does not depend
 * on where a wrong key differs. */
enum http_status http_judge(const struct http_site *site, const struct http_request *request,
                            const char **rest);

/* Writes the head of an answer to `head`, which has HTTP_HEAD_MAX bytes, and returns its length; 0:
 * it does not fit. `policy`: what the page may do (Content-Security-Policy). */
size_t http_head(enum http_status status, const char *type, size_t length, const char *policy,
                 char *head);

/* The one line of an answer without a page. */
const char *http_reason(enum http_status status);

#endif
