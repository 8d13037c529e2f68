/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of the fabric as this process sees it: members, their segments, links, addresses. Owns
 * the types of peers and of the helper thread; each lock is named beside what it protects. */
#ifndef SHCA_FABRIC_H
#define SHCA_FABRIC_H

#include "fabric/objects.h"

struct shca_map {
    _Atomic uint32_t key;
    uint32_t serial; /* of the registration that it belongs to */
    char *base;      /* local address of the first byte of the region, NULL: use CMA */
    void *map;
    size_t map_bytes;
};

struct shca_peer {
    uint32_t slot, pid;
    _Atomic int dead;
    bool self;
    int liveness;                 /* write end of its liveness pipe */
    int pidfd;                    /* -1: polled by watch.c, */
    uint64_t start;               /* which recognises it by its start time */
    struct shca_peer *watch_next; /* protected by watch_lock of watch.c */
    struct shca_segment *seg;
    pthread_mutex_t lock; /* maps[] chunks, pipes */
    struct shca_map *_Atomic maps[SHCA_MRS / 256];
    struct shca_open_pipe *pipes;
    int users; /* protected by the lock of the peer table */
    struct shca_peer *next;
};

struct shca_file {
    uint64_t dev, ino;
    int fd, users;
    struct shca_file *next;
};

struct shca_helper {
    int epoll_fd, kick_fd;
    char control_mark;     /* its address identifies the control socket among the events */
    void *(*body)(void *); /* passed down by shca_engine_start() */
};

/* ---- contexts.c ---- */
/* Sends an event that concerns no object to every open context of an HCA. */
void shca_contexts_notify(int hca, enum ibv_event_type type, uint32_t port);
/* Sends port events that were late; ns until the next one, UINT64_MAX: none waits. */
uint64_t shca_contexts_run(void);
int shca_contexts_add(struct shca_context *c); /* 0 or errno */
void shca_contexts_remove(struct shca_context *c);
void shca_contexts_inherited(void);

/* True when this call is to fail with ENOMEM. */
bool shca_fault_fails(const struct ibv_context *ctx, enum shca_fault_call call);
/* Zeroed memory for the handle that a call creates; NULL if out of memory, or because of a fault
 * rule. */
static inline void *shca_handle_alloc(const struct ibv_context *ctx, enum shca_fault_call call,
                                      size_t bytes)
{
    return shca_faults() && shca_fault_fails(ctx, call) ? NULL : calloc(1, bytes);
}

/* The same for those that requests write to; for shca_lines_free(). */
static inline void *shca_queue_handle_alloc(const struct ibv_context *ctx,
                                            enum shca_fault_call call, size_t bytes)
{
    return shca_faults() && shca_fault_fails(ctx, call) ? NULL : shca_lines_alloc(bytes);
}

/* ---- directory.c ---- */
/* What a segment says of the directory that its process uses. */
struct shca_pipe shca_directory_place(void);
/* Takes the directory of a member; false: it has none, or it can't be opened. */
bool shca_directory_take(uint32_t pid, const struct shca_pipe *place);
/* Makes one; without memory or descriptors there is none, which is not an error. */
void shca_directory_make(void);
/* Whether it was taken over, and all processes that used it so far had this shape; marks it if this
 * one has another. */
bool shca_directory_is_alike(const struct shca_segment *mine);
/* Names a member from which the states of links may be copied: from then on others may take it. */
void shca_directory_settled(uint32_t slot);
bool shca_directory_find_settled(uint32_t *slot);
/* Where the segment of a slot was when somebody last looked; false: unknown. */
bool shca_directory_get(uint32_t slot, uint32_t *pid, int *fd);
void shca_directory_set(uint32_t slot, uint32_t pid, int fd);
void shca_directory_drop(void); /* when this process did not join, and in a child after fork() */

/* ---- file.c ---- */
/* Finds the shared file behind [addr, addr+length); NULL when it is private memory. */
struct shca_file *shca_file_find(const void *addr, size_t length, uint64_t *offset);
/* Whether part of it is shared memory that another process could map (memfd, file). */
bool shca_file_reachable(const void *addr, size_t length);
void shca_file_put(struct shca_file *f);

/* ---- paging.c ---- */
/* Makes the pages present as a write would, which is what pinning does; 0 or ENOMEM. */
int shca_pages_pin(uint64_t addr, uint64_t length);
/* Whether it is present and writable now; false also where the kernel can't populate. */
bool shca_page_written(const void *at);
bool shca_page_writable(const void *at);
/* A device's page fault, for a region with these rights: as on hardware, the fault of a writable
 * region needs the right to write even if the transfer only reads. False: the program could not
 * access the page either. */
