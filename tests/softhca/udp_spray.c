/* SPDX-License-Identifier: BSD-3-Clause */
/* Another user of the host: finds the processes that use softhca's packets, and the upper bits of
 * their queue pairs' numbers, in the kernel's tables of sockets, which all users may read. Sends
 * from the addresses of each to all others, and guesses: first requests and NAKs for the numbers
 * that queue pairs have where both are counted up, then for random ones. Status 1: it found fewer
 * than two; 3: it could also bind the port of one. Owns its sockets; nothing else. */
#include "config.h"

#include "support/registry_name.h"
#include "crafted.h"

enum {
    processes_max = 8,
    first_index = 16,
    indices = 16,
    psns = 256,
    at_random = 16384,
    softhca_first = 45056, /* ports of processes that have not got 4791 */
    softhca_last = 49151,
    junk_bytes = 64,
};

static struct sockaddr_in process[processes_max];
static unsigned slot[processes_max];
static unsigned processes, slots, sent;

static bool is_softhca(unsigned port)
{
    return port == ROCE_UDP_PORT || (port >= softhca_first && port <= softhca_last);
}

/* "   N: AAAAAAAA:PPPP ...", the address in the order of memory. */
static void find_processes(void)
{
    FILE *f = fopen("/proc/net/udp", "re");
    char line[512];
    unsigned ipv4, port;

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) && processes < processes_max)
        if (sscanf(line, " %*u: %8x:%4x", &ipv4, &port) == 2 && ipv4 != 0 && is_softhca(port))
            process[processes++] = (struct sockaddr_in){
                .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = ipv4};
    fclose(f);
}

static void find_slots(void)
{
    FILE *f = fopen("/proc/net/unix", "re");
    struct shca_name name;
    char line[512];

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) && slots < processes_max)
        if (shca_name_parse(line, &name))
            slot[slots++] = name.slot;
    fclose(f);
}

/* The kernel gives a port of an address to one socket, for any user. */
static void fail_to_take(const struct sockaddr_in *at)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;

    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)at, sizeof *at) == 0) {
        fprintf(stderr, "the port of a process that uses it was free\n");
        exit(3);
    }
    close(fd);
}

/* Not by send_packet(): the process may be gone meanwhile, and its buffer full. */
static void forge(const struct sender *s, const struct sockaddr_in *to, const struct roce_packet *p)
{
    struct roce_path path = {.version = 4,
                             .source_port = ntohs(s->at.sin_port),
                             .destination_port = ntohs(to->sin_port)};
    uint8_t out[ROCE_PACKET_MAX];
    size_t n = roce_packet_build(p, out, sizeof out - ROCE_ICRC_BYTES);

    CHECK(n > 0);
    memcpy(path.source, &s->at.sin_addr, sizeof s->at.sin_addr);
    memcpy(path.destination, &to->sin_addr, sizeof to->sin_addr);
    roce_put_icrc(out + n, roce_icrc(&path, out, n));
    sent += sendto(s->fd, out, n + ROCE_ICRC_BYTES, MSG_DONTWAIT, (const struct sockaddr *)to,
                   sizeof *to) > 0;
}

static void forge_both(const struct sender *s, const struct sockaddr_in *to, uint32_t qpn,
                       uint32_t psn)
{
    static const uint8_t junk[junk_bytes] = {0xa5, 0x5a, 0xff, 0x7f, 0x01};
    struct roce_packet p = {.opcode = roce_opcode_of(ROCE_RC, ROCE_SEND_ONLY),
                            .ack_request = true,
                            .pkey = 0xffff,
                            .dest_qpn = qpn,
                            .psn = psn,
                            .payload = junk,
                            .payload_length = junk_bytes};
    struct roce_packet nak = {.opcode = roce_opcode_of(ROCE_RC, ROCE_ACKNOWLEDGE),
                              .pkey = 0xffff,
                              .dest_qpn = qpn,
                              .psn = psn,
                              .syndrome = ROCE_NAK_ACCESS};

    forge(s, to, &p);
    forge(s, to, &nak);
}

static void spray(const struct sockaddr_in *from, const struct sockaddr_in *to)
{
    struct sender s = sender_open(ntohl(from->sin_addr.s_addr), 0);

    for (unsigned n = 0; n < slots; n++)
        for (uint32_t i = first_index; i < first_index + indices; i++)
            for (uint32_t psn = 0; psn < psns; psn++)
                forge_both(&s, to, slot[n] << 14 | i, psn);
    for (int i = 0; i < at_random; i++)
        forge_both(&s, to, slot[(unsigned)i % slots] << 14 | ((uint32_t)rand() & 0x3fff),
                   (uint32_t)rand() & ROCE_PSN_MASK);
    close(s.fd);
}

int main(void)
{
    deadline(ALARM);
    find_processes();
    find_slots();
    for (unsigned i = 0; i < processes; i++)
        fail_to_take(&process[i]);
    for (unsigned i = 0; i < processes; i++)
        for (unsigned j = 0; j < processes; j++)
            if (i != j && slots > 0)
                spray(&process[i], &process[j]);
    printf("%u packets to %u processes\n", sent, processes);
    return processes < 2 || slots < 2;
}
