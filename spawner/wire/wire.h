/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol between the processes of the launcher (head, guard, server): frames with a fixed
 * header in little-endian order, on stream sockets. A channel owns its socket and two byte queues.
 * One thread at a time per channel; the one exception, the server, has its own lock around
 * wire_send_now(). */
#ifndef TRUNKLINE_SPAWNER_WIRE_H
#define TRUNKLINE_SPAWNER_WIRE_H

#include "spawner/util/byte_queue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bumped whenever a frame changes its meaning; checked in HELLO. */
enum { WIRE_VERSION = 7 };

/* Bytes in front of a payload. */
enum { WIRE_HEADER = 16 };

/* A larger frame is a bug or an intruder: the largest valid frame is a line of output, except
 * frames that carry an environment or data of all ranks (wire_limit()). */
enum { WIRE_MAX_PAYLOAD = 4 << 20, WIRE_MAX_BULK = 1 << 30 };

/* In place of a host: every host below the receiver. */
#define WIRE_ALL UINT32_MAX

enum wire_type {
    /* guard to head, control socket; the host of a frame is where it comes from */
    WIRE_HELLO = 1,  /* aux = version; the first frame of a guard */
    WIRE_REPORT,     /* what happened to ranks, in order: entries of wire_report.h */
    WIRE_ABORT,      /* rank, payload u32 code, then text */
    WIRE_OOM_KILLED, /* rank, payload text: why the kernel killed it; its exit follows */
    WIRE_EXEC_ERROR, /* rank, payload u32 errno: the program could not be executed */
    WIRE_FAILED,     /* payload text: why the host cannot continue; aux = 1: shown in any case */
    WIRE_LOST,       /* host and all below it are gone; payload text: how it was noticed */
    WIRE_DONE,       /* every process of the job on this host is gone */
    WIRE_LEFT,       /* the last frame of a guard: nothing of its branch is left; not relayed */
    WIRE_NOTE,       /* aux = how often -v was given, payload text: a line for the user */
    WIRE_SERVER,     /* payload u32 pid of the PMIx server */
    WIRE_ENDING,     /* the answer to KILL: the guard's loop is alive; not relayed */
    WIRE_PONG,       /* the answer to PING; not relayed */
    /* head to guard, control socket; the host of a frame is where it goes, or WIRE_ALL */
    WIRE_JOB,        /* payload of job_frame.h: the answer to HELLO */
    WIRE_GO,         /* all hosts have answered; payload NAME=value\0...: settings made since */
    WIRE_KILL,       /* payload u32 grace in ms: TERM now, KILL after it */
    WIRE_SIGNAL,     /* payload u32 signal number for every rank */
    WIRE_MUTE,       /* aux = stream that has no reader any more */
    WIRE_PING,       /* not relayed: each guard asks those below it */
    WIRE_WANT_MARKS, /* asks which living ranks have left in order; they come as REPORT */
    /* both ways, between the PMIx servers through guards and head; payloads of exchange.h */
    WIRE_FENCE,       /* up: one host's part of a fence */
    WIRE_FENCE_DONE,  /* down: the parts of all hosts */
    WIRE_DMX_REQUEST, /* up and down: data of a rank on another host is requested */
    WIRE_DMX_REPLY,   /* up and down */
    /* output socket: guard to head */
    WIRE_OUTPUT,     /* rank, aux = stream, payload whole lines */
    WIRE_OUTPUT_END, /* this host sends nothing more */
    WIRE_FILE,       /* rank, aux = enum job_file, payload whole lines: for the report */
    /* output socket: head to guard */
    WIRE_STDIN, /* payload bytes for rank 0; 0 bytes = end of file */
    /* server to guard */
    WIRE_ENV,       /* rank, payload NAME=value\0... */
    WIRE_READY,     /* ranks may be started */
    WIRE_CONNECTED, /* rank has finished PMIx_Init's handshake */
    WIRE_FINALIZED, /* rank has called PMIx_Finalize */
    /* explaining a hang: head to guard */
    WIRE_EXPLAIN,    /* asks what the ranks of the host wait for */
    WIRE_WANT_STACK, /* rank */
    /* and back */
    WIRE_WAITS,     /* rank, payload of waits.h */
    WIRE_WAITS_END, /* last frame of this host's answer */
    WIRE_STACK,     /* rank, payload text */
    /* gasnetrun_ibv --top: head to guard */
    WIRE_TOP, /* rank = number of the request; asks for the counters of the host's ranks */
    /* and back */
    WIRE_COUNTS,     /* rank, payload of counts.h */
    WIRE_COUNTS_END, /* rank = that number: last frame of this host's answer */
    WIRE_TYPES
};

struct wire_frame {
    uint16_t type;
    uint16_t aux;
    uint32_t rank;
    uint32_t host;
    uint32_t length;
    const uint8_t *payload; /* valid until the next call on the channel */
};

struct wire_channel {
    int fd;                 /* -1 when closed */
    bool ended;             /* the peer is gone, or broke the protocol */
    bool broken;            /* it broke the protocol */
    bool deaf;              /* the peer no longer reads: frames to it are dropped */
    uint32_t host;          /* in the frames of wire_send() */
    uint64_t frames, moved; /* frames sent and received, and their bytes */
    struct {
        uint32_t frames;
        uint64_t bytes;  /* of payloads */
    } kinds[WIRE_TYPES]; /* of these frames, by type */
    struct bytes in, out;
    size_t taken; /* bytes of `in` belonging to the frame handed out last */
};

/* `host`: our own index for a channel to the head, WIRE_ALL for one to a guard. */
void wire_open(struct wire_channel *c, int fd, uint32_t host);
void wire_close(struct wire_channel *c);

/* Queues a frame; wire_flush() moves it. */
void wire_send(struct wire_channel *c, enum wire_type type, uint16_t aux, uint32_t rank,
               const void *payload, size_t length);
void wire_send_number(struct wire_channel *c, enum wire_type type, uint32_t rank, uint32_t number);

/* The same to or from a certain host. */
void wire_send_host(struct wire_channel *c, uint32_t host, enum wire_type type, uint16_t aux,
                    uint32_t rank, const void *payload, size_t length);

/* Queues a frame that arrived on another channel, unchanged. */
void wire_relay(struct wire_channel *c, const struct wire_frame *frame);

/* Moves what the socket takes now; sets `ended` when the peer is gone. */
void wire_flush(struct wire_channel *c);

/* Queues and moves everything, waiting as long as it takes. */
void wire_send_now(struct wire_channel *c, enum wire_type type, uint16_t aux, uint32_t rank,
                   const void *payload, size_t length);

/* Reads the available data without waiting; sets `ended` at end of stream. True when there was
 * some. */
bool wire_fill(struct wire_channel *c);

/* Hands out the next whole frame already read; false if no whole frame was read. A frame of an
 * unknown type or length ends the channel. */
bool wire_next(struct wire_channel *c, struct wire_frame *frame);

/* Events to poll for on the channel. */
short wire_poll_events(const struct wire_channel *c, bool want_input);

/* The name of a type for -v -v, as --simulate prints it; NULL: it is not counted there. */
const char *wire_name(uint16_t type);

/* The largest payload of a type. */
uint32_t wire_limit(uint16_t type);

uint32_t wire_number(const uint8_t *four_bytes);
void wire_put_number(uint8_t *four_bytes, uint32_t number);

#endif
