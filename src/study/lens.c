/*
 * The logit lens: what the model would predict if it ended after a layer. The residual stream of every
 * layer and position goes through the model's own final norm and output matrix.
 *
 * States are taken as the pass computes them, layer by layer, and logits are looked at in blocks that
 * fit into memory, so that none of layers x positions x vocabulary exists as a whole.
 */
#include "study/lens.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/logits.h"
#include "base/memory.h"
#include "qkv/next.h"
#include "run/unembed.h"

enum { USUAL_TOP = 5, MOST_TOP = 100 };
#define BLOCK_BYTES ((size_t)64 << 20) /* of logits at a time */

/* ---- options ---- */

static const field fields[] = {
    FIELD(
        lens_options, answer, TEXT, "TEXT", 0, 400,
        "follow this token: its rank, probability and logit; spaces before a word belong to it; of "
        "several tokens the first; A/B: the logit of A minus that of B"),
    FIELD(lens_options, top, INT, "N", 1, MOST_TOP,
          "how many of the most likely tokens (default 5)"),
    FIELD_FLAGGED(lens_options, heads,
                  "what each head, feed-forward and the embedding add to the answer's logit"),
};

/* ---- one cell ---- */

static void take_cell(const lens *l, lens_cell *cell, const float *row) {
    const size_t n = (size_t)l->n_vocab;
    const qkv_log_sum sum = qkv_log_sum_exp(row, n);
    qkv_most_likely_tokens(row, n, cell->top, (size_t)l->n_top);
    for (int32_t k = 0; k < l->n_top; k++)
        cell->p[k] = exp(qkv_logit_log_p(row[cell->top[k]], sum));
    if (l->answer < 0) return;
    cell->answer_logit = (double)row[l->answer] - (l->against < 0 ? 0 : (double)row[l->against]);
    cell->answer_p = exp(qkv_logit_log_p(row[l->answer], sum));
    cell->answer_rank = qkv_logits_rank(row, n, l->answer);
}

lens_cell *qkv_lens_at(const lens *l, int32_t layer, size_t position) {
    return &l->cells[(size_t)layer * l->n_tokens + position];
}

/* ---- all of them ---- */

static int look(lens *l, qkv_session *session, int32_t layer, const float *states, qkv_error *err) {
    const size_t row = (size_t)l->n_vocab * sizeof(float);
    const size_t most = BLOCK_BYTES / row > 0 ? BLOCK_BYTES / row : 1;
    const size_t block = most < l->n_tokens ? most : l->n_tokens;
    float *logits = qkv_calloc(block, row);
    int status = logits ? QKV_OK : qkv_fail_memory(err);
    for (size_t first = 0; first < l->n_tokens && status == QKV_OK; first += block) {
        const size_t n = l->n_tokens - first < block ? l->n_tokens - first : block;
        status = qkv_unembed(session, states + first * (size_t)l->n_embd, n, logits, err);
        for (size_t i = 0; i < n && status == QKV_OK; i++)
            take_cell(l, qkv_lens_at(l, layer, first + i), logits + i * (size_t)l->n_vocab);
    }
    free(logits);
    return status;
}

static int allocate(lens *l, qkv_error *err) {
    const size_t n = (size_t)l->n_layer * l->n_tokens, top = (size_t)l->n_top;
    l->cells = qkv_calloc(n, sizeof *l->cells);
    l->tokens = qkv_calloc(n * top, sizeof *l->tokens);
    l->probabilities = qkv_calloc(n * top, sizeof *l->probabilities);
    if (!l->cells || !l->tokens || !l->probabilities) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        l->cells[i].top = l->tokens + i * top;
        l->cells[i].p = l->probabilities + i * top;
    }
    return QKV_OK;
}

void qkv_lens_release(lens *l) {
    free(l->cells);
    free(l->tokens);
    free(l->probabilities);
    *l = (lens){0};
}

static int look_at_layers(lens *l, qkv_session *session, const qkv_result *result, qkv_error *err) {
    int status = QKV_OK;
    for (int32_t i = 0; i < l->n_layer && status == QKV_OK; i++) {
        qkv_tensor t = QKV_TENSOR_INIT;
        status = qkv_session_reach(session, l->n_layer + i, 1, err);
        if (status == QKV_OK && !qkv_result_get(result, 0, QKV_SITE_RESID_POST, i, &t))
            status = qkv_fail(err, QKV_ERR_PLAN, "layer %d has no residual stream", (int)i);
        else if (status == QKV_OK)
            status = look(l, session, i, t.data, err);
    }
    return status;
}

