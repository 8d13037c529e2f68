/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_MK_*: kinds of memory of devices, which conduit/kind opens. Host memory needs no object. No
 * lock: conduit/kind counts who uses a device. */
#include "config.h"

#include <stdlib.h>

#include "api/check.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "gasnet_mk.h"
#include "kind/kind.h"
#include "kind_rma/kind_open.h"
#include "settings/settings.h"
#include "team/objects.h"

_Static_assert((int)GEX_MK_CLASS_HOST == (int)TK_KIND_HOST &&
                   (int)GEX_MK_CLASS_CUDA_UVA == (int)TK_KIND_CUDA_UVA &&
                   (int)GEX_MK_CLASS_HIP == (int)TK_KIND_HIP &&
                   (int)GEX_MK_CLASS_ZE == (int)TK_KIND_ZE,
               "conduit/kind has the interface's numbers of classes");

static bool are_arguments(gex_Client_t client, gex_MK_t *mk_p, const gex_MK_Create_args_t *args,
                          gex_Flags_t flags)
{
    if (client == GEX_CLIENT_INVALID)
        tk_refused("gex_MK_Create: the client is GEX_CLIENT_INVALID");
    else if (client != &tk_client)
        tk_refused("gex_MK_Create: %p is not the client of gex_Client_Init", (void *)client);
    else if (!mk_p || !args)
        tk_refused("gex_MK_Create: %s is NULL", mk_p ? "args" : "mk_p");
    else if (flags != 0 || args->gex_flags != 0)
        tk_refused("gex_MK_Create: flags are 0x%x and args->gex_flags 0x%llx, not 0", flags,
                   (unsigned long long)args->gex_flags);
    else
        return true;
    return false;
}

static bool is_class(int gex_class)
{
    if (tk_is_everything)
        tk_verbose_error("gex_MK_Create: this library has segments EVERYTHING, where an address "
                         "does not say whose memory it is: use one with segments FAST or LARGE");
    else if (gex_class == GEX_MK_CLASS_HOST)
        tk_verbose_error("gex_MK_Create: class HOST can't be created: its kind is GEX_MK_HOST");
    else if (!tk_kind_class_of(gex_class))
        tk_verbose_error("gex_MK_Create: class %d is %s", gex_class,
                         gex_class > TK_KIND_HOST && gex_class < TK_KIND_NUMBERS
                             ? "left out of this library by its configure (--disable-kind-...)"
                             : "unknown");
    else
        return true;
    return false;
}

static bool has_handles(const gex_MK_Create_args_t *args)
{
    if (args->gex_class != GEX_MK_CLASS_ZE ||
        (args->gex_args.gex_class_ze.gex_zeDevice && args->gex_args.gex_class_ze.gex_zeContext))
        return true;
    tk_verbose_error("gex_MK_Create: class ZE: gex_zeDevice and gex_zeContext must not be NULL");
    return false;
}

static struct tk_kind_args device_of(const gex_MK_Create_args_t *args)
{
    struct tk_kind_args device = {.gex_class = (int)args->gex_class, .ordinal = -1};
    switch (args->gex_class) {
    case GEX_MK_CLASS_CUDA_UVA:
        device.ordinal = args->gex_args.gex_class_cuda_uva.gex_CUdevice;
        break;
    case GEX_MK_CLASS_HIP:
        device.ordinal = args->gex_args.gex_class_hip.gex_hipDevice;
        break;
    case GEX_MK_CLASS_ZE:
        device.ze_device = args->gex_args.gex_class_ze.gex_zeDevice;
        device.ze_context = args->gex_args.gex_class_ze.gex_zeContext;
        device.ze_memory_ordinal = args->gex_args.gex_class_ze.gex_zeMemoryOrdinal;
        break;
    case GEX_MK_CLASS_HOST:
        break;
    }
    return device;
}

/* NULL: no such device or no staging buffers, which was printed. */
static struct tk_kind_device *open_device(const gex_MK_Create_args_t *args)
{
    const struct tk_kind_args place = device_of(args);
    struct tk_kind_why why;
    struct tk_kind_device *device = tk_kind_device_get(&place, &why);
    if (!device) {
        tk_verbose_error("gex_MK_Create: class %s: %s", tk_kind_class_of(place.gex_class)->name,
                         why.text);
        return NULL;
    }
    tk_report_returned(true);
    enum tk_status status = tk_staging.open ? tk_staging.open() : TK_OK;
    tk_report_returned(false);
    if (status == TK_OK)
        return device;
    tk_kind_rma_put(device);
    return NULL;
}

static void print(const struct tk_kind_device *device)
{
    char text[160];
    const struct tk_kind_facts *facts = &device->facts;
    if (tk_settings.verboseenv)
        tk_log_info("memory kind of %s: dma-buf %s, IPC %s, a put over the network is %s a read",
                    tk_kind_device_text(device, text, sizeof(text)),
                    facts->has_dmabuf ? "yes" : "no", facts->has_ipc ? "yes" : "no",
                    facts->needs_flush ? "followed by" : "visible without");
}

int gex_MK_Create(gex_MK_t *mk_p, gex_Client_t client, const gex_MK_Create_args_t *args,
                  gex_Flags_t flags)
{
    if (!are_arguments(client, mk_p, args, flags) || !is_class((int)args->gex_class) ||
        !has_handles(args))
        return GASNET_ERR_BAD_ARG;
    struct tk_kind_device *device = open_device(args);
    if (!device)
        return GASNET_ERR_RESOURCE;
    struct trunkline_kind *kind = calloc(1, sizeof(*kind));
    if (!kind)
        tk_panic("out of memory for the description of a memory kind");
    *kind = (struct trunkline_kind){.client = &tk_client, .device = device};
    print(device);
    *mk_p = kind;
    return GASNET_OK;
}

static void must_be_created(const char *call, gex_MK_t mk)
{
    if (mk == GEX_MK_INVALID || mk == GEX_MK_HOST)
        tk_misused("%s: the argument was not made by gex_MK_Create: it is %s", call,
                   mk == GEX_MK_HOST ? "GEX_MK_HOST" : "GEX_MK_INVALID");
}

void gex_MK_Destroy(gex_MK_t mk, gex_Flags_t flags)
{
    must_be_created("gex_MK_Destroy", mk);
    TK_CHECK(flags == 0, "gex_MK_Destroy: flags are 0x%x, not 0", flags);
    (void)flags;
    tk_kind_rma_put(mk->device);
    free(mk);
}

gex_Client_t gex_MK_QueryClient(gex_MK_t mk)
{
    must_be_created("gex_MK_QueryClient", mk);
    return mk->client;
}

gex_Flags_t gex_MK_QueryFlags(gex_MK_t mk)
{
    must_be_created("gex_MK_QueryFlags", mk);
    return 0;
}

gex_MK_Class_t gex_MK_QueryClass(gex_MK_t mk)
{
    must_be_created("gex_MK_QueryClass", mk);
    return (gex_MK_Class_t)mk->device->class->gex_class;
}

void gex_MK_SetCData(gex_MK_t mk, const void *value)
{
    must_be_created("gex_MK_SetCData", mk);
    mk->cdata = value;
}

void *gex_MK_QueryCData(gex_MK_t mk)
{
    must_be_created("gex_MK_QueryCData", mk);
    return (void *)mk->cdata;
}