bool shca_pages_fault(uint64_t addr, uint64_t length, uint32_t access);

/* ---- gid.c ---- */
uint16_t shca_lid_of(uint32_t fabric_port);
bool shca_gid_v2(uint32_t fabric_port, uint32_t index); /* a RoCE v2 entry of the GID table */
/* Also of a removed entry; zero if the row never had an address. */
void shca_gid_of(uint32_t fabric_port, uint32_t index, union ibv_gid *gid);
bool shca_gid_multicast(const union ibv_gid *gid);
/* The partition and the GID type that an end with this P_Key and path belongs to
 * (segment_layout.h). */
uint32_t shca_network_of(uint32_t fabric_port, uint32_t pkey_index, const struct ibv_ah_attr *path);
uint16_t shca_pkey_at(int hca, uint32_t index); /* 0: there is no such entry, or it is empty */
bool shca_valid_port(int hca, uint32_t port);
bool shca_valid_path(int hca, const struct ibv_ah_attr *a);
uint64_t shca_guid_of(int hca, int port);    /* host order; port 0: the node */
uint32_t shca_ipv4_of(uint32_t fabric_port); /* host order */
uint32_t shca_ipv4_route(uint32_t ipv4);     /* the fabric port with that address, or 0 */
/* The fabric port with an IP address in this GID, of SOFTHCA_GIDS; 0: none. */
uint32_t shca_address_route(const union ibv_gid *gid);
/* The fabric port that a packet of port `from` on this path reaches; 0 when there is none. */
uint32_t shca_route(uint32_t from, const struct ibv_ah_attr *attr);

/* ---- gid_rows.c ---- */
uint32_t shca_gid_count(uint32_t fabric_port); /* rows of the table, empty ones included */
bool shca_gid_empty(uint32_t fabric_port, uint32_t index); /* also: there is no such row */
/* The number of the address in a row, which is its row at start; also of a removed one; -1: it
 * never had one. The second: what SOFTHCA_GIDS says of that address. */
int shca_gid_address_at(uint32_t fabric_port, uint32_t index);
const struct shca_gid_row *shca_gid_row_at(uint32_t fabric_port, uint32_t index);
/* Empties a row, and puts an address into an empty one; both send IBV_EVENT_GID_CHANGE. NULL, or
 * why not. */
const char *shca_gid_remove(int hca, int port, uint32_t index);
const char *shca_gid_add(int hca, int port, uint32_t address, uint32_t index);

/* ---- inet.c ---- */
enum {
    SHCA_INET_GIDS = 4,     /* of a port on UDP */
    SHCA_INET_PLAIN = 4791, /* the UDP port of RoCE v2 */
    /* Ports of processes that do not have that one: below those that cards and the kernel send
     * from (49152..65535), so that the sender's port says whether it is softhca. */
    SHCA_INET_FIRST = 45056,
    SHCA_INET_LAST = 49151,
};
/* Row 0: fd53:4843:4100:1:<IPv4 address>:<port>:0, the softhca form; row 1: ::ffff:<IPv4 address>;
 * row 2: the link-local address, fe80:0:0:<port>:<interface> unless the port is 4791; row 3:
 * another IPv6 address. All zeros: the port has no such address; 1 and 3 also unless its port is
 * 4791. Without IPv4 row 0 is the first of the others. */
void shca_inet_row(const struct shca_inet own[SHCA_INET_KINDS], uint32_t row, union ibv_gid *gid);
/* The GID of one address: in the form with its port if there is one, or in the plain form. */
void shca_inet_gid(const struct shca_inet *a, bool with_port, union ibv_gid *gid);
/* The address in such a GID; port 0: the GID has no port. False: not the address of one host. */
bool shca_inet_of(const union ibv_gid *gid, struct shca_inet *out);
enum shca_inet_kind shca_inet_kind(const struct shca_inet *a);
void shca_inet_ipv4(struct shca_inet *a, uint32_t ipv4); /* host order */
bool shca_inet_loopback(const struct shca_inet *a);
bool shca_inet_own_loopback(const struct shca_inet *a); /* 127.128.0.0/9: only softhcas use it */
bool shca_inet_softhca(uint16_t port);                  /* whether a softhca sends from this port */
/* As text: a.b.c.d:port, or [x:y::z]:port. */
enum { SHCA_INET_TEXT = 56 };
const char *shca_inet_text(const struct shca_inet *a, char text[SHCA_INET_TEXT]);
uint32_t shca_inet_payload(uint32_t fabric_port); /* bytes of it in a packet */
enum ibv_mtu shca_inet_mtu(uint32_t fabric_port);

