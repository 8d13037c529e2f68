/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks leave: the agreement on a code, the election of the rank that notifies others, and its
 * notices. State and decisions are those of conduit/exit (state.h, decide.h). Owns a record of the
 * first rank of each neighbourhood, and of the one rank that leaves before or after all others; the
 * other ranks of a neighbourhood, its crowd, behave alike. One thread. */
#include "config.h"

#include "connections.h"

#include "exit/decide.h"
#include "exit/state.h"
#include "topology/leaders.h"
#include "topology/tree.h"

#include <stdlib.h>

/* `a` is an actor or a neighbourhood. */
enum {
    EVENT_LEAVES,   /* the actor, with code `b` */
    EVENT_CROWD,    /* the crowd of `a` leaves by itself, with code `b` */
    EVENT_AGREE,    /* a message of the agreement to step `b` with code `c` */
    EVENT_GRACE,    /* the actor looks whether its grace period is over */
    EVENT_ASKS,     /* the crowd of `a` asks who leads */
    EVENT_QUESTION, /* of actor `a`, at rank 0 */
    EVENT_ANSWER,   /* `b`, to the actor */
    EVENT_NOTICE,   /* with code `c` to the first rank of `a`, from neighbourhood `b` */
    EVENT_TOLD,     /* a notice with code `c` has reached the crowd of `a` */
    EVENT_PATIENCE  /* of the actor that leads */
};

enum { message_bytes = 32, nobody = UINT32_MAX };

/* In place of the neighbourhood that a notice came from: it is not to be passed on. */
enum { not_along_tree = UINT32_MAX - 1 };

struct actor {
    struct tk_exit_state state;
    struct tk_agree_place at;
    uint64_t clock, received, agreed_at, bytes;
    uint32_t rank, nbrhd, sent, came, local, connections;
    int answer;
    enum tk_role role;
    bool has_asked, is_notified, has_passed;
};

struct crowd {
    uint64_t left_at;
    uint32_t size;
    bool has_left, has_asked, is_told;
};

static struct {
    struct simulation *s;
    struct actor *actors; /* by neighbourhood, and then `single` */
    struct crowd *crowds;
    uint32_t single;   /* the actor that leaves before or after all others */
    uint32_t leads;    /* 1 + the rank that rank 0 has chosen */
    uint32_t agreed;   /* neighbourhoods */
    uint32_t stuck_at; /* hosts `stuck_at` .. `stuck_end` - 1 do not take part */
    uint32_t stuck_end;
    void (*sends)(void *object, uint32_t from, uint32_t to, uint64_t time);
    void *object;
} leaving;

static uint32_t size_of(uint32_t nbrhd)
{
    return leaving.s->first[nbrhd + 1] - leaving.s->first[nbrhd];
}

static uint32_t host_of(const struct actor *a)
{
    return leaving.s->host_of[a->nbrhd];
}

static bool is_first(const struct actor *a)
{
    return a->rank == leaving.s->first[a->nbrhd];
}

static bool has_tree(void)
{
    return tk_leaders_have_tree(leaving.s->nbrhds, true);
}

static void later(uint64_t time, uint32_t what, uint32_t a, uint32_t b, uint64_t c)
{
    leaving.s->has_failed |= !sim_events_add(&leaving.s->events, time, what, a, b, c);
}

static uint64_t grace_of(const struct actor *a)
{
    uint32_t ranks = leaving.s->hosts[host_of(a)].ranks, cpus = leaving.s->in.cpus;
    return tk_exit_grace(ranks > cpus, ranks, cpus);
}

/* ---- messages */

/* A connection that is not between two leaders is made once, for one message; so is each where the
 * number is bounded. */
static uint64_t connect_to(struct actor *from, struct actor *to, uint64_t now)
{
    struct simulation *s = leaving.s;
    if (is_first(from) && to && is_first(to) && !s->connections_max)
        return sim_connect(s, from->nbrhd, to->nbrhd, now);
    from->connections++;
    if (to)
        to->connections++;
    return sim_compute(s, host_of(from), now, s->costs.connection);
}

