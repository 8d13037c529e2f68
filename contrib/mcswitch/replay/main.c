/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mcsw-replay: runs the core of the multicast switch on a captured input, and writes its output as
 * a capture. The output depends only on the configuration and the captured frames with their time
 * stamps. Single-threaded; owns everything. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "packet/bytes.h"
#include "packet/pcap.h"
#include "replay/setup.h"

enum { mac_bytes = 6, tag_bytes = 4, tag_type = 0x8100, frame_room = MCSW_FRAME_MAX + tag_bytes };

struct replay {
    struct setup setup;
    FILE *out;
    uint64_t now;
    bool failed;
};

static const char usage[] =
    "usage: mcsw-replay CONFIG IN.pcap OUT.pcap\n"
    "Puts each frame of IN.pcap into a multicast switch at the time of its stamp; OUT.pcap gets "
    "what leaves.\n"
    "Lines of CONFIG:\n"
    "  mode fast|strict\n"
    "  aggregate exact|scan|rounds\n"
    "  ports tag|source        a frame's port: its outermost VLAN tag less 1, which is taken off "
    "and put on what\n"
    "                          leaves; or that of the member that has its source MAC\n"
    "  mac MAC\n"
    "  vip4|vip6 REQUESTS COPIES\n"
    "  lease_us N | rnr_timer CODE | boot N | believe_icrc\n"
    "  group NUMBER KEY [v4|v6 [leaf]]\n"
    "  sender IP MAC PORT QPN PSN              the members of the group before, in the order of "
    "their ranks\n"
    "  receiver IP MAC PORT QPN PSN BASE RKEY\n"
    "Status: 0, 1 for files that can't be read or written, 2 for a wrong CONFIG or wrong usage.\n";

static void emit(void *context, unsigned port, uint8_t *frame, size_t length)
{
    struct replay *r = context;
    uint8_t record[ROCE_PCAP_RECORD], tag[tag_bytes];
    size_t extra = r->setup.ports_by_source ? 0 : tag_bytes;
    bool good;

    roce_put16(tag, tag_type);
    roce_put16(tag + 2, (uint16_t)(port + 1));
    roce_pcap_record(record, r->now, (uint32_t)(length + extra));
    good = fwrite(record, sizeof record, 1, r->out) == 1 &&
           fwrite(frame, 2 * (size_t)mac_bytes, 1, r->out) == 1 &&
           fwrite(tag, 1, extra, r->out) == extra &&
           fwrite(frame + 2 * mac_bytes, length - 2 * mac_bytes, 1, r->out) == 1;
    r->failed = r->failed || !good;
}

static bool port_of_source(const struct setup *s, const uint8_t *source, unsigned *port)
{
    for (unsigned g = 0; g < s->groups; g++) {
        const struct setup_group *x = s->group[g];

        for (unsigned i = 0; i < x->c.senders; i++)
            if (memcmp(x->sender[i].mac, source, mac_bytes) == 0) {
                *port = x->sender[i].port;
                return true;
            }
        for (unsigned i = 0; i < x->c.receivers; i++)
            if (memcmp(x->receiver[i].mac, source, mac_bytes) == 0) {
                *port = x->receiver[i].port;
                return true;
            }
    }
    return false;
}

/* Skips frames that have no port. */
static void put(struct replay *r, struct mcsw *w, const struct roce_pcap_packet *p)
{
    uint8_t frame[frame_room];
    size_t length = p->length;
    unsigned port;

    if (length < 2 * mac_bytes + 2 || length > sizeof frame || p->length != p->original)
        return;
    memcpy(frame, p->data, length);
    if (r->setup.ports_by_source) {
        if (!port_of_source(&r->setup, frame + mac_bytes, &port))
            return;
    } else {
        if (length < 2 * mac_bytes + tag_bytes + 2 || roce_get16(frame + 12) != tag_type ||
            (roce_get16(frame + 14) & 0xfff) == 0)
            return;
        port = (roce_get16(frame + 14) & 0xfffu) - 1;
        length -= tag_bytes;
        memmove(frame + 12, frame + 12 + tag_bytes, length - 12);
    }
    r->now = p->time;
    mcsw_frame(w, port, r->now, frame, length);
}

static void *read_all(const char *path, size_t *length)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    void *data = NULL;

    if (f && fstat(fileno(f), &st) == 0) {
        *length = (size_t)st.st_size;
        data = malloc(*length + 1);
        if (data && fread(data, 1, *length, f) != *length) {
            free(data);
            data = NULL;
        }
    }
    if (f)
        fclose(f);
    if (!data)
        perror(path);
    return data;
}

static struct mcsw *make_switch(struct replay *r)
{
    struct setup *s = &r->setup;
    struct mcsw *w;
    size_t bytes;

    s->c.calls = (struct mcsw_calls){.context = r, .emit = emit};
    bytes = mcsw_bytes(&s->c);
    w = bytes ? mcsw_open(malloc(bytes), &s->c) : NULL;
    for (unsigned i = 0; w && i < s->groups; i++)
        if (!mcsw_create(w, s->number[i], &s->group[i]->c)) {
            free(w);
            return NULL;
        }
    return w;
}

static int run(struct replay *r, struct mcsw *w, const char *in)
{
    uint8_t header[ROCE_PCAP_HEADER];
    struct roce_pcap_packet p;
    struct roce_pcap pcap;
    size_t length = 0;
    uint8_t *data = read_all(in, &length);
    int more = -1;

    if (!data)
        return 1;
    roce_pcap_header(header, ROCE_PCAP_ETHERNET);
    r->failed = fwrite(header, sizeof header, 1, r->out) != 1;
    if (roce_pcap_open(&pcap, data, length) && pcap.link == ROCE_PCAP_ETHERNET)
        while ((more = roce_pcap_next(&pcap, &p)) > 0)
            put(r, w, &p);
    free(data);
    if (more < 0)
        fprintf(stderr, "mcsw-replay: %s: not a whole pcap file of Ethernet frames\n", in);
    return more < 0;
}

static int replay(struct replay *r, char **paths)
{
    struct mcsw *w = make_switch(r);
    int status;

    if (!w) {
        fprintf(stderr,
                "mcsw-replay: %s: no such switch: a group twice, without members or of addresses "
                "that the switch has not\n",
                paths[0]);
        return 2;
    }
    r->out = fopen(paths[2], "wb");
    if (!r->out) {
        perror(paths[2]);
        free(w);
        return 1;
    }
    status = run(r, w, paths[1]);
    if (fclose(r->out) != 0 || r->failed) {
        fprintf(stderr, "mcsw-replay: %s can't be written\n", paths[2]);
        status = 1;
    }
    free(w);
    return status;
}

int main(int argc, char **argv)
{
    static struct replay r;
    char why[SETUP_TEXT];
    FILE *config;
    int status;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        if (fputs(usage, stdout) >= 0 && fflush(stdout) == 0)
            return 0;
        perror("mcsw-replay: cannot write standard output");
        return 1;
    }
    if (argc != 4) {
        fputs(usage, stderr);
        return 2;
    }
    config = fopen(argv[1], "r");
    if (!config) {
        perror(argv[1]);
        return 1;
    }
    if (!setup_read(&r.setup, config, why)) {
        fprintf(stderr, "mcsw-replay: %s: %s\n", argv[1], why);
        status = 2;
    } else {
        status = replay(&r, argv + 1);
    }
    fclose(config);
    setup_end(&r.setup);
    return status;
}
