/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libibverbs and librdmacm, loaded when they are needed. Most jobs on one host open no device, and
 * loading the two with their dependencies takes a tenth of the start-up time of hundreds of ranks
 * there. Include this instead of, or before, their headers: it gives their functions other names
 * for the linker (GCC's and clang's redefine_extname, also inside their headers' inline functions),
 * which library.c defines. A call of a function that the lists lack does not link. Fakes in unit
 * tests include this too, so they define those names. */
#ifndef TK_VERBS_LIBRARY_H
#define TK_VERBS_LIBRARY_H

#include "base/status.h"

/* f(type, name, parameters, arguments), one each: */
/* clang-format off */
#define TK_FUNCTIONS_OF_VERBS(f)                                                                 \
    f(struct ibv_device **, ibv_get_device_list, (int *count), (count))                          \
    f(void, ibv_free_device_list, (struct ibv_device **list), (list))                            \
    f(const char *, ibv_get_device_name, (struct ibv_device *device), (device))                  \
    f(struct ibv_context *, ibv_open_device, (struct ibv_device *device), (device))              \
    f(int, ibv_close_device, (struct ibv_context *context), (context))                           \
    f(int, ibv_query_device, (struct ibv_context *context, struct ibv_device_attr *attr),        \
      (context, attr))                                                                           \
    f(int, ibv_query_port,                                                                       \
      (struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr),           \
      (context, port, attr))                                                                     \
    f(int, ibv_query_pkey, (struct ibv_context *context, uint8_t port, int index, __be16 *pkey), \
      (context, port, index, pkey))                                                              \
    f(int, _ibv_query_gid_ex,                                                                    \
      (struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,  \
       uint32_t flags, size_t size),                                                             \
      (context, port, index, entry, flags, size))                                                \
    f(int, ibv_get_async_event, (struct ibv_context *context, struct ibv_async_event *event),    \
      (context, event))                                                                          \
    f(void, ibv_ack_async_event, (struct ibv_async_event *event), (event))                       \
    f(struct ibv_pd *, ibv_alloc_pd, (struct ibv_context *context), (context))                   \
    f(int, ibv_dealloc_pd, (struct ibv_pd *pd), (pd))                                            \
    f(struct ibv_mr *, ibv_reg_mr, (struct ibv_pd *pd, void *at, size_t length, int access),     \
      (pd, at, length, access))                                                                  \
    f(struct ibv_mr *, ibv_reg_mr_iova2,                                                         \
      (struct ibv_pd *pd, void *at, size_t length, uint64_t iova, unsigned access),              \
      (pd, at, length, iova, access))                                                            \
    f(int, ibv_dereg_mr, (struct ibv_mr *mr), (mr))                                              \
    f(struct ibv_ah *, ibv_create_ah, (struct ibv_pd *pd, struct ibv_ah_attr *attr),             \
      (pd, attr))                                                                                \
    f(int, ibv_destroy_ah, (struct ibv_ah *ah), (ah))                                            \
    f(struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context *context),         \
      (context))                                                                                 \
    f(int, ibv_destroy_comp_channel, (struct ibv_comp_channel *channel), (channel))              \
    f(int, ibv_get_cq_event,                                                                     \
      (struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context),                    \
      (channel, cq, context))                                                                    \
    f(void, ibv_ack_cq_events, (struct ibv_cq *cq, unsigned count), (cq, count))                 \
    f(struct ibv_cq *, ibv_create_cq,                                                            \
      (struct ibv_context *context, int depth, void *mine, struct ibv_comp_channel *channel,     \
       int vector),                                                                              \
      (context, depth, mine, channel, vector))                                                   \
    f(int, ibv_resize_cq, (struct ibv_cq *cq, int depth), (cq, depth))                           \
    f(int, ibv_destroy_cq, (struct ibv_cq *cq), (cq))                                            \
    f(struct ibv_srq *, ibv_create_srq, (struct ibv_pd *pd, struct ibv_srq_init_attr *attr),     \
      (pd, attr))                                                                                \
    f(int, ibv_destroy_srq, (struct ibv_srq *srq), (srq))                                        \
    f(struct ibv_qp *, ibv_create_qp, (struct ibv_pd *pd, struct ibv_qp_init_attr *attr),        \
      (pd, attr))                                                                                \
    f(int, ibv_modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask),               \
      (qp, attr, mask))                                                                          \
    f(int, ibv_destroy_qp, (struct ibv_qp *qp), (qp))                                            \
    f(const char *, ibv_wc_status_str, (enum ibv_wc_status status), (status))

#define TK_FUNCTIONS_OF_CM(f)                                                                 \
    f(struct rdma_event_channel *, rdma_create_event_channel, (void), ())                     \
    f(void, rdma_destroy_event_channel, (struct rdma_event_channel *channel), (channel))      \
    f(int, rdma_get_cm_event,                                                                 \
      (struct rdma_event_channel *channel, struct rdma_cm_event **event),                     \
      (channel, event))                                                                       \
    f(int, rdma_ack_cm_event, (struct rdma_cm_event *event), (event))                         \
    f(const char *, rdma_event_str, (enum rdma_cm_event_type event), (event))                 \
    f(int, rdma_create_id,                                                                    \
      (struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,             \
       enum rdma_port_space space),                                                           \
      (channel, id, context, space))                                                          \
    f(int, rdma_destroy_id, (struct rdma_cm_id *id), (id))                                    \
    f(int, rdma_bind_addr, (struct rdma_cm_id *id, struct sockaddr *address), (id, address))  \
    f(__be16, rdma_get_src_port, (struct rdma_cm_id *id), (id))                               \
    f(int, rdma_listen, (struct rdma_cm_id *id, int backlog), (id, backlog))                  \
    f(int, rdma_resolve_addr,                                                                 \
      (struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int timeout_ms),    \
      (id, from, to, timeout_ms))                                                             \
    f(int, rdma_resolve_route, (struct rdma_cm_id *id, int timeout_ms), (id, timeout_ms))     \
    f(int, rdma_init_qp_attr, (struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask),   \
      (id, attr, mask))                                                                       \
    f(int, rdma_connect, (struct rdma_cm_id *id, struct rdma_conn_param *param), (id, param)) \
    f(int, rdma_accept, (struct rdma_cm_id *id, struct rdma_conn_param *param), (id, param))  \
    f(int, rdma_reject, (struct rdma_cm_id *id, const void *data, uint8_t length),            \
      (id, data, length))                                                                     \
    f(int, rdma_establish, (struct rdma_cm_id *id), (id))

/* clang-format on */

#define TK_PRAGMA(text)                              _Pragma(#text)
#define TK_RENAME(type, name, parameters, arguments) TK_PRAGMA(redefine_extname name tk_late_##name)
TK_FUNCTIONS_OF_VERBS(TK_RENAME)
TK_FUNCTIONS_OF_CM(TK_RENAME)

#include <infiniband/verbs.h>

/* ibv_reg_dmabuf_mr(), which rdma-core has since version 34; before: NULL, errno ENOSYS. */
struct ibv_mr *tk_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                int fd, int access);

/* Loads the library, unless it is loaded. Call it before the first function of the library, while
 * one thread runs. TK_FAIL: the library is missing; that was logged. */
enum tk_status tk_verbs_library_open(void);

/* The same for a program that needs devices, but not the library: where softhca is preloaded and
 * the kernel has no device, softhca's functions suffice. */
enum tk_status tk_verbs_library_need(void);
enum tk_status tk_cm_library_open(void);

#endif
