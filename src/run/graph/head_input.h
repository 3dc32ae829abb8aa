/*
 * What single heads read: the sites q_in, k_in and v_in.
 *
 * All heads of a layer project one tensor, the layer's input. Where an edit changes what some heads read,
 * they get a copy: it is edited, normalised and multiplied with these heads' rows of the weights, and what
 * comes out takes their places among the others. Those stay as the layer computed them, or as the trunk has
 * them. So an edit costs the projection of the heads that it names. Heads with the same edits share a copy,
 * and with no edit there is none: a capture of these sites is the layer's input.
 */
#ifndef QKV_RUN_HEAD_INPUT_H
#define QKV_RUN_HEAD_INPUT_H

#include "run/graph/graph.h"
#include "run/ops/edit_apply.h"

/* The copies that a batch needs at one site of one layer, by member; and the heads that read them, by
 * member and head. */
typedef struct qkv_head_copies {
    qkv_site site;
    int32_t layer;
    int32_t
        n_heads;   /* among which heads are counted: the site's own, or H where a group is split */
    int32_t group; /* consecutive ones of them that share rows of the weights */
    int64_t n;
    int32_t *members, *heads; /* n: whose copy it is, and the first head that reads it */
    qkv_alike *alike;         /* n: how many read it */
    int64_t n_readers;
    int32_t *reader_members, *reader_heads, *reader_copies; /* n_readers: copies by their numbers */
    int64_t *reader_rows;       /* n_readers: the head's first row in the weights */
    struct ggml_tensor *edited; /* [D, T, n] */
} qkv_head_copies;

/* Does it change what single heads read? */
int qkv_variant_edits_inputs(const qkv_variant *variant);
/* How many copies a variant of the plan needs at most, in a layer, at the three sites together. */
int64_t qkv_plan_most_copies(const qkv_plan *plan);

/* The norm of heads: its weights and its biases, either NULL where there are none. */
typedef struct qkv_head_norm {
    struct ggml_tensor *weight, *bias;
} qkv_head_norm;

/* The layer's input x [D, T, B] as a kept tensor of the site; and the projected heads [d, heads, T, B],
 * those replaced that read something else. A group that an edit splits comes back with H instead of G
 * heads. `norm` is the norm of single heads, which heads have had already. */
struct ggml_tensor *qkv_head_inputs(qkv_graph *g, qkv_site site, int32_t il, struct ggml_tensor *x,
                                    struct ggml_tensor *heads, qkv_head_norm norm);

/* All copies of a graph. */
int64_t qkv_graph_n_copies(const qkv_graph *g);

/* The copy that a head of a member reads; NULL: the layer's input itself. */
const float *qkv_head_copy(const qkv_head_copies *copies, int64_t member, int32_t head);

void qkv_head_copies_free(qkv_head_copies *copies);

#endif
