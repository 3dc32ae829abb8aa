#include "study/weights_study.h"

#include <stdlib.h>

static const field fields[] = {
    STUDY_WORDS(weights_options, circuit, WEIGHTS_CIRCUITS),
    STUDY_FIELD(weights_options, layers, TEXT, 0, 4000),
    STUDY_FIELD(weights_options, heads, TEXT, 0, 4000),
    STUDY_FIELD(weights_options, raw, FLAG, 0, 0),
    STUDY_FIELD(weights_options, minus_random, FLAG, 0, 0),
    STUDY_FIELD(weights_options, top, COUNT, 0, 1e9),
};

qkv_circuit_options qkv_weights_circuit_options(const study_inputs *in,
                                                const weights_options *options) {
    qkv_circuit_options how = QKV_CIRCUIT_OPTIONS_INIT;
    how.layers = options->layers;
    how.heads = options->heads;
    how.raw = options->raw;
    how.progress = in->progress;
    how.user = in->user;
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

static int make_weights(qkv_study *study, const study_inputs *in, const void *given,
                        qkv_error *err) {
    const weights_options *options = given;
    const int of_pairs = options->circuit == WEIGHTS_COMPOSITION;
    if (options->minus_random && !of_pairs)
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`minus_random` belongs to the circuit \"composition\"");
    add_notes(study, in, options);
    return (of_pairs ? qkv_weights_show_pairs : qkv_weights_show_heads)(study, in, options, err);
}

const study_kind qkv_study_weights = {
    .name = "weights",
    .title = "spectra, copying and composition of heads, from weights alone",
    .fields = fields,
    .n_fields = sizeof fields / sizeof *fields,
    .options_size = sizeof(weights_options),
    .make = make_weights,
};
