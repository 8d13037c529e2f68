/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of frames.c for other kinds of ports. */
#ifndef MCD_FRAMES_H
#define MCD_FRAMES_H

#include "daemon/port.h"

/* Sets large buffers for a socket, as far as the kernel allows. */
void mcd_frames_buffers(int fd);
/* "A.B.C.D" or "A.B.C.D:PORT"; false: it is neither, or the port is not in 1..65535. */
bool mcd_frames_inet(const char *text, struct sockaddr_in *at, unsigned port_otherwise);

#endif
