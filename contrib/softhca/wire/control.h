/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests of the softhca command to a member of the fabric: lines of text in datagrams. Owns
 * nothing; takes shca.lock where objects are counted. */
#ifndef SHCA_CONTROL_H
#define SHCA_CONTROL_H

#include <stddef.h>

enum {
    SHCA_REQUEST_MAX = 4096, /* a fault specification is the longest */
    SHCA_REPLY_MAX = 32768,  /* 16 HCAs with every type and state of queue pairs */
};

/* Executes a request and writes the reply, "ok ..." or "error ...", always terminated. The request
 * need not be terminated. Requests:
 *
 *     list | link softhcaN:P up|down | plug softhcaN:P in|out | fatal softhcaN |
 *     gid softhcaN:P remove ROW | gid softhcaN:P add ADDRESS ROW |
 *     fault set SPEC | fault clear | fault list */
void shca_control(const char *request, size_t n, char *reply, size_t room);
/* Serves the requests that are queued in the socket; called by the helper thread. */
void shca_control_serve(int fd);

#endif
