/* SPDX-License-Identifier: BSD-3-Clause
 *
 * softhca topology: an hwloc file of an imaginary machine, in which the simulated HCAs are attached
 * where the user wants. hwloc makes the machine from a short description but has no call to add I/O
 * objects: they are inserted into its XML, and the result is loaded and checked before it is
 * written. Owns the list of places; one thread, no lock. */
#include "config.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum { max_hcas = 16 };

/* One --hca softhcaN=numa:K or =pack:K. */
struct place {
    int hca, index;
    hwloc_obj_type_t type;
    hwloc_uint64_t parent; /* gp_index of its parent object */
};

static struct place places[max_hcas];
static size_t n_places;

static bool take_place(const char *text)
{
    struct place p = {.type = HWLOC_OBJ_NUMANODE};
    char where[8] = "";
    int used = 0;

    if (sscanf(text, "softhca%2d=%4[a-z]:%4d%n", &p.hca, where, &p.index, &used) != 3 ||
        text[used] || p.hca < 0 || p.hca >= max_hcas || p.index < 0 ||
        (strcmp(where, "numa") != 0 && strcmp(where, "pack") != 0)) {
        log_error(0, "--hca %s: not softhcaN=numa:K or softhcaN=pack:K, N from 0 to %d", text,
                  max_hcas - 1);
        return false;
    }
    if (where[0] == 'p')
        p.type = HWLOC_OBJ_PACKAGE;
    for (size_t i = 0; i < n_places; i++)
        if (places[i].hca == p.hca) {
            log_error(0, "--hca %s: softhca%d has a place already", text, p.hca);
            return false;
        }
    places[n_places++] = p;
    return true;
}

/* ---- hwloc ---- */

