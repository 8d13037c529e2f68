/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of tree/. */
#ifndef TRUNKLINE_SPAWNER_TREE_PRIVATE_H
#define TRUNKLINE_SPAWNER_TREE_PRIVATE_H

#include "tree.h"

/* The guard of the host is a process of this host, started by a fork. */
bool tree_is_forked(const struct tree *t, uint32_t host);

/* `what`, with the host where there are several. */
void branch_explain(const struct tree *t, uint32_t host, const char *what, char *text, size_t size);

/* Reports the loss, once. */
void branch_lose(struct tree *t, struct tree_branch *b, const char *why);

/* Kills the guard; b->why gives the reason. */
void branch_kill(struct tree *t, struct tree_branch *b);

#endif
