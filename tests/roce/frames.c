/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See frames.h. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frames.h"

enum { file_max = 65536 };

const char *const frame_files[] = {
    "ipv4-rc",      "ipv6-uc",       "ipv4-ud",       "ipv6-ud",        "ipv6-lossy",
    "ipv6-bad_key", "ipv6-no_right", "ipv4-too_long", "ipv6-atomic_bw", NULL};

void frames_load(struct frames *f, const char *name)
{
    const char *top = getenv("top_srcdir");
    struct roce_pcap pcap;
    char path[4096];
    size_t length;
    FILE *file;
    int more;

    memset(f, 0, sizeof *f);
    snprintf(path, sizeof path, "%s/tests/roce/frames/%s.pcap", top ? top : ".", name);
    file = fopen(path, "r");
    if (!file)
        fail_msg("%s cannot be read", path);
    f->bytes = malloc(file_max);
    length = fread(f->bytes, 1, file_max, file);
    fclose(file);
    assert_true(roce_pcap_open(&pcap, f->bytes, length));
    assert_int_equal(pcap.link, ROCE_PCAP_ETHERNET);
    while ((more = roce_pcap_next(&pcap, &f->raw[f->n])) == 1) {
        const struct roce_pcap_packet *raw = &f->raw[f->n];
        enum roce_verdict v = roce_frame_parse(raw->data, raw->length, &f->frame[f->n]);

        if (v != ROCE_GOOD)
            fail_msg("%s: frame %u: %s", name, f->n, roce_verdict_name(v));
        f->n++;
        assert_true(f->n < frames_max);
    }
    assert_int_equal(more, 0);
    assert_true(f->n > 0);
}

void frames_free(struct frames *f)
{
    free(f->bytes);
    f->bytes = NULL;
}
