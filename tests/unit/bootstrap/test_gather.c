/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gathering of ranks, and how many of them query the launcher's server: four ranks of a host are
 * four processes here, and the server is a table that they share. */
#include "config.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/futex.h"
#include "bootstrap/board.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/gather.h"
#include "bootstrap/host_table.h"
#include "unit.h"

enum { ranks = 4, keys_max = 16, blob_max = 4096 };

/* ---- the server */

struct server {
    struct {
        char key[32];
        size_t size;
        char bytes[blob_max];
    } put[ranks][keys_max];
    _Atomic unsigned puts[ranks];
    _Atomic uint32_t gets[ranks], turns[ranks]; /* values, and how often some at once */
    _Atomic uint32_t came, fences, local_puts, withdrawn, arrived;
    bool refuses; /* answers no query */
};

static struct server *server;
static useconds_t sleeps_before_get;
struct tk_bootstrap tk_bootstrap;
static uint32_t local[ranks] = {0, 1, 2, 3};

enum tk_status tk_bootstrap_put(const char *key, const void *blob, size_t size)
{
    uint32_t me = tk_bootstrap.rank;
    unsigned i = server->puts[me];
    assert_true(i < keys_max && size <= blob_max);
    snprintf(server->put[me][i].key, sizeof(server->put[me][i].key), "%s", key);
    memcpy(server->put[me][i].bytes, blob, size);
    server->put[me][i].size = size;
    server->puts[me] = i + 1;
    return TK_OK;
}

static enum tk_status look_up(uint32_t rank, const char *key, struct tk_bootstrap_blob *blob)
{
    server->gets[tk_bootstrap.rank]++;
    for (unsigned i = 0; !server->refuses && i < server->puts[rank]; i++) {
        if (strcmp(server->put[rank][i].key, key))
            continue;
        blob->size = server->put[rank][i].size;
        blob->at = malloc(blob->size + 1);
        memcpy(blob->at, server->put[rank][i].bytes, blob->size);
        return TK_OK;
    }
    return TK_FAIL;
}

enum tk_status tk_bootstrap_get(uint32_t rank, const char *key, void **blob, size_t *size)
{
    struct tk_bootstrap_blob found;
    enum tk_status status = look_up(rank, key, &found);
    if (status == TK_OK) {
        *blob = found.at;
        *size = found.size;
    }
    return status;
}

enum tk_status tk_bootstrap_put_local(const char *key, const void *blob, size_t size)
{
    enum tk_status status = tk_bootstrap_put(key, blob, size);
    atomic_fetch_add(&server->local_puts, 1);
    tk_futex_wake_all(&server->local_puts);
    return status;
}

void tk_bootstrap_withdraw(const char *key)
{
    (void)key;
    atomic_fetch_add(&server->withdrawn, 1);
}

/* Waits, as the server lets a rank wait for what is not there yet. */
enum tk_status tk_bootstrap_get_local(const char *key, const uint32_t *of, uint32_t count,
                                      struct tk_bootstrap_blob *blobs, void (*poll)(void))
{
    (void)poll;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t gets = server->gets[tk_bootstrap.rank];
        for (uint32_t now; now = server->local_puts, look_up(of[i], key, &blobs[i]) != TK_OK;)
            tk_futex_wait(&server->local_puts, now, TK_SECOND);
        server->gets[tk_bootstrap.rank] = gets + 1;
    }
    return TK_OK;
}

enum tk_status tk_bootstrap_get_many(const char *key, const uint32_t *of, uint32_t count,
                                     struct tk_bootstrap_blob *blobs, void (*poll)(void))
{
    enum tk_status status = TK_OK;
    server->turns[tk_bootstrap.rank]++;
    usleep(sleeps_before_get);
    for (uint32_t i = 0; i < count && status == TK_OK; i++)
        status = look_up(of[i], key, &blobs[i]);
    if (poll)
        poll();
    return status;
}

