/* SPDX-License-Identifier: BSD-3-Clause */
/* The proof at the beginning of a connection; see auth.h. */
#include "config.h"

#include "auth.h"
#include "wire.h"
#include "spawner/util/launcher_clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

/* Where each of the three messages ends in auth.talk, and the fields in front of them. */
enum {
    CLAIM = AUTH_GREETING_SIZE,
    CLAIM_CODE = CLAIM + AUTH_CLAIM_SIZE - SHA256_SIZE,
    ANSWER = CLAIM + AUTH_CLAIM_SIZE,
    HEADER_VERSION = 8,
    CLAIM_HOST = CLAIM + AUTH_HEADER,
    CLAIM_STREAM = CLAIM_HOST + 4,
    CLAIM_NONCE = CLAIM_STREAM + 4
};

static const uint8_t auth_magic[HEADER_VERSION] = {'T', 'r', 'u', 'n', 'k', 'w', '\r', '\n'};

static bool random_bytes(uint8_t *to, size_t count)
{
    return getrandom(to, count, 0) == (ssize_t)count;
}

bool auth_secret_make(struct auth_secret *s)
{
    return random_bytes(s->bytes, sizeof(s->bytes));
}

void auth_secret_print(const struct auth_secret *s, char text[AUTH_SECRET_TEXT])
{
    for (size_t i = 0; i < sizeof(s->bytes); i++)
        snprintf(text + 2 * i, 3, "%02x", s->bytes[i]);
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool auth_secret_parse(struct auth_secret *s, const char *text)
{
    for (size_t i = 0; i < sizeof(s->bytes); i++) {
        int high = hex_digit(text[2 * i]), low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);
        if (low < 0)
            return false;
        s->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return text[2 * sizeof(s->bytes)] == 0;
}

static void auth_open(struct auth *a, int fd, const struct auth_secret *secret, uint32_t ms)
{
    *a = (struct auth){.fd = fd, .secret = secret, .deadline = clock_ms() + ms, .host = UINT32_MAX};
}

void auth_accept(struct auth *a, int fd, const struct auth_secret *secret, uint32_t ms)
{
    auth_open(a, fd, secret, ms);
    a->accepts = true;
}

void auth_dial(struct auth *a, int fd, const struct auth_secret *secret, uint32_t host,
               enum auth_stream stream, uint32_t ms)
{
    auth_open(a, fd, secret, ms);
    a->host = host;
    a->stream = (uint32_t)stream;
}

static enum auth_state refuse(struct auth *a, const char *why)
{
    if (a->state != AUTH_REFUSED)
        snprintf(a->why, sizeof(a->why), "%s", why);
    return a->state = AUTH_REFUSED;
}

/* The code of everything before `end`, by the end that accepts or dials. */
static void make_code(const struct auth *a, bool by_acceptor, size_t end, uint8_t *code)
{
    static const char roles[2][16] = {"trunkline guard", "trunkline head "};
    uint8_t text[sizeof(roles[0]) + AUTH_TALK_SIZE];

    memcpy(text, roles[by_acceptor], sizeof(roles[0]));
    memcpy(text + sizeof(roles[0]), a->talk, end);
    tk_sha256_hmac(a->secret->bytes, sizeof(a->secret->bytes), text, sizeof(roles[0]) + end, code);
}

static bool proves(const struct auth *a, bool by_acceptor, size_t at)
{
    uint8_t code[SHA256_SIZE];
    make_code(a, by_acceptor, at, code);
    return tk_sha256_equal(code, a->talk + at);
}

static bool write_header(struct auth *a, size_t at, size_t nonce)
{
    memcpy(a->talk + at, auth_magic, sizeof(auth_magic));
    wire_put_number(a->talk + at + HEADER_VERSION, WIRE_VERSION);
    return random_bytes(a->talk + nonce, AUTH_NONCE);
}

/* Writes our message that begins at `at`. */
static bool prepare(struct auth *a, size_t at)
{
    if (at == 0)
        return write_header(a, 0, AUTH_HEADER);
    if (at == CLAIM) {
        wire_put_number(a->talk + CLAIM_HOST, a->host);
        wire_put_number(a->talk + CLAIM_STREAM, a->stream);
        if (!write_header(a, CLAIM, CLAIM_NONCE))
            return false;
        make_code(a, false, CLAIM_CODE, a->talk + CLAIM_CODE);
    } else {
        make_code(a, true, ANSWER, a->talk + ANSWER);
    }
    return true;
}

static bool check_header(struct auth *a, size_t at)
{
    if (memcmp(a->talk + at, auth_magic, sizeof(auth_magic)) != 0) {
        refuse(a, "it is no launcher of Trunkline");
        return false;
    }
    a->version = wire_number(a->talk + at + HEADER_VERSION);
    if (a->version == WIRE_VERSION)
        return true;
    refuse(a, "");
    snprintf(a->why, sizeof(a->why),
             "it speaks version %u of the launcher's protocol, this one %u: install one release on "
             "all hosts",
             a->version, (unsigned)WIRE_VERSION);
    return false;
}

/* Checks the bytes received so far; `a->at` is at the end of a header or a message. */
static void check_received(struct auth *a)
{
    if (a->at == AUTH_HEADER) {
        check_header(a, 0);
    } else if (a->at == CLAIM + AUTH_HEADER) {
        check_header(a, CLAIM);
    } else if (a->at == ANSWER) {
        a->host = wire_number(a->talk + CLAIM_HOST);
        a->stream = wire_number(a->talk + CLAIM_STREAM);
        if (!proves(a, false, CLAIM_CODE) || a->stream >= AUTH_STREAMS)
            refuse(a, "it does not know the secret of the job");
    } else if (a->at == AUTH_TALK_SIZE && !proves(a, true, ANSWER)) {
        refuse(a, "it does not know the secret of the job");
    }
}

/* The end of the message that `at` is in. */
static size_t message_end(size_t at)
{
    return at < CLAIM ? CLAIM : at < ANSWER ? ANSWER : AUTH_TALK_SIZE;
}

static bool is_ours(const struct auth *a)
{
    return a->accepts != (a->at >= CLAIM && a->at < ANSWER);
}

static bool at_start_of_message(size_t at)
{
    return at == 0 || at == CLAIM || at == ANSWER;
}

/* A header is read by itself: an end of another version may send less than our message. */
static size_t bytes_wanted(const struct auth *a)
{
    size_t end = message_end(a->at);
    if (!is_ours(a) && a->at < AUTH_HEADER)
        end = AUTH_HEADER;
    if (!is_ours(a) && a->at >= CLAIM && a->at < CLAIM + AUTH_HEADER)
        end = CLAIM + AUTH_HEADER;
    return end - a->at;
}

static ssize_t move(struct auth *a)
{
    if (is_ours(a))
        return send(a->fd, a->talk + a->at, bytes_wanted(a), MSG_DONTWAIT | MSG_NOSIGNAL);
    return recv(a->fd, a->talk + a->at, bytes_wanted(a), MSG_DONTWAIT);
}

enum auth_state auth_step(struct auth *a)
{
    while (a->state == AUTH_GOING) {
        bool sends = is_ours(a);
        if (sends && at_start_of_message(a->at) && !prepare(a, a->at))
            return refuse(a, "no random bytes from the kernel");
        ssize_t n = move(a);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return clock_ms() < a->deadline ? AUTH_GOING : refuse(a, "it does not answer in time");
        if (n < 0)
            return refuse(a, strerror(errno));
        if (n == 0)
            return refuse(a, "it closed the connection");
        a->at += (size_t)n;
        if (!sends)
            check_received(a);
        if (a->state == AUTH_GOING && a->at == AUTH_TALK_SIZE)
            a->state = AUTH_DONE;
    }
    return a->state;
}

short auth_poll_events(const struct auth *a)
{
    return is_ours(a) ? POLLOUT : POLLIN;
}
