/* SPDX-License-Identifier: BSD-3-Clause */
/* A small PMIx client that does on command what a rank may do, right or wrong. Its arguments are
 * executed one after the other; a word of the form R:word only by rank R. Without words it is a
 * good citizen: init, exchange, finalize.
 *
 *   init finalize fence get        PMIx calls; get fetches what every rank has put, after a put and
 * a fence; put without a fence, then ask=R fetches that of rank R; among=R,R.. a fence of these
 * ranks keys                           checks the reserved keys, map=HOST:N,HOST:N those about
 * hosts abort=N abortmsg=N PMIx_Abort, without and with a text exit=N _exit=N kill=N          leave
 * say=TEXT err=TEXT part=TEXT print, with newline to stdout or stderr, without newline rank print
 * "rank R of N" lines=N long=N                 print N lines "R i xxx", one line of N bytes cat
 * copy stdin to stdout sleep=MS await=FILE (until it exists) hang ignoreterm term=N catch SIGTERM
 * and exit N child leave a child process behind that sleeps for ever; session: in its own session
 */
#include "config.h"

#include <pmix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pmix_proc_t self = {.rank = PMIX_RANK_UNDEF};
static uint32_t size;
static int term_code;

static void die(const char *what, int code)
{
    fprintf(stderr, "pmix_probe: rank %u: %s: %d\n", self.rank, what, code);
    exit(99);
}

static void must(const char *what, pmix_status_t rc)
{
    if (rc != PMIX_SUCCESS)
        die(what, rc);
}

static pmix_value_t *job_key(const char *key, pmix_rank_t rank)
{
    pmix_info_t optional;
    pmix_proc_t proc;
    pmix_value_t *value = NULL;
    bool yes = true;

    PMIX_LOAD_PROCID(&proc, self.nspace, rank);
    PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, &yes, PMIX_BOOL);
    must(key, PMIx_Get(&proc, key, &optional, 1, &value));
    return value;
}

static uint32_t number(const char *key, pmix_rank_t rank)
{
    pmix_value_t *value = job_key(key, rank);
    uint32_t n = 0;
    if (value->type == PMIX_UINT16)
        n = value->data.uint16;
    else if (value->type == PMIX_UINT32)
        n = value->data.uint32;
    else if (value->type == PMIX_PROC_RANK)
        n = value->data.rank;
    else
        die(key, value->type);
    PMIX_VALUE_RELEASE(value);
    return n;
}

static void init(void)
{
    pmix_status_t rc = PMIx_Init(&self, NULL, 0);
    must("PMIx_Init", rc);
    size = number(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD);
}

static void fence(void)
{
    pmix_info_t collect;
    bool yes = true;
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    must("PMIx_Fence", PMIx_Fence(NULL, 0, &collect, 1));
}

static void put(void)
{
    pmix_value_t mine;

    mine.type = PMIX_UINT32;
    mine.data.uint32 = self.rank * 17 + 5;
    must("PMIx_Put", PMIx_Put(PMIX_GLOBAL, "probe", &mine));
    must("PMIx_Commit", PMIx_Commit());
}

static void ask(uint32_t rank)
{
    pmix_value_t *theirs;
    pmix_proc_t peer;

    PMIX_LOAD_PROCID(&peer, self.nspace, rank);
    must("PMIx_Get", PMIx_Get(&peer, "probe", NULL, 0, &theirs));
    if (theirs->data.uint32 != rank * 17 + 5)
        die("wrong value", (int)theirs->data.uint32);
    PMIX_VALUE_RELEASE(theirs);
}

static void get(void)
{
    put();
    fence();
    for (uint32_t r = 0; r < size; r++)
        ask(r);
}

/* A fence of the ranks of a list; the others go on. */
static void among(const char *list)
{
    enum { MOST = 16 };
    pmix_proc_t procs[MOST];
    pmix_info_t collect;
    size_t count = 0;
    bool is_one = false, yes = true;

    for (const char *at = list; *at && count < MOST; count++) {
        char *end;
        PMIX_LOAD_PROCID(&procs[count], self.nspace, (pmix_rank_t)strtoul(at, &end, 10));
        is_one |= procs[count].rank == self.rank;
        at = end + (*end == ',');
    }
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    if (is_one)
        must("PMIx_Fence", PMIx_Fence(procs, count, &collect, 1));
}