/* Returns when it arrives. `to`: NULL: a rank of a crowd of this host. */
static uint64_t message(struct actor *from, struct actor *to, uint32_t host, uint64_t now)
{
    struct simulation *s = leaving.s;
    if (to ? to->nbrhd == from->nbrhd : host == host_of(from)) {
        from->local++;
        s->end.local++;
        if (to)
            to->local++;
        return from->clock = sim_compute(s, host, now, s->costs.flag) + s->costs.flag;
    }
    uint64_t ready = connect_to(from, to, now);
    from->clock = sim_compute(s, host_of(from), ready, s->costs.message);
    from->sent++;
    from->bytes += message_bytes;
    if (to)
        to->came++;
    return sim_fabric_send(&s->fabric, host_of(from), host, from->clock, message_bytes) +
           s->costs.message;
}

/* ---- agreement */

static void agree_over(struct actor *a)
{
    a->agreed_at = a->clock;
    tk_state_part(&a->state);
    leaving.agreed++;
}

static bool is_stuck(uint32_t host)
{
    return host >= leaving.stuck_at && host < leaving.stuck_end;
}

static void agree_send(struct actor *a, const struct tk_leaders_step *step)
{
    struct actor *to = &leaving.actors[step->to];
    uint64_t comes = message(a, to, host_of(to), a->clock);
    leaving.s->end.agree++;
    if (is_stuck(host_of(to)))
        leaving.sends(leaving.object, a->nbrhd, step->to, a->clock);
    else
        later(comes, EVENT_AGREE, step->to, step->to_step, (uint64_t)tk_state_code(&a->state));
}

static void advance(struct actor *a, uint64_t now)
{
    struct tk_leaders leaders;
    tk_leaders_plan(&leaders, a->nbrhd, leaving.s->nbrhds, true);
    a->clock = now > a->clock ? now : a->clock;
    for (;;) {
        const struct tk_leaders_step *step = &leaders.steps[a->at.step];
        switch (tk_agree_next(&a->at, &leaders, a->received >> a->at.step & 1)) {
        case TK_AGREE_SEND:
            agree_send(a, step);
            tk_agree_sent(&a->at);
            break;
        case TK_AGREE_WAIT:
            return;
        case TK_AGREE_PASS:
            tk_agree_passed(&a->at);
            break;
        case TK_AGREE_OVER:
            agree_over(a);
            return;
        }
    }
}

static bool has_left(const struct actor *a)
{
    return !tk_state_is_running(&a->state);
}

static bool has_single(uint32_t nbrhd)
{
    uint32_t single = leaving.single;
    return single != nobody && single >= leaving.s->nbrhds && leaving.actors[single].nbrhd == nbrhd;
}

static bool all_have_left(uint32_t nbrhd)
{
    const struct crowd *c = &leaving.crowds[nbrhd];
    return has_left(&leaving.actors[nbrhd]) && (c->has_left || c->size == 0) &&
           (!has_single(nbrhd) || has_left(&leaving.actors[leaving.single]));
}

/* Values go up in the neighbourhood when its last rank has left. */
static void gather(uint32_t nbrhd, uint64_t now, int code)
{
    struct actor *a = &leaving.actors[nbrhd];
    tk_state_learn(&a->state, code);
    if (all_have_left(nbrhd) && a->agreed_at == UINT64_MAX)
        advance(a, now + sim_inside(leaving.s, nbrhd));
}

static void leave(uint32_t who, uint64_t now, int code)
{
    struct actor *a = &leaving.actors[who];
    if (!tk_state_leave(&a->state, tk_state_code_of_exit(&a->state, code)))
        return;
    tk_state_begin(&a->state, now, grace_of(a),
                   (uint64_t)(tk_exit_timeout_of(leaving.s->in.ranks) * 1e9));
    tk_state_agree(&a->state);
    a->clock = now > a->clock ? now : a->clock;
    later(a->state.grace_end, EVENT_GRACE, who, 0, 0);
    gather(a->nbrhd, now, tk_state_code(&a->state));
}

static void crowd_leaves(uint32_t nbrhd, uint64_t now, int code)
{
    struct crowd *c = &leaving.crowds[nbrhd];
    if (c->has_left || c->size == 0)
        return;
    c->has_left = true;
    c->left_at = now;
    uint32_t depth = tk_elect_depth_of_neighbour(leaving.s->nbrhds, size_of(nbrhd) - 1);
    bool at_once = leaving.s->in.plants_ask || !has_tree();
    later(now + grace_of(&leaving.actors[nbrhd]) +
              (at_once ? 0 : tk_elect_pause(depth, grace_of(&leaving.actors[nbrhd]))),
          EVENT_ASKS, nbrhd, 0, 0);
    gather(nbrhd, now, code);
}

