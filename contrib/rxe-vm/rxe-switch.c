// SPDX-License-Identifier: BSD-3-Clause
//
// The Ethernet between the machines of rxe-machines, in user space: one switch a rail, and what
// goes wrong with one: frames that are lost, overtaken, doubled or late, cables that are cut,
// machines that die. Owns DIRECTORY's sockets: portM.R, where QEMU of machine M connects its
// network device R (-netdev stream: each frame behind its length), and control, where a line is a
// command and gets a line in answer. One thread, so no locks. Must never lose a frame unasked: a
// receiver that is slow has its frames queued, since tests count retransmissions. Frames between
// DIRECTORY's machines only: nothing of the host's network is touched.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    MACHINES = 8,
    RAILS = 4,
    PORTS = MACHINES * RAILS,
    CONTROLS = 16,
    FRAME_MAX = 65536,
    LINE_MAX_ = 512
};
// What a receiver that reads nothing may cost; a stopped machine is one.
enum { QUEUE_MAX = 32 << 20 };

struct frame {
    struct frame *next;
    struct port *to; // while it is late
    uint64_t due;    // ns
    size_t size;     // with the length in front
    uint8_t bytes[];
};

struct port {
    int machine, rail;
    int listener, fd; // fd: -1 until QEMU connects and after it went
    bool cut;
    size_t held; // bytes in input
    uint8_t input[4 + FRAME_MAX];
    struct frame *first, **last; // to be written
    size_t written, queued;      // bytes of the first; bytes of all
    uint64_t in, in_roce, out, lost, overtaken, doubled, stopped, overflown;
};

struct control {
    int fd;
    size_t held;
    char line[LINE_MAX_];
};

struct address {
    uint8_t mac[6];
    struct port *port;
};

static const char *directory;
static struct port *ports[PORTS];
static int port_count;
static struct address addresses[64];
static int address_count;
static struct control controls[CONTROLS];
static int control_listener;
static struct frame *late; // by due time
static double loss, reorder, twice;
static uint64_t delay_ns;
static bool faults_on_all; // else on RoCE frames only, so that ssh between the machines stays quick
static FILE *capture;
static bool capture_all;
static uint64_t random_state = 0x9e3779b97f4a7c15;

static void die(const char *what)
{
    fprintf(stderr, "rxe-switch: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// True in so many of a hundred cases.
static bool chance(double percent)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return percent > 0 && (double)(random_state >> 11) * 0x1p-53 * 100 < percent;
}

static int listen_at(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (snprintf(at.sun_path, sizeof at.sun_path, "%s/%s", directory, name) >=
        (int)sizeof at.sun_path) {
        errno = ENAMETOOLONG;
        die(directory);
    }
    unlink(at.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, CONTROLS) != 0)
        die(at.sun_path);
    return fd;
}

static void open_ports(int machines, int rails)
{
    for (int m = 1; m <= machines; m++)
        for (int r = 0; r < rails; r++) {
            char name[32];
            struct port *port = calloc(1, sizeof *port);
            if (port == NULL)
                die("memory");
            snprintf(name, sizeof name, "port%d.%d", m, r);
            port->machine = m;
            port->rail = r;
            port->fd = -1;
            port->last = &port->first;
            port->listener = listen_at(name);
            ports[port_count++] = port;
        }
}

// A UDP datagram to port 4791, over IPv4 or IPv6 without extension headers: how rxe sends them.
static bool is_roce(const uint8_t *frame, size_t size)
{
    const uint8_t *ip = frame + 14, *udp;
    if (size < 14 + 20 + 8)
        return false;
    if (frame[12] == 0x08 && frame[13] == 0x00 && ip[9] == IPPROTO_UDP)
        udp = ip + (ip[0] & 15) * 4;
    else if (frame[12] == 0x86 && frame[13] == 0xdd && ip[6] == IPPROTO_UDP)
        udp = ip + 40;
    else
        return false;
    return udp + 8 <= frame + size && udp[2] == 4791 >> 8 && udp[3] == (4791 & 255);
}