static void expect(const char *key, pmix_rank_t rank, uint32_t wanted)
{
    uint32_t n = number(key, rank);
    if (n != wanted)
        die(key, (int)n);
}

static void keys(void)
{
    char host[256] = "";
    expect(PMIX_UNIV_SIZE, PMIX_RANK_WILDCARD, size);
    expect(PMIX_LOCAL_SIZE, PMIX_RANK_WILDCARD, size);
    expect(PMIX_NUM_NODES, PMIX_RANK_WILDCARD, 1);
    expect(PMIX_LOCAL_RANK, self.rank, self.rank);
    expect(PMIX_GLOBAL_RANK, self.rank, self.rank);
    expect(PMIX_APPNUM, self.rank, 0);
    gethostname(host, sizeof(host) - 1);
    pmix_value_t *value = job_key(PMIX_HOSTNAME, size - 1);
    if (value->type != PMIX_STRING || strcmp(value->data.string, host) != 0)
        die(PMIX_HOSTNAME, value->type);
    PMIX_VALUE_RELEASE(value);
    value = job_key(PMIX_LOCAL_PEERS, PMIX_RANK_WILDCARD);
    PMIX_VALUE_RELEASE(value);
    value = job_key(PMIX_JOBID, PMIX_RANK_WILDCARD);
    PMIX_VALUE_RELEASE(value);
}

/* The value of a text key of a rank. */
static void expect_text(const char *key, pmix_rank_t rank, const char *wanted)
{
    pmix_value_t *value = job_key(key, rank);
    if (value->type != PMIX_STRING || strcmp(value->data.string, wanted) != 0) {
        fprintf(stderr, "pmix_probe: rank %u: %s of rank %d is %s, not %s\n", self.rank, key,
                (int)rank, value->type == PMIX_STRING ? value->data.string : "no text", wanted);
        exit(99);
    }
    PMIX_VALUE_RELEASE(value);
}

/* "0,1,2" */
static void expect_peers(uint32_t first, uint32_t count)
{
    char list[4096] = "";
    size_t used = 0;
    for (uint32_t r = first; r < first + count; r++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, r == first ? "%u" : ",%u", r);
    expect(PMIX_LOCAL_SIZE, PMIX_RANK_WILDCARD, count);
    expect(PMIX_LOCAL_RANK, self.rank, self.rank - first);
    expect(PMIX_NODE_RANK, self.rank, self.rank - first);
    expect_text(PMIX_LOCAL_PEERS, PMIX_RANK_WILDCARD, list);
}

/* The job is laid out as in "host:count,host:count". */
static void map(const char *hosts)
{
    char name[64];
    uint32_t first = 0, count, node = 0;
    int used;

    for (; sscanf(hosts, "%63[^:]:%u%n", name, &count, &used) == 2; node++) {
        for (uint32_t r = first; r < first + count; r++)
            expect_text(PMIX_HOSTNAME, r, name);
        if (self.rank - first < count) {
            expect(PMIX_NODEID, self.rank, node);
            expect_peers(first, count);
        }
        first += count;
        hosts += used;
        hosts += *hosts == ',';
    }
    expect(PMIX_NUM_NODES, PMIX_RANK_WILDCARD, node);
    expect(PMIX_UNIV_SIZE, PMIX_RANK_WILDCARD, first);
}

static void on_term(int signal)
{
    (void)signal;
    _exit(term_code);
}

static void leave_child(bool own_session)
{
    if (fork() != 0)
        return;
    if (own_session)
        setsid();
    for (;;)
        pause();
}

