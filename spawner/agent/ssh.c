/* SPDX-License-Identifier: BSD-3-Clause */
/* Guards on other hosts; see ssh.h. */
#include "config.h"

#include "listen.h"
#include "ssh.h"
#include "ssh_text.h"
#include "spawner/children/children.h"
#include "spawner/util/byte_queue.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/util/log.h"
#include "spawner/util/words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The beginning of a command's output may be lost: the cause of a failure is at the end. */
enum { TEXT_MAX = 32 << 10 };

/* Common to the guards that one process starts. */
struct ssh_set {
    struct auth_secret secret;
    struct listener port;
    char addresses[2048];    /* of the port, for messages */
    char call_back[2051];    /* and for guards */
    char launcher[PATH_MAX]; /* on the other hosts */
    char **command, **options;
    const char *wrong; /* why no guard can be started by ssh */
};

struct ssh {
    const struct ssh_set *set;
    const char *host;
    int input;   /* to the command: the secret, then nothing until it is closed */
    int printed; /* from the command */
    int process; /* a pidfd of it, readable when it has ended; -1 on Linux before 5.3 */
    bool has_ended;
    struct bytes text;
    size_t shown; /* bytes of `text` in lines that were dealt with; the guard is there since */
    int64_t deadline;
    uint32_t connect_ms;
};

static void ssh_fail(struct agent *a, const char *why)
{
    const struct ssh *r = a->remote;
    if (a->state != AGENT_STARTING)
        return;
    a->state = AGENT_FAILED;
    snprintf(a->why, sizeof(a->why), "host %s: %s", r->host, why);
    if (a->control >= 0)
        close(a->control);
    if (a->output >= 0)
        close(a->output);
    a->control = a->output = -1;
}

static bool find_launcher(const struct job *job, char *path, size_t size)
{
    const char *there = job->remote_path;
    int n;
    if (there && *there) {
        n = snprintf(path, size, "%s%sgasnetrun_ibv", there,
                     there[strlen(there) - 1] == '/' ? "" : "/");
        return n > 0 && (size_t)n < size;
    }
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0 || (size_t)length >= size - 1)
        return false;
    path[length] = 0;
    return true;
}

/* GASNET_MASTERIP is an address of the launcher's host, so a guard that has hosts below it must not
 * use it. */
static const char *ssh_master(const struct job *job)
{
    return job->host == JOB_NO_HOST && job->master_address ? job->master_address : "";
}

static const char *set_up(struct ssh_set *set, const struct job *job)
{
    const char *command = job->ssh_command && *job->ssh_command ? job->ssh_command : "ssh";

    set->command = words_split(command);
    set->options = words_split(job->ssh_options ? job->ssh_options : "");
    if (!set->command || !set->options || !set->command[0])
        return "GASNET_SSH_CMD and GASNET_SSH_OPTIONS must be words as of a shell, with every "
               "quote closed";
    if (!find_launcher(job, set->launcher, sizeof(set->launcher)))
        return "the path of the launcher is too long";
    if (!auth_secret_make(&set->secret))
        return "the kernel has no random bytes for the secret of the job";
    return NULL;
}

static const char *open_port(struct ssh_set *set, const struct job *job)
{
    static char why[300];

    if (!listen_open(&set->port, &set->secret, ssh_master(job))) {
        snprintf(why, sizeof(why), "no port can be opened for it to connect to: %s",
                 strerror(errno));
        return why;
    }
    if (!listen_addresses(&set->port, ssh_master(job), set->addresses, sizeof(set->addresses)))
        return "this host has no address that it could connect to; set GASNET_MASTERIP";
    /* This host can be reached by the address that ssh came from; if the user has given an address,
     * only that one is used. */
    snprintf(set->call_back, sizeof(set->call_back), "%s%s", *ssh_master(job) ? "" : "@,",
             set->addresses);
    return NULL;
}

static const char *ssh_open(struct agent_set *s)
{
    struct ssh_set *set = s->listener;
    if (!set) {
        if (!(set = calloc(1, sizeof(*set))))
            return "out of memory";
        set->port.fd = -1;
        s->listener = set;
        set->wrong = set_up(set, s->job);
    }
    if (!set->wrong && set->port.fd < 0)
        set->wrong = open_port(set, s->job);
    return set->wrong;
}

enum { WORDS_MAX = 256 };

struct ssh_words {
    const char *word[WORDS_MAX + 1];
    size_t count;
};

