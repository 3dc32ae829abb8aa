/*
 * The study `check`: can this model's numbers be trusted? What must hold in every transformer is looked for in
 * captures of the model itself, with arithmetic of its own (study/invariants.h): weights times values, sums of the
 * residual stream, output matrices, rows of a pattern, and that no token sees a later one, alone or in generation.
 *
 * A wrong layout of heads, a forgotten norm or factor, a bias that is left out break one of them; what breaks none,
 * such as another base of RoPE, only another implementation can tell (docs/models.md).
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/model.h"
#include "qkv/generate.h"
#include "qkv/weights.h"
#include "study/invariants.h"
#include "study/study.h"

/* X(name, what is allowed, what is compared): allowed are differences relative to the largest number that is
 * compared. Sums of F32 leave a few units in the last of seven digits, long ones more; a wrong layout some hundredths
 * and more. */
#define CHECK_LIST(X)                                                                              \
    X(MIX, "values", 1e-5, "pattern times v is z")                                                 \
    X(ROWS, "rows", 1e-5, "rows of the pattern sum to 1, with the share of a sink")                \
    X(ATTN_OUT, "attn_out", 1e-4, "the output matrix applied to z is attn_out")                    \
    X(MLP_OUT, "mlp_out", 1e-4, "the output matrix applied to mlp_act is mlp_out")                 \
    X(RESIDUAL, "residual", 1e-5, "resid_pre + attn_out + mlp_out is resid_post")                  \
    X(LAYERS, "layers", 0, "resid_post is resid_pre of the next layer")                            \
    X(CAUSALITY, "causality", 0,                                                                   \
      "another last token changes no earlier row, and none sees a later token")                    \
    X(GENERATION, "generation", 5e-5, "token by token gives the logits of the whole pass")

#define CHECK_ENUM(id, name, allowed, about) CHECK_##id,
typedef enum check_id { CHECK_LIST(CHECK_ENUM) CHECK_COUNT } check_id;
#undef CHECK_ENUM

static const struct check_kind {
    const char *name;
    double allowed;
    const char *about;
} kinds[] = {
#define CHECK_ENTRY(id, name, allowed, about) {name, allowed, about},
    CHECK_LIST(CHECK_ENTRY)
#undef CHECK_ENTRY
};

typedef struct check_options {
    int32_t length;
} check_options;

static const field fields[] = {
    FIELD(check_options, length, INT, "N", 2, 4096,
          "how many tokens are made where no prompt is given (default 24)"),
};

/* Tokens that generation is looked at on, and how many of them come one by one: all logits are kept. */
enum { USUAL_TOKENS = 24, MOST_GENERATED = 32, MOST_NEW = 8 };
#define CAPTURES_AT_A_TIME ((size_t)64 << 20)

typedef struct check_line {
    invariant_gap gap;
    int32_t n; /* layers, or tokens, that were looked at; 0: it is skipped */
} check_line;

typedef struct check_work {
    qkv_study *study;
    const study_inputs *in;
    const qkv_model *model;
    int32_t *tokens, *changed; /* the prompt, and the same with another last token */
    size_t n_tokens;
    check_line lines[CHECK_COUNT];
    float *last; /* resid_post of the layer before, [T, D] */
} check_work;

/* ---- captures ---- */

static int has_attention(const check_work *w, int32_t il) {
    return w->model->hp.layers[il].n_head > 0;
}

/* Where there are experts, no layer has a site of neurons (run/notation/notation.c). */
static int has_neurons(const check_work *w, int32_t il) {
    return w->model->hp.n_expert == 0 && w->model->layers[il].w[QKV_LAYER_DOWN] != NULL;
}

static struct ggml_tensor *weight(const check_work *w, int32_t il, int slot) {
    return w->model->layers[il].w[slot];
}

static size_t bytes_per_layer(const check_work *w) {
    const qkv_layer_shape *s = &w->model->hp.largest;
    const size_t T = w->n_tokens, D = (size_t)w->model->hp.n_embd;
    const size_t heads = (size_t)s->n_head * (2 * T + 2 * (size_t)s->value_dim);
    return T * (heads + 4 * D + (size_t)s->n_ff) * sizeof(float);
}

static int add(qkv_plan *plan, const char *site, int32_t il, qkv_error *err) {
    char text[64];
    snprintf(text, sizeof text, "%s@%" PRId32, site, il);
    return qkv_plan_add_capture(plan, text, err);
}

