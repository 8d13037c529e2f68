/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an administrator should mend for memory of accelerators. Pure: facts go in, findings come
 * out. */
#include "config.h"

#include "contrib/info/accelerators.h"
#include "contrib/info/info.h"
#include "kind/kind_class.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t mega = 1u << 20;

const char *info_place_text(enum info_place place)
{
    static const char *const texts[] = {
        [INFO_PLACE_SWITCH] = "behind the same switch",
        [INFO_PLACE_NODE] = "at the same NUMA node",
        [INFO_PLACE_SOCKET] = "at another NUMA node of the socket",
        [INFO_PLACE_OTHER] = "at another socket",
        [INFO_PLACE_UNKNOWN] = "place unknown to hwloc",
    };
    return texts[place];
}

const char *info_accelerator_path(const struct info_hca *hca, const char *way)
{
    bool is_auto = !strcmp(way, "auto");
    if (hca->dmabuf.works && (is_auto || !strcmp(way, "dmabuf")))
        return "in place, by dma-buf";
    if (hca->peermem.works && (is_auto || !strcmp(way, "peermem")))
        return "in place, by peer memory";
    return strcmp(way, "dmabuf") && strcmp(way, "peermem") ? "staged through host memory" : NULL;
}

static bool is_in_place(const struct info_hca *hca, const char *way)
{
    const char *path = info_accelerator_path(hca, way);
    return path && strncmp(path, "in place", 8) == 0;
}

/* ---- how HCAs reach the memory ---- */

static bool is_unsupported(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS || error == EPROTONOSUPPORT;
}

static const char *export_remedy(int gex_class)
{
    return gex_class == TK_KIND_CUDA_UVA
               ? "install CUDA 11.7 or later with the open kernel modules of NVIDIA's driver"
           : gex_class == TK_KIND_HIP
               ? "install ROCm 5.3 or later, and a kernel with CONFIG_PCI_P2PDMA and "
                 "CONFIG_DMABUF_MOVE_NOTIFY"
               : "install a kernel whose driver of the accelerator exports dma-bufs";
}

/* The reason of the first step that failed: the export, the call of the HCA's driver, the
 * memory. */
static const char *dmabuf_remedy(const struct info_accelerator *a, const struct info_hca *hca)
{
    if (hca->dmabuf.error == 0)
        return export_remedy(a->gex_class);
    if (is_unsupported(hca->dmabuf.error))
        return "install rdma-core 34 and Linux 5.12, or later ones, if the HCA's driver has "
               "dma-bufs there";
    if (hca->dmabuf.error == ENOMEM)
        return "look whether the BAR of the accelerator is full";
    return "look into dmesg for what the HCA's driver says";
}

static const char *peer_remedy(const struct info_accelerator *a)
{
    if (a->has_peer_module)
        return "";
    return a->gex_class == TK_KIND_CUDA_UVA ? ", or load the module nvidia-peermem"
           : a->gex_class == TK_KIND_HIP
               ? ", or install the vendor's InfiniBand drivers, which take amdgpu's peer memory"
               : "";
}

static void find_unreached(const struct info_accelerator *a, const struct info_hca *hca,
                           const char *way)
{
    bool is_error = !info_accelerator_path(hca, way);
    info_finding(
        is_error ? INFO_WRONG : INFO_ADVICE,
        "%s: %s, because %s reaches its memory neither by dma-buf (%s) nor by peer memory "
        "(%s%s); %s%s",
        a->text,
        is_error ? "gex_Segment_Create() fails under this GASNET_MK_WAY"
                 : "data from and to other hosts is staged through host memory",
        hca->name, hca->dmabuf.works ? "which is not asked for" : hca->dmabuf.why,
        hca->peermem.works ? "which is not asked for" : hca->peermem.why,
        a->has_peer_module || a->gex_class != TK_KIND_CUDA_UVA ? ""
                                                               : "; nvidia-peermem is not loaded",
        hca->dmabuf.works || hca->peermem.works ? "set GASNET_MK_WAY=auto" : dmabuf_remedy(a, hca),
        hca->dmabuf.works || hca->peermem.works ? "" : peer_remedy(a));
}

