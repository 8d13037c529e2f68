/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text forms of the types of a conduit, and other functions that only a conduit's library has.
 * Included by gasnet_tools.h after gasnetex.h. Owns nothing. */
#ifndef GASNET_TOOLS_FORMAT_H
#define GASNET_TOOLS_FORMAT_H

GASNETT_BEGIN_EXTERNC

/* Bytes that the text needs, NUL included; with `buf` NULL nothing is written. */
size_t gasnett_format_dt(char *buf, gex_DT_t dt);
size_t gasnett_format_op(char *buf, gex_OP_t op);
size_t gasnett_format_ti(char *buf, gex_TI_t ti);

/* Extent of a list of memory; the addresses are those of the first and the last byte. */
typedef struct {
    size_t minsz, maxsz;
    uintptr_t totalsz;
    void *minaddr, *maxaddr;
} gasnett_memveclist_stats_t;
typedef struct {
    void *minaddr, *maxaddr;
} gasnett_addrlist_stats_t;

/* Each ..._bufsz() returns a sufficient size for the text of its counterpart. */
size_t gasnett_format_memveclist_bufsz(size_t count);
gasnett_memveclist_stats_t gasnett_format_memveclist(char *buf, size_t count,
                                                     gex_Memvec_t const *list);
size_t gasnett_format_addrlist_bufsz(size_t count);
gasnett_addrlist_stats_t gasnett_format_addrlist(char *buf, size_t count, void *const *list,
                                                 size_t len);
size_t gasnett_format_strides_bufsz(size_t count);
void gasnett_format_strides(char *buf, size_t count, const ptrdiff_t *list);

/* Whole transfers; these return the bytes moved. `pstats` is ignored. */
size_t gasnett_format_putvgetv_bufsz(size_t dstcount, size_t srccount);
size_t gasnett_format_putvgetv(char *buf, gex_TM_t tm, gex_Rank_t rank, size_t dstcount,
                               gex_Memvec_t const dstlist[], size_t srccount,
                               gex_Memvec_t const srclist[]);
size_t gasnett_format_putigeti_bufsz(size_t dstcount, size_t srccount);
size_t gasnett_format_putigeti(char *buf, gex_TM_t tm, gex_Rank_t rank, size_t dstcount,
                               void *const dstlist[], size_t dstlen, size_t srccount,
                               void *const srclist[], size_t srclen);
size_t gasnett_format_putsgets_bufsz(size_t stridelevels);
size_t gasnett_format_putsgets(char *buf, void *pstats, gex_TM_t tm, gex_Rank_t rank, void *dstaddr,
                               const ptrdiff_t dststrides[], void *srcaddr,
                               const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[],
                               size_t stridelevels);

/* Self-tests inside the library: it has none, so these report no errors and need no handlers. Its
 * tests are separate programs. */
int gasnett_run_diagnostics(int iters, int threadcnt, const char *testsections, gex_TM_t myteam,
                            void *myseg, gex_Rank_t peer, void *peerseg);
void gasnett_diagnostic_gethandlers(gex_AM_Entry_t **htable, int *htable_cnt);

/* Anonymous pages, zeroed; MAP_FAILED on failure. */
void *gasnett_mmap(uintptr_t segsize);

GASNETT_END_EXTERNC

#endif
