/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_MK_*: host memory is the only memory kind, and needs no object. No state, no lock. */
#include "config.h"

#include "api/check.h"
#include "base/report.h"
#include "gasnet_mk.h"

int gex_MK_Create(gex_MK_t *mk_p, gex_Client_t client, const gex_MK_Create_args_t *args,
                  gex_Flags_t flags)
{
    (void)mk_p, (void)flags;
    if (client == GEX_CLIENT_INVALID) {
        tk_refused("gex_MK_Create: the client is GEX_CLIENT_INVALID");
        return GASNET_ERR_BAD_ARG;
    }
    tk_verbose_error("gex_MK_Create: GEX_MK_HOST is the only memory kind of this library, and "
                     "cannot be created (requested: class %d)",
                     args ? (int)args->gex_class : -1);
    return GASNET_ERR_BAD_ARG;
}

static _Noreturn void no_kind(const char *call)
{
    tk_misused(
        "%s: the argument was not made by gex_MK_Create: it is GEX_MK_HOST or GEX_MK_INVALID",
        call);
}

void gex_MK_Destroy(gex_MK_t mk, gex_Flags_t flags)
{
    (void)mk, (void)flags;
    no_kind("gex_MK_Destroy");
}

gex_Client_t gex_MK_QueryClient(gex_MK_t mk)
{
    (void)mk;
    no_kind("gex_MK_QueryClient");
}

gex_Flags_t gex_MK_QueryFlags(gex_MK_t mk)
{
    (void)mk;
    no_kind("gex_MK_QueryFlags");
}

gex_MK_Class_t gex_MK_QueryClass(gex_MK_t mk)
{
    (void)mk;
    no_kind("gex_MK_QueryClass");
}

void gex_MK_SetCData(gex_MK_t mk, const void *value)
{
    (void)mk, (void)value;
    no_kind("gex_MK_SetCData");
}

void *gex_MK_QueryCData(gex_MK_t mk)
{
    (void)mk;
    no_kind("gex_MK_QueryCData");
}