/* `all`: what the checks of one layer need; else what tells causality. */
static int add_layer(const check_work *w, qkv_plan *plan, int32_t il, int all, qkv_error *err) {
    const char *sites[8];
    size_t n = 0;
    int status = QKV_OK;
    sites[n++] = "resid_post";
    if (all) sites[n++] = "resid_pre";
    if (all) sites[n++] = "attn_out";
    if (all) sites[n++] = "mlp_out";
    if (all && has_neurons(w, il)) sites[n++] = "mlp_act";
    if (has_attention(w, il)) sites[n++] = "pattern";
    if (has_attention(w, il) && all) sites[n++] = "z";
    if (has_attention(w, il) && all && weight(w, il, QKV_LAYER_SINKS)) sites[n++] = "scores";
    for (size_t i = 0; i < n && status == QKV_OK; i++) status = add(plan, sites[i], il, err);
    if (status == QKV_OK && all && has_attention(w, il))
        status = add(plan, "v", w->model->hp.layers[il].kv_layer, err);
    return status;
}

static int run_layers(const check_work *w, const int32_t *tokens, int32_t first, int32_t end,
                      int all, qkv_result **out, qkv_error *err) {
    qkv_plan *plan = NULL;
    int status = qkv_plan_new(&plan, w->model, tokens, w->n_tokens, err);
    for (int32_t il = first; il < end && status == QKV_OK; il++)
        status = add_layer(w, plan, il, all, err);
    if (status == QKV_OK) status = qkv_session_run(w->in->session, out, plan, err);
    qkv_plan_free(plan);
    return status;
}

static qkv_tensor get(const qkv_result *result, qkv_site site, int32_t il) {
    qkv_tensor t = QKV_TENSOR_INIT;
    qkv_result_get(result, 0, site, il, &t);
    return t;
}

/* ---- weights ---- */

typedef struct matrix_source {
    const qkv_model *model;
    const char *name;
    int32_t layer;
} matrix_source;

static int read_rows(void *user, int64_t first, int64_t n, float *rows, qkv_error *err) {
    const matrix_source *s = user;
    return qkv_weight_read(s->model, s->name, s->layer, first, n, rows, err);
}

/* Norms, biases and sinks, which are F32 in memory (model/weights.c); NULL: there is none. */
static const float *vector(const check_work *w, int32_t il, int slot) {
    const struct ggml_tensor *t = weight(w, il, slot);
    return t ? t->data : NULL;
}

/* `bias`: its slot; -1: the norm has none. */
static invariant_norm norm(const check_work *w, int32_t il, int slot, int bias) {
    return (invariant_norm){.weight = vector(w, il, slot),
                            .bias = bias < 0 ? NULL : vector(w, il, bias),
                            .centred = w->model->family->norm == QKV_NORM_LAYER,
                            .epsilon = (double)w->model->hp.norm_eps};
}

/* An output matrix, and the norm and factor after it. */
typedef struct output_matrix {
    const char *name;
    int slot, bias, norm;
    check_id id;
    qkv_site from, to;
} output_matrix;

static const output_matrix attention_output = {
    "o",        QKV_LAYER_O,      QKV_LAYER_O_BIAS, QKV_LAYER_POST_ATTN_NORM, CHECK_ATTN_OUT,
    QKV_SITE_Z, QKV_SITE_ATTN_OUT};
static const output_matrix mlp_output = {
    "down",        QKV_LAYER_DOWN,   QKV_LAYER_DOWN_BIAS, QKV_LAYER_POST_FFN_NORM,
    CHECK_MLP_OUT, QKV_SITE_MLP_ACT, QKV_SITE_MLP_OUT};

static int check_output(check_work *w, const qkv_result *r, int32_t il, const output_matrix *o,
                        qkv_error *err) {
    check_line *line = &w->lines[o->id];
    const struct ggml_tensor *matrix = weight(w, il, o->slot);
    matrix_source source = {w->model, o->name, il};
    const qkv_tensor x = get(r, o->from, il), y = get(r, o->to, il);
    const invariant_matrix m = {.read = read_rows,
                                .user = &source,
                                .n = matrix->ne[1],
                                .width = matrix->ne[0],
                                .bias = vector(w, il, o->bias),
                                .norm = norm(w, il, o->norm, -1),
                                .factor = (double)w->model->hp.residual_scale};
    line->n++;
    return qkv_invariant_product(&line->gap, il, &m, &x, &y, err);
}

/* ---- one layer ---- */

