/* SPDX-License-Identifier: BSD-3-Clause */
/* See http.h. */
#include "config.h"

#include "contrib/report/http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- requests */

/* What is left to read of a request. */
struct reader {
    const char *at, *end;
};

static bool is_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_visible(char c)
{
    return c > ' ' && c < 0x7f;
}

/* A line without its end, which is CR LF and nothing else; false: there is no such line. */
static bool next_line(struct reader *r, struct reader *line)
{
    const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
    if (!end || end == r->at || end[-1] != '\r')
        return false;
    *line = (struct reader){r->at, end - 1};
    r->at = end + 1;
    return true;
}

static size_t take_while(struct reader *r, bool (*is_part)(char))
{
    const char *from = r->at;
    while (r->at < r->end && is_part(*r->at))
        r->at++;
    return (size_t)(r->at - from);
}

static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static bool copy_text(char *to, size_t size, const char *from, size_t length)
{
    if (length >= size)
        return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

/* METHOD SP TARGET SP HTTP/1.x */
static enum http_status parse_first(struct reader line, struct http_request *request)
{
    const char *method = line.at;
    size_t n = take_while(&line, is_token);
    request->is_get = n == 3 && memcmp(method, "GET", 3) == 0;
    if (n == 0 || !take_word(&line, " "))
        return HTTP_BAD_REQUEST;
    const char *target = line.at;
    n = take_while(&line, is_visible);
    const char *query = memchr(target, '?', n);
    if (n == 0 || *target != '/' || !take_word(&line, " HTTP/"))
        return HTTP_BAD_REQUEST;
    if (!copy_text(request->target, sizeof(request->target), target,
                   query ? (size_t)(query - target) : n))
        return HTTP_TOO_LONG;
    if (line.end - line.at != 3 || line.at[1] != '.')
        return HTTP_BAD_REQUEST;
    return line.at[0] == '1' && (line.at[2] == '0' || line.at[2] == '1') ? HTTP_OK
                                                                         : HTTP_OTHER_VERSION;
}

static bool is_name(const char *name, size_t length, const char *wanted)
{
    return length == strlen(wanted) && strncasecmp(name, wanted, length) == 0;
}

/* A field that is only allowed for requests with a body. */
static bool announces_body(const char *name, size_t n, struct reader value)
{
    if (is_name(name, n, "Transfer-Encoding"))
        return true;
    return is_name(name, n, "Content-Length") && (value.end - value.at != 1 || *value.at != '0');
}

static void trim(struct reader *value)
{
    while (value->at < value->end && (*value->at == ' ' || *value->at == '\t'))
        value->at++;
    while (value->at < value->end && (value->end[-1] == ' ' || value->end[-1] == '\t'))
        value->end--;
}

/* NAME: VALUE; a line that continues the one before it begins with a blank and has no name. */
static enum http_status parse_field(struct reader line, struct http_request *request)
{
    const char *name = line.at;
    size_t n = take_while(&line, is_token);
    if (n == 0 || !take_word(&line, ":"))
        return HTTP_BAD_REQUEST;
    trim(&line);
    for (const char *c = line.at; c < line.end; c++)
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
            return HTTP_BAD_REQUEST;
    if (announces_body(name, n, line))
        return request->is_get ? HTTP_BAD_REQUEST : HTTP_OK;
    if (!is_name(name, n, "Host"))
        return HTTP_OK;
    size_t length = (size_t)(line.end - line.at);
    bool is_first = !request->host[0];
    return is_first && length && copy_text(request->host, sizeof(request->host), line.at, length)
               ? HTTP_OK
               : HTTP_BAD_REQUEST;
}

static enum http_status parse_whole(struct reader r, struct http_request *request)
{
    struct reader line;
    if (memchr(r.at, '\0', (size_t)(r.end - r.at)) || !next_line(&r, &line))
        return HTTP_BAD_REQUEST;
    enum http_status status = parse_first(line, request);
    while (status == HTTP_OK && r.at < r.end)
        status = next_line(&r, &line) ? parse_field(line, request) : HTTP_BAD_REQUEST;
    return status == HTTP_OK && !request->host[0] ? HTTP_BAD_REQUEST : status;
}

enum http_status http_parse(const char *text, size_t length, struct http_request *request)
{
    static const char end[] = "\r\n\r\n";
    const char *last = memmem(text, length, end, sizeof(end) - 1);
    *request = (struct http_request){0};
    if (last)
        return parse_whole((struct reader){text, last + 2}, request);
    return length < HTTP_REQUEST_MAX ? HTTP_UNFINISHED : HTTP_TOO_LONG;
}

/* ---- who is answered */

static bool is_ours(const struct http_site *site, const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost"};
    enum { PORT_OF_HTTP = 80 };
    char wanted[HTTP_HOST_MAX];
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(wanted, sizeof(wanted), "%s:%u", names[i], site->port);
        if (!strcasecmp(host, wanted))
            return true;
        if (site->port == PORT_OF_HTTP && !strcasecmp(host, names[i]))
            return true;
    }
    return false;
}

