/*
 * Positions within a small cache (mask:…,positions=cache).
 *
 * A query that stands further ahead in the text than the cache has places is turned back by RoPE to the
 * last of these places. Its scores of the first keys, which stay at their own places, are then those of a
 * cache that counts within itself; those of recent keys, which move with it, are the same as in the text.
 */
#ifndef QKV_RUN_CACHE_POSITIONS_H
#define QKV_RUN_CACHE_POSITIONS_H

#include "run/graph.h"

/* q [d, H, T, B] after RoPE, with the queries of such edits turned back; NULL where the layer has no such
 * edit, or no RoPE. */
struct ggml_tensor *qkv_queries_in_cache(qkv_graph *g, int32_t il, struct ggml_tensor *q);

#endif