/* ---- heap.c ---- */
int shca_heap_init(uint64_t offset, uint64_t size);
uint64_t shca_heap_alloc(uint64_t bytes);       /* offset, page-aligned and zero; 0 when full */
uint64_t shca_heap_alloc_apart(uint64_t bytes); /* the same, for pages that are seldom touched */
void shca_heap_free(uint64_t offset, uint64_t bytes);
uint64_t shca_heap_used(void);

/* ---- helper.c ---- */
extern struct shca_helper shca_helper;
int shca_helper_start(void);
void shca_helper_wake(void);
void shca_helper_kick(void); /* makes it run and recompute its timers */
void shca_helper_inherited(void);

/* ---- link.c ---- */
extern _Atomic uint32_t shca_any_down; /* not 0: some port of the fabric is down */
bool shca_path_cut_slow(uint32_t from, uint32_t to);
void shca_link_join(void); /* before the helper thread runs */
bool shca_link_down(int hca, int port);
void shca_link_set(int hca, int port, bool down);
/* Pulls the cable of a port of this process, or plugs it in; an unplugged one comes back after so
 * many ns, 0: not by itself. The caller may hold a sq_lock. */
void shca_link_plug(int hca, int port, bool in, uint64_t back_after);
bool shca_link_unplugged(int hca, int port);
/* The bits of a queue pair's `network` that say whether the cable of this port is out. */
uint32_t shca_link_mark(uint32_t fabric_port);
uint64_t shca_link_run(void); /* for the helper thread: ns until the next call is due */
/* 0, or the errno for every call that needs the context: EINVAL after fork(), EIO when its HCA is
 * broken. */
int shca_unusable(struct ibv_context *ctx);

/* ---- load.c ---- */
/* Reads SOFTHCA_*; 0, or EINVAL after printing one line that names the variable. Once. */
int shca_config_load(void);

/* ---- multicast.c ---- */
bool shca_multicast_same(struct shca_mcast_sh *e, const union ibv_gid *gid, uint32_t mlid);
/* The processes that had attachments at the time of the most recent attach; returns their
 * number. */
uint32_t shca_multicast_listeners(uint16_t *slots);
void shca_multicast_drop(uint16_t slot);
void shca_multicast_inherited(void);

/* ---- peer.c ---- */
/* The live process in a member slot, attached on first use; NULL when there is none. The caller
 * releases it with shca_peer_put. */
struct shca_peer *shca_peer_get(uint32_t slot);
/* The same for messages that are never retried: a registry read before the call does not prove that
 * the peer is absent, since the program may have learned of it less than a millisecond ago. */
struct shca_peer *shca_peer_get_now(uint32_t slot);
/* The last peer that was to be attached is alive, but this process lacks a resource for it. */
bool shca_peer_refused(void);
void shca_peer_put(struct shca_peer *p);
void shca_peers_inherited(void);
/* The local address of the first byte of a peer's region; NULL: use CMA. The caller holds a
 * responder lock of the peer and has checked the key under it. */
char *shca_peer_map(struct shca_peer *p, struct shca_mr_sh *m, uint32_t key);
/* Calls look with the segment of the member in a slot, if there is one, without attaching it. */
void shca_peer_peek(uint32_t slot, void (*look)(const struct shca_segment *, void *), void *arg);
/* Writes a record of 8 bytes into a pipe of the peer. */
void shca_peer_signal(struct shca_peer *p, const struct shca_pipe *pipe, uint64_t record);
/* Makes a pipe whose write end peers can open; *read_fd blocks, the write end does not. */
int shca_pipe_make(int *read_fd, int *write_fd, struct shca_pipe *pipe);

/* ---- registry.c ---- */
/* Takes a free member slot of the fabric; 0 or errno. */
int shca_registry_claim(uint32_t *slot, int *fd);
/* Takes over the directory of a member, or makes one: before the segment is published. Others that
 * found none wait until the end of the join, successful or not. */
void shca_registry_open_directory(void);
void shca_registry_close_directory(void);
/* Publishes the location of that slot's segment. */
int shca_registry_publish(uint32_t slot, int seg_fd, int *fd);
/* Finds the process in a slot; ENOENT if the slot is free, another errno if that could not be
 * determined. */
int shca_registry_find(uint32_t slot, uint32_t *pid, int *fd);
/* Forces the next query to read the kernel's table, however recent the last read is. */
void shca_registry_stale(void);
/* Whether it is on the fabric. Also true if that cannot be determined. */
bool shca_registry_has_pid(uint32_t pid);
void shca_registry_inherited(void); /* after fork() */
/* Names that members register for as long as they live (or the descriptor is open); several may
 * hold the same one. The guard of a name is held by one process at a time. */
