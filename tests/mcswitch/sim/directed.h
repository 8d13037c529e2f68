/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Short histories, packet by packet, each about one rule of the switch. Owns nothing. */
#ifndef TESTS_DIRECTED_H
#define TESTS_DIRECTED_H

struct directed {
    const char *name;
    /* NULL, or what was wrong. */
    const char *(*run)(void);
};

extern const struct directed directed_cases[]; /* up to one without a name */

#endif
