/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gasnet_report --serve answers what browsers send, and nothing else: no request that is cut, too
 * long or of another form, no other host's name, no wrong key. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/report/http.h"
#include "unit.h"

#define KEY "0123456789abcdef0123456789abcdef01234567"

static const struct http_site site = {.port = 8080, .key = KEY};

static const char good[] = "GET /" KEY "/ HTTP/1.1\r\n"
                           "Host: 127.0.0.1:8080\r\n"
                           "User-Agent: x/1 (y; z)\r\n"
                           "Accept: */*\r\n"
                           "Cookie: a=b; c=\"d\xc3\xa4\"\r\n"
                           "Empty:\r\n"
                           "\r\n";

/* In a block of just this size, so that a sanitizer sees each byte read beyond it. */
static enum http_status parse_bytes(const char *text, size_t length, struct http_request *request)
{
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    enum http_status status = http_parse(copy, length, request);
    free(copy);
    return status;
}

static enum http_status parse(const char *text)
{
    struct http_request request;
    return parse_bytes(text, strlen(text), &request);
}

static enum http_status judge(const char *first, const char *host, const char **rest)
{
    static struct http_request request;
    char text[1000];
    snprintf(text, sizeof(text), "%s HTTP/1.1\r\nhost:%s\r\n\r\n", first, host);
    enum http_status status = parse_bytes(text, strlen(text), &request);
    return status == HTTP_OK ? http_judge(&site, &request, rest) : status;
}

static void parses_what_a_browser_sends(void **state)
{
    (void)state;
    struct http_request request;
    const char *rest;
    assert_int_equal(parse_bytes(good, strlen(good), &request), HTTP_OK);
    assert_true(request.is_get);
    assert_string_equal(request.target, "/" KEY "/");
    assert_string_equal(request.host, "127.0.0.1:8080");
    assert_int_equal(judge("GET /" KEY "/data.json?t=1", "localhost:8080", &rest), HTTP_OK);
    assert_string_equal(rest, "data.json");
    assert_int_equal(judge("GET /" KEY "/", " LocalHost:8080 ", &rest), HTTP_OK);
    assert_string_equal(rest, "");
}

static void waits_for_a_cut_request(void **state)
{
    (void)state;
    struct http_request request;
    for (size_t n = 0; n < strlen(good); n++)
        assert_int_equal(parse_bytes(good, n, &request), HTTP_UNFINISHED);
}

/* The end of each line left out or cut: never taken for a whole request of another meaning. */
static void refuses_lines_that_are_cut(void **state)
{
    (void)state;
    struct http_request request;
    char text[sizeof(good)];
    size_t first = strcspn(good, "\r");
    for (size_t n = 0; n < first; n++) {
        memcpy(text, good, n);
        strcpy(text + n, good + first);
        enum http_status status = parse_bytes(text, strlen(text), &request);
        assert_int_not_equal(status, HTTP_OK);
        assert_int_not_equal(status, HTTP_UNFINISHED);
    }
}

static void every_changed_byte_is_judged(void **state)
{
    (void)state;
    struct http_request request;
    const char *rest;
    char text[sizeof(good)];
    for (size_t n = 0; n < strlen(good); n++)
        for (unsigned byte = 0; byte < 256; byte++) {
            memcpy(text, good, sizeof(good));
            text[n] = (char)byte;
            enum http_status status = parse_bytes(text, strlen(good), &request);
            if (status == HTTP_OK)
                status = http_judge(&site, &request, &rest);
            bool is_key = n >= 5 && n < 5 + HTTP_KEY;
            if (is_key && text[n] != good[n])
                assert_int_not_equal(status, HTTP_OK);
        }
}

