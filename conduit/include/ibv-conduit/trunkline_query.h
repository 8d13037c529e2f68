/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Describes the conduit's paths as text for people: an extension of Trunkline. Include gasnetex.h
 * first. */
#ifndef TRUNKLINE_QUERY_H
#define TRUNKLINE_QUERY_H

#ifdef __cplusplus
extern "C" {
#endif

/* The path to process `jobrank`: transport, device, port. Writes at most `size` bytes with the
 * final NUL; returns the length of the whole text, or 0 if the rank is not in the job. Thread-safe,
 * valid after gex_Client_Init(). */
size_t trunkline_describe_peer(gex_Rank_t jobrank, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
