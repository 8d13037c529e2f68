/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies bytes between this process and a piece of a peer: plain stores where the piece is mapped,
 * process_vm_readv/writev (CMA) where it is not. The last bytes of a transfer become visible last,
 * because programs spin on the last byte of a buffer. Owns nothing, takes no lock. */
#include "config.h"

#include <stdatomic.h>

#include "wire/wire.h"

enum {
    page = 4096,    /* processors compare only the address bits below it */
    near = 512,     /* more than string instructions keep in flight */
    piece_max = 256 /* the C library reads all of it before it writes any */
};

/* Where the destination lies a little behind the source, modulo a page, each load of a long copy
 * appears to depend on a store just before it (4K aliasing), and string instructions drop to a
 * quarter of their speed. Memory from malloc lies that way relative to pages. A real device has no
 * such effect. */
static void copy_long(char *d, const char *s, size_t n)
{
    size_t behind = ((uintptr_t)d - (uintptr_t)s) % page;
    size_t most = behind > 0 && behind < near ? piece_max : n;

    while (n > 0) {
        size_t piece = n < most ? n : most;

        /* A compiler that knows that piece is small would emit string instructions inline. */
        __asm__("" : "+r"(piece));
        memcpy(d, s, piece);
        d += piece;
        s += piece;
        n -= piece;
    }
}

/* How many of the n bytes at an address are in the last aligned word. */
static size_t last_word(uint64_t at, size_t n)
{
    size_t last = ((at + n - 1) & 7) + 1;

    return last < n ? last : n;
}

/* Stores the last 1..8 bytes, which lie in one aligned word, in ascending order. */
static void store_last(char *d, const char *s, size_t n)
{
    if (n == 8) {
        uint64_t v;

        memcpy(&v, s, 8);
        __atomic_store_n((uint64_t *)(void *)d, v, __ATOMIC_RELEASE);
        return;
    }
    for (size_t i = 0; i < n; i++)
        __atomic_store_n(d + i, s[i], __ATOMIC_RELEASE);
}

void shca_copy(void *dst, const void *src, size_t n)
{
    char *d = dst;
    const char *s = src;
    size_t last;

    if (n == 0)
        return;
    last = last_word((uintptr_t)d, n);
    /* memcpy writes its tail early (it overlaps the last vector with the one before), so it must
     * not get the last word. */
    if (n > last) {
        copy_long(d, s, n - last);
        atomic_thread_fence(memory_order_release);
    }
    store_last(d + (n - last), s + (n - last), last);
}

/* A failed or short call: EFAULT in the middle is the caller's protection error. */
static int write_all(uint32_t pid, char *from, uint64_t to, size_t n)
{
    size_t last = last_word(to, n);

    while (n > 0) {
        /* The kernel copies element by element. Within one it may use string instructions, whose
         * stores have no order, so the last element is one word. */
        struct iovec local = {from, n};
        struct iovec remote[2] = {
            {(void *)(uintptr_t)to, n > last ? n - last : 0},
            {(void *)(uintptr_t)(to + (n > last ? n - last : 0)), n > last ? last : n}};
        ssize_t done = process_vm_writev((pid_t)pid, &local, 1, remote, 2, 0);

        if (done <= 0)
            return done < 0 ? errno : EFAULT;
        from += done;
        to += (uint64_t)done;
        n -= (size_t)done;
    }
    return 0;
}

static int read_all(uint32_t pid, char *to, uint64_t from, size_t n)
{
    while (n > 0) {
        struct iovec local = {to, n};
        struct iovec remote = {(void *)(uintptr_t)from, n};
        ssize_t done = process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);

        if (done <= 0)
            return done < 0 ? errno : EFAULT;
        to += done;
        from += (uint64_t)done;
        n -= (size_t)done;
    }
    return 0;
}

/* The cause of a refusal is outside the program, so it is reported here, once. */
static int explained(int e)
{
    static _Atomic int reported;

    if (shca_copy_refused(e) && !atomic_exchange(&reported, 1))
        shca_log(
            "the kernel refuses to copy between processes (process_vm_readv/writev: %s); allow "
            "it (sysctl kernel.yama.ptrace_scope=0, or the container's seccomp profile) or "
            "register shared memory (memfd), which needs no copy",
            strerror(e));
    return e;
}

/* The first half of a list of buffers. */
static unsigned halve(struct iovec *half, const struct iovec *all, unsigned n)
{
    size_t left = 0;
    unsigned i;

    for (i = 0; i < n; i++)
        left += all[i].iov_len;
    left /= 2;
    for (i = 0; i < n && left > 0; i++) {
        half[i] = all[i];
        if (half[i].iov_len > left)
            half[i].iov_len = left;
        left -= half[i].iov_len;
    }
    return i;
}

static void die_moving_out(struct shca_peer *p, const struct shca_piece *dst, unsigned ndst,
                           const struct iovec *src, unsigned nsrc)
{
    struct iovec half[SHCA_MAX_SGE + 1];

    atomic_store(&shca_fault_flags.dying, false);
    shca_move_out(p, dst, ndst, half, halve(half, src, nsrc));
    shca_fault_die();
}

static void die_moving_in(struct shca_peer *p, const struct iovec *dst, unsigned ndst,
                          const struct shca_piece *src)
{
    struct iovec half[SHCA_MAX_SGE + 1];

    atomic_store(&shca_fault_flags.dying, false);
    shca_move_in(p, half, halve(half, dst, ndst), src);
    shca_fault_die();
}

int shca_move_out(struct shca_peer *p, const struct shca_piece *dst, unsigned ndst,
                  const struct iovec *src, unsigned nsrc)
{
    unsigned i = 0, j = 0;
    size_t at_src = 0, at_dst = 0;

    if (shca_fault_dying())
        die_moving_out(p, dst, ndst, src, nsrc);
    /* Fast path for the usual case: one source, one mapped piece. */
    if (nsrc == 1 && ndst == 1 && dst->mapped && src->iov_len <= dst->length) {
        shca_copy(dst->mapped, src->iov_base, src->iov_len);
        return 0;
    }
    while (i < nsrc && j < ndst) {
        size_t n = src[i].iov_len - at_src, room = dst[j].length - at_dst;
        char *from = (char *)src[i].iov_base + at_src;
        int e = 0;

        n = n < room ? n : room;
        if (dst[j].mapped)
            shca_copy(dst[j].mapped + at_dst, from, n);
        else if (n > 0)
            e = write_all(p->pid, from, dst[j].addr + at_dst, n);
        if (e != 0)
            return explained(e);
        at_src += n;
        at_dst += n;
        if (at_src == src[i].iov_len) {
            i++;
            at_src = 0;
        }
        if (j < ndst && at_dst == dst[j].length) {
            j++;
            at_dst = 0;
        }
    }
    return 0;
}

int shca_move_in(struct shca_peer *p, const struct iovec *dst, unsigned ndst,
                 const struct shca_piece *src)
{
    size_t at = 0;

    if (shca_fault_dying())
        die_moving_in(p, dst, ndst, src);
    for (unsigned i = 0; i < ndst; i++) {
        int e = 0;

        if (src->mapped)
            shca_copy(dst[i].iov_base, src->mapped + at, dst[i].iov_len);
        else if (dst[i].iov_len > 0)
            e = read_all(p->pid, dst[i].iov_base, src->addr + at, dst[i].iov_len);
        if (e != 0)
            return explained(e);
        at += dst[i].iov_len;
    }
    return 0;
}