/* All layers are run, and then looked at. */
static int compute_layers(lens *l, qkv_session *session, const qkv_plan *plan, qkv_error *err) {
    qkv_result *result = NULL;
    int status = qkv_session_begin_work(session, "layers", 2 * (double)l->n_layer, err);
    if (status != QKV_OK) return status;
    status = qkv_session_reach(session, 0, l->n_layer, err);
    if (status == QKV_OK) status = qkv_session_run(session, &result, plan, err);
    if (status == QKV_OK) status = look_at_layers(l, session, result, err);
    qkv_result_free(result);
    return qkv_session_end_work(session, status);
}

int qkv_lens_compute(lens *l, qkv_session *session, const qkv_own_prompt *prompt, qkv_error *err) {
    qkv_plan *plan = NULL;
    int status = allocate(l, err);
    if (status == QKV_OK)
        status =
            qkv_plan_new(&plan, qkv_session_model(session), prompt->tokens, prompt->n_tokens, err);
    if (status == QKV_OK) status = qkv_plan_add_capture(plan, "resid_post@*", err);
    if (status == QKV_OK) status = compute_layers(l, session, plan, err);
    qkv_plan_free(plan);
    return status;
}

/* ---- the study ---- */

/* An answer as it was given, and what is looked at: its first token. */
typedef struct lens_answer {
    const char *text;
    size_t length;
    int32_t *ids;
    size_t n;
    int spaced;
} lens_answer;

/* The text and its first token, as people see them. */
static int show_answer(const qkv_model *model, const lens_answer *a, qkv_text *given,
                       qkv_text *taken, qkv_error *err) {
    char *bytes = NULL;
    size_t n = 0;
    const int status = qkv_token_text(model, &bytes, &n, a->ids[0], err);
    if (status != QKV_OK) return status;
    qkv_text_append_visible(given, a->text, a->length);
    qkv_text_append_visible(taken, bytes, n);
    qkv_text_free(bytes);
    return given->failed || taken->failed ? qkv_fail_memory(err) : QKV_OK;
}

/* What is looked at in place of the text is told. */
static int tell_answer(qkv_study *study, const study_inputs *in, const lens_answer *a,
                       qkv_error *err) {
    const qkv_own_prompt *prompt = &in->prompts.items[0];
    qkv_text given = {0}, taken = {0};
    int lacks = 0;
    if (!a->spaced && a->n == 1) return QKV_OK;
    int status = show_answer(in->model, a, &given, &taken, err);
    if (status == QKV_OK)
        status = qkv_answer_lacks_space(in->model, &lacks, prompt->tokens, prompt->n_tokens, a->ids,
                                        a->n, err);
    if (status == QKV_OK && lacks)
        qkv_study_warn(study,
                       "\"%s\" follows the prompt without a space; with one it is written \" %s\"",
                       given.data, given.data);
    if (status == QKV_OK && a->spaced)
        qkv_study_warn(study, "\"%s\" is taken as \"%s\": spaces belong to tokens", given.data,
                       taken.data);
    if (status == QKV_OK && a->n > 1) {
        qkv_study_warn(study, "\"%s\" is %zu tokens: the lens shows the first, \"%s\"", given.data,
                       a->n, taken.data);
        qkv_study_note(study, "of the answer \"%s\", %zu tokens, the first is shown: \"%s\"",
                       given.data, a->n, taken.data);
    }
    qkv_text_release(&given);
    qkv_text_release(&taken);
    return status;
}

/* One answer, or two that are compared. */
static int take_answers(qkv_study *study, const study_inputs *in, lens_answer *of, size_t n,
                        int32_t *const *out, qkv_error *err) {
    const qkv_model *model = in->model;
    int32_t *ids[2] = {0};
    size_t n_ids[2] = {0};
    int spaced[2] = {0};
    const char *const texts[2] = {of[0].text, of[1].text};
    const size_t lengths[2] = {of[0].length, of[1].length};
    int status = n == 2 ? qkv_find_answer_pair(model, ids, n_ids, spaced, texts, lengths, err)
                        : qkv_find_answer(model, ids, n_ids, spaced, texts[0], lengths[0], err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        of[i].ids = ids[i];
        of[i].n = n_ids[i];
        of[i].spaced = spaced[i];
        *out[i] = ids[i][0];
        status = tell_answer(study, in, &of[i], err);
    }
    for (int i = 0; i < 2; i++) qkv_tokens_free(ids[i]);
    return status;
}