// Seen is what a sender sent, before anything goes wrong with it.
static void record(const uint8_t *frame, size_t size, bool roce)
{
    uint64_t at = now_ns(CLOCK_REALTIME);
    uint32_t head[4] = {(uint32_t)(at / 1000000000), (uint32_t)(at % 1000000000 / 1000),
                        (uint32_t)size, (uint32_t)size};
    if (capture == NULL || !(roce || capture_all))
        return;
    fwrite(head, sizeof head, 1, capture);
    fwrite(frame, size, 1, capture);
    fflush(capture);
}

static void queue(struct port *to, struct frame *frame)
{
    if (to->fd < 0 || to->cut || to->queued + frame->size > QUEUE_MAX) {
        to->overflown += to->fd >= 0 && !to->cut;
        free(frame);
        return;
    }
    frame->next = NULL;
    *to->last = frame;
    to->last = &frame->next;
    to->queued += frame->size;
    to->out++;
}

static void send_later(struct port *to, struct frame *frame, uint64_t ns)
{
    struct frame **p = &late;
    frame->to = to;
    frame->due = now_ns(CLOCK_MONOTONIC) + ns;
    while (*p != NULL && (*p)->due <= frame->due)
        p = &(*p)->next;
    frame->next = *p;
    *p = frame;
}

static void send_one(struct port *to, const uint8_t *frame, size_t size, uint64_t ns)
{
    struct frame *copy = malloc(sizeof *copy + 4 + size);
    if (copy == NULL)
        die("memory");
    copy->size = 4 + size;
    memcpy(copy->bytes, &(uint32_t){htonl((uint32_t)size)}, 4);
    memcpy(copy->bytes + 4, frame, size);
    if (ns > 0)
        send_later(to, copy, ns);
    else
        queue(to, copy);
}

static void send_with_faults(struct port *from, struct port *to, const uint8_t *frame, size_t size,
                             bool roce)
{
    uint64_t ns = delay_ns;
    if (from->cut || to->cut) {
        from->stopped++;
        return;
    }
    if (!roce && !faults_on_all) {
        send_one(to, frame, size, 0);
        return;
    }
    if (chance(loss)) {
        from->lost++;
        return;
    }
    // A millisecond or two: ten frames at the pace of an emulated machine.
    if (chance(reorder)) {
        from->overtaken++;
        ns += 500000 + random_state % 2000000;
    }
    send_one(to, frame, size, ns);
    if (chance(twice)) {
        from->doubled++;
        send_one(to, frame, size, ns);
    }
}

static struct address *find_address(const uint8_t *mac, int rail)
{
    for (int i = 0; i < address_count; i++)
        if (addresses[i].port->rail == rail && memcmp(addresses[i].mac, mac, 6) == 0)
            return &addresses[i];
    return NULL;
}

static void learn(struct port *from, const uint8_t *mac)
{
    struct address *known = find_address(mac, from->rail);
    if (known == NULL && address_count < (int)(sizeof addresses / sizeof *addresses)) {
        known = &addresses[address_count++];
        memcpy(known->mac, mac, 6);
    }
    if (known != NULL)
        known->port = from;
}

static void forward(struct port *from, const uint8_t *frame, size_t size)
{
    bool roce = is_roce(frame, size);
    struct address *target;
    if (size < 14)
        return;
    from->in++;
    from->in_roce += roce;
    record(frame, size, roce);
    learn(from, frame + 6);
    target = (frame[0] & 1) != 0 ? NULL : find_address(frame, from->rail);
    for (int i = 0; i < port_count; i++)
        if (ports[i] != from && ports[i]->rail == from->rail &&
            (target == NULL || target->port == ports[i]))
            send_with_faults(from, ports[i], frame, size, roce);
}