static void add_word(struct ssh_words *w, const char *word)
{
    if (w->count < WORDS_MAX)
        w->word[w->count++] = word;
    w->word[w->count] = NULL;
}

static bool is_openssh(const char *command)
{
    const char *slash = strrchr(command, '/');
    return strcmp(slash ? slash + 1 : command, "ssh") == 0;
}

/* ssh takes the first value of an option that is given twice, so the user's options come before
 * ours. Our options: ssh asks no question, does not wait for the kernel's timeout if a host is off,
 * and ignores settings of the user's ssh configuration that are meant for interactive sessions: a
 * master connection would outlive the job. */
static void add_defaults(struct ssh_words *w, const char *timeout)
{
    static const char *const options[] = {"BatchMode=yes", "ControlMaster=no",
                                          "ClearAllForwardings=yes", "ForwardX11=no"};
    add_word(w, "-T");
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        add_word(w, "-o");
        add_word(w, options[i]);
    }
    add_word(w, "-o");
    add_word(w, timeout);
}

static void run_command(const struct ssh_words *w, const int files[2], pid_t parent)
    __attribute__((noreturn));

/* A session of its own: without a terminal nothing can ask the user, and ^C reaches the launcher
 * alone. */
static void run_command(const struct ssh_words *w, const int files[2], pid_t parent)
{
    sigset_t none;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_RUNTIME);
    setsid();
    for (int s = 1; s < NSIG; s++)
        if (s != SIGKILL && s != SIGSTOP)
            signal(s, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setenv("SSH_ASKPASS_REQUIRE", "never", 1);
    dup2(files[0], STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(files[1], STDERR_FILENO);
    execvp(w->word[0], (char **)w->word);
    log_error("cannot run %s: %s (GASNET_SSH_CMD)", w->word[0], strerror(errno));
    _exit(EXIT_RUNTIME);
}

/* The descriptors of a pipe are close-on-exec, and must not be 0, 1 or 2 (main.c sees to that). */
static bool open_pipes(struct ssh *r, int theirs[2])
{
    char line[AUTH_SECRET_TEXT + 32], secret[AUTH_SECRET_TEXT];
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) != 0)
        return false;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    theirs[0] = in[0];
    theirs[1] = out[1];
    r->input = in[1];
    r->printed = out[0];
    auth_secret_print(&r->set->secret, secret);
    int n = snprintf(line, sizeof(line), "%s %u\n", secret, r->connect_ms / 2);
    bool is_written = write(r->input, line, (size_t)n) == n; /* a new pipe has space */
    explicit_bzero(line, sizeof(line));
    explicit_bzero(secret, sizeof(secret));
    return is_written;
}

static void ssh_launch(struct agent *a, const struct ssh_words *w)
{
    struct ssh *r = a->remote;
    int theirs[2] = {-1, -1};
    pid_t self = getpid();

    bool is_open = open_pipes(r, theirs);
    a->pid = is_open ? fork() : -1;
    if (a->pid == 0)
        run_command(w, theirs, self);
    int error = errno;
    close(theirs[0]);
    close(theirs[1]);
    if (a->pid < 0) {
        char why[200];
        a->pid = 0;
        snprintf(why, sizeof(why), "cannot start %s: %s", w->word[0], strerror(error));
        ssh_fail(a, why);
        return;
    }
    r->process = (int)syscall(SYS_pidfd_open, a->pid, 0);
}

static void ssh_begin(struct agent *a)
{
    struct ssh *r = a->remote;
    const struct ssh_set *set = r->set;
    char line[PATH_MAX + 4096] = "exec ", timeout[64], number[16];
    struct ssh_words w = {.count = 0};

    snprintf(number, sizeof(number), " %u", a->host);
    bool fits = words_quote(line, sizeof(line) - 64, set->launcher);
    if (fits)
        strcat(line, " --guard ");
    fits = fits && words_quote(line, sizeof(line) - 64, set->call_back);
    if (!fits) {
        ssh_fail(a, "the command for it is too long");
        return;
    }
    strcat(line, number);
    /* ssh gets half of the time and the callback the other half, so that each can report its own
     * failure. */
    snprintf(timeout, sizeof(timeout), "ConnectTimeout=%u", (r->connect_ms / 2 + 999) / 1000);
    for (char **c = set->command; *c; c++)
        add_word(&w, *c);
    for (char **o = set->options; *o; o++)
        add_word(&w, *o);
    if (is_openssh(set->command[0]))
        add_defaults(&w, timeout);
    add_word(&w, r->host);
    add_word(&w, line);
    log_verbose(2, "host %s: %s ... '%s'", r->host, set->command[0], line);
    if (w.count == WORDS_MAX)
        ssh_fail(a, "GASNET_SSH_CMD and GASNET_SSH_OPTIONS have too many words");
    else
        ssh_launch(a, &w);
}

