/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the gate before libpmix: whose connection is accepted, and which first messages are
 * passed on. A real handshake is changed at random, thousands of times with fixed seeds; a parser
 * that trusts lengths as libpmix does then reads the messages that the gate passed, and must not
 * read beyond their ends. */
#include "config.h"

#include "spawner/server/gate.h"
#include "spawner/server/handshake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A client that has sent all is at its end, so only the test of the deadline waits for it. */
enum { FIRST_MS = 400, PURE_ROUNDS = 200000, SOCKET_ROUNDS = 1000, ROOM = 512 };

#define NSPACE "trunkline-1-0123456789abcdef"

/* Recorded from libpmix 4.2.2, rank 2; a credential of this user is filled in. */
static const uint8_t recorded[] = "\xff\xff\xff\xff\xff\xff\xff\xffI\0\0\0\0\0\0\0"
                                  "native\0\0\0\0\x08UUUUGGGG\0" NSPACE "\0\0\0\0\x02"
                                  "4.2.2rc2\0v41\0\x01hash\0";
enum { RECORDED = sizeof(recorded), CREDENTIAL = 27 };

static struct handshake_rules rules = {
    .nspace = NSPACE, .first = 2, .count = 3, .security = "native,munge", .storage = "ds21,hash"};
static struct sockaddr_in address;
static int listener;

static size_t real_handshake(uint8_t *message)
{
    memcpy(message, recorded, RECORDED);
    memcpy(message + CREDENTIAL, &rules.uid, 4);
    memcpy(message + CREDENTIAL + 4, &rules.gid, 4);
    return RECORDED;
}

static int prepare(void **state)
{
    socklen_t size = sizeof(address);

    rules.uid = geteuid();
    rules.gid = getegid();
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 8) != 0 ||
           getsockname(listener, (struct sockaddr *)&address, &size) != 0 || !gate_close(FIRST_MS);
}

static int connect_client(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* As libpmix: until all has come or the connection has ended. */
static size_t receive_all(int fd, uint8_t *data, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = recv(fd, data + have, size - have, 0);
        if (n <= 0)
            break;
        have += (size_t)n;
    }
    return have;
}

/* What the server gets of a client's message: all of it, or nothing. */
static size_t pass(const uint8_t *message, size_t size, uint8_t *got, size_t room)
{
    int client = connect_client(), server = accept(listener, NULL, NULL);
    assert_true(server >= 0);
    assert_int_equal(send(client, message, size, MSG_NOSIGNAL), size);
    shutdown(client, SHUT_WR);
    size_t have = receive_all(server, got, HANDSHAKE_HEADER);
    if (have == HANDSHAKE_HEADER) {
        uint32_t length;
        memcpy(&length, got + 8, sizeof(length));
        assert_true(length <= room - HANDSHAKE_HEADER);
        have += receive_all(server, got + have, length);
    }
    close(client);
    close(server);
    return have;
}

static uint32_t random_below(uint64_t *seed, uint32_t limit)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)((*seed >> 33) % limit);
}

/* One change; returns the new size. */
static size_t mutate(uint8_t *m, size_t size, uint64_t *seed)
{
    static const uint32_t numbers[] = {0, 1, 7, 9, 255, 4096, 1U << 24, 0x7fffffff, 0xffffffff};
    size_t at = random_below(seed, (uint32_t)size), more = random_below(seed, 16);
    uint32_t number = numbers[random_below(seed, 9)];

    switch (random_below(seed, 6)) {
    case 0:
        m[at] ^= (uint8_t)(1U << random_below(seed, 8));
        return size;
    case 1:
        m[at] = (uint8_t)random_below(seed, 256);
        return size;
    case 2: /* the length of the credential, or of anything */
        number = htonl(number);
        at = random_below(seed, 2) ? CREDENTIAL - 4 : at;
        memcpy(m + at, &number, size - at < 4 ? size - at : 4);
        return size;
    case 3: /* the length of the message */
        memcpy(m + 8, &number, 4);
        return size;
    case 4: /* cut, with a length that agrees */
        size = at > HANDSHAKE_HEADER ? at : HANDSHAKE_HEADER;
        break;
    default: /* bytes that come twice */
        if (size + more > ROOM || at < HANDSHAKE_HEADER)
            return size;
        memmove(m + at + more, m + at, size - at);
        size += more;
        break;
    }
    number = (uint32_t)(size - HANDSHAKE_HEADER);
    memcpy(m + 8, &number, 4);
    return size;
}

static size_t mutated(uint8_t *message, uint64_t seed)
{
    size_t size = real_handshake(message);
    for (unsigned n = 1 + random_below(&seed, 3); n > 0 && size > HANDSHAKE_HEADER; n--)
        size = mutate(message, size, &seed);
    return size;
}

/* Steps over a text with its end; the check that libpmix makes as well. */
static const uint8_t *after_text(const uint8_t *at, const uint8_t *end)
{
    const uint8_t *zero = memchr(at, 0, (size_t)(end - at));
    assert_non_null(zero);
    return zero + 1;
}

/* Believes each length, as libpmix does. */
static void read_trustingly(const uint8_t *at, size_t size)
{
    const uint8_t *end = at + size;
    uint32_t number;

    at = after_text(at, end);
    memcpy(&number, at, sizeof(number));
    at += sizeof(number);
    assert_true(ntohl(number) <= (size_t)(end - at));
    at += ntohl(number);
    assert_true(at < end);
    assert_int_equal(*at++, 0);
    assert_string_equal(at, NSPACE);
    at = after_text(at, end);
    memcpy(&number, at, sizeof(number));
    assert_in_range(ntohl(number), 2, 4);
    at += sizeof(number);
    assert_non_null(strchr((const char *)at, '.'));
    assert_non_null(strchr(strchr((const char *)at, '.') + 1, '.'));
    if (!strncmp((const char *)at, "2.0", 3))
        return;
    at = after_text(after_text(at, end), end) + 1;
    after_text(at, end);
}