/* ---- notices */

static void told(uint32_t nbrhd, uint64_t now, int code)
{
    leaving.crowds[nbrhd].is_told = true;
    crowd_leaves(nbrhd, now, code);
    if (has_single(nbrhd)) {
        struct actor *single = &leaving.actors[leaving.single];
        single->is_notified = true;
        if (tk_state_answer(&single->state, code))
            leave(leaving.single, now, code);
    }
}

static void pass_to(struct actor *a, uint32_t to, int code)
{
    struct actor *other = &leaving.actors[to];
    leaving.s->end.notices++;
    later(message(a, other, host_of(other), a->clock), EVENT_NOTICE, to, a->nbrhd, (uint64_t)code);
}

/* All but the ranks that it comes from and goes to. */
static void pass_to_crowd(struct actor *a, bool is_from_here, int code)
{
    uint32_t count = size_of(a->nbrhd) - 1 - is_from_here;
    uint64_t comes = a->clock;
    for (uint32_t i = 0; i < count; i++)
        comes = message(a, NULL, host_of(a), a->clock);
    leaving.s->end.notices += count;
    later(comes, EVENT_TOLD, a->nbrhd, 0, (uint64_t)code);
}

static void pass_on(struct actor *a, uint32_t from, int code)
{
    struct tk_leaders leaders;
    uint32_t to[tk_notice_over_tree_max];
    if (a->has_passed)
        return;
    a->has_passed = true;
    tk_leaders_plan(&leaders, a->nbrhd, leaving.s->nbrhds, true);
    unsigned count = tk_notice_over_tree(&leaders, from, to);
    for (unsigned i = 0; !leaving.s->in.plants_notify && i < count; i++)
        pass_to(a, to[i], code);
    for (uint32_t n = 0; leaving.s->in.plants_notify && n < leaving.s->nbrhds; n++)
        if (n != a->nbrhd)
            pass_to(a, n, code);
    pass_to_crowd(a, from == a->nbrhd, code);
}

static void noticed(uint32_t nbrhd, uint32_t from, uint64_t now, int code)
{
    struct actor *a = &leaving.actors[nbrhd];
    a->clock = sim_compute(leaving.s, host_of(a), now > a->clock ? now : a->clock,
                           leaving.s->costs.message);
    a->is_notified = true;
    if (from != not_along_tree)
        pass_on(a, from, code);
    if (tk_state_answer(&a->state, code))
        leave(nbrhd, a->clock, code);
}

/* To each rank itself. */
static void notify_each(struct actor *a, int code)
{
    for (uint32_t n = 0; n < leaving.s->nbrhds; n++) {
        struct actor *first = &leaving.actors[n];
        uint64_t comes = a->clock;
        for (uint32_t i = 0; i < size_of(n); i++) {
            if (leaving.s->first[n] + i == a->rank)
                continue;
            leaving.s->end.notices++;
            comes = message(a, i ? NULL : first, host_of(first), a->clock);
            if (i == 0)
                later(comes, EVENT_NOTICE, n, not_along_tree, (uint64_t)code);
        }
        later(comes, EVENT_TOLD, n, 0, (uint64_t)code);
    }
}

static void notify(uint32_t who, uint64_t now)
{
    struct actor *a = &leaving.actors[who];
    int code = tk_state_code(&a->state);
    if (!has_tree()) {
        notify_each(a, code);
        return;
    }
    if (is_first(a))
        pass_on(a, nobody, code);
    else
        pass_to(a, a->nbrhd, code);
    later(now + tk_notice_patience(grace_of(a)) + 1, EVENT_PATIENCE, who, 0, 0);
}

/* ---- election */

static bool waits_below(const struct actor *a)
{
    const struct crowd *c = &leaving.crowds[a->nbrhd];
    if (is_first(a))
        return !all_have_left(a->nbrhd);
    uint32_t index = a->rank - leaving.s->first[a->nbrhd];
    return !c->has_left && tk_tree_place(index, size_of(a->nbrhd)).below_count > 0;
}