void ssh_start(struct agent_set *s, struct agent *a)
{
    struct ssh *r = calloc(1, sizeof(*r));
    const char *why = r ? ssh_open(s) : "out of memory";

    if (!r) {
        a->state = AGENT_FAILED;
        snprintf(a->why, sizeof(a->why), "host %s: %s", s->job->hosts[a->host].name, why);
        return;
    }
    a->remote = r;
    *r = (struct ssh){.set = s->listener,
                      .host = s->job->hosts[a->host].name,
                      .input = -1,
                      .printed = -1,
                      .process = -1,
                      .connect_ms = s->job->connect_ms,
                      .deadline = clock_ms() + s->job->connect_ms};
    if (why)
        ssh_fail(a, why);
    else if (r->host[0] == '-' || !r->host[0]) /* ssh would take it for an option */
        ssh_fail(a, "that is no name of a host");
    else
        ssh_begin(a);
}

/* Handles lines that arrive once the guard runs. Lines of our own processes go to the user; of
 * other programs' lines the last one is kept, to explain a later loss of the host. */
static void show_lines(struct agent *a)
{
    struct ssh *r = a->remote;
    const char *text = (const char *)bytes_front(&r->text), *stop;

    while (text && (stop = memchr(text + r->shown, '\n', r->text.length - r->shown))) {
        char line[LOG_LINE_MAX];
        snprintf(line, sizeof(line), "%.*s", (int)(stop - text - (ptrdiff_t)r->shown),
                 text + r->shown);
        for (char *c = line; *c; c++) /* it must not move the cursor */
            if ((unsigned char)*c < ' ' || *c == 0x7f)
                *c = ' ';
        const char *own = ssh_text_own(line);
        if (own && !strncmp(own, "host ", 5)) /* of a host below that one */
            log_error("%s", own);
        else if (own)
            log_error("host %s: %s", r->host, own);
        else
            log_verbose(1, "host %s: %s", r->host, line);
        r->shown = (size_t)(stop - text) + 1;
    }
}

static void read_text(struct agent *a)
{
    struct ssh *r = a->remote;
    ssize_t n = -1;

    while (r->printed >= 0) {
        uint8_t *to = bytes_reserve(&r->text, 4096);
        n = read(r->printed, to, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        bytes_commit(&r->text, (size_t)n);
        if (a->state == AGENT_READY)
            show_lines(a);
        if (r->text.length > TEXT_MAX) {
            size_t cut = r->text.length - TEXT_MAX / 2;
            bytes_consume(&r->text, cut);
            r->shown = r->shown > cut ? r->shown - cut : 0;
        }
    }
    if (r->printed >= 0 && n == 0) {
        close(r->printed);
        r->printed = -1;
    }
}

/* So that poll() does not report it for ever. */
static void forget_process(struct ssh *r)
{
    if (r->process >= 0)
        close(r->process);
    r->process = -1;
}

void ssh_ended(struct agent *a, int status)
{
    struct ssh *r = a->remote;
    char why[sizeof(a->why) - 100];

    if (r->has_ended)
        return;
    r->has_ended = true;
    forget_process(r);
    read_text(a);
    ssh_text_judge((const char *)bytes_front(&r->text), r->text.length, status, r->set->command[0],
                   r->set->launcher, why, sizeof(why));
    if (a->state == AGENT_READY)
        snprintf(a->why, sizeof(a->why), "host %s: %s", r->host, why);
    ssh_fail(a, why);
}

/* The owner of the set reaps the process, maybe much later: this reads the status and leaves the
 * process for the owner. */
static void look_for_end(struct agent *a)
{
    struct ssh *r = a->remote;
    struct pollfd p = {r->process, POLLIN, 0};
    siginfo_t end = {.si_pid = 0};

    if (!a->pid || (r->process >= 0 ? poll(&p, 1, 0) <= 0 : r->printed >= 0))
        return;
    if (waitid(P_PID, (id_t)a->pid, &end, WEXITED | WNOHANG | WNOWAIT) != 0) {
        a->pid = 0; /* children_sweep() has reaped it; the pid may be reused by now */
        forget_process(r);
        return;
    }
    if (!end.si_pid)
        return;
    ssh_ended(a, end.si_code == CLD_EXITED ? end.si_status << 8 : end.si_status);
}

void ssh_cancel(struct agent *a)
{
    if (a->state == AGENT_STARTING)
        child_signal(a->pid, SIGTERM);
    ssh_fail(a, "given up, as the job ends");
}

static struct agent *caller(struct agent_set *s, uint32_t host)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (s->agents[i].host == host && s->agents[i].remote)
            return &s->agents[i];
    return NULL;
}