enum tk_status tk_bootstrap_fence_data(void (*poll)(void), uint64_t deadline)
{
    (void)poll, (void)deadline;
    uint32_t now = server->fences;
    if (atomic_fetch_add(&server->came, 1) + 1 == tk_bootstrap.size * (now + 1)) {
        atomic_store(&server->fences, now + 1);
        tk_futex_wake_all(&server->fences);
    }
    while (atomic_load(&server->fences) == now)
        tk_futex_wait(&server->fences, now, TK_SECOND);
    return TK_OK;
}

enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline)
{
    return tk_bootstrap_fence_data(poll, deadline);
}

/* ---- the ranks */

static int set_up(void **state)
{
    server = mmap(NULL, sizeof(*server), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return server == MAP_FAILED;
}

static int tear_down(void **state)
{
    return munmap(server, sizeof(*server));
}

/* Runs the function in a process for each rank; all must exit with 0. */
static void each_rank(void (*act)(void))
{
    pid_t pids[ranks];
    for (uint32_t r = 0; r < ranks; r++)
        if ((pids[r] = fork()) == 0) {
            tk_bootstrap = (struct tk_bootstrap){
                .rank = r, .size = ranks, .local = local, .local_size = ranks};
            alarm(60);
            act();
            _exit(0);
        }
    for (uint32_t r = 0; r < ranks; r++) {
        int status = -1;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        if (status != 0)
            fail_msg("rank %u ended with %d, signal %d", r, WEXITSTATUS(status), WTERMSIG(status));
    }
}

static void must(bool condition, int code)
{
    if (!condition)
        _exit(code);
}

/* Rank r gives r * 100 + turn bytes of r + turn, so sizes differ and rank 0 gives none at first. */
static void gather_once(unsigned turn)
{
    char key[16], mine[blob_max];
    uint32_t me = tk_bootstrap.rank;
    snprintf(key, sizeof(key), "k%u", turn);
    memset(mine, (int)(me + turn), sizeof(mine));
    must(tk_gather(key, mine, me * 100 + turn, NULL) == TK_OK, 10);
    for (uint32_t r = 0; r < ranks; r++) {
        size_t size = 0;
        const char *blob = tk_gathered(r, &size);
        must(blob && size == r * 100 + turn && (uintptr_t)blob % 8 == 0, 11);
        for (size_t i = 0; i < size; i++)
            must(blob[i] == (char)(r + turn), 12);
    }
}

static void gather_thrice(void)
{
    for (unsigned turn = 0; turn < 3; turn++)
        gather_once(turn);
    tk_gather_drop();
}

/* The leader queries once for each rank and exchange, each other rank once for the board's
 * place. */
static void assert_gets(uint32_t leader, uint32_t other)
{
    for (uint32_t r = 0; r < ranks; r++)
        assert_int_equal(server->gets[r], r == 0 ? leader : other);
}

static void one_rank_asks_for_all_others(void **state)
{
    each_rank(gather_thrice);
    assert_gets(3 * ranks, 1);
    assert_int_equal(server->fences, 3);
}

/* As after another exchange: written pages of the last edition are gone. */
static void write_to_what_was_gathered(void)
{
    size_t size;
    gather_once(0);
    for (uint32_t r = 0; r < ranks; r++)
        memset(tk_gathered(r, &size), 99, r * 100);
    gather_once(1);
}

static void what_one_writes_to_it_is_its_own(void **state)
{
    each_rank(write_to_what_was_gathered);
}

/* As in another container: the board's place can't be opened, or is another file. */
static void gather_with_a_board_out_of_reach(void)
{
    if (tk_bootstrap.rank == 2)
        must(chroot("/proc/self/fdinfo") == 0, 20);
    gather_thrice();
}

static void a_rank_that_cannot_reach_the_board_asks_the_server(void **state)
{
    if (geteuid() != 0)
        skip();
    each_rank(gather_with_a_board_out_of_reach);
    assert_int_equal(server->gets[0], 3 * ranks);
    assert_int_equal(server->gets[1], 1);
    assert_int_equal(server->gets[2], 1 + 3 * ranks);
    assert_int_equal(server->gets[3], 1);
}

static void gather_and_meet(void)
{
    gather_once(0);
    atomic_fetch_add(&server->arrived, 1);
    must(tk_gather_meet() == TK_OK, 21);
    must(atomic_load(&server->arrived) == ranks, 22);
    gather_once(1);
}

static void ranks_of_one_host_meet_without_a_fence(void **state)
{
    each_rank(gather_and_meet);
    assert_int_equal(server->fences, 2);
}

/* Longer than the others wait without a fence. */
static void meet_late(void)
{
    gather_once(0);
    if (tk_bootstrap.rank == 1)
        usleep(1500000);
    atomic_fetch_add(&server->arrived, 1);
    must(tk_gather_meet() == TK_OK, 23);
    must(atomic_load(&server->arrived) == ranks, 24);
}

static void for_a_late_rank_all_take_a_fence(void **state)
{
    each_rank(meet_late);
    assert_int_equal(server->fences, 2);
}

static void meet_out_of_reach(void)
{
    if (tk_bootstrap.rank == 2)
        must(chroot("/proc/self/fdinfo") == 0, 20);
    gather_and_meet();
}

static void a_rank_that_cannot_reach_the_board_meets_the_others(void **state)
{
    if (geteuid() != 0)
        skip();
    each_rank(meet_out_of_reach);
    assert_int_equal(server->fences, 3);
}

/* A client may close descriptors that are not its own. */
static void gather_after_descriptors_are_closed(void)
{
    gather_once(0);
    if (tk_bootstrap.rank == 3)
        close_range(3, ~0u, 0);
    gather_once(1);
    if (tk_bootstrap.rank == 0)
        close_range(3, ~0u, 0);
    gather_once(2);
}

static void without_its_file_each_asks_itself(void **state)
{
    each_rank(gather_after_descriptors_are_closed);
    assert_int_equal(server->gets[0], 3 * ranks);
    assert_int_equal(server->gets[1], 1 + ranks);
    assert_int_equal(server->gets[3], 1 + 2 * ranks);
}

static void alone_on_the_host(void)
{
    tk_bootstrap.local = NULL;
    tk_bootstrap.local_size = 0;
    gather_thrice();
}

/* The first time rank 0's blob says that all others have put blobs of their own. */
static void without_neighbours_there_is_no_board(void **state)
{
    each_rank(alone_on_the_host);
    assert_gets(3 * ranks, 3 * ranks);
    for (uint32_t r = 0; r < ranks; r++)
        assert_int_equal(server->turns[r], 2 + 1 + 1);
}

static void take_host(const uint32_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == tk_bootstrap.rank) {
            memcpy(local, list, count * sizeof(*list));
            tk_bootstrap.local_size = count;
        }
}