static uint32_t depth_of(const struct actor *a)
{
    struct tk_leaders leaders;
    if (!has_tree() || waits_below(a))
        return 0;
    if (!is_first(a))
        return tk_elect_depth_of_neighbour(leaving.s->nbrhds, a->rank - leaving.s->first[a->nbrhd]);
    tk_leaders_plan(&leaders, a->nbrhd, leaving.s->nbrhds, true);
    return tk_agree_awaits_above(&a->at, &leaders) ? leaders.depth : 0;
}

static bool is_taken(uint32_t rank)
{
    bool taken = leaving.leads != 0;
    if (rank == 0 && !taken)
        leaving.leads = 1;
    return rank == 0 && taken;
}

static void elect(uint32_t who, uint64_t now)
{
    struct actor *a = &leaving.actors[who];
    if (leaving.actors[a->nbrhd].agreed_at != UINT64_MAX || a->role != TK_ROLE_OPEN)
        return;
    struct tk_elect_view view = {
        .me = a->rank,
        .ranks = leaving.s->in.ranks,
        .waited = now - a->state.grace_end,
        .asks_after = leaving.s->in.plants_ask ? 0 : tk_elect_pause(depth_of(a), grace_of(a)),
        .answer = a->answer,
        .has_asked = a->has_asked,
        .is_notified = a->is_notified};
    view.is_taken = !view.is_notified && is_taken(a->rank);
    const struct tk_elect_step step = tk_elect_next(&view);
    a->role = step.role;
    a->clock = now > a->clock ? now : a->clock;
    if (step.asks) {
        a->has_asked = true;
        leaving.s->end.elect++;
        later(message(a, &leaving.actors[0], 0, now), EVENT_QUESTION, who, 0, 0);
    }
    if (step.role == TK_ROLE_OPEN && !a->has_asked)
        later(a->state.grace_end + view.asks_after, EVENT_GRACE, who, 0, 0);
    if (step.role == TK_ROLE_LEADER)
        notify(who, now);
}

static void answer(uint32_t who, uint64_t now)
{
    struct actor *zero = &leaving.actors[0], *asker = &leaving.actors[who];
    if (!leaving.leads)
        leaving.leads = 1 + asker->rank;
    zero->clock = now > zero->clock ? now : zero->clock;
    leaving.s->end.elect++;
    uint64_t comes = asker->nbrhd == 0 ? message(zero, asker, 0, zero->clock)
                                       : sim_fabric_send(&leaving.s->fabric, 0, host_of(asker),
                                                         zero->clock, message_bytes);
    zero->sent += asker->nbrhd != 0;
    asker->came += asker->nbrhd != 0;
    later(comes, EVENT_ANSWER, who, tk_elect_answer(leaving.leads - 1, asker->rank), 0);
}

/* If a rank of it leads, it does so as the first rank would. */
static void crowd_asks(uint32_t nbrhd, uint64_t now)
{
    struct simulation *s = leaving.s;
    struct actor *zero = &leaving.actors[0], *first = &leaving.actors[nbrhd];
    struct crowd *c = &leaving.crowds[nbrhd];
    if (first->agreed_at != UINT64_MAX || c->is_told || c->has_asked)
        return;
    c->has_asked = true;
    s->end.elect += 2 * (uint64_t)c->size;
    if (nbrhd == 0) {
        zero->local += 2 * c->size;
        s->end.local += 2 * (uint64_t)c->size;
    } else {
        zero->came += c->size;
        zero->sent += c->size;
        zero->connections += c->size;
        zero->bytes += (uint64_t)c->size * message_bytes;
    }
    uint64_t each = s->costs.connection + 2 * s->costs.message;
    zero->clock = sim_compute(s, 0, now > zero->clock ? now : zero->clock, c->size * each);
    if (!leaving.leads) {
        leaving.leads = 1 + first->rank + 1;
        first->clock = zero->clock;
        if (has_tree())
            pass_to(first, nbrhd, tk_state_code(&first->state));
        else
            notify_each(first, tk_state_code(&first->state));
    }
}

static void lose_patience(uint32_t who, uint64_t now)
{
    struct actor *a = &leaving.actors[who];
    if (leaving.actors[a->nbrhd].agreed_at != UINT64_MAX)
        return;
    a->clock = now > a->clock ? now : a->clock;
    notify_each(a, tk_state_code(&a->state));
}

/* ---- all of it */