static void check_attention(check_work *w, const qkv_result *r, int32_t il) {
    const qkv_tensor pattern = get(r, QKV_SITE_PATTERN, il), z = get(r, QKV_SITE_Z, il),
                     scores = get(r, QKV_SITE_SCORES, il),
                     v = get(r, QKV_SITE_V, w->model->hp.layers[il].kv_layer);
    w->lines[CHECK_MIX].n++;
    w->lines[CHECK_ROWS].n++;
    qkv_invariant_mix(&w->lines[CHECK_MIX].gap, il, &pattern, &v, &z);
    qkv_invariant_rows(&w->lines[CHECK_ROWS].gap, il, &pattern, &scores,
                       vector(w, il, QKV_LAYER_SINKS));
}

static int check_stream(check_work *w, const qkv_result *r, int32_t il, qkv_error *err) {
    const qkv_tensor pre = get(r, QKV_SITE_RESID_PRE, il), attn = get(r, QKV_SITE_ATTN_OUT, il),
                     mlp = get(r, QKV_SITE_MLP_OUT, il), post = get(r, QKV_SITE_RESID_POST, il);
    const invariant_stream stream = {
        &pre,
        &attn,
        &mlp,
        &post,
        norm(w, il, QKV_LAYER_ATTN_OUT_NORM, QKV_LAYER_ATTN_OUT_NORM_BIAS),
        norm(w, il, QKV_LAYER_LAYER_OUT_NORM, QKV_LAYER_LAYER_OUT_NORM_BIAS)};
    const size_t n = w->n_tokens * (size_t)w->model->hp.n_embd;
    if (il > 0) {
        w->lines[CHECK_LAYERS].n++;
        qkv_invariant_same(&w->lines[CHECK_LAYERS].gap, il, -1, w->last, pre.data, (int64_t)n);
    }
    memcpy(w->last, post.data, n * sizeof *w->last);
    /* A factor at the layer's end, and what its own embeddings add: no sum of the three. */
    if (w->model->layers[il].w[QKV_LAYER_LAYER_SCALE]) return QKV_OK;
    w->lines[CHECK_RESIDUAL].n++;
    return qkv_invariant_residual(&w->lines[CHECK_RESIDUAL].gap, il, &stream, err);
}

static int check_layer(check_work *w, const qkv_result *r, int32_t il, qkv_error *err) {
    int status = check_stream(w, r, il, err);
    if (has_attention(w, il)) check_attention(w, r, il);
    if (status == QKV_OK && has_attention(w, il) && weight(w, il, QKV_LAYER_O))
        status = check_output(w, r, il, &attention_output, err);
    if (status == QKV_OK && has_neurons(w, il)) status = check_output(w, r, il, &mlp_output, err);
    return status;
}

/* ---- time ---- */

static void check_causality(check_work *w, const qkv_result *a, const qkv_result *b, int32_t il) {
    check_line *line = &w->lines[CHECK_CAUSALITY];
    const qkv_tensor post[2] = {get(a, QKV_SITE_RESID_POST, il), get(b, QKV_SITE_RESID_POST, il)};
    qkv_invariant_earlier_rows(&line->gap, il, &post[0], &post[1]);
    line->n++;
    if (!has_attention(w, il)) return;
    const qkv_tensor map[2] = {get(a, QKV_SITE_PATTERN, il), get(b, QKV_SITE_PATTERN, il)};
    qkv_invariant_earlier_rows(&line->gap, il, &map[0], &map[1]);
    qkv_invariant_no_future(&line->gap, il, &map[0]);
}

static int is_causal(const check_work *w) {
    return w->model->hp.causal && w->n_tokens > 1;
}

static int check_layers(check_work *w, int32_t first, int32_t end, qkv_error *err) {
    qkv_result *given = NULL, *changed = NULL;
    int status = run_layers(w, w->tokens, first, end, 1, &given, err);
    for (int32_t il = first; il < end && status == QKV_OK; il++)
        status = check_layer(w, given, il, err);
    if (status == QKV_OK && is_causal(w))
        status = run_layers(w, w->changed, first, end, 0, &changed, err);
    for (int32_t il = first; il < end && status == QKV_OK && is_causal(w); il++)
        check_causality(w, given, changed, il);
    qkv_result_free(given);
    qkv_result_free(changed);
    return status;
}

/* The logits at a token of the whole pass. */
static int compare_logits(check_work *w, const qkv_result *pass, size_t token, const float *logits,
                          qkv_error *err) {
    const qkv_tensor all = get(pass, QKV_SITE_LOGITS, w->model->hp.n_layer);
    const int64_t V = w->model->hp.n_vocab;
    check_line *line = &w->lines[CHECK_GENERATION];
    if (!all.data || !logits) return qkv_fail(err, QKV_ERR_BACKEND, "there are no logits");
    line->n++;
    qkv_invariant_same(&line->gap, -1, (int32_t)token, all.data + (int64_t)token * V, logits, V);
    return QKV_OK;
}