/* Rank 0's blob covers several ranks of its host; the launcher listed no hosts for this rank. */
static void gather_without_a_list(void)
{
    take_host((const uint32_t[]){0, 2}, 2);
    take_host((const uint32_t[]){1}, 1);
    take_host((const uint32_t[]){3}, 1);
    if (tk_bootstrap.rank == 3)
        tk_bootstrap.local = NULL;
    gather_thrice();
}

static void lists_of_others_are_heeded_without_one(void **state)
{
    each_rank(gather_without_a_list);
    assert_int_equal(server->gets[3], 3 * 3);
}

/* ---- polls */

static uint32_t polls;

static void count_polls(void)
{
    polls++;
}

static void gather_with_poll(void)
{
    gather_once(0);
    if (tk_bootstrap.rank == 0) /* the others wait for the board meanwhile */
        sleeps_before_get = 300000;
    must(tk_gather("k1", "x", 1, count_polls) == TK_OK, 60);
    must(polls > 0, 61);
}

static void all_poll_while_the_leader_asks(void **state)
{
    each_rank(gather_with_poll);
}

/* ---- several hosts: { 0, 2 } and { 1, 3 }, or { 0 } and { 1, 2, 3 } */

static void gather_on_two_hosts(void)
{
    take_host((const uint32_t[]){0, 2}, 2);
    take_host((const uint32_t[]){1, 3}, 2);
    gather_thrice();
    tk_gather_withdraw("k0");
}