static hwloc_topology_t topology_load(int (*set)(hwloc_topology_t, const void *, size_t),
                                      const void *from, size_t n)
{
    hwloc_topology_t t;

    if (hwloc_topology_init(&t) != 0)
        return NULL;
    hwloc_topology_set_io_types_filter(t, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (set(t, from, n) == 0 && hwloc_topology_load(t) == 0)
        return t;
    hwloc_topology_destroy(t);
    return NULL;
}

static int set_synthetic(hwloc_topology_t t, const void *text, size_t n)
{
    (void)n;
    return hwloc_topology_set_synthetic(t, text);
}

static int set_xml(hwloc_topology_t t, const void *text, size_t n)
{
    /* Its length includes the terminating 0. */
    return hwloc_topology_set_xmlbuffer(t, text, (int)n + 1);
}

static hwloc_obj_t ordinary(hwloc_obj_t o)
{
    while (o && hwloc_obj_type_is_memory(o->type))
        o = o->parent;
    return o;
}

static int find_parents(hwloc_topology_t t)
{
    for (size_t i = 0; i < n_places; i++) {
        struct place *p = &places[i];
        hwloc_obj_t o = hwloc_get_obj_by_type(t, p->type, (unsigned)p->index);
        const char *what = p->type == HWLOC_OBJ_NUMANODE ? "NUMA nodes" : "packages";

        if (!o)
            return log_error(EXIT_USAGE, "softhca%d: the machine has %d %s, there is no number %d",
                             p->hca, hwloc_get_nbobjs_by_type(t, p->type), what, p->index);
        p->parent = ordinary(o)->gp_index;
    }
    return 0;
}

/* ---- XML ---- */

static hwloc_uint64_t highest(hwloc_obj_t o)
{
    hwloc_uint64_t most = o->gp_index;

    for (hwloc_obj_t c = o->first_child; c; c = c->next_sibling)
        most = highest(c) > most ? highest(c) : most;
    for (hwloc_obj_t c = o->memory_first_child; c; c = c->next_sibling)
        most = highest(c) > most ? highest(c) : most;
    return most;
}

/* A host bridge of its own for each HCA, as in large machines; then a PCI device of class 0207
 * (InfiniBand) and the OS device that the kernel would create for it. */
static void print_hca(FILE *out, const struct place *p, hwloc_uint64_t id)
{
    int bus = 0x10 + p->hca;

    fprintf(out,
            "<object type=\"Bridge\" gp_index=\"%llu\" bridge_type=\"0-1\" depth=\"0\" "
            "bridge_pci=\"0000:[%02x-%02x]\">\n"
            "<object type=\"PCIDev\" gp_index=\"%llu\" pci_busid=\"0000:%02x:00.0\" "
            "pci_type=\"0207 [0000:0001] [0000:0001] 00\" pci_link_speed=\"0.000000\">\n"
            "<object type=\"OSDev\" gp_index=\"%llu\" name=\"softhca%d\" osdev_type=\"3\"/>\n"
            "</object>\n</object>\n",
            (unsigned long long)id, bus, bus, (unsigned long long)id + 1, bus,
            (unsigned long long)id + 2, p->hca);
}

static void print_hcas_of(FILE *out, hwloc_uint64_t parent, hwloc_uint64_t free_id)
{
    for (size_t i = 0; i < n_places; i++)
        if (places[i].parent == parent)
            print_hca(out, &places[i], free_id + 3 * i);
}

static hwloc_uint64_t id_of(const char *tag, size_t n)
{
    static const char key[] = " gp_index=\"";
    const char *at = memmem(tag, n, key, sizeof key - 1);

    return at ? strtoull(at + sizeof key - 1, NULL, 10) : 0;
}

/* Copies the XML and adds the HCAs as the last children of their parents. */
static void insert(FILE *out, const char *xml, hwloc_uint64_t free_id)
{
    hwloc_uint64_t stack[64];
    size_t depth = 0;

    while (*xml) {
        const char *end = strchr(xml, '>');
        size_t n = end ? (size_t)(end - xml) + 1 : strlen(xml);
        const char *tag = memchr(xml, '<', n);

        /* Between the tags is white space only; hwloc escapes ">" in values. */
        if (tag && strncmp(tag, "</object", 8) == 0 && depth > 0)
            print_hcas_of(out, stack[--depth], free_id);
        fwrite(xml, 1, n, out);
        if (tag && strncmp(tag, "<object ", 8) == 0 && end && end[-1] != '/' && depth < 64)
            stack[depth++] = id_of(tag, n - (size_t)(tag - xml));
        xml += n;
    }
}

static char *make_xml(hwloc_topology_t t, size_t *n)
{
    hwloc_uint64_t free_id = highest(hwloc_get_root_obj(t)) + 1;
    char *plain, *full = NULL;
    int length;
    FILE *out;

    if (hwloc_topology_export_xmlbuffer(t, &plain, &length, 0) != 0)
        return NULL;
    out = open_memstream(&full, n);
    if (out) {
        insert(out, plain, free_id);
        fclose(out);
    }
    hwloc_free_xmlbuffer(t, plain);
    return full;
}

/* ---- the check ---- */

static hwloc_obj_t find_device(hwloc_topology_t t, int hca)
{
    hwloc_obj_t o = NULL;
    char name[16];

    snprintf(name, sizeof name, "softhca%d", hca);
    while ((o = hwloc_get_next_osdev(t, o)))
        if (o->name && strcmp(o->name, name) == 0 &&
            o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
            break;
    return o;
}

static bool hangs_right(hwloc_topology_t t)
{
    for (size_t i = 0; i < n_places; i++) {
        hwloc_obj_t o = find_device(t, places[i].hca);
        hwloc_obj_t above = o ? hwloc_get_non_io_ancestor_obj(t, o) : NULL;

        if (!above || above->gp_index != places[i].parent)
            return false;
    }
    return true;
}

static int write_checked(const char *file, const char *xml, size_t n)
{
    hwloc_topology_t t = topology_load(set_xml, xml, n);
    bool good = t && hangs_right(t);
    FILE *out;

    if (t)
        hwloc_topology_destroy(t);
    if (!good)
        return log_error(EXIT_FAILED,
                         "this hwloc (%s) does not read the HCAs back as they were "
                         "written",
                         HWLOC_VERSION);
    if (!file || strcmp(file, "-") == 0) {
        fwrite(xml, 1, n, stdout);
        return 0;
    }
    out = fopen(file, "we");
    if (!out)
        return log_error(EXIT_FAILED, "%s: %s", file, strerror(errno));
    fwrite(xml, 1, n, out);
    good = !ferror(out);
    if (fclose(out) != 0 || !good)
        return log_error(EXIT_FAILED, "%s: %s", file, strerror(errno));
    return 0;
}

static int make(const char *synthetic, const char *file)
{
    hwloc_topology_t t = topology_load(set_synthetic, synthetic, 0);
    int status;
    char *xml;
    size_t n;

    if (!t)
        return log_error(EXIT_USAGE, "--synthetic '%s': hwloc makes no machine of it", synthetic);
    status = find_parents(t);
    if (status == 0) {
        xml = make_xml(t, &n);
        status = xml ? write_checked(file, xml, n) : log_error(EXIT_FAILED, "hwloc makes no XML");
        free(xml);
    }
    hwloc_topology_destroy(t);
    return status;
}

static int run_topology(const struct subcommand *self, int argc, char **argv)
{
    const char *synthetic = NULL, *file = NULL;
    const struct option_spec options[] = {{"synthetic", &synthetic, NULL, NULL},
                                          {"hca", NULL, NULL, take_place},
                                          {"output", &file, NULL, NULL},
                                          {0}};
    char **operands;
    int n;

    /* -o is the usual name of such an option. */
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-o") == 0)
            argv[i] = "--output";
    n = options_read(self, options, false, argc, argv, &operands);
    if (n < 0)
        return -1 - n;
    if (n > 0)
        return log_error(EXIT_USAGE, "topology takes no argument, but there is '%s'", operands[0]);
    if (!synthetic)
        return log_error(EXIT_USAGE, "topology needs --synthetic; see softhca topology --help");
    if (n_places == 0)
        return log_error(EXIT_USAGE, "topology needs --hca; see softhca topology --help");
    return make(synthetic, file);
}

const struct subcommand subcommand_topology = {
    "topology",
    "usage: softhca topology --synthetic TEXT --hca softhcaN=numa:K ... [-o FILE]\n"
    "Makes an hwloc file (HWLOC_XMLFILE, or softhca run --topology) of a machine with HCAs at\n"
    "the places you name.\n"
    "  --synthetic TEXT  the machine, as hwloc describes it: \"pack:2 numa:1 core:4 pu:1\"\n"
    "  --hca softhcaN=numa:K, softhcaN=pack:K\n"
    "                    a place for an HCA: NUMA node or package number K; once for each\n"
    "  -o, --output FILE where to write (standard output)\n",
    run_topology,
};
