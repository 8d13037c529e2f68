/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See write.h: the page. Its policy allows this one script and this one style by their hashes and
 * nothing else: text that became markup, against all care, could still run nothing and load
 * nothing. */
#include "config.h"

#include <string.h>

#include "common/sha256.h"
#include "contrib/report/write.h"

enum { base64_size = 4 * ((SHA256_SIZE + 2) / 3) + 1 };

static void encode(const uint8_t *bytes, size_t size, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        unsigned group = (unsigned)bytes[i] << 16;
        group |= i + 1 < size ? (unsigned)bytes[i + 1] << 8 : 0;
        group |= i + 2 < size ? bytes[i + 2] : 0;
        *text++ = digits[group >> 18];
        *text++ = digits[group >> 12 & 63];
        *text++ = i + 1 < size ? digits[group >> 6 & 63] : '=';
        *text++ = i + 2 < size ? digits[group & 63] : '=';
    }
    *text = '\0';
}

static void hash_of(const char *content, char *text)
{
    uint8_t digest[SHA256_SIZE];
    struct sha256 hash;
    tk_sha256_begin(&hash);
    tk_sha256_add(&hash, content, strlen(content));
    tk_sha256_end(&hash, digest);
    encode(digest, sizeof(digest), text);
}

const char *report_page_policy(enum page_use use)
{
    static char policy[512];
    char script[base64_size], style[base64_size];
    hash_of(report_page_script, script);
    hash_of(report_page_style, style);
    snprintf(policy, sizeof(policy),
             "default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; "
             "img-src data:; "
             "base-uri 'none'; form-action 'none'%s",
             script, style, use == PAGE_LIVE ? "; connect-src 'self'" : "");
    return policy;
}

bool report_write_page(FILE *out, const struct report_model *model, enum page_use use)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"",
          out);
    fputs(report_page_policy(use), out);
    fputs("\">\n", out);
    fputs(report_page_head, out);
    fputs("<style>", out);
    fputs(report_page_style, out);
    fputs("</style>\n</head>\n", out);
    fputs(report_page_body, out);
    fputs("<script type=\"application/json\" id=\"data\">", out);
    if (model && !report_write_json(out, model, use == PAGE_LIVE))
        return false;
    fputs("</script>\n<script>", out);
    fputs(report_page_script, out);
    fputs("</script>\n</body>\n</html>\n", out);
    return true;
}