static void hang_up(struct port *port)
{
    struct frame *next;
    close(port->fd);
    port->fd = -1;
    port->held = port->written = port->queued = 0;
    for (struct frame *frame = port->first; frame != NULL; frame = next) {
        next = frame->next;
        free(frame);
    }
    port->first = NULL;
    port->last = &port->first;
}

static void read_port(struct port *port)
{
    size_t at = 0;
    uint32_t size;
    ssize_t got = read(port->fd, port->input + port->held, sizeof port->input - port->held);
    if (got <= 0) {
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            hang_up(port);
        return;
    }
    port->held += (size_t)got;
    for (; port->held - at >= 4; at += 4 + size) {
        memcpy(&size, port->input + at, 4);
        size = ntohl(size);
        if (size > FRAME_MAX) {
            fprintf(stderr, "rxe-switch: machine %d sends a frame of %u bytes\n", port->machine,
                    size);
            hang_up(port);
            return;
        }
        if (port->held - at < 4 + size)
            break;
        forward(port, port->input + at + 4, size);
    }
    memmove(port->input, port->input + at, port->held - at);
    port->held -= at;
}

static void write_port(struct port *port)
{
    while (port->first != NULL) {
        struct frame *frame = port->first;
        ssize_t put = send(port->fd, frame->bytes + port->written, frame->size - port->written,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0) {
            if (errno != EAGAIN && errno != EINTR)
                hang_up(port);
            return;
        }
        port->written += (size_t)put;
        if (port->written < frame->size)
            return;
        port->written = 0;
        port->queued -= frame->size;
        port->first = frame->next;
        if (port->first == NULL)
            port->last = &port->first;
        free(frame);
    }
}

static void send_due(void)
{
    uint64_t now = late == NULL ? 0 : now_ns(CLOCK_MONOTONIC);
    while (late != NULL && late->due <= now) {
        struct frame *frame = late;
        late = frame->next;
        queue(frame->to, frame);
    }
}

static void answer(struct control *control, const char *format, ...)
{
    char text[LINE_MAX_];
    va_list rest;
    va_start(rest, format);
    int size = vsnprintf(text, sizeof text - 1, format, rest);
    va_end(rest);
    if (size > (int)sizeof text - 2)
        size = (int)sizeof text - 2;
    text[size++] = '\n';
    if (send(control->fd, text, (size_t)size, MSG_NOSIGNAL) < 0)
        fprintf(stderr, "rxe-switch: an answer is lost: %s\n", strerror(errno));
}

static bool set_percent(struct control *control, const char *word, double *percent)
{
    char *end = NULL;
    double value = word == NULL ? -1 : strtod(word, &end);
    if (word == NULL || end == word || *end != '\0' || !(value >= 0 && value <= 100)) {
        answer(control, "error: not a percentage (0 to 100)");
        return false;
    }
    *percent = value;
    answer(control, "ok");
    return true;
}

// Calls act for the ports of "M" (all rails of a machine) or "M.R"; how many that were.
static int for_ports(const char *word, void (*act)(struct port *))
{
    int machine = 0, rail = -1, found = 0;
    if (word == NULL || sscanf(word, "%d.%d", &machine, &rail) < 1)
        return 0;
    for (int i = 0; i < port_count; i++)
        if (ports[i]->machine == machine && (rail < 0 || ports[i]->rail == rail)) {
            act(ports[i]);
            found++;
        }
    return found;
}

static void cut(struct port *port)
{
    port->cut = true;
}

static void join(struct port *port)
{
    port->cut = false;
}

static void cut_or_join(struct control *control, const char *word, void (*act)(struct port *))
{
    if (for_ports(word, act) > 0)
        answer(control, "ok");
    else
        answer(control, "error: no such port; ports are M or M.R: machine from 1, rail from 0");
}