static void come(const struct sim_event *e)
{
    struct actor *a = &leaving.actors[e->a];
    switch (e->what) {
    case EVENT_LEAVES:
        leave(e->a, e->time, (int)e->b);
        break;
    case EVENT_CROWD:
        crowd_leaves(e->a, e->time, (int)e->b);
        break;
    case EVENT_AGREE:
        a->received |= UINT64_C(1) << e->b;
        tk_state_learn(&a->state, (int)e->c);
        if (all_have_left(e->a) && a->agreed_at == UINT64_MAX)
            advance(a, sim_compute(leaving.s, host_of(a), e->time, leaving.s->costs.message));
        break;
    case EVENT_GRACE:
        elect(e->a, e->time);
        break;
    case EVENT_ASKS:
        crowd_asks(e->a, e->time);
        break;
    case EVENT_QUESTION:
        answer(e->a, e->time);
        break;
    case EVENT_ANSWER:
        a->answer = (int)e->b;
        elect(e->a, e->time);
        break;
    case EVENT_NOTICE:
        noticed(e->a, e->b, e->time, (int)e->c);
        break;
    case EVENT_TOLD:
        told(e->a, e->time, (int)e->c);
        break;
    default:
        lose_patience(e->a, e->time);
        break;
    }
}

static void actor_open(uint32_t who, uint32_t rank, uint32_t nbrhd)
{
    struct actor *a = &leaving.actors[who];
    struct tk_leaders leaders;
    a->rank = rank;
    a->nbrhd = nbrhd;
    a->clock = leaving.s->leaders[nbrhd].clock;
    a->agreed_at = UINT64_MAX;
    tk_leaders_plan(&leaders, nbrhd, leaving.s->nbrhds, true);
    tk_agree_at_begin(&a->at, &leaders);
}

static bool leaving_open(struct simulation *s, int64_t single)
{
    leaving.s = s;
    leaving.leads = leaving.agreed = 0;
    leaving.stuck_at = leaving.stuck_end = 0;
    leaving.single = nobody;
    leaving.actors = calloc((size_t)s->nbrhds + 1, sizeof(*leaving.actors));
    leaving.crowds = calloc(s->nbrhds, sizeof(*leaving.crowds));
    if (!leaving.actors || !leaving.crowds)
        return false;
    for (uint32_t n = 0; n < s->nbrhds; n++) {
        actor_open(n, s->first[n], n);
        leaving.crowds[n].size = size_of(n) - 1;
        leaving.actors[n].connections = -s->leaders[n].connections; /* those made before */
    }
    if (single < 0)
        return true;
    uint32_t nbrhd = sim_nbrhd_of_rank(s, (uint32_t)single);
    leaving.single = s->first[nbrhd] == single ? nbrhd : s->nbrhds;
    if (leaving.single != s->nbrhds)
        return true;
    actor_open(s->nbrhds, (uint32_t)single, nbrhd);
    leaving.crowds[nbrhd].size--;
    return true;
}