/* A guard calls once for each stream; a further call is refused, although it knows the secret. */
static void take_calls(struct agent_set *s)
{
    struct ssh_set *set = s->listener;
    enum auth_stream stream;
    uint32_t host;
    int fd;

    while (listen_next(&set->port, &host, &stream, &fd)) {
        struct agent *a = caller(s, host);
        int *place = !a ? NULL : stream == AUTH_CONTROL ? &a->control : &a->output;
        if (!place || *place >= 0 || a->state != AGENT_STARTING) {
            close(fd);
            continue;
        }
        *place = fd;
        if (a->control < 0 || a->output < 0)
            continue;
        struct ssh *r = a->remote;
        a->state = AGENT_READY;
        r->shown = r->text.length;
    }
}

static void give_up_late(struct agent *a)
{
    const struct ssh *r = a->remote;
    char why[400];

    if (a->state != AGENT_STARTING || clock_ms() < r->deadline)
        return;
    snprintf(why, sizeof(why),
             "its guard did not connect to %.200s within %g s (GASNET_SSH_CONNECT_TIMEOUT); if a "
             "firewall is between, GASNET_MASTERIP may name an address that is open",
             r->set->addresses, r->connect_ms / 1000.0);
    ssh_fail(a, why);
}

static bool is_remote(const struct agent *a)
{
    return a->remote != NULL;
}

size_t ssh_poll_max(const struct agent_set *s)
{
    return s->listener ? LISTEN_POLL_MAX + 2 * (size_t)s->count : 0;
}

size_t ssh_poll(const struct agent_set *s, struct pollfd *p)
{
    const struct ssh_set *set = s->listener;
    size_t n = set ? listen_poll_fds(&set->port, p) : 0;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct ssh *r = s->agents[i].remote;
        if (r && r->printed >= 0)
            p[n++] = (struct pollfd){r->printed, POLLIN, 0};
        if (r && r->process >= 0)
            p[n++] = (struct pollfd){r->process, POLLIN, 0};
    }
    return n;
}

/* Once all guards have called, no further call is expected. */
static void close_port_in_time(struct agent_set *s)
{
    struct ssh_set *set = s->listener;
    for (uint32_t i = 0; i < s->count; i++)
        if (is_remote(&s->agents[i]) && s->agents[i].state == AGENT_STARTING)
            return;
    listen_close(&set->port);
}

void ssh_serve(struct agent_set *s)
{
    struct ssh_set *set = s->listener;

    if (!set)
        return;
    for (uint32_t i = 0; i < s->count; i++)
        if (is_remote(&s->agents[i])) {
            read_text(&s->agents[i]);
            look_for_end(&s->agents[i]);
        }
    listen_serve(&set->port);
    take_calls(s);
    for (uint32_t i = 0; i < s->count; i++)
        if (is_remote(&s->agents[i]))
            give_up_late(&s->agents[i]);
    close_port_in_time(s);
}

int64_t ssh_deadline(const struct agent_set *s)
{
    const struct ssh_set *set = s->listener;
    int64_t first = set ? listen_deadline(&set->port) : CLOCK_NEVER;

    for (uint32_t i = 0; i < s->count; i++) {
        const struct ssh *r = s->agents[i].remote;
        if (r && s->agents[i].state == AGENT_STARTING)
            first = clock_earlier(first, r->deadline);
    }
    return first;
}

void ssh_free(struct agent *a)
{
    struct ssh *r = a->remote;

    if (!r)
        return;
    if (r->input >= 0)
        close(r->input);
    if (r->printed >= 0)
        close(r->printed);
    forget_process(r);
    bytes_free(&r->text);
    free(r);
    a->remote = NULL;
}

void ssh_close(struct agent_set *s)
{
    struct ssh_set *set = s->listener;

    if (!set)
        return;
    listen_close(&set->port);
    free(set->command);
    free(set->options);
    explicit_bzero(&set->secret, sizeof(set->secret));
    free(set);
    s->listener = NULL;
}