static void gather_on_unlike_hosts(void)
{
    take_host((const uint32_t[]){0}, 1);
    take_host((const uint32_t[]){1, 2, 3}, 3);
    gather_thrice();
}

/* The leader queries for the rank behind it and for two hosts, the other for the board. */
static void a_host_puts_and_gets_one_blob_for_all_its_ranks(void **state)
{
    each_rank(gather_on_two_hosts);
    for (uint32_t r = 0; r < ranks; r++) {
        assert_int_equal(server->gets[r], r < 2 ? 3 * (1 + 2) : 1);
        assert_int_equal(server->turns[r], r < 2 ? 2 + 1 + 1 : 0); /* once the hosts are known */
    }
    assert_int_equal(server->withdrawn, 2); /* each leader's */
}

static void hosts_may_have_one_rank_and_several(void **state)
{
    each_rank(gather_on_unlike_hosts);
    assert_int_equal(server->gets[0], 3 * 2);
    assert_int_equal(server->gets[1], 3 * (2 + 2));
    assert_int_equal(server->gets[2], 1);
    assert_int_equal(server->gets[3], 1);
}

/* A rank of this version must not wait for ever for a rank that no blob names, nor take what an
 * older version puts. */
static void get_what_is_no_host_blob(void)
{
    take_host((const uint32_t[]){0, 2}, 2);
    take_host((const uint32_t[]){1, 3}, 2);
    if (tk_bootstrap.rank % 2 == 1) {
        tk_bootstrap_put("k0", "older", 6);
        tk_bootstrap_fence_data(NULL, 0);
        return;
    }
    must(tk_gather("k0", "mine", 4, NULL) == TK_FAIL, 90);
}

static void what_is_no_blob_of_a_host_is_refused(void **state)
{
    each_rank(get_what_is_no_host_blob);
}

/* No server exists. */
static void a_process_without_a_launcher_has_its_own(void **state)
{
    size_t size = 0;
    server->refuses = true;
    tk_bootstrap = (struct tk_bootstrap){.size = 1, .local_size = 1, .alone = true};
    assert_int_equal(tk_gather("k", "mine", 4, NULL), TK_OK);
    const char *blob = tk_gathered(0, &size);
    assert_int_equal(size, 4);
    assert_memory_equal(blob, "mine", 4);
    tk_gather_drop();
}

/* The leader logs the failure; no rank hangs. */
static void fail_to_gather(void)
{
    gather_once(0);
    tk_bootstrap_fence_data(NULL, 0); /* all ranks have got the place of the board */
    if (tk_bootstrap.rank == 0)
        server->refuses = true;
    must(tk_gather("k1", "x", 1, NULL) == TK_FAIL, 30);
}

static void when_the_leader_fails_all_fail(void **state)
{
    each_rank(fail_to_gather);
}

static void lose_the_leader(void)
{
    gather_once(0);
    if (tk_bootstrap.rank == 0) {
        tk_bootstrap_fence_data(NULL, 0);
        _exit(0);
    }
    must(tk_gather("k1", "x", 1, NULL) == TK_FAIL, 40);
}

static void no_rank_waits_for_a_leader_that_has_ended(void **state)
{
    each_rank(lose_the_leader);
}

/* ---- tables that stay */

/* Each rank would make a different table, so the contents show which rank's table it got; `number`
 * distinguishes several tables. */
