/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The accelerators that a process sees, by the tables of conduit/kind, and how data travels between
 * each of them and each port. The vendors' libraries are opened here: without one nothing is
 * printed. No state but the list of RDMA devices. */
#include "config.h"

#include "base/segment_mode.h"
#include "contrib/info/accelerators.h"
#include "contrib/info/info.h"
#include "kind/kind.h"
#include "settings/settings.h"
#include "transport/verbs/library.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { devices_max = 64, path_max = 256 };

static struct info_hca hcas[info_hcas_max];
static unsigned hca_count;
static bool has_section;

static void begin_section(void)
{
    if (!has_section)
        info_section("Accelerators");
    has_section = true;
}

/* ---- facts ---- */

static void add_hca(struct ibv_device *device)
{
    struct info_hca *hca = &hcas[hca_count];
    struct ibv_device_attr attr;
    struct ibv_context *context = ibv_open_device(device);
    *hca = (struct info_hca){.ports = 0};
    snprintf(hca->name, sizeof(hca->name), "%s", ibv_get_device_name(device));
    if (context && ibv_query_device(context, &attr) == 0)
        hca->ports = attr.phys_port_cnt;
    for (int port = 1; port <= hca->ports && port < 64; port++)
        hca->used |= (uint64_t)info_port_is_used(hca->name, port) << port;
    hca_count += hca->ports > 0;
    if (context)
        ibv_close_device(context);
}

static void find_hcas(void)
{
    int count = 0;
    struct ibv_device **list =
        tk_verbs_library_open() == TK_OK ? ibv_get_device_list(&count) : NULL;
    hca_count = 0;
    for (int i = 0; list && i < count && hca_count < info_hcas_max; i++)
        add_hca(list[i]);
    if (list)
        ibv_free_device_list(list);
}

static bool has_peer_module(int gex_class)
{
    if (gex_class == TK_KIND_CUDA_UVA)
        return access("/sys/module/nvidia_peermem", F_OK) == 0 ||
               access("/sys/module/nv_peer_mem", F_OK) == 0;
    return gex_class == TK_KIND_HIP && access("/sys/kernel/mm/memory_peers/amdkfd", F_OK) == 0;
}

static void gather(struct info_accelerator *a, struct tk_kind_device *device)
{
    char resource[path_max];
    const char *pci = device->facts.pci;
    tk_kind_device_text(device, a->text, sizeof(a->text));
    a->memory = device->class->total ? device->class->total(device) : 0;
    snprintf(resource, sizeof(resource), "/sys/bus/pci/devices/%s/resource", pci);
    a->bar = *pci ? info_bar_size(resource) : 0;
    a->has_peer_module = has_peer_module(a->gex_class);
    memcpy(a->hcas, hcas, sizeof(hcas));
    a->hca_count = hca_count;
    for (unsigned i = 0; i < a->hca_count; i++)
        a->hcas[i].place = info_place_of(pci, a->hcas[i].name);
    info_try_accelerator(a, device);
}

/* ---- output ---- */

static void print_trial(const char *name, const struct info_trial *trial, const char *more)
{
    if (!trial->works)
        info_fact("", "  %s: %s%s", name, trial->why, more);
}

/* Says what is missing for a better path, if a better one exists. */
static void print_hca(const struct info_accelerator *a, const struct info_hca *hca)
{
    const char *path = info_accelerator_path(hca, tk_settings.mk_way);
    for (int port = 1; port <= hca->ports; port++)
        info_fact("", "%s:%d: %s; %s%s", hca->name, port, info_place_text(hca->place),
                  path ? path : "refused", hca->used >> port & 1 ? "" : " (a port not in use)");
    print_trial("dma-buf", &hca->dmabuf, "");
    if (!hca->dmabuf.works)
        print_trial("peer memory", &hca->peermem,
                    a->has_peer_module || a->gex_class != TK_KIND_CUDA_UVA
                        ? ""
                        : "; nvidia-peermem is not loaded");
}

static void print_size(const struct info_accelerator *a)
{
    const uint64_t mega = 1u << 20;
    char memory[40] = "size unknown", bar[40] = "unknown";
    if (a->memory)
        snprintf(memory, sizeof(memory), "%" PRIu64 " MiB", a->memory / mega);
    if (a->bar)
        snprintf(bar, sizeof(bar), "%" PRIu64 " MiB", a->bar / mega);
    info_fact("", "memory %s, BAR %s", memory, bar);
}

static void print_accelerator(const struct info_accelerator *a)
{
    bool is_ipc = a->ipc.works && strcmp(tk_settings.mk_way, "staged") != 0;
    info_fact("accelerator", "%s", a->text);
    print_size(a);
    if (!a->has_memory)
        return;
    info_fact("", "ranks of this host: %s", is_ipc ? "by IPC" : "staged through host memory");
    print_trial("IPC", &a->ipc, "");
    for (unsigned i = 0; i < a->hca_count; i++)
        print_hca(a, &a->hcas[i]);
}

/* ---- */

static void look_at(const struct tk_kind_args *args)
{
    struct info_accelerator a = {.gex_class = args->gex_class};
    struct tk_kind_why why;
    struct tk_kind_device *device = tk_kind_device_get(args, &why);
    if (device) {
        gather(&a, device);
        tk_kind_device_put(device);
    } else {
        snprintf(a.text, sizeof(a.text), "%s device %d", tk_kind_class_of(args->gex_class)->name,
                 args->ordinal);
        snprintf(a.why_not, sizeof(a.why_not), "%s", why.text);
    }
    print_accelerator(&a);
    info_judge_accelerator(&a, tk_settings.mk_way);
}

/* A library without a device is normal on login nodes. */
static void say_none(const struct tk_kind_class *class, const char *file, const char *why)
{
    info_fact(class->name, "%s, no device: %s", class->library, why);
    info_judge_driver(class->gex_class, class->library, *file ? file : NULL, why);
}

static void look_at_class(const struct tk_kind_class *class)
{
    static struct tk_kind_args args[devices_max];
    struct tk_kind_why why = {"it lists none"};
    char first[path_max], denied[path_max];
    bool is_loaded;
    int count = class->list(args, devices_max, &is_loaded, &why);
    if (!is_loaded)
        return;
    begin_section();
    info_device_files(info_device_patterns(class->gex_class), first, denied, sizeof(first));
    if (*denied)
        info_judge_files(class->gex_class, denied);
    if (count <= 0)
        say_none(class, *denied ? "" : first, why.text);
    else if (hca_count == 0)
        find_hcas();
    for (int i = 0; i < count; i++)
        look_at(&args[i]);
}

void info_accelerators(void)
{
    for (int gex_class = TK_KIND_HOST + 1; gex_class < TK_KIND_NUMBERS && !tk_is_everything;
         gex_class++)
        if (tk_kind_class_of(gex_class))
            look_at_class(tk_kind_class_of(gex_class));
    info_place_drop();
}