static void count(struct control *control, const char *word)
{
    int machine = word == NULL ? 0 : atoi(word);
    uint64_t in = 0, roce = 0, out = 0, lost = 0, overtaken = 0, doubled = 0, stopped = 0,
             overflown = 0;
    for (int i = 0; i < port_count; i++)
        if (machine == 0 || ports[i]->machine == machine) {
            const struct port *p = ports[i];
            in += p->in, roce += p->in_roce, out += p->out, lost += p->lost,
                overtaken += p->overtaken;
            doubled += p->doubled, stopped += p->stopped, overflown += p->overflown;
        }
    answer(control,
           "in %ju roce %ju out %ju lost %ju overtaken %ju doubled %ju cut %ju overflown %ju",
           (uintmax_t)in, (uintmax_t)roce, (uintmax_t)out, (uintmax_t)lost, (uintmax_t)overtaken,
           (uintmax_t)doubled, (uintmax_t)stopped, (uintmax_t)overflown);
}

// The pid file is QEMU's own; rxe-machines put its name here.
static void signal_machine(struct control *control, const char *machine, const char *what)
{
    static const struct {
        const char *name;
        int signal;
    } signals[] = {{"kill", SIGKILL}, {"stop", SIGSTOP}, {"cont", SIGCONT}};
    char name[4096];
    int pid = 0;
    snprintf(name, sizeof name, "%s/pid%d", directory, machine == NULL ? 0 : atoi(machine));
    FILE *file = fopen(name, "r");
    if (file == NULL || fscanf(file, "%d", &pid) != 1 || pid <= 1)
        answer(control, "error: no machine '%s'", machine == NULL ? "" : machine);
    else
        for (size_t i = 0; i < 3; i++)
            if (what != NULL && strcmp(what, signals[i].name) == 0) {
                answer(control, kill(pid, signals[i].signal) == 0 ? "ok" : "error: %m");
                pid = 0;
            }
    if (file != NULL && pid > 1)
        answer(control, "error: a machine takes kill, stop and cont");
    if (file != NULL)
        fclose(file);
}

static void set_capture(struct control *control, const char *name, const char *what)
{
    // Version 2.4, no time zone, whole frames, Ethernet.
    static const uint32_t head[6] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, 1};
    if (capture != NULL)
        fclose(capture);
    capture = NULL;
    capture_all = what != NULL && strcmp(what, "all") == 0;
    if (name != NULL && strcmp(name, "off") != 0) {
        capture = fopen(name, "we");
        if (capture == NULL) {
            answer(control, "error: %s: %m", name);
            return;
        }
        fwrite(head, sizeof head, 1, capture);
        fflush(capture);
    }
    answer(control, "ok");
}

static void clear(struct control *control)
{
    loss = reorder = twice = 0;
    delay_ns = 0;
    faults_on_all = false;
    for (int i = 0; i < port_count; i++)
        ports[i]->cut = false;
    answer(control, "ok");
}

static void obey(struct control *control, char *line)
{
    char *rest = NULL, *verb = strtok_r(line, " \r", &rest), *first = strtok_r(NULL, " \r", &rest),
         *second = strtok_r(NULL, " \r", &rest);
    double ms;
    if (verb == NULL)
        return;
    if (strcmp(verb, "loss") == 0)
        set_percent(control, first, &loss);
    else if (strcmp(verb, "reorder") == 0)
        set_percent(control, first, &reorder);
    else if (strcmp(verb, "double") == 0)
        set_percent(control, first, &twice);
    else if (strcmp(verb, "delay") == 0)
        delay_ns = set_percent(control, first, &ms) ? (uint64_t)(ms * 1e6) : delay_ns;
    else if (strcmp(verb, "on") == 0 && first != NULL) {
        faults_on_all = strcmp(first, "all") == 0;
        answer(control, "ok");
    } else if (strcmp(verb, "cut") == 0)
        cut_or_join(control, first, cut);
    else if (strcmp(verb, "join") == 0)
        cut_or_join(control, first, join);
    else if (strcmp(verb, "clear") == 0)
        clear(control);
    else if (strcmp(verb, "count") == 0)
        count(control, first);
    else if (strcmp(verb, "machine") == 0)
        signal_machine(control, first, second);
    else if (strcmp(verb, "pcap") == 0)
        set_capture(control, first, second);
    else
        answer(control,
               "error: unknown command '%s'; rxe-machines without arguments prints what there is",
               verb);
}