/* The last tokens one by one, after a prompt of the others. */
static int feed(check_work *w, qkv_generator *generator, const qkv_result *pass, size_t n_before,
                size_t n, qkv_error *err) {
    int status = qkv_session_feed(w->in->session, generator, NULL, err);
    for (size_t t = n_before; status == QKV_OK; t++) {
        status = compare_logits(w, pass, t - 1, qkv_generator_logits(generator, 0), err);
        if (status != QKV_OK || t == n) return status;
        status = qkv_session_feed(w->in->session, generator, &w->tokens[t], err);
    }
    return status;
}

static int check_generation(check_work *w, qkv_error *err) {
    const size_t n = w->n_tokens < MOST_GENERATED ? w->n_tokens : MOST_GENERATED;
    const size_t n_new = n - 1 < MOST_NEW ? n - 1 : MOST_NEW, n_before = n - n_new;
    qkv_generator_options how = QKV_GENERATOR_OPTIONS_INIT;
    qkv_generator *generator = NULL;
    qkv_plan *plan = NULL;
    qkv_result *pass = NULL;
    how.max_new = n_new;
    int status = qkv_plan_new(&plan, w->model, w->tokens, n, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, "logits", err);
    if (status == QKV_OK) status = qkv_session_run(w->in->session, &pass, plan, err);
    if (status == QKV_OK)
        status = qkv_generator_new(&generator, w->model, w->tokens, n_before, &how, err);
    if (status == QKV_OK) status = feed(w, generator, pass, n_before, n, err);
    qkv_generator_free(generator);
    qkv_result_free(pass);
    qkv_plan_free(plan);
    return status;
}

/* ---- the page ---- */

static const char *reason(const check_work *w, check_id id) {
    const int one = w->n_tokens < 2;
    switch (id) {
    case CHECK_MIX:
    case CHECK_ROWS:
    case CHECK_ATTN_OUT:
        return "no layer has attention";
    case CHECK_MLP_OUT:
        return "the feed-forward is a choice of experts, without neurons that all tokens have";
    case CHECK_RESIDUAL:
        return "layers end with a factor, after which resid_post is not this sum";
    case CHECK_LAYERS:
        return "the model has one layer";
    case CHECK_CAUSALITY:
        return one ? "the prompt has one token" : "every token sees every other one";
    default:
        return one ? "the prompt has one token" : "an encoder has no next token";
    }
}

static void describe_place(const invariant_gap *gap, char out[64]) {
    const struct {
        const char *name;
        int32_t number;
    } parts[] = {{"layer", gap->layer}, {"head", gap->head}, {"token", gap->token}};
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < 3; i++) {
        if (parts[i].number < 0) continue;
        length += (size_t)snprintf(out + length, 64 - length, "%s%s %" PRId32, length ? ", " : "",
                                   parts[i].name, parts[i].number);
    }
}

static int add_line(const check_work *w, check_id id, qkv_error *err) {
    const check_line *line = &w->lines[id];
    const int fits = line->gap.largest <= kinds[id].allowed;
    char place[64];
    describe_place(&line->gap, place);
    if (!line->n)
        return qkv_study_add_row(w->study,
                                 (study_value[]){STUDY_TEXT(kinds[id].name), STUDY_TEXT("skipped"),
                                                 STUDY_NUMBER(NAN), STUDY_NUMBER(kinds[id].allowed),
                                                 STUDY_TEXT(""), STUDY_TEXT(reason(w, id))},
                                 err);
    w->study->n_failed += !fits;
    return qkv_study_add_row(
        w->study,
        (study_value[]){STUDY_TEXT(kinds[id].name), STUDY_TEXT(fits ? "ok" : "FAILED"),
                        STUDY_NUMBER(line->gap.largest), STUDY_NUMBER(kinds[id].allowed),
                        STUDY_TEXT(place), STUDY_TEXT(kinds[id].about)},
        err);
}