static struct tk_host_table take_table(size_t size, char number)
{
    struct tk_host_table table;
    if (!tk_host_table_find(&table, size)) {
        char *own = malloc(size);
        memset(own, number + (char)tk_bootstrap.rank, size);
        tk_host_table_show(&table, own, size);
    }
    must(table.size == size, 50);
    return table;
}

static bool is_all(const struct tk_host_table *table, char byte)
{
    const char *at = table->at;
    for (size_t i = 0; i < table->size; i++)
        if (at[i] != byte)
            return false;
    return true;
}

/* It is a read-only mapping of the file, not a copy. */
static bool is_shared(const void *at)
{
    char line[512], access[8] = "";
    unsigned long begin = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (begin != (unsigned long)(uintptr_t)at && fgets(line, sizeof(line), maps))
        sscanf(line, "%lx-%*x %7s", &begin, access);
    fclose(maps);
    return !strcmp(access, "r--s") && strstr(line, "memfd:board");
}

/* There is no fence between the tables, and the leader may make the last one before other ranks
 * begin. */
static void share_tables(void)
{
    gather_once(0);
    struct tk_host_table small = take_table(100, 1), large = take_table(3 * 4096 + 1, 9);
    gather_once(1);
    struct tk_host_table late = take_table(4096, 17);
    gather_once(2);
    must(small.is_mapped && large.is_mapped && late.is_mapped, 51);
    must(is_shared(small.at) && is_shared(large.at) && is_shared(late.at), 52);
    must(is_all(&small, 1) && is_all(&large, 9) && is_all(&late, 17), 53);
    tk_host_table_drop(&small);
    tk_host_table_drop(&late);
    must(is_all(&large, 9) && !small.at, 54);
}

static void a_host_has_one_copy_of_a_table(void **state)
{
    each_rank(share_tables);
}

/* KiB of a mapping that this process has for itself. */
static unsigned long own_kib(const void *at)
{
    char line[512];
    unsigned long begin = 0, kib = 0, from, to;
    FILE *maps = fopen("/proc/self/smaps", "re");
    while (fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            begin = from;
        if (begin == (unsigned long)(uintptr_t)at && sscanf(line, "Private_Dirty: %lu", &kib) == 1)
            break;
    }
    fclose(maps);
    return kib;
}

/* Each process writes to one page of three, after the others have made their copies. */
static void copy_tables(void)
{
    enum { size = 3 * 4096, middle = 4096 + 77 };
    gather_once(0);
    struct tk_host_table table = take_table(size + 1, 9), small = take_table(100, 1);
    char *copy = tk_host_table_copy(&table, size), *less = tk_host_table_copy(&small, 100);
    must(copy != NULL && less != NULL, 55);
    must(own_kib(copy) == 0, 56);
    copy[middle] = less[99] = (char)(40 + tk_bootstrap.rank);
    gather_once(1);
    must(copy[middle] == (char)(40 + tk_bootstrap.rank), 57);
    must(copy[0] == 9 && copy[middle - 1] == 9 && copy[size - 1] == 9 && less[98] == 1, 58);
    must(is_all(&table, 9) && is_all(&small, 1), 59);
    must(own_kib(copy) == 4, 61);
    free(less);
}

static void a_copy_takes_memory_where_it_is_written(void **state)
{
    if (sysconf(_SC_PAGESIZE) == 4096)
        each_rank(copy_tables);
    assert_int_equal(tk_host_table_copy_bytes(4096, 8, true), 4096);
    assert_int_equal(tk_host_table_copy_bytes(8 << 20, 8, true), 2 * tk_page_size());
    assert_int_equal(tk_host_table_copy_bytes(8 << 20, 8, false), 8 << 20);
}

static void make_own_tables(void)
{
    alone_on_the_host();
    struct tk_host_table table = take_table(100, 1);
    must(!table.is_mapped && is_all(&table, (char)(1 + tk_bootstrap.rank)), 60);
    char *copy = tk_host_table_copy(&table, 100);
    must(copy && !memcmp(copy, table.at, 100), 62);
    free(copy);
    tk_host_table_drop(&table);
}