static void read_control(struct control *control)
{
    char *end;
    ssize_t got =
        read(control->fd, control->line + control->held, sizeof control->line - 1 - control->held);
    if (got <= 0) {
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        close(control->fd);
        control->fd = -1;
        control->held = 0;
        return;
    }
    control->held += (size_t)got;
    control->line[control->held] = '\0';
    while ((end = strchr(control->line, '\n')) != NULL) {
        *end++ = '\0';
        obey(control, control->line);
        control->held -= (size_t)(end - control->line);
        memmove(control->line, end, control->held + 1);
    }
    if (control->held == sizeof control->line - 1)
        control->held = 0;
}

static void accept_control(void)
{
    int fd = accept4(control_listener, NULL, NULL, SOCK_CLOEXEC);
    for (int i = 0; fd >= 0 && i < CONTROLS; i++)
        if (controls[i].fd < 0) {
            controls[i].fd = fd;
            return;
        }
    if (fd >= 0)
        close(fd);
}

static void accept_port(struct port *port)
{
    int fd = accept4(port->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (port->fd >= 0)
        hang_up(port);
    port->fd = fd;
}

static int time_to_next(void)
{
    if (late == NULL)
        return -1;
    int64_t ns = (int64_t)(late->due - now_ns(CLOCK_MONOTONIC));
    return ns <= 0 ? 0 : (int)((ns + 999999) / 1000000);
}

// One round: waits for something to do and does it.
static void turn(void)
{
    struct pollfd fds[2 * PORTS + CONTROLS + 1];
    struct pollfd *control_fds = fds + 2 * port_count, *listener = control_fds + CONTROLS;
    for (int i = 0; i < port_count; i++) {
        fds[2 * i] = (struct pollfd){ports[i]->listener, POLLIN, 0};
        fds[2 * i + 1] = (struct pollfd){
            ports[i]->fd, (short)(POLLIN | (ports[i]->first != NULL ? POLLOUT : 0)), 0};
    }
    for (int i = 0; i < CONTROLS; i++)
        control_fds[i] = (struct pollfd){controls[i].fd, POLLIN, 0};
    *listener = (struct pollfd){control_listener, POLLIN, 0};
    if (poll(fds, (nfds_t)(2 * port_count + CONTROLS + 1), time_to_next()) < 0 && errno != EINTR)
        die("poll");
    for (int i = 0; i < port_count; i++) {
        if (fds[2 * i + 1].revents & (POLLIN | POLLHUP | POLLERR))
            read_port(ports[i]);
        if (fds[2 * i].revents != 0)
            accept_port(ports[i]);
    }
    send_due();
    for (int i = 0; i < port_count; i++)
        if (ports[i]->fd >= 0)
            write_port(ports[i]);
    for (int i = 0; i < CONTROLS; i++)
        if (control_fds[i].revents != 0)
            read_control(&controls[i]);
    if (listener->revents != 0)
        accept_control();
}

int main(int argc, char **argv)
{
    int machines = argc == 4 ? atoi(argv[2]) : 0, rails = argc == 4 ? atoi(argv[3]) : 0;
    if (machines < 1 || machines > MACHINES || rails < 1 || rails > RAILS) {
        fprintf(
            stderr,
            "usage: rxe-switch DIRECTORY MACHINES RAILS (1 to %d machines with 1 to %d rails)\n",
            MACHINES, RAILS);
        return 2;
    }
    directory = argv[1];
    for (int i = 0; i < CONTROLS; i++)
        controls[i].fd = -1;
    open_ports(machines, rails);
    control_listener = listen_at("control");
    for (;;)
        turn();
}
