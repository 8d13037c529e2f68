/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What trunkline_info knows of an accelerator: accelerators.c fills it in and prints it, trial.c
 * tries how HCAs reach its memory, place.c finds where it is, judge.c says what should be mended.
 */
#ifndef TRUNKLINE_INFO_ACCELERATORS_H
#define TRUNKLINE_INFO_ACCELERATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tk_kind_device;

enum { info_hcas_max = 16, info_why_max = 300 };

/* Nearest first. */
enum info_place {
    INFO_PLACE_SWITCH, /* behind one PCI switch */
    INFO_PLACE_NODE,   /* at one NUMA node */
    INFO_PLACE_SOCKET, /* at two NUMA nodes of one socket */
    INFO_PLACE_OTHER,  /* at two sockets */
    INFO_PLACE_UNKNOWN /* hwloc does not know one of them */
};

struct info_trial {
    bool works;
    int error;              /* of ibv_reg_...mr(); 0: it was not reached */
    char why[info_why_max]; /* when it failed */
};

/* How an RDMA device reaches the accelerator's memory; the same for all its ports. */
struct info_hca {
    char name[32];
    int ports;
    uint64_t used; /* bit N: port N would be used */
    enum info_place place;
    struct info_trial dmabuf, peermem;
};

struct info_accelerator {
    int gex_class;
    char text[160];       /* class, number, name and PCI place */
    uint64_t memory, bar; /* bytes; 0: unknown */
    bool has_memory;      /* memory for the trials was allocated; else why_not */
    char why_not[info_why_max];
    struct info_trial ipc;
    bool has_peer_module; /* the kernel module for peer memory is loaded */
    unsigned hca_count;
    struct info_hca hcas[info_hcas_max];
};

/* trial.c: needs name and ports of each HCA, and the opened device. */
void info_try_accelerator(struct info_accelerator *a, struct tk_kind_device *device);

/* judge.c, pure: the path of data from and to other hosts under GASNET_MK_WAY; NULL: segments can't
 * be created. */
const char *info_accelerator_path(const struct info_hca *hca, const char *way);
const char *info_place_text(enum info_place place);
void info_judge_accelerator(const struct info_accelerator *a, const char *way);

/* The library of a class was found, but lists no device. `file`: a device file of such hardware, or
 * NULL. */
void info_judge_driver(int gex_class, const char *library, const char *file, const char *why);

/* place.c: `pci` and `port` as in sysfs. The machine is loaded by hwloc at the first call. */
enum info_place info_place_of(const char *pci, const char *port);
void info_place_drop(void);

/* Bytes of the largest range of memory in a file "resource" of sysfs; 0: it can't be read. */
uint64_t info_bar_size(const char *resource);

/* files.c: device files of a class. Writes the first that exists, and the first that this user
 * can't read and write, each of `size` characters at most; empty: none. `patterns` ends with
 * NULL. */
void info_device_files(const char *const *patterns, char *first, char *denied, size_t size);
const char *const *info_device_patterns(int gex_class);
void info_judge_files(int gex_class, const char *denied);

#endif