static void without_a_board_each_has_its_own_table(void **state)
{
    each_rank(make_own_tables);
}

/* The other ranks must notice each case, and not wait. */
static void miss_tables(void)
{
    uint32_t me = tk_bootstrap.rank;
    gather_once(0);
    if (me == 3)
        close_range(3, ~0u, 0);
    struct tk_host_table table = take_table(100, 1);
    must(table.is_mapped == (me != 3) && is_all(&table, me == 3 ? 4 : 1), 70);
    tk_bootstrap_fence_data(NULL, 0);
    if (me == 0)
        close_range(3, ~0u, 0);
    table = take_table(100, 1);
    must(!table.is_mapped && is_all(&table, (char)(1 + me)), 71);
    tk_bootstrap_fence_data(NULL, 0);
    if (me == 0)
        _exit(0);
    table = take_table(100, 1);
    must(!table.is_mapped && is_all(&table, (char)(1 + me)), 72);
}

static void a_rank_without_the_shared_table_has_its_own(void **state)
{
    each_rank(miss_tables);
}

/* Counts the pages of an edition that another one replaces. */
static void count_pages(void)
{
    enum { turns = 12, large = blob_max };
    struct stat file;
    char key[16], mine[large] = {0};
    for (unsigned turn = 0; turn < turns; turn++) {
        snprintf(key, sizeof(key), "p%u", turn);
        must(tk_gather(key, mine, large, NULL) == TK_OK, 80);
    }
    if (tk_bootstrap.rank != 0)
        return;
    char path[64];
    struct tk_board_place place;
    memcpy(&place, server->put[0][0].bytes, sizeof(place));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", place.fd);
    must(stat(path, &file) == 0 && file.st_blocks * 512 < 3 * ranks * large, 81);
}

static void a_board_has_the_pages_of_one_edition(void **state)
{
    each_rank(count_pages);
}

/* ---- the place of a board */

static void a_board_is_known_by_its_nonce(void **state)
{
    struct tk_board_place place, other;
    tk_board_open(&place);
    assert_true(place.fd >= 0);
    assert_int_equal(fcntl(place.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    pid_t pid = fork();
    if (pid == 0) {
        other = place;
        other.nonce[3] ^= 1;
        must(!tk_board_join(&other), 1);
        other = place;
        other.fd = -1;
        must(!tk_board_join(&other), 2);
        other.fd = 0;
        must(!tk_board_join(&other), 3);
        must(tk_board_join(&place), 4);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(one_rank_asks_for_all_others),
    TEST(what_one_writes_to_it_is_its_own),
    TEST(a_rank_that_cannot_reach_the_board_asks_the_server),
    TEST(ranks_of_one_host_meet_without_a_fence),
    TEST(for_a_late_rank_all_take_a_fence),
    TEST(a_rank_that_cannot_reach_the_board_meets_the_others),
    TEST(without_its_file_each_asks_itself),
    TEST(a_process_without_a_launcher_has_its_own),
    TEST(without_neighbours_there_is_no_board),
    TEST(lists_of_others_are_heeded_without_one),
    TEST(all_poll_while_the_leader_asks),
    TEST(a_host_puts_and_gets_one_blob_for_all_its_ranks),
    TEST(hosts_may_have_one_rank_and_several),
    TEST(what_is_no_blob_of_a_host_is_refused),
    TEST(when_the_leader_fails_all_fail),
    TEST(no_rank_waits_for_a_leader_that_has_ended),
    TEST(a_host_has_one_copy_of_a_table),
    TEST(a_copy_takes_memory_where_it_is_written),
    TEST(without_a_board_each_has_its_own_table),
    TEST(a_rank_without_the_shared_table_has_its_own),
    TEST(a_board_has_the_pages_of_one_edition),
    TEST(a_board_is_known_by_its_nonce),
};

UNIT_MAIN(tests)