/* One answer, or two with a slash between them; a token may have one itself. */
static int find_answer(lens *l, qkv_study *study, const study_inputs *in, const char *text,
                       qkv_error *err) {
    const char *slash = strchr(text, '/');
    int32_t *const out[2] = {&l->answer, &l->against};
    lens_answer of[2] = {{.text = text, .length = strlen(text)}};
    if (qkv_find_token(in->model, &l->answer, text, strlen(text), NULL) == QKV_OK) return QKV_OK;
    if (!slash || slash == text || !slash[1]) return take_answers(study, in, of, 1, out, err);
    of[0].length = (size_t)(slash - text);
    of[1] = (lens_answer){.text = slash + 1, .length = strlen(slash + 1)};
    return take_answers(study, in, of, 2, out, err);
}

/* "sea", or "sea - land". */
static int name_answer(const lens *l, const qkv_model *model, char **out, qkv_error *err) {
    char *second = NULL;
    qkv_text both = {0};
    int status = l->answer < 0 ? QKV_OK : qkv_token_label(model, l->answer, out, err);
    if (status != QKV_OK || l->against < 0) return status;
    status = qkv_token_label(model, l->against, &second, err);
    if (status == QKV_OK) qkv_text_printf(&both, "%s \xe2\x88\x92 %s", *out, second);
    free(second);
    if (status != QKV_OK || both.failed) {
        qkv_text_release(&both);
        return status != QKV_OK ? status : qkv_fail_memory(err);
    }
    free(*out);
    *out = both.data;
    return QKV_OK;
}

/* `answer`: that parts of a logit are wanted of; NULL: no parts. */
static int compute(lens *l, qkv_study *study, const study_inputs *in, const char *answer,
                   qkv_error *err) {
    int status = qkv_study_begin(in, "parts", answer ? 2 : 1, err);
    if (status != QKV_OK) return status;
    if (answer) status = qkv_lens_heads(l, study, in, answer, err);
    if (status == QKV_OK) status = qkv_lens_compute(l, in->session, &in->prompts.items[0], err);
    return qkv_study_end(in, status);
}

static int make_lens(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
    const lens_options *options = given;
    const qkv_model_info *info = qkv_model_get_info(in->model);
    const qkv_own_prompt *prompt = &in->prompts.items[0];
    lens l = {.n_layer = info->n_layer,
              .n_embd = info->n_embd,
              .n_vocab = info->n_vocab,
              .n_tokens = prompt->n_tokens,
              .n_top = options->top ? options->top : USUAL_TOP,
              .answer = -1,
              .against = -1};
    char *answer = NULL;
    if (!info->has_logits || !info->causal)
        return qkv_fail(err, QKV_ERR_PLAN, "%s is an encoder, which has no next token", info->path);
    if (l.n_top > info->n_vocab) l.n_top = info->n_vocab;
    if (options->heads && !options->answer)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`heads` needs an `answer`");
    int status = options->answer ? find_answer(&l, study, in, options->answer, err) : QKV_OK;
    if (status == QKV_OK) status = name_answer(&l, in->model, &answer, err);
    if (status == QKV_OK) status = compute(&l, study, in, options->heads ? answer : NULL, err);
    if (status == QKV_OK) status = qkv_lens_show(&l, study, in, answer, err);
    free(answer);
    qkv_lens_release(&l);
    return status;
}

const study_kind qkv_study_lens = {
    .name = "lens",
    .title = "the tokens that every layer would predict, at every position",
    .description =
        "The logit lens: the residual stream after every layer goes through the model's own final "
        "norm and output matrix, as if the model ended there. The first table has the most likely "
        "tokens after the last token, layer by layer; with `answer`, the rank, probability and logit "
        "of that token, too; of an answer of several tokens the first is looked at, and a warning says "
        "so. The table 'top' has them for every position, 'answer' those of the answer.\n"
        "\n"
        "The picture has layers down and tokens across. In each cell stands the most likely token; "
        "its colour is that token's probability, or that of the answer.\n"
        "\n"
        "With `heads`, direct logit attribution: the residual stream in the end is the sum of the "
        "embedding and of what all heads and feed-forward blocks added to it. The number that the "
        "final norm divides by is held at its value; what is left is linear, and the parts add up "
        "to the answer's logit after the last token (before the model's cap, where it has one). "
        "The pictures are 'heads', layers down and heads across, and 'blocks'.\n",
    .examples = "qkv lens -p 'The river runs to the' --answer ' sea' -o lens.png\n"
                "qkv lens -p 'The river runs to the' --answer ' sea/ land' --heads -o heads.png\n"
                "qkv lens -p 'The river runs to the' --table top -o lens.csv\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(lens_options),
    .least_prompts = 1,
    .most_prompts = 1,
    .make = make_lens,
};
