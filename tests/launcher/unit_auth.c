/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of how a host is reached, and how hosts of one job recognize each other: words of a
 * command, SHA-256 and HMAC by published vectors, the exchange of proofs, the port, and connecting
 * back to it.
 */
#include "config.h"

#include "spawner/agent/listen.h"
#include "spawner/agent/ssh_text.h"
#include "spawner/util/launcher_clock.h"
#include "common/sha256.h"
#include "spawner/util/words.h"
#include "spawner/head/devices.h"
#include "spawner/wire/auth.h"
#include "spawner/wire/dial.h"
#include "spawner/wire/hello.h"
#include "spawner/wire/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 20000 };

static void assert_hex(const uint8_t digest[SHA256_SIZE], const char *wanted)
{
    char text[2 * SHA256_SIZE + 1];
    for (int i = 0; i < SHA256_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(text, wanted);
}

static void hash_of(const char *text, const char *wanted)
{
    uint8_t digest[SHA256_SIZE];
    struct sha256 s;
    tk_sha256_begin(&s);
    tk_sha256_add(&s, text, strlen(text));
    tk_sha256_end(&s, digest);
    assert_hex(digest, wanted);
}

/* FIPS 180-2, appendix B, and the example file of NIST. */
static void sha256_vectors(void **state)
{
    uint8_t digest[SHA256_SIZE];
    struct sha256 s;
    char thousand[1000];
    hash_of("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    hash_of("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    hash_of("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnop"
            "qrlmnopqrsmnopqrstnopqrstu",
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    memset(thousand, 'a', sizeof(thousand));
    tk_sha256_begin(&s);
    for (int i = 0; i < 1000; i++)
        tk_sha256_add(&s, thousand, sizeof(thousand));
    tk_sha256_end(&s, digest);
    assert_hex(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Cut anywhere, the hash is the same: every length around the block's. */
static void sha256_in_pieces(void **state)
{
    char text[200];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)i;
    for (size_t length = 0; length < sizeof(text); length += 7)
        for (size_t cut = 0; cut <= length; cut++) {
            uint8_t whole[SHA256_SIZE], pieces[SHA256_SIZE];
            struct sha256 s;
            tk_sha256_begin(&s);
            tk_sha256_add(&s, text, length);
            tk_sha256_end(&s, whole);
            tk_sha256_begin(&s);
            tk_sha256_add(&s, text, cut);
            tk_sha256_add(&s, text + cut, length - cut);
            tk_sha256_end(&s, pieces);
            assert_true(tk_sha256_equal(whole, pieces));
        }
}

static void code_of(const void *key, size_t key_length, const void *data, size_t length,
                    const char *wanted)
{
    uint8_t code[SHA256_SIZE];
    tk_sha256_hmac(key, key_length, data, length, code);
    assert_hex(code, wanted);
}

/* RFC 4231, cases 1, 2, 3, 6 and 7. */
static void hmac_vectors(void **state)
{
    static const char long_key[] = "Test Using Larger Than Block-Size Key - Hash Key First";
    static const char long_both[] =
        "This is a test using a larger than block-size key and a larger than block-size data. The "
        "key needs to be hashed before being used by the HMAC algorithm.";
    uint8_t key[131], data[50];
    memset(key, 0x0b, 20);
    code_of(key, 20, "Hi There", 8,
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    code_of("Jefe", 4, "what do ya want for nothing?", 28,
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    memset(data, 0xdd, sizeof(data));
    code_of(key, 20, data, sizeof(data),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    code_of(key, sizeof(key), long_key, strlen(long_key),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    code_of(key, sizeof(key), long_both, strlen(long_both),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

static void every_byte_is_compared(void **state)
{
    uint8_t a[SHA256_SIZE] = {0}, b[SHA256_SIZE] = {0};
    assert_true(tk_sha256_equal(a, b));
    for (int i = 0; i < SHA256_SIZE; i++) {
        b[i] = 0x80;
        assert_false(tk_sha256_equal(a, b));
        b[i] = 0;
    }
}

static struct auth_secret secret, foreign;

static int make_secrets(void **state)
{
    return auth_secret_make(&secret) && auth_secret_make(&foreign) ? 0 : -1;
}

static void secrets_as_text(void **state)
{
    char text[AUTH_SECRET_TEXT];
    struct auth_secret again;
    assert_memory_not_equal(&secret, &foreign, sizeof(secret));
    auth_secret_print(&secret, text);
    assert_true(auth_secret_parse(&again, text));
    assert_memory_equal(&again, &secret, sizeof(secret));
    text[AUTH_SECRET_TEXT - 2] = 0;
    assert_false(auth_secret_parse(&again, text));
    auth_secret_print(&secret, text);
    text[10] = 'G';
    assert_false(auth_secret_parse(&again, text));
    assert_false(auth_secret_parse(&again, ""));
}

/* Both ends of a socket, and the exchange on it until nothing moves. */
static int ends[2];
static struct auth head, guard;

static void open_ends(void)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    auth_accept(&head, ends[0], &secret, PATIENCE_MS);
}

static void close_ends(void)
{
    close(ends[0]);
    close(ends[1]);
}

static void talk(void)
{
    for (int i = 0; i < 5; i++) {
        auth_step(&head);
        auth_step(&guard);
    }
}

static void both_prove_themselves(void **state)
{
    char byte = 0;
    open_ends();
    auth_dial(&guard, ends[1], &secret, 70000, AUTH_OUTPUT, PATIENCE_MS);
    assert_int_equal(auth_poll_events(&head), POLLOUT);
    assert_int_equal(auth_poll_events(&guard), POLLIN);
    talk();
    assert_int_equal(head.state, AUTH_DONE);
    assert_int_equal(guard.state, AUTH_DONE);
    assert_int_equal(head.host, 70000);
    assert_int_equal(head.stream, AUTH_OUTPUT);
    /* The following bytes belong to the frames. */
    assert_int_equal(write(ends[0], "x", 1), 1);
    auth_step(&guard);
    assert_int_equal(read(ends[1], &byte, 1), 1);
    assert_int_equal(byte, 'x');
    close_ends();
}

static void a_guard_without_the_secret_is_refused(void **state)
{
    open_ends();
    auth_dial(&guard, ends[1], &foreign, 1, AUTH_CONTROL, PATIENCE_MS);
    talk();
    assert_int_equal(head.state, AUTH_REFUSED);
    assert_non_null(strstr(head.why, "does not know the secret"));
    assert_int_equal(head.at, AUTH_GREETING_SIZE + AUTH_CLAIM_SIZE); /* no answer to it */
    assert_int_equal(guard.state, AUTH_GOING);
    close(ends[0]);
    auth_step(&guard);
    assert_int_equal(guard.state, AUTH_REFUSED);
    close(ends[1]);
}

/* Nor does a guard obey an arbitrary process at that address: this process knows everything but the
 * secret and answers with its own code. */
static void a_head_without_the_secret_is_refused(void **state)
{
    struct auth real;
    int others[2];
    uint8_t talk_so_far[AUTH_TALK_SIZE];
    open_ends();
    head.secret = &foreign;
    auth_dial(&guard, ends[1], &secret, 1, AUTH_CONTROL, PATIENCE_MS);
    talk();
    assert_int_equal(head.state, AUTH_REFUSED); /* an honest one stops here */
    assert_int_equal(guard.state, AUTH_GOING);
    memcpy(talk_so_far, head.talk, sizeof(talk_so_far));
    assert_int_equal(write(ends[0],
                           talk_so_far + AUTH_GREETING_SIZE + AUTH_CLAIM_SIZE - SHA256_SIZE,
                           SHA256_SIZE),
                     SHA256_SIZE); /* the guard's own code, reflected */
    auth_step(&guard);
    assert_int_equal(guard.state, AUTH_REFUSED);
    assert_non_null(strstr(guard.why, "does not know the secret"));
    close_ends();
    /* The claim that was overheard is of no use in another exchange. */
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, others), 0);
    auth_accept(&real, others[0], &secret, PATIENCE_MS);
    auth_step(&real);
    assert_int_equal(write(others[1], talk_so_far + AUTH_GREETING_SIZE, AUTH_CLAIM_SIZE),
                     AUTH_CLAIM_SIZE);
    assert_int_equal(auth_step(&real), AUTH_REFUSED);
    assert_non_null(strstr(real.why, "does not know the secret"));
    close(others[0]);
    close(others[1]);
}

/* Every bit of the claim and of the answer is covered: by the code, or by a check of its own. */
static void every_bit_counts(void **state)
{
    for (size_t bit = 0; bit < 8 * (size_t)(AUTH_CLAIM_SIZE + SHA256_SIZE); bit++) {
        uint8_t claim[AUTH_CLAIM_SIZE], answer[SHA256_SIZE];
        open_ends();
        auth_step(&head);
        auth_dial(&guard, ends[1], &secret, 3, AUTH_CONTROL, PATIENCE_MS);
        auth_step(&guard);
        assert_int_equal(read(ends[0], claim, sizeof(claim)), sizeof(claim));
        if (bit / 8 < sizeof(claim))
            claim[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(write(ends[1], claim, sizeof(claim)), sizeof(claim));
        auth_step(&head);
        if (bit / 8 < sizeof(claim)) {
            assert_int_equal(head.state, AUTH_REFUSED);
        } else {
            assert_int_equal(head.state, AUTH_DONE);
            assert_int_equal(read(ends[1], answer, sizeof(answer)), sizeof(answer));
            answer[bit / 8 - sizeof(claim)] ^= (uint8_t)(1 << bit % 8);
            assert_int_equal(write(ends[0], answer, sizeof(answer)), sizeof(answer));
            assert_int_equal(auth_step(&guard), AUTH_REFUSED);
        }
        close_ends();
    }
}

static void another_version_is_named(void **state)
{
    uint8_t greeting[AUTH_GREETING_SIZE];
    open_ends();
    auth_step(&head);
    assert_int_equal(read(ends[1], greeting, sizeof(greeting)), sizeof(greeting));
    wire_put_number(greeting + AUTH_HEADER - 4, WIRE_VERSION + 7);
    assert_int_equal(write(ends[0], greeting, AUTH_HEADER), AUTH_HEADER); /* its rest may differ */
    auth_dial(&guard, ends[1], &secret, 3, AUTH_CONTROL, PATIENCE_MS);
    assert_int_equal(auth_step(&guard), AUTH_REFUSED);
    assert_non_null(strstr(guard.why, "version"));
    assert_int_equal(guard.version, WIRE_VERSION + 7);
    close_ends();
}

static void time_and_ends_are_bounded(void **state)
{
    open_ends();
    auth_accept(&head, ends[0], &secret, 0);
    assert_int_equal(auth_step(&head), AUTH_REFUSED); /* the greeting is out, nothing comes */
    assert_non_null(strstr(head.why, "in time"));
    auth_accept(&head, ends[0], &secret, PATIENCE_MS);
    assert_int_equal(auth_step(&head), AUTH_GOING);
    close(ends[1]);
    assert_int_equal(auth_step(&head), AUTH_REFUSED);
    assert_int_equal(auth_step(&head), AUTH_REFUSED);
    close(ends[0]);
}

/* Random bytes of any length, in pieces of any size, never pass as a proof, and never make the
 * reader read more than a claim. */
static void noise_is_refused(void **state)
{
    uint8_t noise[400];
    srand(1);
    for (int n = 0; n < 500; n++) {
        size_t length = (size_t)rand() % sizeof(noise), at = 0;
        open_ends();
        auth_step(&head);
        for (size_t i = 0; i < length; i++)
            noise[i] = (uint8_t)rand();
        if (n % 2 && length >= AUTH_GREETING_SIZE) /* our own greeting, reflected */
            memcpy(noise, head.talk, AUTH_GREETING_SIZE);
        while (at < length) {
            size_t piece = 1 + (size_t)rand() % (length - at);
            assert_int_equal(write(ends[1], noise + at, piece), piece);
            at += piece;
            auth_step(&head);
        }
        assert_int_not_equal(head.state, AUTH_DONE);
        assert_true(head.at <= AUTH_GREETING_SIZE + AUTH_CLAIM_SIZE);
        close_ends();
    }
}

/* A port, served by a thread as by the head's loop, which hands its connections to the test. */
static struct listener port;
static char port_text[4096];
static volatile bool port_stop;
static int accepted[8];
static uint32_t accepted_host[8];
static volatile size_t accepted_count;

static void *serve_port(void *unused)
{
    struct pollfd p[LISTEN_POLL_MAX];
    enum auth_stream stream;
    while (!port_stop) {
        poll(p, listen_poll_fds(&port, p), 20);
        listen_serve(&port);
        while (accepted_count < 8 && listen_next(&port, &accepted_host[accepted_count], &stream,
                                                 &accepted[accepted_count]))
            accepted_count++;
    }
    return NULL;
}

static pthread_t open_port(const char *master)
{
    pthread_t thread;
    port_stop = false;
    accepted_count = 0;
    assert_true(listen_open(&port, &secret, master));
    assert_true(listen_addresses(&port, master, port_text, sizeof(port_text)));
    assert_int_equal(pthread_create(&thread, NULL, serve_port, NULL), 0);
    return thread;
}

static void close_port(pthread_t thread)
{
    port_stop = true;
    pthread_join(thread, NULL);
    for (size_t i = 0; i < accepted_count; i++)
        close(accepted[i]);
    listen_close(&port);
}

static int call(const struct auth_secret *s, uint32_t host, char *why, size_t size)
{
    struct dial d = {
        .secret = s, .host = host, .lifeline = -1, .deadline = clock_ms() + PATIENCE_MS};
    why[0] = 0;
    return dial_parse(&d, port_text, NULL, why, size) ? dial_connect(&d, AUTH_CONTROL, why, size)
                                                      : -1;
}

static void guards_call_back(void **state)
{
    static const char *const masters[] = {"127.0.0.1", "", "localhost", "::1"};
    char why[300];
    for (size_t i = 0; i < sizeof(masters) / sizeof(*masters); i++) {
        pthread_t thread = open_port(masters[i]);
        if (!strcmp(masters[i], "127.0.0.1"))
            assert_memory_equal(port_text, "127.0.0.1:", 10);
        int fd = call(&secret, 5, why, sizeof(why));
        if (!strcmp(masters[i], "::1") && fd < 0) { /* a host without IPv6 */
            close_port(thread);
            continue;
        }
        if (fd < 0)
            fail_msg("%s: %s", port_text, why);
        for (int64_t until = clock_ms() + PATIENCE_MS; !accepted_count && clock_ms() < until;)
            usleep(1000);
        assert_int_equal(accepted_count, 1);
        assert_int_equal(accepted_host[0], 5);
        close(fd);
        if (i == 0)
            assert_int_equal(call(&foreign, 5, why, sizeof(why)), -1);
        assert_int_equal(accepted_count, 1);
        close_port(thread);
    }
}

static int connect_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port.port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

/* More foreign connections than slots, some of them silent, beside a guard. */
static void foreign_connections_keep_no_guard_out(void **state)
{
    enum { STRANGERS = 2 * LISTEN_PENDING };
    int stranger[STRANGERS];
    char why[300];
    pthread_t thread = open_port("127.0.0.1");
    for (int i = 0; i < STRANGERS; i++) {
        stranger[i] = connect_port();
        if (i % 3 == 0)
            assert_int_equal(write(stranger[i], "GET / HTTP/1.1\r\n", 16), 16);
    }
    int64_t began = clock_ms();
    int fd = call(&secret, 2, why, sizeof(why));
    if (fd < 0)
        fail_msg("%s", why);
    assert_true(clock_ms() - began < 5000); /* less than any foreign connection gets */
    close(fd);
    for (int i = 0; i < STRANGERS; i++)
        close(stranger[i]);
    close_port(thread);
    assert_true(port.foreign >= STRANGERS / 3);
}

static void nobody_there_is_a_sentence(void **state)
{
    struct dial d = {.secret = &secret, .lifeline = -1, .deadline = clock_ms() + PATIENCE_MS};
    char why[300] = "";
    int pipe_ends[2];
    assert_true(listen_open(&port, &secret, "127.0.0.1"));
    assert_true(listen_addresses(&port, "127.0.0.1", port_text, sizeof(port_text)));
    listen_close(&port);
    assert_int_equal(call(&secret, 0, why, sizeof(why)), -1);
    assert_string_equal(why, strerror(ECONNREFUSED));
    assert_false(dial_parse(&d, "127.0.0.1", NULL, why, sizeof(why)));
    assert_false(dial_parse(&d, "127.0.0.1:x", NULL, why, sizeof(why)));
    assert_false(dial_parse(&d, ":1", NULL, why, sizeof(why)));
    assert_true(dial_parse(&d, "@,127.0.0.1:1", NULL, why, sizeof(why)));
    assert_int_equal(d.count, 1);
    assert_true(dial_parse(&d, "@,127.0.0.1:1", "::1", why, sizeof(why)));
    assert_int_equal(d.count, 2);
    assert_int_equal(d.address[0].ss_family, AF_INET6);
    assert_true(dial_parse(&d, "[::1],127.0.0.1:1", "127.0.0.2", why, sizeof(why)));
    assert_int_equal(d.count, 2);
    /* A port that nobody serves, and a time limit; then the end of the lifeline. */
    assert_true(listen_open(&port, &secret, "127.0.0.1"));
    assert_true(listen_addresses(&port, "127.0.0.1", port_text, sizeof(port_text)));
    assert_true(dial_parse(&d, port_text, NULL, why, sizeof(why)));
    d.deadline = clock_ms() + 50;
    assert_int_equal(dial_connect(&d, AUTH_CONTROL, why, sizeof(why)), -1);
    assert_string_equal(why, strerror(ETIMEDOUT));
    assert_int_equal(pipe(pipe_ends), 0);
    close(pipe_ends[1]);
    d.lifeline = pipe_ends[0];
    d.deadline = clock_ms() + PATIENCE_MS;
    assert_int_equal(dial_connect(&d, AUTH_CONTROL, why, sizeof(why)), -1);
    assert_string_equal(why, "");
    assert_true(clock_ms() < d.deadline);
    close(pipe_ends[0]);
    listen_close(&port);
}

static void split_into(const char *text, const char *joined)
{
    char all[200] = "";
    char **words = words_split(text);
    assert_non_null(words);
    for (char **w = words; *w; w++) {
        strcat(all, *w);
        strcat(all, "|");
    }
    free(words);
    assert_string_equal(all, joined);
}

static void words_of_a_command(void **state)
{
    split_into("", "");
    split_into(" \t\n", "");
    split_into("ssh", "ssh|");
    split_into("  a b\tc\nd ", "a|b|c|d|");
    split_into("a ''", "a||");
    split_into("-o 'A=b c' \"d e\"f", "-o|A=b c|d ef|");
    split_into("a\\ b 'c\\d' \"e\\\"f\\g\"", "a b|c\\d|e\"f\\g|");
    assert_null(words_split("a 'b"));
    assert_null(words_split("a \"b"));
    assert_null(words_split("a\\"));
}

/* A shell checks the result. */
static void words_for_a_shell(void **state)
{
    static const char *const words[] = {"plain", "",  "a b", "it's", "$HOME `id` \\ \"q\" *",
                                        "-n",    "~", "\n"};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        char command[200] = "printf '<%s>' ", seen[200] = "", wanted[200];
        assert_true(words_quote(command, sizeof(command), words[i]));
        FILE *f = popen(command, "r");
        assert_non_null(f);
        size_t n = fread(seen, 1, sizeof(seen) - 1, f);
        seen[n] = 0;
        assert_int_equal(pclose(f), 0);
        snprintf(wanted, sizeof(wanted), "<%s>", words[i]);
        assert_string_equal(seen, wanted);
    }
    char small[8] = "a ";
    assert_false(words_quote(small, sizeof(small), "it's one"));
    assert_string_equal(small, "a ");
}

static void judged(const char *text, int status, const char *wanted)
{
    char why[500];
    ssh_text_judge(text, strlen(text), status, "ssh", "/opt/bin/gasnetrun_ibv", why, sizeof(why));
    assert_string_equal(why, wanted);
}

#define EXITED(code) ((code) << 8)

static void words_of_ssh_are_judged(void **state)
{
    judged("ssh: connect to host n1 port 22: Connection refused\r\n", EXITED(255),
           "ssh: connect to host n1 port 22: Connection refused");
    judged("banner\n\nme@n1: Permission denied (publickey).\n \n", EXITED(255),
           "me@n1: Permission denied (publickey); it must be entered without a password (an "
           "agent, or a "
           "key: ssh-copy-id)");
    judged("sh: 1: exec: /opt/bin/gasnetrun_ibv: not found\n", EXITED(127),
           "there is no /opt/bin/gasnetrun_ibv on it; install Trunkline there, "
           "GASNET_SSH_REMOTE_PATH names its directory");
    judged("/opt/bin/gasnetrun_ibv: 1: ELF: not found\n", EXITED(127),
           "/opt/bin/gasnetrun_ibv cannot be executed there: /opt/bin/gasnetrun_ibv: 1: ELF: not "
           "found");
    judged("/opt/bin/gasnetrun_ibv: error while loading shared libraries: x\n", EXITED(127),
           "/opt/bin/gasnetrun_ibv cannot be executed there: /opt/bin/gasnetrun_ibv: error while "
           "loading shared libraries: x");
    judged("sh: 1: exec: Exec format error", EXITED(126),
           "/opt/bin/gasnetrun_ibv cannot be executed there: sh: 1: exec: Exec format error");
    judged("gasnetrun_ibv: it is not well\nConnection closed.\n", EXITED(1), "it is not well");
    judged("", EXITED(3), "ssh ended with status 3 and without a message");
    judged("", 9, "ssh was killed by signal 9");
    judged("\033[31mred\007\n", EXITED(1), " [31mred ");
}

static void hosts_are_compared(void **state)
{
    struct hello here, there;
    struct bytes packed = {0};
    char why_not[400];
    hello_here(&here, HELLO_PORTS_ACTIVE);
    hello_pack(&here, &packed);
    assert_true(hello_unpack(&there, bytes_front(&packed), packed.length));
    assert_int_equal(there.ports, HELLO_PORTS_ACTIVE);
    assert_true(hello_fits(&here, &there, why_not, sizeof(why_not)));
    assert_true(hello_same_machine(&here, &there));
    assert_true(strlen(there.kernel) > 40);
    for (size_t n = 0; n < packed.length; n++)
        assert_false(hello_unpack(&there, bytes_front(&packed), n));
    bytes_append(&packed, "x", 1);
    assert_false(hello_unpack(&there, bytes_front(&packed), packed.length));
    bytes_free(&packed);
    there = here;
    there.build[0] ^= 1;
    assert_false(hello_fits(&here, &there, why_not, sizeof(why_not)));
    assert_non_null(strstr(why_not, "another build"));
    there = here;
    there.machine[0] ^= 1;
    assert_false(hello_fits(&here, &there, why_not, sizeof(why_not)));
    assert_non_null(strstr(why_not, "architecture"));
    there = here;
    there.kernel[0] ^= 1;
    assert_false(hello_same_machine(&here, &there));
}

/* A job on hosts of which each letter says: p port, n none, u unknown (our own host); upper case:
 * on another machine. */
static enum devices_choice choose_for(const char *hosts, enum job_softhca wish, bool has_library,
                                      bool own_port, char *said, size_t size)
{
    static char *library[] = {"LD_PRELOAD=libsofthca.so", NULL};
    static const char *const names[] = {"n0", "n1", "n2", "n3", "n4", "n5",
                                        "n6", "n7", "n8", "n9", "n10"};
    struct job_host list[11];
    struct hello hello[11];
    struct job job = {.hosts = list,
                      .softhca = wish,
                      .own_port = own_port,
                      .softhca_env = has_library ? library : NULL};
    for (; *hosts; hosts++, job.host_count++) {
        struct hello *h = &hello[job.host_count];
        hello_here(h, *hosts == 'u'                    ? HELLO_PORTS_UNKNOWN
                      : *hosts == 'p' || *hosts == 'P' ? HELLO_PORTS_ACTIVE
                                                       : HELLO_PORTS_NONE);
        if (*hosts < 'a')
            snprintf(h->kernel, sizeof(h->kernel), "another one");
        list[job.host_count] = (struct job_host){.name = names[job.host_count]};
    }
    return devices_choose(&job, hello, said, size);
}

static void devices_of_several_hosts(void **state)
{
    char said[1000];
#define CHOICE(hosts, wish, library, own) choose_for(hosts, wish, library, own, said, sizeof(said))
    assert_int_equal(CHOICE("pPp", JOB_SOFTHCA_AUTO, true, false), DEVICES_PORTS);
    assert_non_null(strstr(said, "of all 3 hosts"));
    assert_int_equal(CHOICE("uP", JOB_SOFTHCA_NEVER, false, true), DEVICES_PORTS);
    assert_int_equal(CHOICE("nu", JOB_SOFTHCA_AUTO, true, false), DEVICES_SOFTHCA);
    assert_int_equal(CHOICE("pp", JOB_SOFTHCA_ALWAYS, true, false), DEVICES_SOFTHCA);
    assert_int_equal(CHOICE("nn", JOB_SOFTHCA_AUTO, false, false), DEVICES_REFUSED);
    assert_non_null(strstr(said, "libsofthca.so is not"));
    assert_int_equal(CHOICE("nn", JOB_SOFTHCA_NEVER, true, false), DEVICES_REFUSED);
    assert_non_null(strstr(said, "GASNET_SOFTHCA=never"));
    assert_int_equal(CHOICE("nN", JOB_SOFTHCA_AUTO, true, false), DEVICES_PACKETS);
    assert_non_null(strstr(said, "over the network"));
    assert_int_equal(CHOICE("pP", JOB_SOFTHCA_ALWAYS, true, false), DEVICES_PACKETS);
    assert_non_null(strstr(said, "GASNET_SOFTHCA=always"));
    assert_int_equal(CHOICE("nN", JOB_SOFTHCA_NEVER, true, false), DEVICES_REFUSED);
    assert_int_equal(CHOICE("nN", JOB_SOFTHCA_AUTO, false, false), DEVICES_REFUSED);
    assert_int_equal(CHOICE("uNpPN", JOB_SOFTHCA_AUTO, true, true), DEVICES_REFUSED);
    assert_string_equal(said,
                        "all hosts of a job must have an active RDMA port, or none: n0, n2, n3 "
                        "have one, n1, n4 not");
    assert_int_equal(CHOICE("uppppppppPP", JOB_SOFTHCA_AUTO, true, false), DEVICES_REFUSED);
    assert_string_equal(said,
                        "all hosts of a job must have an active RDMA port, or none: n1, n2, n3, "
                        "n4, n5, n6, n7, n8 and 2 more have one, n0 not");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_a_command),
        cmocka_unit_test(words_for_a_shell),
        cmocka_unit_test(words_of_ssh_are_judged),
        cmocka_unit_test(hosts_are_compared),
        cmocka_unit_test(devices_of_several_hosts),
        cmocka_unit_test(sha256_vectors),
        cmocka_unit_test(sha256_in_pieces),
        cmocka_unit_test(hmac_vectors),
        cmocka_unit_test(every_byte_is_compared),
        cmocka_unit_test(secrets_as_text),
        cmocka_unit_test(both_prove_themselves),
        cmocka_unit_test(a_guard_without_the_secret_is_refused),
        cmocka_unit_test(a_head_without_the_secret_is_refused),
        cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(another_version_is_named),
        cmocka_unit_test(time_and_ends_are_bounded),
        cmocka_unit_test(noise_is_refused),
        cmocka_unit_test(guards_call_back),
        cmocka_unit_test(foreign_connections_keep_no_guard_out),
        cmocka_unit_test(nobody_there_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, make_secrets, NULL);
}
