/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a thread sleeps until a device reports something. A transport over devices names its
 * functions here and owns the objects. Thread-safe. */
#ifndef TK_TRANSPORT_DEVICE_EVENTS_H
#define TK_TRANSPORT_DEVICE_EVENTS_H

#include <stdbool.h>

/* What may happen at a device; the values are those of GEX_THREAD_ROLE_RCV and _SND. */
enum tk_device_role { TK_DEVICE_RECEIVES = 1, TK_DEVICE_SENDS = 2, TK_DEVICE_ANY = 3 };

enum { tk_device_files_max = 16 };

struct pollfd;

struct tk_device_events {
    /* The devices in use. */
    unsigned (*devices)(void);
    const char *(*name)(unsigned device);

    /* Were the queues made with event files? If not, the functions below must not be called. */
    bool (*is_open)(void);

    /* Fills in the files to wait for; returns how many, at most `max`. */
    unsigned (*files)(unsigned roles, struct pollfd *files, unsigned max);

    /* From here on the next completion makes a file readable, once. Then serves the completions
     * that were there already. *is_armed is false if a device refused, or if work is pending that
     * raises no event. */
    bool (*arm)(unsigned roles, bool *is_armed);

    /* Consumes the events, so that the files are no longer readable. The caller serves the queues,
     * or arms them, before it waits again. */
    void (*take)(unsigned roles);

    /* This thread polls the queues even while another thread polls them. */
    void (*insist)(unsigned roles);

    /* Only threads that called insist() poll the queues, until give_back(). Async-signal-safe. */
    void (*keep)(unsigned roles);
    void (*give_back)(unsigned roles);
};

#endif
