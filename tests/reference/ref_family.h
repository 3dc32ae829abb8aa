/*
 * What each family computes, as a row of a table that is read side by side with the papers and
 * tests/vectors/README.md. It is written apart from the library's own descriptions: where the two
 * disagree, one of them is wrong.
 *
 * What a file can say by itself (sizes, which biases there are, windows, factors) is read from the
 * file and is not here.
 */
#ifndef QKV_TESTS_REF_FAMILY_H
#define QKV_TESTS_REF_FAMILY_H

typedef enum ref_norm_kind {
    REF_RMS,  /* x / sqrt(mean(x²) + e), times a weight */
    REF_LAYER /* the same after subtracting the mean, plus a bias */
} ref_norm_kind;

/* Where a block (attention, feed-forward) has its norms. */
typedef enum ref_norm_place {
    REF_BEFORE,
    REF_BEFORE_AND_AFTER, /* after: on the block's output, before it is added */
    REF_AFTER,
    REF_ON_SUM /* on the residual stream, once the block's output is added */
} ref_norm_place;

/* Which channels of a head turn together. */
typedef enum ref_pairs {
    REF_NO_TURNING, /* positions are learned vectors, or a bias of scores */
    REF_HALVES,     /* i and i + n/2 */
    REF_ADJACENT,   /* 2i and 2i + 1 */
    REF_REORDERED   /* halves; in the file the rows of W_q and W_k lie so that they are adjacent */
} ref_pairs;

/* Norms of queries and keys, where the file has them. */
typedef enum ref_head_norm {
    REF_SHARED_WEIGHTS, /* over each head, the same weights for all */
    REF_OWN_WEIGHTS,    /* over each head, each its own weights */
    REF_ALL_HEADS       /* over all heads together */
} ref_head_norm;

typedef enum ref_activation {
    REF_SILU,
    REF_GELU_TANH,
    REF_GELU_ERF,
    REF_RELU,
    REF_RELU_SQUARED,
    REF_XIELU,  /* ref_layer.xielu */
    REF_CLAMPED /* (up + 1) gate sigmoid(1.702 gate), gate <= 7, -7 <= up <= 7 */
} ref_activation;

/* What layers may have in place of attention, or beside it. */
typedef enum ref_mixer_kind {
    REF_NO_MIXER,
    REF_DELTA,      /* gated delta rule; value head h has key head h mod (key heads) */
    REF_DELTA_RUNS, /* the same; value heads that share a key head follow each other */
    REF_SHORT_CONV
} ref_mixer_kind;

typedef struct ref_family {
    const char *name; /* general.architecture */
    ref_norm_kind norm;
    ref_norm_place place;
    ref_pairs pairs;
    ref_activation activation;
    ref_head_norm head_norm;
    int parallel;          /* both blocks read the layer's input; the file may say otherwise */
    int full_every;        /* of layers with windows, every n-th has none; 0: all have it */
    int full_from;         /* the same, counted from layer 0 on: 0, n, 2n, ... have none */
    int half_windows;      /* half of the window is on either side of a query */
    int bare_start;        /* the first attention reads its input without a norm */
    int unturned_every;    /* every n-th layer does not turn */
    int local_base;        /* layers with a window turn by a base of their own, unscaled */
    int unscaled_windows;  /* layers with a window turn by the base of the others, unscaled */
    int turned_in_windows; /* where some layers have a window, the others do not turn */
    int windows_in_layers; /* windows count in models of this many layers alone, or where the file says so */
    int norm_after_turning; /* queries and keys are normalised after they are turned */
    int yarn_log; /* turned vectors are divided by 1 + 0.1 m ln(factor), the file says m */
    int chunked;  /* windows are chunks of the text; 8192 keys where the file does not say it */
    int bare_head_norms; /* heads that turn are normalised without weights, unless there are 128 experts */
    int tempers_unturned; /* queries that do not turn have a temperature, from the next position on; 0.1 and 8192
                           * where the file does not say it */
    int shares_input;     /* experts read their input times their share */
    int mixes;            /* two experts by the sparse mixer */
    int sqrt_embedding;   /* embeddings are multiplied by sqrt(D) */
    int divides_logits;   /* by logit_scale, instead of multiplying */
    int fused_gate;       /* gate and up are one matrix, gate first */
    int bare_norms;       /* norms of the residual stream have no weights: ones */
    int bare_values;      /* values are normalised per head, without weights */
    int unscaled;         /* scores are not divided by sqrt(d) */
    int sigmoid_router;   /* experts are weighed by the sigmoid of their score, not by a softmax */
    int keeps_shares;     /* the best experts keep their shares of a softmax over all */
    int last_slope;       /* ALiBi: the last of 2^n heads has the slope 2^-this; 0: none */
    int encoder;          /* every token sees every other; no logits */
    ref_mixer_kind mixer; /* of layers that have one, beside attention or in its place */
    const char *output_norm; /* what the final norm is called; NULL: output_norm */
    int gated_heads;         /* W_q gives, per head, q and a gate: z times its sigmoid goes on */
    const char *ffn_before;  /* name of the norm before the feed-forward, NULL: ffn_norm */
} ref_family;

/* NULL when there is none. */
const ref_family *ref_family_find(const char *name);

#endif
