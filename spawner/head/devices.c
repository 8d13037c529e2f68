/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing the device of several hosts; see devices.h. */
#include "config.h"

#include "devices.h"

#include <stdio.h>
#include <string.h>

/* At most this many names in a sentence; if there are more, only their number. */
enum { NAMES_MAX = 8 };

static bool devices_has_port(const struct job *job, const struct hello *h)
{
    return h->ports == HELLO_PORTS_UNKNOWN ? job->own_port : h->ports == HELLO_PORTS_ACTIVE;
}

/* The names of the hosts with or without a port. */
static void devices_list(const struct job *job, const struct hello *hello, bool with, char *text,
                         size_t size)
{
    uint32_t count = 0;
    size_t used = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < job->host_count; i++) {
        if (devices_has_port(job, &hello[i]) != with)
            continue;
        if (++count <= NAMES_MAX && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", count > 1 ? ", " : "",
                                     job->hosts[i].name);
    }
    if (count > NAMES_MAX && used < size)
        snprintf(text + used, size - used, " and %u more", count - NAMES_MAX);
}

static bool devices_one_machine(const struct job *job, const struct hello *hello)
{
    for (uint32_t i = 1; i < job->host_count; i++)
        if (!hello_same_machine(&hello[0], &hello[i]))
            return false;
    return true;
}

static enum devices_choice devices_mixed(const struct job *job, const struct hello *hello,
                                         char *text, size_t size)
{
    char with[400], without[400];

    devices_list(job, hello, true, with, sizeof(with));
    devices_list(job, hello, false, without, sizeof(without));
    snprintf(text, size, "all hosts of a job must have an active RDMA port, or none: %s %s, %s not",
             with, strchr(with, ',') ? "have one" : "has one", without);
    return DEVICES_REFUSED;
}

static enum devices_choice devices_software(const struct job *job, const struct hello *hello,
                                            char *text, size_t size)
{
    bool is_wish = job->softhca == JOB_SOFTHCA_ALWAYS;

    if (job->softhca == JOB_SOFTHCA_NEVER)
        snprintf(text, size,
                 "no host of the job has an active RDMA port, and GASNET_SOFTHCA=never forbids the "
                 "software one");
    else if (!job->softhca_env)
        snprintf(text, size,
                 "no host of the job has an active RDMA port, and libsofthca.so is not beside this "
                 "launcher (TRUNKLINE_SOFTHCA_LIB names another place)");
    else {
        bool is_one = devices_one_machine(job, hello);
        snprintf(text, size, "%s, using softhca%s%s",
                 is_wish ? "GASNET_SOFTHCA=always" : "no host of the job has an active RDMA port",
                 is_one ? "" : " over the network", is_one ? " (all hosts are one machine)" : "");
        return is_one ? DEVICES_SOFTHCA : DEVICES_PACKETS;
    }
    return DEVICES_REFUSED;
}

enum devices_choice devices_choose(const struct job *job, const struct hello *hello, char *text,
                                   size_t size)
{
    uint32_t ports = 0;

    for (uint32_t i = 0; i < job->host_count; i++)
        ports += devices_has_port(job, &hello[i]);
    if (ports == 0 || job->softhca == JOB_SOFTHCA_ALWAYS)
        return devices_software(job, hello, text, size);
    if (ports < job->host_count)
        return devices_mixed(job, hello, text, size);
    snprintf(text, size, "using the active RDMA port(s) of all %u hosts", job->host_count);
    return DEVICES_PORTS;
}
