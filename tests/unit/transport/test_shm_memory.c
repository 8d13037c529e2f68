/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A neighbour's memory, found by pid, descriptor, inode and nonce: memory that does not match its
 * peer info is refused with a line that names the neighbour. Both ranks are this process; peer
 * infos are made by this test. */
#include "config.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/bootstrap.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "topology/topology.h"
#include "transport/shm/shm_private.h"
#include "transport/transport.h"
#include "unit.h"

/* ---- lower layers: no launcher, and peer infos */

struct tk_bootstrap tk_bootstrap = {.rank = 0, .size = 2};

static struct tk_peer_info mine, theirs;

const struct tk_peer_info *tk_peer_info_of(uint32_t rank)
{
    return rank == 0 ? &mine : &theirs;
}

static const struct tk_host_info *one_host(uint32_t rank)
{
    (void)rank;
    return &mine.host;
}

static void lost(uint32_t rank)
{
    (void)rank;
}

static int open_two(void **state)
{
    unit_settings(NULL, NULL);
    static uintptr_t offsets[2];
    assert_int_equal(tk_peers_open(0, 2), TK_OK);
    tk_peers_unmap(offsets, 2);
    offsets[0] = 0;
    tk_peers.offsets = offsets;
    static uint32_t map[4];
    assert_int_equal(tk_topology_map(map, 2, one_host), TK_OK);
    assert_int_equal(tk_topology_build(0, 2, map), TK_OK);
    assert_int_equal(tk_shm_open(&mine), TK_OK);
    tk_lost_peer = lost;
    theirs = mine;
    tk_peer(0)->pid = getpid();
    *tk_peer(1) = (struct tk_peer){.rank = 1, .pid = getpid(), .host = "elsewhere"};
    return 0;
}

static int close_two(void **state)
{
    tk_shm_close();
    return 0;
}

static void what_the_card_tells_of_is_mapped(void **state)
{
    assert_int_equal(tk_shm_connect(), TK_OK);
    assert_non_null(tk_peer(1)->connection);
}

/* One line, and not mapped. */
static void refused(const char *why)
{
    unit_listen();
    enum tk_status status = tk_shm_connect();
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_null(tk_peer(1)->connection);
    unit_assert_says(said, "can't map the message rings of neighbour rank 1 (elsewhere, pid ");
    unit_assert_says(said, why);
    assert_int_equal(unit_lines(said), 1);
}

/* After a job that crashed pid, descriptor and inode may match by chance. */
static void another_nonce_is_another_job(void **state)
{
    theirs.rings.nonce[7] ^= 1;
    refused("they are those of another job");
}

static void another_inode_is_another_file(void **state)
{
    theirs.rings.inode++;
    refused("is not the file that its owner published");
}

static void a_file_of_another_size_is_refused(void **state)
{
    struct stat file;
    theirs.rings.fd = memfd_create("small", MFD_CLOEXEC);
    assert_int_equal(ftruncate(theirs.rings.fd, 4096), 0);
    assert_int_equal(fstat(theirs.rings.fd, &file), 0);
    theirs.rings.inode = (uint64_t)file.st_ino;
    refused("it has 4096 bytes, not ");
    close(theirs.rings.fd);
}

static void a_closed_descriptor_is_reported_with_the_remedy(void **state)
{
    theirs.rings.fd = 999;
    refused("GASNET_SUPERNODE_MAXSIZE=1");
}

/* ---- scratch */

/* Two mappings of one file: each reads what the other writes, and the scratch is behind everything
 * of the rings. */
static void scratch_is_zeroed_and_shared_and_overlaps_nothing(void **state)
{
    size_t size = (size_t)tk_settings.coll_channels * tk_scratch_channel;
    assert_int_equal(tk_shm_connect(), TK_OK);
    char *own = tk_shm_scratch(0), *seen = tk_shm_scratch(1);
    assert_true(size > 0 && own != seen && (uintptr_t)own % 4096 == 0);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(seen[i], 0);
    memset(tk_shm_parts(tk_shm.base).request_payload, 'p', 4 * (size_t)tk_shm_payload);
    assert_int_equal(seen[0], 0);
    own[0] = own[size - 1] = 'x';
    assert_int_equal(seen[0], 'x');
    assert_int_equal(seen[size - 1], 'x');
    assert_int_equal(tk_shm_parts(tk_shm.base).reply_payload[2 * (size_t)tk_shm_payload - 1], 'p');
}

static unsigned losses;

static void count_loss(uint32_t rank)
{
    losses += rank;
}

static void scratch_that_cannot_be_mapped_ends_the_job(void **state)
{
    theirs.rings.nonce[7] ^= 1;
    refused("they are those of another job");
    tk_lost_peer = count_loss;
    unit_listen();
    void *scratch = tk_shm_scratch(1);
    unit_assert_says(unit_heard(), "can't map the message rings of neighbour rank 1");
    assert_null(scratch);
    assert_int_equal(losses, 1);
}

/* ---- liveness */

static void liveness_is_read_by_the_neighbour_and_does_not_go_back(void **state)
{
    assert_int_equal(tk_shm_connect(), TK_OK);
    const _Atomic uint32_t *liveness = tk_shm_liveness_of(1);
    assert_int_equal(*liveness, TK_LIVENESS_RUNS);
    tk_shm_set_liveness(TK_LIVENESS_LEAVING);
    assert_int_equal(*liveness, TK_LIVENESS_LEAVING);
    tk_shm_set_liveness(TK_LIVENESS_LEFT);
    tk_shm_set_liveness(TK_LIVENESS_LEAVING);
    assert_int_equal(*liveness, TK_LIVENESS_LEFT);
}

/* For a neighbour whose rings were never mapped the first page is mapped, if the file is the right
 * one. */
static void liveness_is_read_without_the_rings(void **state)
{
    theirs.rings.nonce[0] ^= 1;
    refused("another job");
    assert_null(tk_shm_liveness_of(1));
    assert_int_equal(*tk_shm_liveness_of(0), TK_LIVENESS_RUNS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_two, close_two)
static const struct CMUnitTest tests[] = {
    TEST(what_the_card_tells_of_is_mapped),
    TEST(another_nonce_is_another_job),
    TEST(another_inode_is_another_file),
    TEST(a_file_of_another_size_is_refused),
    TEST(a_closed_descriptor_is_reported_with_the_remedy),
    TEST(scratch_is_zeroed_and_shared_and_overlaps_nothing),
    TEST(scratch_that_cannot_be_mapped_ends_the_job),
    TEST(liveness_is_read_by_the_neighbour_and_does_not_go_back),
    TEST(liveness_is_read_without_the_rings),
};

UNIT_MAIN(tests)
