/* SPDX-License-Identifier: BSD-3-Clause */
/* See symbols.h. */
#include "config.h"

#include "symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* An ELF file in memory; offsets in it may be wrong. */
struct image {
    const uint8_t *at;
    size_t size;
};

/* The file that is mapped at the address, and the offset in it. */
static bool find_file(pid_t pid, uint64_t address, char path[4096], uint64_t *place)
{
    char maps[64], line[4300];
    bool is_found = false;
    snprintf(maps, sizeof(maps), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(maps, "re");
    while (file && !is_found && fgets(line, sizeof(line), file)) {
        unsigned long long begin, end, offset;
        is_found = sscanf(line, "%llx-%llx %*4s %llx %*s %*s %4095[^\n]", &begin, &end, &offset,
                          path) == 4 &&
                   path[0] == '/' && address >= begin && address < end;
        if (is_found)
            *place = address - begin + offset;
    }
    if (file)
        fclose(file);
    return is_found;
}

static bool image_open(const char *path, struct image *image)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *image = (struct image){0};
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
        s.st_size >= (off_t)sizeof(Elf64_Ehdr)) {
        void *at = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED)
            *image = (struct image){at, (size_t)s.st_size};
    }
    if (fd >= 0)
        close(fd);
    const Elf64_Ehdr *head = (const void *)image->at;
    return head && !memcmp(head->e_ident, ELFMAG, SELFMAG) && head->e_ident[EI_CLASS] == ELFCLASS64;
}

/* A table of `count` entries of that size; NULL if it is not inside of the image. */
static const void *table_at(const struct image *image, uint64_t offset, uint64_t count, size_t size)
{
    bool fits = offset <= image->size && count <= (image->size - offset) / size && offset % 8 == 0;
    return fits ? image->at + offset : NULL;
}

/* The address that the linker gave to this offset of the file. */
static bool linked_address(const struct image *image, uint64_t place, uint64_t *address)
{
    const Elf64_Ehdr *head = (const void *)image->at;
    const Elf64_Phdr *parts = table_at(image, head->e_phoff, head->e_phnum, sizeof(*parts));
    for (unsigned i = 0; parts && i < head->e_phnum; i++)
        if (parts[i].p_type == PT_LOAD && place - parts[i].p_offset < parts[i].p_filesz) {
            *address = place - parts[i].p_offset + parts[i].p_vaddr;
            return true;
        }
    return false;
}

static bool name_from(const struct image *image, const Elf64_Shdr *symbols,
                      const Elf64_Shdr *strings, uint64_t address, char *name, size_t size)
{
    uint64_t count = symbols->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *s = table_at(image, symbols->sh_offset, count, sizeof(*s));
    bool fits = s && strings->sh_offset <= image->size &&
                strings->sh_size <= image->size - strings->sh_offset;
    for (uint64_t i = 0; fits && i < count; i++) {
        if (ELF64_ST_TYPE(s[i].st_info) != STT_FUNC || !s[i].st_shndx ||
            address - s[i].st_value >= s[i].st_size || s[i].st_name >= strings->sh_size)
            continue;
        const char *text = (const char *)image->at + strings->sh_offset + s[i].st_name;
        snprintf(name, size, "%.*s", (int)strnlen(text, strings->sh_size - s[i].st_name), text);
        return true;
    }
    return false;
}

/* The linker's symbol table has static functions too; a library may have only the dynamic one. */
static bool name_in(const struct image *image, uint64_t address, char *name, size_t size)
{
    static const uint32_t kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
    const Elf64_Ehdr *head = (const void *)image->at;
    const Elf64_Shdr *sections = table_at(image, head->e_shoff, head->e_shnum, sizeof(*sections));
    for (unsigned k = 0; sections && k < 2; k++)
        for (unsigned i = 0; i < head->e_shnum; i++)
            if (sections[i].sh_type == kinds[k] && sections[i].sh_link < head->e_shnum &&
                name_from(image, &sections[i], &sections[sections[i].sh_link], address, name, size))
                return true;
    return false;
}

void symbols_name(pid_t pid, uint64_t address, char *name, size_t size)
{
    char path[4096];
    uint64_t place, linked;
    struct image image;
    snprintf(name, size, "??");
    if (!find_file(pid, address, path, &place))
        return;
    bool is_named = image_open(path, &image) && linked_address(&image, place, &linked) &&
                    name_in(&image, linked, name, size);
    if (!is_named)
        snprintf(name, size, "%.100s+0x%llx", strrchr(path, '/') + 1, (unsigned long long)place);
    if (image.at)
        munmap((void *)image.at, image.size);
}