static void refuses_other_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum http_status status;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_OK},
        {"GET / HTTP/1.0\r\nHost: a\r\n\r\n", HTTP_OK},
        {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", HTTP_OTHER_VERSION},
        {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", HTTP_OTHER_VERSION},
        {"GET / HTTP/1.11\r\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\nHost:\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\nHost: a\n\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\nX: y\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / \r\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET /\r\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", HTTP_BAD_REQUEST},
        {"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", HTTP_OK},
        {"GET / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: chunked\r\n\r\n", HTTP_BAD_REQUEST},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n", HTTP_OK},
        {"\r\n\r\n", HTTP_BAD_REQUEST},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(parse(cases[i].text), cases[i].status);
}

static void refuses_what_is_too_long(void **state)
{
    (void)state;
    struct http_request request;
    static char text[HTTP_REQUEST_MAX + 100];
    memset(text, 'a', sizeof(text));
    assert_int_equal(http_parse(text, HTTP_REQUEST_MAX - 1, &request), HTTP_UNFINISHED);
    assert_int_equal(http_parse(text, HTTP_REQUEST_MAX, &request), HTTP_TOO_LONG);
    snprintf(text, sizeof(text), "GET /%0*d HTTP/1.1\r\nHost: a\r\n\r\n", HTTP_TARGET_MAX, 0);
    assert_int_equal(parse(text), HTTP_TOO_LONG);
    snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: %0*d\r\n\r\n", HTTP_HOST_MAX, 0);
    assert_int_equal(parse(text), HTTP_BAD_REQUEST);
}

static void only_get_is_allowed(void **state)
{
    (void)state;
    static const char *const methods[] = {"HEAD", "POST",  "PUT",  "DELETE", "OPTIONS",
                                          "get",  "PATCH", "GETT", "GE",     "TRACE"};
    const char *rest;
    char first[100];
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
        snprintf(first, sizeof(first), "%s /" KEY "/", methods[i]);
        assert_int_equal(judge(first, "127.0.0.1:8080", &rest), HTTP_NOT_ALLOWED);
    }
}

static void other_names_of_the_host_are_refused(void **state)
{
    (void)state;
    static const char *const hosts[] = {"127.0.0.1",       "127.0.0.1:8081",    "127.0.0.1:80800",
                                        "localhost",       "localhost:808",     "localhost.:8080",
                                        "evil.example",    "evil.example:8080", "127.0.0.2:8080",
                                        "127.0.0.1:8080x", "x127.0.0.1:8080",   "[::1]:8080"};
    const char *rest;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
        assert_int_equal(judge("GET /" KEY "/", hosts[i], &rest), HTTP_FORBIDDEN);
}

static void without_the_key_nothing_is_shown(void **state)
{
    (void)state;
    static const char *const targets[] = {"/",          "/data.json", "//" KEY "/", "/" KEY,
                                          "/" KEY "x/", "/x" KEY "/", "/?" KEY "/", "/" KEY "?/"};
    const char *rest;
    char first[200];
    for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
        snprintf(first, sizeof(first), "GET %s", targets[i]);
        assert_int_equal(judge(first, "127.0.0.1:8080", &rest), HTTP_FORBIDDEN);
    }
    for (size_t n = 0; n < HTTP_KEY; n++) {
        snprintf(first, sizeof(first), "GET /%.*s/", (int)n, KEY);
        assert_int_equal(judge(first, "127.0.0.1:8080", &rest), HTTP_FORBIDDEN);
    }
}

static void an_answer_forbids_the_rest(void **state)
{
    (void)state;
    static const char *const fields[] = {
        "Cache-Control: no-store\r\n", "X-Content-Type-Options: nosniff\r\n",
        "X-Frame-Options: DENY\r\n",   "Referrer-Policy: no-referrer\r\n",
        "Content-Length: 12\r\n",      "default-src 'none'",
        "frame-ancestors 'none'",      "Connection: close\r\n"};
    static char policy[HTTP_HEAD_MAX];
    char head[HTTP_HEAD_MAX];
    memset(policy, 'p', sizeof(policy) - 1);
    assert_int_equal(http_head(HTTP_OK, "text/html", 12, policy, head), 0);
    size_t length =
        http_head(HTTP_NOT_ALLOWED, "text/plain; charset=utf-8", 12, "default-src 'none'", head);
    assert_int_equal(length, strlen(head));
    assert_non_null(strstr(head, "\r\nAllow: GET\r\n"));
    assert_null(strstr(head, "Access-Control"));
    assert_string_equal(head + length - 4, "\r\n\r\n");
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        assert_non_null(strstr(head, fields[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_what_a_browser_sends),
        cmocka_unit_test(waits_for_a_cut_request),
        cmocka_unit_test(refuses_lines_that_are_cut),
        cmocka_unit_test(every_changed_byte_is_judged),
        cmocka_unit_test(refuses_other_forms),
        cmocka_unit_test(refuses_what_is_too_long),
        cmocka_unit_test(only_get_is_allowed),
        cmocka_unit_test(other_names_of_the_host_are_refused),
        cmocka_unit_test(without_the_key_nothing_is_shown),
        cmocka_unit_test(an_answer_forbids_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