static void leaving_close(void)
{
    free(leaving.actors);
    free(leaving.crowds);
    leaving.actors = NULL;
    leaving.crowds = NULL;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void busiest(struct sim_ending *end, const struct actor *a, uint64_t *of_host)
{
    uint64_t messages = (uint64_t)a->sent + a->came + a->local;
    end->rank.messages = most_of(end->rank.messages, messages);
    end->rank.bytes = most_of(end->rank.bytes, a->bytes);
    end->rank.connections = most_of(end->rank.connections, a->connections);
    of_host[0] += messages;
    of_host[1] += a->bytes;
    of_host[2] += a->connections;
}

/* Hosts in a row have their neighbourhoods in a row. */
static void count_messages(struct simulation *s)
{
    for (uint32_t h = 0; h < s->in.hosts; h++) {
        uint64_t of_host[3] = {0};
        for (uint32_t n = s->hosts[h].first; n < s->hosts[h].end; n++) {
            leaving.actors[n].connections += s->leaders[n].connections;
            busiest(&s->end, &leaving.actors[n], of_host);
            if (has_single(n))
                busiest(&s->end, &leaving.actors[leaving.single], of_host);
            s->leaders[n].sent += leaving.actors[n].sent;
            s->leaders[n].came += leaving.actors[n].came;
            s->leaders[n].bytes += leaving.actors[n].bytes;
        }
        s->end.host.messages = most_of(s->end.host.messages, of_host[0]);
        s->end.host.bytes = most_of(s->end.host.bytes, of_host[1]);
        s->end.host.connections = most_of(s->end.host.connections, of_host[2]);
    }
}

/* Ranks that leave alike. */
struct leavers {
    uint64_t left_at, agreed_at;
    uint32_t nbrhd, count;
    bool has_leader; /* the first rank adds what it knows before it enters the fence */
};

static bool is_in_time(const struct leavers *l)
{
    return l->agreed_at <= l->left_at + grace_of(&leaving.actors[l->nbrhd]);
}

/* They go on to the fence, and may add their code. */
static void part(const struct leavers *l)
{
    const struct actor *first = &leaving.actors[l->nbrhd];
    struct sim_host *host = &leaving.s->hosts[host_of(first)];
    bool is_carried = l->has_leader && is_in_time(l) && first->agreed_at <= first->state.grace_end;
    bool has_agreed = is_in_time(l);
    if (tk_leave_puts_code(leaving.s->in.ranks, tk_state_code(&first->state), has_agreed,
                           is_carried)) {
        leaving.s->end.puts += l->count;
        host->codes += l->count;
    }
    uint64_t parts =
        tk_leave_parts(true, has_agreed, false) ? l->agreed_at : l->left_at + grace_of(first);
    host->clock = most_of(host->clock, parts);
}

static uint64_t left_at(const struct actor *a)
{
    return a->state.grace_end - grace_of(a);
}

static void part_all(struct simulation *s)
{
    for (uint32_t n = 0; n < s->nbrhds; n++) {
        const struct actor *a = &leaving.actors[n];
        const struct crowd *c = &leaving.crowds[n];
        uint64_t below = a->agreed_at + sim_inside(s, n);
        part(&(struct leavers){left_at(a), a->agreed_at, n, 1, false});
        s->is_late |= a->agreed_at > a->state.deadline;
        if (has_single(n))
            part(&(struct leavers){left_at(&leaving.actors[leaving.single]), below, n, 1, true});
        if (c->size)
            part(&(struct leavers){c->left_at, below, n, c->size, true});
        s->leaders[n].clock = most_of(a->clock, s->leaders[n].clock);
    }
}

/* One rank alone, or all but one. */
static void begin(struct simulation *s, bool is_alone)
{
    for (uint32_t n = 0; n < s->nbrhds; n++) {
        uint64_t now = s->leaders[n].clock;
        if ((n == leaving.single) == is_alone)
            later(now, EVENT_LEAVES, n, s->in.code, 0);
        if (!is_alone && leaving.crowds[n].size)
            later(now, EVENT_CROWD, n, s->in.code, 0);
        if (is_alone && has_single(n))
            later(now, EVENT_LEAVES, s->nbrhds, s->in.code, 0);
    }
}

int sim_leave(struct simulation *s)
{
    struct sim_event event;
    int code = 0;
    if (!leaving_open(s, s->in.exits >= 0 ? s->in.exits : s->in.late)) {
        s->has_failed = true;
        leaving_close();
        return 0;
    }
    begin(s, s->in.exits >= 0);
    while (!s->has_failed && leaving.agreed < s->nbrhds && sim_events_next(&s->events, &event))
        come(&event);
    while (sim_events_next(&s->events, &event)) /* grace periods, and notices that come too late */
        continue;
    s->is_late |= leaving.agreed < s->nbrhds;
    if (!s->is_late)
        part_all(s);
    count_messages(s);
    code = tk_state_code(&leaving.actors[0].state);
    leaving_close();
    return code;
}

void sim_get_stuck(struct simulation *s, uint32_t first, uint32_t end,
                   void (*sends)(void *object, uint32_t from, uint32_t to, uint64_t time),
                   void *object)
{
    struct sim_event event;
    if (!leaving_open(s, -1)) {
        s->has_failed = true;
        leaving_close();
        return;
    }
    leaving.stuck_at = first;
    leaving.stuck_end = end;
    leaving.sends = sends;
    leaving.object = object;
    for (uint32_t n = 0; n < s->nbrhds; n++)
        if (!is_stuck(s->host_of[n]))
            advance(&leaving.actors[n], s->leaders[n].clock + sim_inside(s, n));
    while (!s->has_failed && sim_events_next(&s->events, &event)) {
        struct actor *a = &leaving.actors[event.a];
        a->received |= UINT64_C(1) << event.b;
        advance(a, sim_compute(s, host_of(a), event.time, s->costs.message));
    }
    count_messages(s);
    leaving_close();
}
