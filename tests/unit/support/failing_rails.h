/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ranks with several connections between them, which tests break: numbered messages that must
 * arrive once and in order, and invariants when nothing is pending. */
#ifndef FAILING_RAILS_H
#define FAILING_RAILS_H

#include "fake_world.h"

enum { segment_size = 4 << 20, ranks = 2, stripe = 16384, piece_count = 10 };

/* Calls of tk_lost_peer since open_failing_rails(). */
extern unsigned lost_count;

/* Messages to this rank. */
struct stream {
    int32_t sent, came;
    bool in_handler, replies;
};
extern struct stream stream[ranks];

/* Byte i of the message with this number. */
char pattern(int32_t serial, size_t i);

/* An additional setting for all tests of a program, defined by a file linked into it. NULL: none.
 */
const char *failing_rails_setting(void);
extern bool failing_rails_by_cm;

/* Defined by that file, too: the next wait with a time limit now exceeds it. */
void failing_rails_time_passes(void);

/* `devices` devices with one port each, or one device with two; settings are "NAME=value". */
void open_failing_rails(unsigned devices, const char *ports, const char *more);

/* A handler that waits runs no other handler. */
void one_polls(uint32_t rank);

/* From the rank that the test plays now. */
enum tk_status send_numbered(uint32_t to, enum tk_message_kind kind, size_t nbytes);

struct tk_conn *conn_to(uint32_t rank, uint32_t peer, uint32_t number);
struct ibv_qp *qp_of(uint32_t rank, uint32_t number);

/* Neither rank has pending work. */
bool idle(void);

/* The messages logged until nothing is pending; a switch-over that stops half-way fails the test.
 */
const char *logged_until_idle(void);

/* The number of the connection that has the messages, for both; and what both know of it adds up.
 */
uint32_t assert_whole(void);

#endif
