/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the launcher's protocol: frames, and the job as a frame. */
#include "config.h"

#include "spawner/wire/job_frame.h"
#include "spawner/wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void channels(struct wire_channel *a, struct wire_channel *b)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    wire_open(a, pair[0], 0);
    wire_open(b, pair[1], 0);
}

static void frames_travel(void **state)
{
    struct wire_channel a, b;
    struct wire_frame f;
    channels(&a, &b);
    wire_send(&a, WIRE_OUTPUT, 2, 70000, "hello", 5);
    wire_send_number(&a, WIRE_EXEC_ERROR, 1, 0xfedcba98u);
    wire_send(&a, WIRE_DONE, 0, 0, NULL, 0);
    wire_flush(&a);
    assert_true(wire_fill(&b));
    assert_true(wire_next(&b, &f));
    assert_int_equal(f.type, WIRE_OUTPUT);
    assert_int_equal(f.aux, 2);
    assert_int_equal(f.rank, 70000);
    assert_int_equal(f.length, 5);
    assert_memory_equal(f.payload, "hello", 5);
    assert_true(wire_next(&b, &f));
    assert_int_equal(wire_number(f.payload), 0xfedcba98u);
    assert_true(wire_next(&b, &f));
    assert_int_equal(f.type, WIRE_DONE);
    assert_false(wire_next(&b, &f));
    assert_false(b.ended);
    wire_close(&a);
    assert_false(wire_fill(&b));
    assert_true(b.ended);
    wire_close(&b);
}

/* The last words of a peer are read, even if something was sent to it after it had gone. */
static void last_words_are_read(void **state)
{
    struct wire_channel a, b;
    struct wire_frame f;
    channels(&a, &b);
    wire_send_number(&a, WIRE_REPORT, 1, 2);
    wire_flush(&a);
    wire_close(&a);
    wire_send(&b, WIRE_PING, 0, 0, NULL, 0);
    wire_flush(&b);
    wire_send(&b, WIRE_PING, 0, 0, NULL, 0);
    assert_int_equal(b.out.length, 0);
    assert_true(wire_fill(&b));
    assert_true(wire_next(&b, &f));
    assert_int_equal(f.type, WIRE_REPORT);
    assert_false(wire_fill(&b));
    assert_true(b.ended);
    wire_close(&b);
}

static void frames_come_in_pieces(void **state)
{
    struct wire_channel a, b;
    struct wire_frame f;
    channels(&a, &b);
    wire_send(&a, WIRE_OUTPUT, 1, 5, "abcdef", 6);
    size_t total = a.out.length;
    for (size_t i = 0; i < total; i++) {
        assert_false(wire_next(&b, &f));
        assert_int_equal(write(a.fd, bytes_front(&a.out) + i, 1), 1);
        assert_true(wire_fill(&b));
    }
    assert_true(wire_next(&b, &f));
    assert_memory_equal(f.payload, "abcdef", 6);
    wire_close(&a);
    wire_close(&b);
}

static void nonsense_closes_the_channel(void **state)
{
    static const uint8_t huge[16] = {0xff, 0xff, 0xff, 0x7f, WIRE_OUTPUT};
    struct wire_channel a, b;
    struct wire_frame f;
    channels(&a, &b);
    assert_int_equal(write(a.fd, huge, sizeof(huge)), sizeof(huge));
    wire_fill(&b);
    assert_false(wire_next(&b, &f));
    assert_true(b.ended);
    wire_close(&a);
    wire_close(&b);
}

static void an_unknown_type_closes_the_channel(void **state)
{
    static const uint8_t strange[16] = {0, 0, 0, 0, WIRE_TYPES};
    struct wire_channel a, b;
    struct wire_frame f;
    channels(&a, &b);
    assert_int_equal(write(a.fd, strange, sizeof(strange)), sizeof(strange));
    wire_fill(&b);
    assert_false(wire_next(&b, &f));
    assert_true(b.broken);
    wire_close(&a);
    wire_close(&b);
}

static void frames_name_hosts(void **state)
{
    struct wire_channel a, b, c, d;
    struct wire_frame f;
    channels(&a, &b);
    channels(&c, &d);
    a.host = 7;
    wire_send(&a, WIRE_DONE, 0, 0, NULL, 0);
    wire_send_host(&a, WIRE_ALL, WIRE_KILL, 3, 4, "grace", 5);
    wire_flush(&a);
    wire_fill(&b);
    assert_true(wire_next(&b, &f));
    assert_int_equal(f.host, 7);
    assert_true(wire_next(&b, &f));
    wire_relay(&c, &f);
    wire_flush(&c);
    wire_fill(&d);
    assert_true(wire_next(&d, &f));
    assert_int_equal(f.host, WIRE_ALL);
    assert_int_equal(f.aux, 3);
    assert_int_equal(f.rank, 4);
    assert_int_equal(f.length, 5);
    assert_memory_equal(f.payload, "grace", 5);
    assert_int_equal(d.frames, 1);
    assert_int_equal(d.moved, 16 + 5);
    wire_close(&a);
    wire_close(&b);
    wire_close(&c);
    wire_close(&d);
}

