/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Level Zero's start, devices and contexts. Owns the handles of devices and the list of contexts.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/softgpu/device/place.h"
#include "contrib/softgpu/ze/ze_entry.h"

static struct _ze_device_handle_t devices[SGPU_DEVICES_MAX];
static ze_context_handle_t contexts;

/* ---- how calls begin and end ---- */

ze_result_t ze_result(int status)
{
    switch (status) {
    case SGPU_OK:
        return ZE_RESULT_SUCCESS;
    case SGPU_NOT_READY:
        return ZE_RESULT_NOT_READY;
    case SGPU_INVALID_VALUE:
    case SGPU_INVALID_DEVICE:
    case SGPU_NOT_FOUND:
        return ZE_RESULT_ERROR_INVALID_ARGUMENT;
    case SGPU_OUT_OF_MEMORY:
        return ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
    case SGPU_NOT_INITIALIZED:
    case SGPU_NO_DEVICE:
        return ZE_RESULT_ERROR_UNINITIALIZED;
    case SGPU_INVALID_HANDLE:
    case SGPU_INVALID_CONTEXT:
    case SGPU_CONTEXT_DESTROYED:
        return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    case SGPU_NOT_SUPPORTED:
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
    case SGPU_ECC:
    case SGPU_ILLEGAL_ADDRESS:
    case SGPU_LAUNCH_FAILED:
        return ZE_RESULT_ERROR_DEVICE_LOST;
    default:
        return ZE_RESULT_ERROR_UNKNOWN;
    }
}

ze_result_t ze_enter(void)
{
    int status = sgpu_started();

    if (status == SGPU_OK)
        sgpu_enter();
    return ze_result(status);
}

ze_result_t ze_leave(int status)
{
    return ze_result(sgpu_leave(status));
}

int ze_device(ze_device_handle_t handle)
{
    return handle >= devices && handle < devices + sgpu_config.devices ? handle->number : -1;
}

ze_device_handle_t ze_device_handle(int number)
{
    return &devices[number];
}

bool ze_context_known(ze_context_handle_t handle)
{
    for (ze_context_handle_t c = contexts; c; c = c->next)
        if (c == handle)
            return true;
    return false;
}

int ze_context_of(ze_context_handle_t handle, int device, struct sgpu_context **c)
{
    if (!ze_context_known(handle) || device < 0)
        return SGPU_INVALID_HANDLE;
    if (!handle->of[device])
        handle->of[device] = sgpu_context_create(device, 0);
    *c = handle->of[device];
    return *c ? sgpu_context_check(*c) : SGPU_OUT_OF_MEMORY;
}

bool ze_context_holds(ze_context_handle_t handle, const struct sgpu_memory *m)
{
    return m && m->context && handle->of[m->device] == m->context;
}

/* ---- start ---- */

ze_result_t zeInit(uint32_t flags)
{
    int status = flags <= 1 ? sgpu_start() : SGPU_INVALID_VALUE;

    for (int i = 0; i < SGPU_DEVICES_MAX; i++)
        devices[i].number = i;
    return ze_result(status);
}

/* softgpu has one driver; its handle is the table of devices. */
ze_result_t zeDriverGet(uint32_t *pCount, ze_driver_handle_t *phDrivers)
{
    int status = sgpu_started();

    if (status != SGPU_OK || !pCount)
        return status != SGPU_OK ? ze_result(status) : ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (*pCount > 0 && phDrivers)
        phDrivers[0] = (ze_driver_handle_t)(void *)devices;
    *pCount = 1;
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGet(ze_driver_handle_t hDriver, uint32_t *pCount, ze_device_handle_t *phDevices)
{
    uint32_t all = (uint32_t)sgpu_config.devices;
    int status = sgpu_started();

    if (status != SGPU_OK || (void *)hDriver != (void *)devices)
        return status != SGPU_OK ? ze_result(status) : ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!pCount)
        return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
    if (*pCount == 0 || *pCount > all)
        *pCount = all;
    for (uint32_t i = 0; phDevices && i < *pCount; i++)
        phDevices[i] = &devices[i];
    return ZE_RESULT_SUCCESS;
}

/* ---- devices ---- */

/* Device queries need no lock: the properties of a device never change. */
static ze_result_t check(ze_device_handle_t handle, const void *out)
{
    int status = sgpu_started();

    if (status != SGPU_OK)
        return ze_result(status);
    return ze_device(handle) < 0 ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE
           : !out                ? ZE_RESULT_ERROR_INVALID_NULL_POINTER
                                 : ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t hDevice,
                                  ze_device_properties_t *pDeviceProperties)
{
    ze_result_t result = check(hDevice, pDeviceProperties);
    ze_device_properties_t *p = pDeviceProperties;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    *p = (ze_device_properties_t){.stype = p->stype,
                                  .pNext = p->pNext,
                                  .type = ZE_DEVICE_TYPE_GPU,
                                  .maxMemAllocSize = sgpu_config.memory,
                                  .maxHardwareContexts = 1024,
                                  .timerResolution = 1};
    sgpu_device_uuid(p->uuid.id, hDevice->number);
    sgpu_device_name(p->name, sizeof p->name, hDevice->number);
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDevicePciGetPropertiesExt(ze_device_handle_t hDevice,
                                        ze_pci_ext_properties_t *pPciProperties)
{
    ze_result_t result = check(hDevice, pPciProperties);

    if (result != ZE_RESULT_SUCCESS)
        return result;
    pPciProperties->address = (ze_pci_address_ext_t){
        SGPU_PCI_DOMAIN, (uint32_t)(SGPU_PCI_BUS + hDevice->number), SGPU_PCI_SLOT, 0};
    pPciProperties->maxSpeed = (ze_pci_speed_ext_t){-1, -1, -1}; /* unknown */
    return ZE_RESULT_SUCCESS;
}

ze_result_t zeDeviceCanAccessPeer(ze_device_handle_t hDevice, ze_device_handle_t hPeerDevice,
                                  ze_bool_t *value)
{
    ze_result_t result = check(hDevice, value);

    if (result == ZE_RESULT_SUCCESS)
        result = check(hPeerDevice, value);
    if (result == ZE_RESULT_SUCCESS)
        *value = 1;
    return result;
}

/* ---- contexts ---- */

ze_result_t zeContextCreate(ze_driver_handle_t hDriver, const ze_context_desc_t *desc,
                            ze_context_handle_t *phContext)
{
    ze_result_t result = ze_enter();
    ze_context_handle_t c;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    if ((void *)hDriver != (void *)devices || !desc || !phContext)
        return ze_leave(hDriver ? SGPU_INVALID_VALUE : SGPU_INVALID_HANDLE);
    c = calloc(1, sizeof *c);
    if (!c)
        return ze_leave(SGPU_OUT_OF_MEMORY);
    c->next = contexts;
    *phContext = contexts = c;
    return ze_leave(SGPU_OK);
}

ze_result_t zeContextDestroy(ze_context_handle_t hContext)
{
    ze_result_t result = ze_enter();
    ze_context_handle_t *at = &contexts;

    if (result != ZE_RESULT_SUCCESS)
        return result;
    if (!ze_context_known(hContext))
        return ze_leave(SGPU_INVALID_HANDLE);
    while (*at != hContext)
        at = &(*at)->next;
    *at = hContext->next;
    for (int i = 0; i < SGPU_DEVICES_MAX; i++)
        if (hContext->of[i])
            sgpu_context_end(hContext->of[i]);
    ze_dmabuf_forget(hContext, 0);
    free(hContext);
    return ze_leave(SGPU_OK);
}
