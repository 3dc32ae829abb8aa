/*
 * Every metric: its name, what it needs, its formula and where that comes from. docs/metrics.md is
 * printed from this list.
 *
 * X(id, name, title in words for axes and bars, unit ("": none), scope, needs, number of parameters,
 *   their defaults p and q, what they are called,
 *   range, when it is NaN, source, formula)
 */
#ifndef QKV_MEASURE_METRIC_LIST_H
#define QKV_MEASURE_METRIC_LIST_H

#define GU "Gu et al., arXiv 2410.10781"
#define KOBAYASHI "Kobayashi et al., arXiv 2004.10102"
#define SUN "Sun et al., arXiv 2402.17762"
#define JIN "Jin et al., arXiv 2502.01563"
#define INACTIVE "Sandoval-Segura et al., arXiv 2504.03889"
#define SHIPS_PAPER "Zhou et al., arXiv 2410.13708"
#define LENS "TransformerLens, head detector"
#define HEADVIS "HeadVis"
#define OURS "qkv"
#define ONE_TOKEN "for a prompt of one token"

/* clang-format off */
#define QKV_METRIC_LIST(X)                                                                         \
    X(SINK, "sink", "mean weight on one key", "",                                                  \
      HEAD, NEED_ROWS, 1, 0, 0, "key = 0", "0 to 1",                                               \
      "for a prompt that has no such key", GU,                                                     \
      "α_k = (1/(T−k)) Σ_{i≥k} A[i][k]: the mean weight of key k over the queries from k on")      \
    X(SINK_RATE, "sink_rate", "share of heads with a sink", "",                                    \
      VARIANT, NEED_ROWS, 1, 0.3, 0, "threshold = 0.3", "0 to 1", "", GU,                          \
      "share of the measured (layer, head) pairs with α_0 > threshold (T = 64 in the paper)")      \
    X(FIRST_COLUMN, "first_column", "weight on the first token", "",                               \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1", ONE_TOKEN, OURS,                                     \
      "mean over i ≥ 1 of A[i][0]; row 0 of a causal model is always 1")                           \
    X(DIAGONAL, "diagonal", "weight on the token itself", "",                                      \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1", ONE_TOKEN, HEADVIS " (self)",                        \
      "mean over i ≥ 1 of A[i][i]")                                                                \
    X(PREVIOUS, "previous", "weight on the previous token", "",                                    \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1", ONE_TOKEN, HEADVIS,                                  \
      "mean over i ≥ 1 of A[i][i−1]")                                                              \
    X(PREVIOUS_TL, "previous_tl", "share of weight on the previous token", "",                     \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1", "where ΣA is 0", LENS,                               \
      "Σ_{i≥1} A[i][i−1] / ΣA: like previous, with the first row counted in the sum below")        \
    X(NEAR_DIAGONAL, "near_diagonal", "weight one or two tokens away", "",                         \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1", ONE_TOKEN, OURS,                                     \
      "mean over i ≥ 1 of Σ_{1≤|i−j|≤2} A[i][j]; the first key counts where it is that near")      \
    X(FAR, "far", "weight more than two tokens away", "",                                          \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1", "for a prompt of less than four tokens",             \
      OURS, "mean over i ≥ 3 of Σ_{|i−j|>2, j≠0} A[i][j]")                                         \
    X(UPPER, "upper", "weight on later tokens", "",                                                \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1", "", OURS,                                            \
      "Σ_{j>i} A[i][j] / T: exactly 0 for a causal model")                                         \
    X(SYMMETRY, "symmetry", "symmetry of the pattern", "",                                         \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1",                                                      \
      "where all weight is on the diagonal", OURS,                                                 \
      "1 − ‖A−Aᵀ‖_F / (‖A‖_F + ‖Aᵀ‖_F) over off-diagonal cells. A strictly causal pattern has "    \
      "1 − 1/√2 = 0.2929. Of a bidirectional model, or where a pattern is edited, it needs the "   \
      "whole map: up to 1024 tokens")                                                              \
    X(ENTROPY, "entropy", "entropy of attention", "nats",                                          \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to ln T", ONE_TOKEN, OURS,                                  \
      "mean over i ≥ 1 of H_i = −Σ_j A[i][j] ln A[i][j]")                                          \
    X(ENTROPY_NORM, "entropy_norm", "entropy of attention, share of the most", "",                 \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1",                                                      \
      "where no query sees two keys", OURS,                                                        \
      "mean over i ≥ 1 of H_i / ln n_i, n_i being the number of keys that query i sees (i+1 in a " \
      "causal model without a window); rows that see one key are left out")                        \
    X(SUPPORT, "support", "effective number of keys", "tokens",                                    \
      HEAD, NEED_ROWS, 0, 0, 0, "", "1 to T", ONE_TOKEN, OURS,                                     \
      "mean over i ≥ 1 of e^{H_i}: how many keys a query effectively attends to")                  \
    X(DISTANCE, "distance", "mean distance of attention", "tokens",                                \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to T−1", "", HEADVIS,                                       \
      "mean over rows of Σ_j A[i][j]·|i−j|, in tokens")                                            \
    X(INDUCTION, "induction", "weight after earlier copies of the token", "",                     \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1", "where ΣA is 0", LENS,                               \
      "Σ(A∘D) / ΣA, D[i][j] = 1 iff token j−1 equals token i and j−1 < i")                         \
    X(DUPLICATE, "duplicate", "weight on earlier copies of the token", "",                         \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1", "where ΣA is 0", LENS,                               \
      "Σ(A∘D) / ΣA, D[i][j] = 1 iff token j equals token i and j < i")                             \
    X(UNIFORMITY, "uniformity", "likeness to uniform attention", "",                               \
      HEAD, NEED_ROWS, 0, 0, 0, "", "0 to 1", "", OURS,                                            \
      "1 − mean over rows of ½ Σ_j |A[i][j] − U[i][j]|, U[i][j] = 1/n_i on the n_i keys that "     \
      "query i sees and 0 elsewhere")                                                              \
    X(TV, "tv", "change of attention, total variation", "",                                        \
      HEAD, NEED_ROWS | NEED_BASELINE, 0, 0, 0, "", "0 to 1", "", OURS,                            \
      "mean over rows of the total variation ½ Σ_j |p−q|; p the baseline's row, q the variant's")  \
    X(JS, "js", "change of attention, Jensen–Shannon", "nats",                                     \
      HEAD, NEED_ROWS | NEED_BASELINE, 0, 0, 0, "", "0 to ln 2", "", OURS,                         \
      "mean over rows of the Jensen–Shannon divergence ½ KL(p‖m) + ½ KL(q‖m), m = (p+q)/2")        \
    X(KL, "kl", "change of attention, KL", "nats",                                                 \
      HEAD, NEED_ROWS | NEED_BASELINE, 0, 0, 0, "", "0 and up",                                    \
      "where every row is left out", OURS,                                                         \
      "mean over rows of KL(p‖q) = Σ_j p ln(p/q), baseline p against variant q; rows with q = 0 "  \
      "at a key that p attends to (masked) are left out")                                          \
    X(MAX_CHANGE, "max_change", "largest change of a weight", "",                                  \
      HEAD, NEED_ROWS | NEED_BASELINE, 0, 0, 0, "", "0 to 1", "", OURS,                            \
      "largest |p−q| of all cells")                                                                \
    X(EFFECTIVE_RANK, "effective_rank", "effective rank of the pattern", "",                       \
      HEAD, NEED_ROWS | NEED_MAP, 0, 0, 0, "", "1 to T",                                           \
      "where A is 0", "Roy and Vetterli, EUSIPCO 2007",                                            \
      "exp(−Σ p ln p), p = σ_i/Σσ of the singular values of A. Needs the whole map: up to 1024 "   \
      "tokens")                                                                                    \
    X(VALUE_WEIGHTED, "value_weighted", "value taken in by a query", "length of value vectors",    \
      HEAD, NEED_COLUMNS | NEED_V, 0, 0, 0, "", "0 and up",                                        \
      ONE_TOKEN, KOBAYASHI,                                                                        \
      "mean over i ≥ 1 of Σ_j A[i][j]·‖v_j‖: how much value a query takes in")                     \
    X(VALUE_WEIGHTED_FIRST, "value_weighted_first", "share of the first token in the value taken in", "", \
      HEAD, NEED_COLUMNS | NEED_V, 0, 0, 0, "",                                                    \
      "0 to 1", "where the sum is 0", KOBAYASHI,                                                   \
      "share of the first key in it: Σ_{i≥1} A[i][0]·‖v_0‖ / Σ_{i≥1} Σ_j A[i][j]·‖v_j‖")           \
    X(NORM_WEIGHTED, "norm_weighted", "output written by a query", "length of output vectors",     \
      HEAD, NEED_COLUMNS | NEED_V | NEED_O, 0, 0, 0, "",                                           \
      "0 and up", ONE_TOKEN, KOBAYASHI,                                                            \
      "mean over i ≥ 1 of Σ_j ‖A[i][j]·v_j W_O^h‖, without the bias and before any norm that "     \
      "follows the projection")                                                                    \
    X(NORM_WEIGHTED_FIRST, "norm_weighted_first", "share of the first token in the output written", "", \
      HEAD, NEED_COLUMNS | NEED_V | NEED_O, 0, 0, 0,                                               \
      "", "0 to 1", "where the sum is 0", KOBAYASHI,                                               \
      "its first key's share: Σ_{i≥1} ‖A[i][0]·v_0 W_O^h‖ / Σ_{i≥1} Σ_j ‖A[i][j]·v_j W_O^h‖")      \
    X(MASSIVE, "massive", "massive activations", "count",                                          \
      LAYER, NEED_RESID, 2, 100, 1000, "size = 100, ratio = 1000", "0 and up",                     \
      "", SUN,                                                                                     \
      "number of elements x of resid_post with |x| > size and |x| > ratio × median |x| of that "   \
      "layer's output")                                                                            \
    X(MASSIVE_MAX, "massive_max", "largest activation", "",                                        \
      LAYER, NEED_RESID, 0, 0, 0, "", "0 and up", "", SUN,                                         \
      "largest |x| of resid_post")                                                                 \
    X(MASSIVE_RATIO, "massive_ratio", "largest activation, times the median", "",                  \
      LAYER, NEED_RESID, 0, 0, 0, "", "1 and up",                                                  \
      "where the median is 0", SUN, "largest |x| of resid_post / median |x|")                      \
    X(MASSIVE_Q, "massive_q", "massive channels of the query", "count",                            \
      HEAD, NEED_Q, 1, 5, 0, "factor = 5", "0 to d", "", JIN,                                      \
      "number of channels c of the head's q with M_c > factor × mean_c(M), M_c = ‖q[:,h,c]‖₂ "     \
      "over tokens; before RoPE")                                                                  \
    X(MASSIVE_K, "massive_k", "massive channels of the key", "count",                              \
      HEAD, NEED_K, 1, 5, 0, "factor = 5", "0 to d", "", JIN,                                      \
      "the same of the keys that the head sees")                                                   \
    X(MASSIVE_Q_ROT, "massive_q_rot", "massive channels of the query after RoPE", "count",         \
      HEAD, NEED_Q_ROT, 1, 5, 0, "factor = 5", "0 to d", "", JIN,                                  \
      "massive_q after RoPE")                                                                      \
    X(MASSIVE_K_ROT, "massive_k_rot", "massive channels of the key after RoPE", "count",           \
      HEAD, NEED_K_ROT, 1, 5, 0, "factor = 5", "0 to d", "", JIN,                                  \
      "massive_k after RoPE")                                                                      \
    X(AWFT, "awft", "inactive by weight on the first token", "1: yes",                             \
      HEAD, NEED_ROWS, 1, 0.8, 0, "threshold = 0.8", "0 or 1", "", INACTIVE,                       \
      "inactive by the average weight of the first token: 1 iff α_0 > threshold; the paper "       \
      "chooses a threshold per model")                                                             \
    X(AHON, "ahon", "inactive by output norm", "1: yes",                                           \
      HEAD, NEED_Z, 1, 0.5, 0, "threshold = 0.5", "0 or 1",                                        \
      "where all of the layer's z is 0", INACTIVE,                                                 \
      "inactive by the average head output norm, layer-normalised: 1 iff ahon_ratio < threshold; " \
      "the paper chooses a threshold per model")                                                   \
    X(AHON_RATIO, "ahon_ratio", "output norm, times the mean of the layer's heads", "",            \
      HEAD, NEED_Z, 0, 0, 0, "", "0 to H",                                                         \
      "where all of the layer's z is 0", INACTIVE,                                                 \
      "mean over tokens of ‖z_h‖, divided by the mean of that over the layer's heads")             \
    X(OUTPUT_KL, "output_kl", "KL of the next-token distribution", "nats",                         \
      VARIANT, NEED_LOGITS | NEED_BASELINE, 1, -1, 0,                                              \
      "position = -1, the last", "0 and up", "for a prompt that has no such position",             \
      SHIPS_PAPER " (Ships)", "KL(p_base ‖ p_edited) of the next-token distribution at that position")   \
    X(SHIPS, "ships", "KL of the next-token distribution (Ships)", "nats",                         \
      VARIANT, NEED_LOGITS | NEED_BASELINE, 1, 1e-12, 0, "add = 1e-12", "0 and up", "",            \
      SHIPS_PAPER " (Ships)",                                                                      \
      "Σ (p+a) ln((p+a)/(q+a)) over the vocabulary, p and q the next-token distributions after "  \
      "the last token, the baseline's and the variant's, a = add")                                 \
    X(OUTPUT_KL_MEAN, "output_kl_mean", "KL of the output, mean over positions", "nats",           \
      VARIANT, NEED_ALL_LOGITS | NEED_BASELINE, 0, 0, 0, "",                                       \
      "0 and up", "", SHIPS_PAPER, "mean over all positions of KL(p_base ‖ p_edited)")             \
    X(TOP1_CHANGED, "top1_changed", "most likely next token changed", "1: yes",                    \
      VARIANT, NEED_LOGITS | NEED_BASELINE, 1, -1, 0,                                              \
      "position = -1, the last", "0 or 1", "for a prompt that has no such position", OURS,         \
      "1 iff another token than the baseline's is the most likely next one at that position")      \
    X(TOP1_CHANGED_SHARE, "top1_changed_share", "share of positions with another most likely token", "", \
      VARIANT, NEED_ALL_LOGITS | NEED_BASELINE, 0, 0, 0,                                           \
      "", "0 to 1", "", OURS, "share of the positions where that is so")                           \
    X(LOSS, "loss", "loss on the prompt", "nats",                                                  \
      VARIANT, NEED_ALL_LOGITS, 0, 0, 0, "", "0 and up", ONE_TOKEN, OURS,                          \
      "mean over i < T−1 of −ln p(token i+1), in nats: the loss on the prompt")                    \
    X(DELTA_LOSS, "delta_loss", "change of the loss", "nats",                                      \
      VARIANT, NEED_ALL_LOGITS | NEED_BASELINE, 0, 0, 0, "", "any",                                \
      ONE_TOKEN, OURS, "loss of the variant − loss of the baseline")                               \
    X(ANSWER, "answer", "log-probability of the last tokens", "nats",                              \
      VARIANT, NEED_ALL_LOGITS, 1, 1, 0, "tokens = 1", "up to 0",                                  \
      "for a prompt that has no token before them", OURS,                                          \
      "Σ ln p(token i) over the last n tokens, each given all tokens before it: the log-probability of an answer that stands after a prompt") \
    X(SUBSPACE_ANGLE, "subspace_angle", "turn of the final hidden states", "degrees",              \
      SET, NEED_LAST | NEED_BASELINE, 2, 1, 0, "rank = 1, space = prompt",                         \
      "0 to 90 × rank", "for no more prompts than the rank; in space feature, for fewer",          \
      SHIPS_PAPER " (generalised Ships)",                                                          \
      "angle in degrees between the first left singular vectors of M and M′, the last tokens' "    \
      "states after the final norm (final_norm[-1]) of the baseline and of the variant; for rank " \
      "r > 1 the sum of the r "                                                                    \
      "principal angles between their first r. Space prompt: a row of M per prompt, so the "       \
      "vectors have an element per prompt. Space feature: a column per prompt")
/* clang-format on */

/* What has to be looked at for a metric. */
enum {
    NEED_ROWS = 1 << 0,     /* rows of patterns */
    NEED_BASELINE = 1 << 1, /* beside the variant's */
    NEED_MAP = 1 << 2,      /* all rows at once */
    NEED_COLUMNS = 1 << 3,  /* sums of the patterns' columns */
    NEED_V = 1 << 4,
    NEED_O = 1 << 5, /* the output projection */
    NEED_Q = 1 << 6,
    NEED_K = 1 << 7,
    NEED_Q_ROT = 1 << 8,
    NEED_K_ROT = 1 << 9,
    NEED_Z = 1 << 10,
    NEED_RESID = 1 << 11,
    NEED_LOGITS = 1 << 12, /* of one position */
    NEED_ALL_LOGITS = 1 << 13,
    NEED_LAST = 1 << 14 /* the last token's state after the final norm */
};

#define QKV_METRIC_ENUM(id, ...) QKV_METRIC_##id,
typedef enum qkv_metric { QKV_METRIC_LIST(QKV_METRIC_ENUM) QKV_METRIC_COUNT } qkv_metric;
#undef QKV_METRIC_ENUM

#endif