static void print_lines(int count)
{
    setvbuf(stdout, NULL, _IONBF, 0); /* many small writes, to give mixing a chance */
    for (int i = 0; i < count; i++) {
        printf("%u %d ", self.rank, i);
        printf("%.*s", 20 + i % 60,
               "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        printf("\n");
    }
}

static void print_long(int count)
{
    for (int i = 0; i < count; i++)
        putchar('a' + (int)(self.rank % 26));
    putchar('\n');
}

static void cat(void)
{
    char chunk[8192];
    size_t n;
    while ((n = fread(chunk, 1, sizeof(chunk), stdin)) > 0)
        fwrite(chunk, 1, n, stdout);
}

static void nap(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static void await(const char *path)
{
    while (access(path, F_OK) != 0)
        nap(5);
}

static void hang(void)
{
    for (;;)
        pause();
}

/* Words that end the process, or prepare for being killed. */
static bool do_ending(const char *word, int n)
{
    if (!strncmp(word, "abort=", 6))
        PMIx_Abort(n, NULL, NULL, 0);
    else if (!strncmp(word, "abortmsg=", 9))
        PMIx_Abort(n, "I have had\nenough", NULL, 0);
    else if (!strncmp(word, "exit=", 5))
        exit(n);
    else if (!strncmp(word, "_exit=", 6))
        _exit(n);
    else if (!strncmp(word, "kill=", 5))
        signal(n, SIG_DFL), kill(getpid(), n); /* a sanitizer would catch it otherwise */
    else if (!strcmp(word, "hang"))
        hang();
    else if (!strcmp(word, "ignoreterm"))
        signal(SIGTERM, SIG_IGN);
    else if (!strncmp(word, "term=", 5))
        term_code = n, signal(SIGTERM, on_term);
    else
        return false;
    return true;
}

static bool do_printing(const char *word, const char *value, int n)
{
    if (!strncmp(word, "say=", 4))
        printf("%s\n", value);
    else if (!strncmp(word, "part=", 5))
        printf("%s", value);
    else if (!strncmp(word, "err=", 4))
        fprintf(stderr, "%s\n", value);
    else if (!strcmp(word, "rank"))
        printf("rank %u of %u\n", self.rank, size);
    else if (!strncmp(word, "lines=", 6))
        print_lines(n);
    else if (!strncmp(word, "long=", 5))
        print_long(n);
    else if (!strcmp(word, "cat"))
        cat();
    else
        return false;
    fflush(stdout);
    return true;
}

static void execute(const char *word)
{
    char *end;
    unsigned long only = strtoul(word, &end, 10);
    if (end != word && *end == ':') {
        if (only != self.rank)
            return;
        word = end + 1;
    }
    const char *value = strchr(word, '=');
    int n = value ? atoi(++value) : 0;

    if (!strcmp(word, "init"))
        init();
    else if (!strcmp(word, "finalize"))
        must("PMIx_Finalize", PMIx_Finalize(NULL, 0));
    else if (!strcmp(word, "fence"))
        fence();
    else if (!strcmp(word, "get"))
        get();
    else if (!strcmp(word, "keys"))
        keys();
    else if (!strcmp(word, "put"))
        put();
    else if (!strncmp(word, "ask=", 4))
        ask((uint32_t)n);
    else if (!strncmp(word, "among=", 6))
        among(value);
    else if (!strncmp(word, "map=", 4))
        map(value);
    else if (!strncmp(word, "sleep=", 6))
        nap(n);
    else if (!strncmp(word, "await=", 6))
        await(value);
    else if (!strcmp(word, "child") || !strcmp(word, "session"))
        leave_child(word[0] == 's');
    else if (!do_ending(word, n) && !do_printing(word, value, n))
        die(word, 0);
}

int main(int argc, char **argv)
{
    static const char *citizen[] = {"init", "keys", "get", "rank", "finalize"};
    const char *rank = getenv("PMIX_RANK");

    if (rank) /* so that R: works before init, too */
        self.rank = (pmix_rank_t)atoi(rank);
    for (int i = 1; i < argc; i++)
        execute(argv[i]);
    for (size_t i = 0; argc == 1 && i < sizeof(citizen) / sizeof(*citizen); i++)
        execute(citizen[i]);
    return 0;
}
