#include "study/weights_study.h"
#include "measure/circuits.h"

#include <stdlib.h>

static const field fields[] = {
    FIELD_WORDS(
        weights_options, circuit, WEIGHTS_CIRCUITS,
        "what a head copies (ov), what it looks for (qk), or which heads read what it writes "
        "(composition)"),
    FIELD(weights_options, layers, TEXT, "LAYERS", 0, 4000,
          "layers to look at, e.g. 3, 0-5,7 or -1 (default all)"),
    FIELD(weights_options, heads, TEXT, "HEADS", 0, 4000,
          "query heads to look at, in the same notation"),
    FIELD_FLAGGED(weights_options, raw, "weights as they are: without those of norms folded in"),
    FIELD_FLAGGED(weights_options, minus_random,
                  "composition: subtract what random matrices of the shape have"),
    FIELD(weights_options, top, COUNT, "N", 1, 1e9, "lines of a ranking (default 20)"),
};

static int on_progress(void *user, int64_t done, int64_t wanted) {
    (void)wanted;
    return qkv_study_reach(user, (double)done, 1, NULL) != QKV_OK;
}

qkv_circuit_options qkv_weights_circuit_options(const study_inputs *in,
                                                const weights_options *options) {
    qkv_circuit_options how = QKV_CIRCUIT_OPTIONS_INIT;
    how.layers = options->layers;
    how.heads = options->heads;
    how.raw = options->raw;
    how.progress = on_progress;
    how.user = (void *)in;
    return how;
}

size_t qkv_weights_top(const weights_options *options, size_t n) {
    const size_t most = options->top ? (size_t)options->top : 20;
    return n < most ? n : most;
}

void qkv_weights_free_labels(char **labels, size_t n) {
    for (size_t i = 0; labels && i < n; i++) free(labels[i]);
    free(labels);
}

/* What the numbers leave out, as far as the model has it. */
static void add_notes(qkv_study *study, const study_inputs *in, const weights_options *options) {
    const int has_scores = options->circuit != WEIGHTS_OV;
    qkv_study_note(study, options->raw ? "weights as they are in the file"
                                       : "weights of norms folded in, their division left out");
    qkv_study_note(study, "biases left out");
    if (has_scores && qkv_model_get_info(in->model)->position[0] == 'r')
        qkv_study_note(study, "queries and keys before RoPE: scores at distance 0");
}

static int check(qkv_study *study, const void *given, qkv_error *err) {
    const weights_options *options = given;
    (void)study;
    if (!options->minus_random || options->circuit == WEIGHTS_COMPOSITION) return QKV_OK;
    return qkv_fail(err, QKV_ERR_ARGUMENT, "`minus_random` belongs to composition");
}

static int make_weights(qkv_study *study, const study_inputs *in, const void *given,
                        qkv_error *err) {
    const weights_options *options = given;
    const int of_pairs = options->circuit == WEIGHTS_COMPOSITION;
    add_notes(study, in, options);
    return (of_pairs ? qkv_weights_show_pairs : qkv_weights_show_heads)(study, in, options, err);
}

const study_kind qkv_study_weights = {
    .name = "weights",
    .title = "spectra, copying and composition of heads, from weights alone",
    .description =
        "The circuits of heads after Elhage et al. 2021 (A Mathematical Framework for Transformer "
        "Circuits); no prompt is run.\n"
        "\n"
        "ov: what a head copies, W_O W_V. The copying score is the sum of the eigenvalues of the "
        "full circuit W_U W_O W_V W_E, divided by the sum of their sizes: 1 where the head raises "
        "the tokens that it attends to. qk: what a head looks for, W_Q^T W_K, and the matching "
        "score of W_E^T W_Q^T W_K W_E. Both have norms, effective ranks and spectra.\n"
        "\n"
        "composition: how much of what a head writes the queries (Q), keys (K) or values (V) of a "
        "later head read, as the norm of the product divided by the norms of both. The time grows "
        "with the square of the number of layers: `layers` takes some of them.\n"
        "\n"
        "The weights of norms are folded into the matrices unless `raw` is given; their division, "
        "biases and RoPE are left out. The tables are top, heads, singular and eigen, and pairs; "
        "the pictures copying or matching, norm, effective_rank, stream_copying or "
        "stream_matching and spectrum, and heads and layers.\n",
    .examples = "qkv weights ov -o copying.png\n"
                "qkv weights qk --picture spectrum -o spectrum.svg\n"
                "qkv weights composition --layers 0-3 -o composition.png\n",
    .operand = "circuit",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(weights_options),
    .check = check,
    .make = make_weights,
};