int shca_registry_hold(const char *word, int *fd);
bool shca_registry_held(const char *word);
int shca_registry_guard(const char *word, int *fd);
/* The slots of all live members, at most SHCA_MEMBERS; returns their number. */
uint32_t shca_registry_slots(uint16_t *slots);
/* Compares the shape of the machine with that of the live members; 0, or EINVAL after one line. */
int shca_registry_agree(void);

/* ---- segment.c ---- */
int shca_open_of(uint32_t pid, int fd, int flags); /* a descriptor of another process */
/* Maps the segment of a member; NULL if there is no member or its segment fails validation. */
struct shca_segment *shca_segment_map(uint32_t slot, uint32_t pid, int remote_fd);
/* Reads its head only. */
bool shca_segment_peek(uint32_t slot, uint32_t pid, int remote_fd, struct shca_segment *head);
/* The same of a member that has settled. What is read at once may be older than the mark "settled",
 * so it is read again once that is there. */
bool shca_segment_peek_settled(uint32_t slot, uint32_t pid, int remote_fd,
                               struct shca_segment *head);

/* ---- socket_owner.c ---- */
/* The user who made the socket of a line of /proc/net/unix; -1: the kernel doesn't say (before
 * Linux 5.3, or without CONFIG_UNIX_DIAG). */
int64_t shca_socket_owner(const char *line);

/* ---- state.c ---- */
uint32_t shca_qp_state(struct shca_qp *qp);

/* ---- watch.c ---- */
uint64_t shca_start_time(uint32_t pid); /* 0: no such process */
void shca_watch_add(struct shca_peer *p);
void shca_watch_remove(struct shca_peer *p);
uint64_t shca_watch_run(void); /* ns until the next check, UINT64_MAX: none */
void shca_watch_inherited(void);
int shca_engine_watch(struct shca_peer *p);
void shca_engine_unwatch(struct shca_peer *p); /* runs in the helper thread */

static inline uint32_t shca_fabric_port(int hca, int port)
{
    return 1u + (uint32_t)(hca * shca_config.ports + port - 1);
}

/* Whether one of these fabric ports is down. */
static inline bool shca_path_cut(uint32_t from, uint32_t to)
{
    return __builtin_expect(atomic_load_explicit(&shca_any_down, memory_order_relaxed) != 0, 0) &&
           shca_path_cut_slow(from, to);
}

static inline bool shca_is_fatal(const struct ibv_context *ctx)
{
    uint32_t fatal = atomic_load_explicit(&shca.fatal, memory_order_relaxed);

    return __builtin_expect(fatal != 0, 0) &&
           fatal >> ((const struct shca_device *)(const void *)ctx->device)->number & 1;
}

static inline struct shca_context *shca_ctx(struct ibv_context *ctx)
{
    return shca_container(ctx, struct shca_context, v.context);
}

static inline int shca_hca_of(const struct ibv_context *ctx)
{
    return ((const struct shca_device *)(const void *)ctx->device)->number;
}

static inline const struct shca_profile *shca_profile_of(const struct ibv_context *ctx)
{
    return &shca_config.device[shca_hca_of(ctx)];
}

static inline int shca_hca_at(uint32_t fabric_port)
{
    return (int)(fabric_port - 1) / shca_config.ports;
}

/* The port's number on its HCA. */
static inline int shca_port_at(uint32_t fabric_port)
{
    return (int)(fabric_port - 1) % shca_config.ports + 1;
}

static inline const struct shca_port_config *shca_port_config_at(uint32_t fabric_port)
{
    return &shca_config.port[shca_hca_at(fabric_port)][shca_port_at(fabric_port)];
}

/* Is the port addressed by GIDs, and not by a LID? */
static inline bool shca_is_ethernet(int hca)
{
    return shca_config.device[hca].link != SHCA_LINK_IB;
}

static inline bool shca_map_is_fresh(const struct shca_map *e, const struct shca_mr_sh *m,
                                     uint32_t key)
{
    return atomic_load_explicit(&e->key, memory_order_acquire) == key && e->serial == m->serial;
}

/* The mapping that shca_peer_map made for this region; NULL: it was not called yet. */
static inline char *shca_peer_mapped(struct shca_peer *p, const struct shca_mr_sh *m, uint32_t key)
{
    struct shca_map *chunk = atomic_load_explicit(&p->maps[(key >> 8) / 256], memory_order_acquire);
    const struct shca_map *e = chunk ? &chunk[(key >> 8) % 256] : NULL;

    return e && m->fd >= 0 && shca_map_is_fresh(e, m, key) ? e->base : NULL;
}

#endif