/* A segment is registered with all HCAs that are used, or with none. */
static void judge_reach(const struct info_accelerator *a, const char *way)
{
    unsigned used = 0;
    for (unsigned i = 0; i < a->hca_count; i++) {
        const struct info_hca *hca = &a->hcas[i];
        used += hca->used != 0;
        if (hca->used == 0 || is_in_place(hca, way))
            continue;
        if (!strcmp(way, "ipc") || !strcmp(way, "staged"))
            info_finding(INFO_GOOD, "%s: data is staged, as GASNET_MK_WAY=%s asks", a->text, way);
        else
            find_unreached(a, hca, way);
        return;
    }
    if (used > 0)
        info_finding(INFO_GOOD, "%s: the HCAs in use access its memory in place", a->text);
}

/* ---- the rest ---- */

static void judge_bar(const struct info_accelerator *a)
{
    if (a->bar == 0 || a->memory == 0)
        return;
    if (a->bar >= a->memory)
        info_finding(INFO_GOOD, "%s: its BAR covers all of its memory", a->text);
    else
        info_finding(INFO_ADVICE,
                     "%s: its BAR has %" PRIu64 " MiB for %" PRIu64 " MiB of memory: segments that "
                     "HCAs access must fit, and others are staged; enable Above 4G Decoding and "
                     "Resizable BAR in the firmware's setup",
                     a->text, a->bar / mega, a->memory / mega);
}

/* The nearest HCA among those in use, or among those not in use. */
static const struct info_hca *nearest(const struct info_accelerator *a, bool is_used)
{
    const struct info_hca *best = NULL;
    for (unsigned i = 0; i < a->hca_count; i++)
        if ((a->hcas[i].used != 0) == is_used && (!best || a->hcas[i].place < best->place))
            best = &a->hcas[i];
    return best;
}

static void judge_place(const struct info_accelerator *a)
{
    const struct info_hca *used = nearest(a, true), *unused = nearest(a, false);
    if (!used || used->place != INFO_PLACE_OTHER)
        return;
    if (unused && unused->place < INFO_PLACE_OTHER)
        info_finding(INFO_ADVICE,
                     "%s: the HCA in use (%s) is at another socket, and %s is nearer: bind ranks "
                     "beside their accelerator and set GASNET_IBV_PORTS_TYPE=auto, or choose %s "
                     "with GASNET_IBV_PORTS",
                     a->text, used->name, unused->name, unused->name);
    else
        info_finding(INFO_ADVICE,
                     "%s: all HCAs (%s) are at another socket: transfers cross the link between "
                     "the sockets; put one of the cards into a slot of the other socket",
                     a->text, used->name);
}

static void judge_ipc(const struct info_accelerator *a)
{
    if (!a->ipc.works && a->gex_class != TK_KIND_ZE)
        info_finding(INFO_ADVICE,
                     "%s: data between ranks of a host is staged through host memory, because the "
                     "driver gives no handle of its memory to other processes (%s); containers "
                     "need the host's IPC and PID namespaces for it",
                     a->text, a->ipc.why);
}

void info_judge_accelerator(const struct info_accelerator *a, const char *way)
{
    if (!a->has_memory) {
        info_finding(INFO_WRONG,
                     "%s: it can't be used (%s): gex_MK_Create() or gex_Segment_Create() fails; "
                     "look at it with the vendor's tool",
                     a->text, a->why_not);
        return;
    }
    judge_reach(a, way);
    judge_bar(a);
    judge_place(a);
    judge_ipc(a);
}

void info_judge_driver(int gex_class, const char *library, const char *file, const char *why)
{
    if (file)
        info_finding(INFO_WRONG,
                     "%s and %s are there, but no device can be used (%s): gex_MK_Create() fails; "
                     "%s tells more, and library and kernel module must be of one release",
                     library, file, why,
                     gex_class == TK_KIND_CUDA_UVA ? "nvidia-smi"
                     : gex_class == TK_KIND_HIP    ? "rocminfo"
                                                   : "clinfo");
}
