/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104), for the proof that both ends of a connection
 * belong to one job. Implemented here, because no library that has it is otherwise needed at run
 * time. Owns nothing, takes no lock. */
#ifndef TK_SHA256_H
#define TK_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    uint8_t block[SHA256_BLOCK];
};

void tk_sha256_begin(struct sha256 *s);
void tk_sha256_add(struct sha256 *s, const void *data, size_t length);
void tk_sha256_end(struct sha256 *s, uint8_t digest[SHA256_SIZE]);

void tk_sha256_hmac(const void *key, size_t key_length, const void *data, size_t length,
                    uint8_t code[SHA256_SIZE]);

/* Compares in a time that does not depend on where the two differ. */
bool tk_sha256_equal(const uint8_t a[SHA256_SIZE], const uint8_t b[SHA256_SIZE]);

#endif
