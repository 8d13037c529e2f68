/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See ring_memory.h. Owns the mappings; no lock. */
#include "config.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring_memory.h"
#include "unit.h"

static void *map(void *where, size_t size, int fd, off_t offset)
{
    void *at =
        mmap(where, size, PROT_READ | PROT_WRITE, MAP_SHARED | (where ? MAP_FIXED : 0), fd, offset);
    assert_true(at != MAP_FAILED);
    return at;
}

void ring_memory_open(struct ring_memory *memory, uint32_t slots, uint32_t lines, uint64_t start)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = memfd_create("ring", MFD_CLOEXEC);
    assert_true(fd >= 0 && tk_ring_legal(slots, lines));
    *memory = (struct ring_memory){.slots = slots, .lines = lines};
    memory->shared_size = tk_align_up(tk_ring_bytes(slots), page);
    memory->payload_size = (size_t)lines * tk_ring_line;
    assert_int_equal(memory->payload_size % page, 0);
    assert_int_equal(ftruncate(fd, (off_t)(memory->shared_size + memory->payload_size)), 0);
    memory->shared = map(NULL, memory->shared_size, fd, 0);
    memory->payload =
        mmap(NULL, 2 * memory->payload_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory->payload != MAP_FAILED);
    map(memory->payload, memory->payload_size, fd, (off_t)memory->shared_size);
    map(memory->payload + memory->payload_size, memory->payload_size, fd,
        (off_t)memory->shared_size);
    close(fd);
    tk_ring_format(memory->shared, slots, start);
}

void ring_memory_close(struct ring_memory *memory)
{
    munmap(memory->shared, memory->shared_size);
    munmap(memory->payload, 2 * memory->payload_size);
}

void ring_memory_out(const struct ring_memory *memory, struct tk_ring_out *out, uint16_t from)
{
    tk_ring_out_open(out, memory->shared, memory->payload, memory->slots, memory->lines, from);
}

void ring_memory_in(const struct ring_memory *memory, struct tk_ring_in *in)
{
    assert_int_equal(
        tk_ring_in_open(in, memory->shared, memory->payload, memory->slots, memory->lines), TK_OK);
}

static char letter(uint32_t from, uint32_t number, size_t i)
{
    return (char)(from * 31 + number * 7 + i * 3 + i / 64);
}

void ring_text(char *text, uint32_t from, uint32_t number, size_t nbytes)
{
    uint64_t length = nbytes;
    memcpy(text, &from, 4);
    memcpy(text + 4, &number, 4);
    memcpy(text + 8, &length, 8);
    for (size_t i = ring_text_min; i < nbytes; i++)
        text[i] = letter(from, number, i);
}

size_t ring_item_text(const struct tk_ring_item *item, char *text, size_t most)
{
    size_t rest = item->rest ? item->rest_size : 0;
    if (!item->blob || item->nbytes + rest > most)
        return 0;
    memcpy(text, item->blob, item->nbytes);
    if (rest > 0)
        memcpy(text + item->nbytes, item->rest, rest);
    return item->nbytes + rest;
}

bool ring_text_is(const char *text, uint32_t from, uint32_t *number, size_t nbytes)
{
    uint64_t length;
    uint32_t whose;
    if (nbytes < ring_text_min)
        return false;
    memcpy(&whose, text, 4);
    memcpy(number, text + 4, 4);
    memcpy(&length, text + 8, 8);
    bool same = whose == from && length == nbytes;
    for (size_t i = ring_text_min; same && i < nbytes; i++)
        same = text[i] == letter(from, *number, i);
    return same;
}