/* "/KEY/..." */
static bool has_key(const struct http_site *site, const char *target)
{
    char given[HTTP_TARGET_MAX] = "";
    unsigned difference = 0;
    snprintf(given, sizeof(given), "%s", target);
    for (int i = 0; i < HTTP_KEY; i++)
        difference |= (unsigned char)(given[i + 1] ^ site->key[i]);
    return difference == 0 && given[0] == '/' && given[HTTP_KEY + 1] == '/';
}

enum http_status http_judge(const struct http_site *site, const struct http_request *request,
                            const char **rest)
{
    if (!is_ours(site, request->host))
        return HTTP_FORBIDDEN;
    if (!request->is_get)
        return HTTP_NOT_ALLOWED;
    if (!has_key(site, request->target))
        return HTTP_FORBIDDEN;
    *rest = request->target + HTTP_KEY + 2;
    return HTTP_OK;
}

/* ---- answers */

const char *http_reason(enum http_status status)
{
    switch (status) {
    case HTTP_OK:
        return "OK";
    case HTTP_BAD_REQUEST:
        return "Bad Request";
    case HTTP_FORBIDDEN:
        return "Forbidden";
    case HTTP_NOT_FOUND:
        return "Not Found";
    case HTTP_NOT_ALLOWED:
        return "Method Not Allowed";
    case HTTP_TOO_LONG:
        return "Request Header Fields Too Large";
    case HTTP_NO_DATA:
        return "Service Unavailable";
    case HTTP_OTHER_VERSION:
        return "HTTP Version Not Supported";
    case HTTP_UNFINISHED:
        break;
    }
    return "Internal Server Error";
}

/* No Access-Control-Allow-Origin: no other page may read an answer. The address contains the key,
 * so it goes into no Referer. */
size_t http_head(enum http_status status, const char *type, size_t length, const char *policy,
                 char *head)
{
    int n = snprintf(head, HTTP_HEAD_MAX,
                     "HTTP/1.1 %d %s\r\n"
                     "Content-Type: %s\r\n"
                     "Content-Length: %zu\r\n"
                     "%s"
                     "Connection: close\r\n"
                     "Cache-Control: no-store\r\n"
                     "X-Content-Type-Options: nosniff\r\n"
                     "X-Frame-Options: DENY\r\n"
                     "Referrer-Policy: no-referrer\r\n"
                     "Cross-Origin-Resource-Policy: same-origin\r\n"
                     "Cross-Origin-Opener-Policy: same-origin\r\n"
                     "Content-Security-Policy: %s; frame-ancestors 'none'\r\n"
                     "\r\n",
                     (int)status, http_reason(status), type, length,
                     status == HTTP_NOT_ALLOWED ? "Allow: GET\r\n" : "", policy);
    return n > 0 && n < HTTP_HEAD_MAX ? (size_t)n : 0;
}