static void changed_by_chance(void **state)
{
    size_t good = 0;

    for (uint64_t seed = 0; seed < PURE_ROUNDS; seed++) {
        uint8_t whole[ROOM];
        size_t size = mutated(whole, seed) - HANDSHAKE_HEADER;
        uint8_t *exact = malloc(size + !size); /* so that the address sanitizer sees its end */
        memcpy(exact, whole + HANDSHAKE_HEADER, size);
        if (!handshake_flaw(&rules, exact, size)) {
            read_trustingly(exact, size);
            good++;
        }
        free(exact);
    }
    /* Some changes are of no consequence: in the header, or in the last digit of a version. */
    assert_in_range(good, PURE_ROUNDS / 100, PURE_ROUNDS / 2);
}

static void changed_by_chance_over_tcp(void **state)
{
    size_t good = 0;

    for (uint64_t seed = 0; seed < SOCKET_ROUNDS; seed++) {
        uint8_t sent[ROOM], got[ROOM];
        size_t size = mutated(sent, seed), have = pass(sent, size, got, sizeof(got));
        if (!have)
            continue;
        assert_in_range(have, HANDSHAKE_HEADER + 1, size);
        assert_memory_equal(got, sent, have);
        read_trustingly(got + HANDSHAKE_HEADER, have - HANDSHAKE_HEADER);
        good++;
    }
    assert_in_range(good, SOCKET_ROUNDS / 100, SOCKET_ROUNDS / 2);
}

static void cut_anywhere(void **state)
{
    uint8_t message[ROOM], *exact;

    real_handshake(message);
    for (size_t size = 0; size + 1 < RECORDED - HANDSHAKE_HEADER; size++) {
        exact = malloc(size + !size);
        memcpy(exact, message + HANDSHAKE_HEADER, size);
        assert_non_null(handshake_flaw(&rules, exact, size));
        free(exact);
    }
}

static void nobody_at_first(void **state)
{
    uint8_t message[ROOM], got[ROOM];

    assert_int_equal(pass(message, real_handshake(message), got, sizeof(got)), 0);
    gate_open(&rules);
}

static void a_rank_unchanged(void **state)
{
    uint8_t message[ROOM], got[ROOM];
    size_t size = real_handshake(message);

    assert_int_equal(pass(message, size, got, sizeof(got)), size);
    assert_memory_equal(got, message, size);
}

static void what_follows_untouched(void **state)
{
    uint8_t message[ROOM], got[ROOM];
    size_t size = real_handshake(message);
    int client = connect_client(), server = accept(listener, NULL, NULL);

    memcpy(message + size, "more", 4);
    assert_int_equal(send(client, message, size + 4, MSG_NOSIGNAL), size + 4);
    for (size_t i = 0; i < size; i++) { /* in pieces of one byte */
        assert_int_equal(recv(server, got, 1, 0), 1);
        assert_int_equal(got[0], message[i]);
    }
    assert_int_equal(send(server, "yes", 3, 0), 3);
    assert_int_equal(recv(server, got, sizeof(got), 0), 4);
    assert_memory_equal(got, "more", 4);
    close(client);
    close(server);
}

/* The owner of these can't be determined any more; the kernel shows them as root's. */
static void gone_before_accept(void **state)
{
    static const char *const ways[] = {"close", "reset", "half"};
    uint8_t message[ROOM];
    size_t size = real_handshake(message);

    for (size_t i = 0; i < 3; i++) {
        struct linger at_once = {.l_onoff = 1};
        int client = connect_client();
        send(client, message, size, MSG_NOSIGNAL);
        if (i == 1)
            setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        if (i == 2)
            shutdown(client, SHUT_WR);
        else
            close(client);
        errno = 0;
        int server = accept(listener, NULL, NULL);
        if (server >= 0)
            print_message("accepted after %s\n", ways[i]);
        assert_int_equal(server, -1);
        assert_int_equal(errno, EAGAIN);
        if (i == 2)
            close(client);
    }
}

static void of_another_user(void **state)
{
    int client = connect_client();

    if (geteuid() == 0 && fchown(client, 65534, (gid_t)-1) == 0) {
        assert_int_equal(accept(listener, NULL, NULL), -1);
        assert_int_equal(errno, EAGAIN);
    } else {
        close(accept(listener, NULL, NULL));
    }
    close(client);
}

/* An incomplete message is not forwarded, not even a byte of it, and the reader is free at the
 * deadline. */
static void half_a_message(void **state)
{
    uint8_t message[ROOM], got[ROOM];
    size_t size = real_handshake(message);
    int client = connect_client(), server = accept(listener, NULL, NULL);

    assert_int_equal(send(client, message, size - 1, MSG_NOSIGNAL), size - 1);
    assert_int_equal(recv(server, got, sizeof(got), 0), 0);
    send(client, message + size - 1, 1, MSG_NOSIGNAL);
    assert_int_equal(recv(server, got, sizeof(got), 0), 0); /* too late */
    close(client);
    close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_at_first),        cmocka_unit_test(a_rank_unchanged),
        cmocka_unit_test(what_follows_untouched), cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(changed_by_chance),      cmocka_unit_test(changed_by_chance_over_tcp),
        cmocka_unit_test(gone_before_accept),     cmocka_unit_test(of_another_user),
        cmocka_unit_test(half_a_message),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