static struct job_host hosts[] = {{.name = "n0", .first = 0, .count = 2, .is_virtual = true},
                                  {.name = "n1", .first = 2, .count = 3}};
static char *argv[] = {"prog", "", "an argument", NULL};
static char *env[] = {"A=1", "EMPTY=", NULL};

static const struct job sample = {.ranks = 5,
                                  .hosts = hosts,
                                  .host_count = 2,
                                  .host = JOB_NO_HOST,
                                  .agent = JOB_AGENT_SSH,
                                  .out_degree = 3,
                                  .heartbeat_ms = 5000,
                                  .program = "/bin/prog",
                                  .directory = "/tmp",
                                  .argv = argv,
                                  .env = env,
                                  .label = true,
                                  .report = true,
                                  .nspace = "job",
                                  .session = "/tmp/s",
                                  .grace_ms = 100,
                                  .began = 1000,
                                  .start_ms = 9,
                                  .connect_ms = 11,
                                  .files = {.rlim_cur = 64, .rlim_max = RLIM_INFINITY},
                                  .soft_limits = {[3] = 1ULL << 40},
                                  .ignored = {1, 13, 0},
                                  .bind = JOB_BIND_CORE,
                                  .cpus = 2,
                                  .ssh_command = "ssh"};

static void a_job_travels(void **state)
{
    char why[200];
    struct bytes b = {0};
    job_frame_pack(&sample, 1500, &b);
    struct job *job = job_frame_unpack(bytes_front(&b), b.length, 1, 70000, why, sizeof(why));
    bytes_free(&b); /* it has memory of its own */
    assert_non_null(job);
    assert_int_equal(job->ranks, 5);
    assert_int_equal(job->host, 1);
    assert_int_equal(job->hosts[1].first, 2);
    assert_string_equal(job->hosts[1].name, "n1");
    assert_true(job->hosts[0].is_virtual && !job->hosts[1].is_virtual);
    assert_string_equal(job->argv[2], "an argument");
    assert_string_equal(job->argv[1], "");
    assert_null(job->argv[3]);
    assert_string_equal(job->env[1], "EMPTY=");
    assert_null(job->env[2]);
    assert_int_equal(job->began, 70000 - 500);
    assert_int_equal(job->ignored[1], 13);
    assert_true(job->soft_limits[3] == 1ULL << 40 && job->files.rlim_max == RLIM_INFINITY);
    assert_true(job->label && job->report && !job->keep && job->cpus == 2 &&
                job->bind == JOB_BIND_CORE);
    assert_string_equal(job->directory, "/tmp");
    assert_null(job->remote_path);
    job_frame_free(job);
}

/* Each shorter payload, and each with one byte changed, is refused or is a whole job: the sanitizer
 * sees what leaves the payload. */
static void a_damaged_job_is_refused(void **state)
{
    char why[200];
    struct bytes b = {0};
    job_frame_pack(&sample, 1500, &b);
    for (size_t n = 0; n < b.length; n++)
        assert_null(job_frame_unpack(bytes_front(&b), n, 0, 0, why, sizeof(why)));
    assert_non_null(strstr(why, "damaged"));
    for (size_t i = 0; i < b.length; i++)
        for (unsigned flip = 1; flip < 256; flip *= 2) {
            b.memory[b.start + i] ^= (uint8_t)flip;
            struct job *job = job_frame_unpack(bytes_front(&b), b.length, 0, 0, why, sizeof(why));
            if (job) {
                uint32_t last = job->host_count - 1;
                assert_int_equal(job->hosts[last].first + job->hosts[last].count, job->ranks);
                job_frame_free(job);
            }
            b.memory[b.start + i] ^= (uint8_t)flip;
        }
    assert_null(job_frame_unpack(bytes_front(&b), b.length, 2, 0, why, sizeof(why)));
    bytes_append(&b, "", 1);
    assert_null(job_frame_unpack(bytes_front(&b), b.length, 0, 0, why, sizeof(why)));
    bytes_free(&b);
}

static void ranks_have_hosts(void **state)
{
    assert_int_equal(job_host_of(&sample, 0), 0);
    assert_int_equal(job_host_of(&sample, 1), 0);
    assert_int_equal(job_host_of(&sample, 2), 1);
    assert_int_equal(job_host_of(&sample, 4), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_travel),
        cmocka_unit_test(last_words_are_read),
        cmocka_unit_test(frames_come_in_pieces),
        cmocka_unit_test(nonsense_closes_the_channel),
        cmocka_unit_test(an_unknown_type_closes_the_channel),
        cmocka_unit_test(frames_name_hosts),
        cmocka_unit_test(a_job_travels),
        cmocka_unit_test(a_damaged_job_is_refused),
        cmocka_unit_test(ranks_have_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