static int show(const check_work *w, qkv_error *err) {
    static const char *const columns[] = {"check",   "verdict", "difference",
                                          "allowed", "where",   "about"};
    qkv_study_set_title(w->study, "Whether the numbers of this model can be trusted");
    int status = qkv_study_add_table(w->study, "checks", "What must hold", columns, 6, err);
    for (int i = 0; i < CHECK_COUNT && status == QKV_OK; i++)
        status = add_line(w, (check_id)i, err);
    qkv_study_note(w->study,
                   "%zu tokens, %" PRId32 " layers; differences are relative to the largest "
                   "number that is compared, of rows absolute; `where` is the largest one",
                   w->n_tokens, w->model->hp.n_layer);
    if (w->model->family->layer_required & QKV_HAS(LAYER_OUT_NORM))
        qkv_study_note(w->study,
                       "this model normalises the sums of the residual stream: with these norms "
                       "they are resid_post");
    return status;
}

/* ---- the study ---- */

/* Tokens that are spread over the vocabulary. */
static void make_tokens(check_work *w) {
    const int64_t V = w->model->hp.n_vocab, n = (int64_t)w->n_tokens;
    for (int64_t i = 0; i < n; i++) w->tokens[i] = (int32_t)((1 + i * (V / n + 1)) % V);
}

static int begin(check_work *w, const check_options *options, qkv_error *err) {
    const qkv_own_prompts *given = &w->in->prompts;
    const size_t made = options->length ? (size_t)options->length : USUAL_TOKENS;
    const size_t most = (size_t)w->model->hp.n_ctx;
    w->n_tokens = given->n ? given->items[0].n_tokens : made < most ? made : most;
    w->tokens = qkv_calloc(w->n_tokens, sizeof *w->tokens);
    w->changed = qkv_calloc(w->n_tokens, sizeof *w->changed);
    w->last = qkv_calloc(w->n_tokens * (size_t)w->model->hp.n_embd, sizeof *w->last);
    if (!w->tokens || !w->changed || !w->last) return qkv_fail_memory(err);
    if (given->n)
        memcpy(w->tokens, given->items[0].tokens, w->n_tokens * sizeof *w->tokens);
    else
        make_tokens(w);
    memcpy(w->changed, w->tokens, w->n_tokens * sizeof *w->tokens);
    int32_t *last = &w->changed[w->n_tokens - 1];
    *last = (*last + 1) % w->model->hp.n_vocab;
    for (int i = 0; i < CHECK_COUNT; i++)
        w->lines[i].gap = (invariant_gap){.layer = -1, .head = -1, .token = -1};
    return QKV_OK;
}

static int compute(check_work *w, qkv_error *err) {
    const int32_t n_layer = w->model->hp.n_layer;
    const size_t fit = CAPTURES_AT_A_TIME / bytes_per_layer(w);
    const int32_t step = fit < 1 ? 1 : fit > (size_t)n_layer ? n_layer : (int32_t)fit;
    int status = qkv_study_begin(w->in, "layers", (size_t)n_layer + 1, err);
    if (status != QKV_OK) return status;
    for (int32_t il = 0; il < n_layer && status == QKV_OK; il += step) {
        const int32_t end = il + step < n_layer ? il + step : n_layer;
        status = qkv_study_reach(w->in, il, end - il, err);
        if (status == QKV_OK) status = check_layers(w, il, end, err);
    }
    if (status == QKV_OK) status = qkv_study_reach(w->in, n_layer, 1, err);
    if (status == QKV_OK && is_causal(w) && w->model->hp.has_logits)
        status = check_generation(w, err);
    return qkv_study_end(w->in, status);
}

static int make_check(qkv_study *study, const study_inputs *in, const void *options,
                      qkv_error *err) {
    check_work w = {.study = study, .in = in, .model = in->model};
    int status = begin(&w, options, err);
    if (status == QKV_OK) status = compute(&w, err);
    if (status == QKV_OK) status = show(&w, err);
    free(w.tokens);
    free(w.changed);
    free(w.last);
    return status;
}

const study_kind qkv_study_check_model = {
    .name = "check",
    .title = "whether the numbers of this model can be trusted",
    .description =
        "Looks for what must hold in every transformer, in this model's own tensors, with arithmetic of its own: "
        "weights times values are z, output matrices give what the blocks write, the residual stream is the sum "
        "of them, rows sum to 1, no token sees a later one, and generation gives the logits of the whole pass. A "
        "line for each says ok, FAILED or skipped, how large the largest difference is, and where. What fails "
        "makes the command fail.\n"
        "\n"
        "Without a prompt, `length` tokens are made from the vocabulary. A wrong reading of a file that breaks "
        "none of these, such as another base of RoPE, is not seen here: docs/models.md says which families were "
        "compared with another implementation.\n",
    .examples = "qkv check -m MODEL\n"
                "qkv check -p 'The river runs to the sea.' -o check.html\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(check_options),
    .most_prompts = 1,
    .no_pictures = 1,
    .make = make_check,
};
