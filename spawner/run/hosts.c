/* SPDX-License-Identifier: BSD-3-Clause */
/* The source of the hosts; see hosts.h. Owns nothing, no lock. */
#include "config.h"

#include "batch.h"
#include "hosts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* A source that the user has named must name a host. */
static bool check_named(const struct host_list *list, char *why, size_t size)
{
    bool has_virtual = false, has_real = false;
    for (uint32_t i = 0; i < list->count; i++) {
        has_virtual |= list->hosts[i].is_virtual;
        has_real |= !list->hosts[i].is_virtual;
    }
    if (list->count == 0)
        snprintf(why, size, "%s names no host", list->origin);
    else if (has_virtual && has_real)
        snprintf(why, size, "%s names virtual hosts (=name) beside others; give one kind alone",
                 list->origin);
    return list->count > 0 && !(has_virtual && has_real);
}

static bool find_text(struct host_list *list, const char *text, const char *origin, char *why,
                      size_t size)
{
    snprintf(list->origin, sizeof(list->origin), "%s", origin);
    return host_list_read_text(list, text, origin, why, size) && check_named(list, why, size);
}

static bool find_file(struct host_list *list, const char *path, const char *origin, char *why,
                      size_t size)
{
    snprintf(list->origin, sizeof(list->origin), "%s (%s)", path, origin);
    return host_list_read_file(list, path, origin, why, size) && check_named(list, why, size);
}

bool hosts_find(struct host_list *list, const struct hosts_wish *wish, char *why, size_t size)
{
    const struct tk_settings *s = wish->settings;

    *list = (struct host_list){.keep_duplicates = s->ssh_keepdup};
    if (wish->list)
        return find_text(list, wish->list, "-H", why, size);
    if (wish->nodefile)
        return find_file(list, wish->nodefile, "--nodefile", why, size);
    if (*s->ssh_servers)
        return find_text(list, s->ssh_servers, "GASNET_SSH_SERVERS", why, size);
    if (*s->ssh_nodefile)
        return find_file(list, s->ssh_nodefile, "GASNET_SSH_NODEFILE", why, size);
    if (*s->nodefile)
        return find_file(list, s->nodefile, "GASNET_NODEFILE", why, size);
    return batch_read(list, why, size) && (!list->is_allocation || check_named(list, why, size));
}

static bool same_host_name(const char *a, const char *b)
{
    size_t n = strcspn(a, ".");
    if (strcasecmp(a, b) == 0)
        return true;
    /* One may be the short form of the other; two full names must be equal. */
    return strcspn(b, ".") == n && !strncasecmp(a, b, n) && (!a[n] || !b[n]);
}

/* The number of bytes of a numeric address; 0 if the text is not one. */
static size_t read_address(const char *text, unsigned char bytes[16])
{
    char plain[HOST_NAME_LONGEST + 1];
    snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(text, "%"), text);
    if (inet_pton(AF_INET, plain, bytes) == 1)
        return 4;
    return inet_pton(AF_INET6, plain, bytes) == 1 ? 16 : 0;
}

static bool has_address(const unsigned char *bytes, size_t length)
{
    struct ifaddrs *all;
    bool found = false;
    if (getifaddrs(&all) != 0)
        return false;
    for (struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
        const struct sockaddr *a = i->ifa_addr;
        if (a && a->sa_family == AF_INET && length == 4)
            found = !memcmp(&((const struct sockaddr_in *)a)->sin_addr, bytes, length);
        if (a && a->sa_family == AF_INET6 && length == 16)
            found = !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, bytes, length);
    }
    freeifaddrs(all);
    return found;
}

bool hosts_is_this(const char *name)
{
    char own[HOST_NAME_LONGEST + 1] = "";
    unsigned char bytes[16];
    size_t length = read_address(name, bytes);

    if (length)
        return (length == 4 && bytes[0] == 127) || has_address(bytes, length);
    if (!strcasecmp(name, "localhost"))
        return true;
    return gethostname(own, sizeof(own) - 1) == 0 && same_host_name(name, own);
}

bool hosts_only_this(const struct host_list *list)
{
    return list->count == 1 && !list->hosts[0].is_virtual && hosts_is_this(list->hosts[0].name);
}
