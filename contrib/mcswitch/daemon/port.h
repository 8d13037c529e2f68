/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ports of the switch, which receive and send Ethernet frames. There are three kinds: a machine
 * of QEMU (-netdev dgram: a frame is a datagram), a network interface (AF_PACKET), and softhca's
 * wire. Packets of softhca come without Ethernet and IP; the port adds headers, and only the core
 * gets them. A frame that can't be sent at once is lost, as in any switch whose queue is full. Owns
 * the sockets and the buffers of frames. */
#ifndef MCD_PORT_H
#define MCD_PORT_H

#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/loop.h"

enum {
    MCD_PORTS = 64,
    MCD_FRAME_MAX = 9216, /* any frame of a jumbo network */
    MCD_NAME = 112,
};

enum mcd_kind { MCD_DGRAM, MCD_PACKET, MCD_WIRE };

union mcd_address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_un un;
};

struct mcd_port_counters {
    uint64_t frames_in, bytes_in, frames_out, bytes_out;
    uint64_t strangers; /* from an address that is not the port's */
    uint64_t too_long, lost_in, lost_out;
};

struct mcd_port {
    struct mcd_source source;
    enum mcd_kind kind;
    unsigned number;
    char name[MCD_NAME]; /* as given */
    char path[108];      /* of a Unix socket that we must remove; else empty */
    union mcd_address to;
    socklen_t to_length;
    struct mcd_port_counters count;
};

extern struct mcd_port mcd_ports[MCD_PORTS];
extern unsigned mcd_port_count;

/* Handles a frame that arrived, which it may change; the frame is in a buffer until the return. */
typedef void mcd_take(struct mcd_port *port, uint8_t *frame, size_t length);
extern mcd_take *mcd_port_take;

/* Opens a port by its text: packet:INTERFACE or dgram:LOCAL,REMOTE, where the two are HOST:PORT
 * (IPv4 numbers) or paths. False with a sentence on standard error. */
bool mcd_port_open(const char *text);
/* A new entry of the table; NULL: it is full. */
struct mcd_port *mcd_port_new(enum mcd_kind kind, const char *name);
void mcd_port_close_all(void);

/* Loses so many per million of incoming and outgoing frames: for tests. */
void mcd_port_lose(uint32_t per_million, uint64_t seed);
/* Reads 0 to 90 percent, as a number per million; false: it is no such number. */
bool mcd_port_percent(const char *text, uint32_t *per_million);
bool mcd_port_lost(uint64_t *counter);

/* ---- outgoing: a queue for all ports, in order ---- */
/* Queues a frame (MCD_DGRAM, MCD_PACKET). */
void mcd_port_send(struct mcd_port *port, const uint8_t *frame, size_t length);
/* Queues a datagram from a socket of this port. congested: with the mark of congestion in IP. */
void mcd_port_datagram(struct mcd_port *port, int fd, const struct sockaddr_in *to,
                       const uint8_t *bytes, size_t length, bool congested);
void mcd_port_flush(void);

/* ---- incoming: batches for all ports, one at a time ---- */
enum { MCD_BATCH = 32, MCD_HEADROOM = 64 };
struct mcd_batch {
    uint8_t *bytes[MCD_BATCH]; /* MCD_HEADROOM writable bytes lie in front */
    size_t length[MCD_BATCH];
    union mcd_address from[MCD_BATCH];
    bool too_long[MCD_BATCH];
    uint8_t control[MCD_BATCH][64]; /* of recvmsg */
    size_t control_length[MCD_BATCH];
};
/* Receives available frames, at most a batch; returns the number. */
unsigned mcd_port_receive(int fd, struct mcd_batch **batch);

#endif
