/* The study `next`: what the model expects after a text, and how edits change that. */
#include "study/next_study.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "qkv/head_choice.h"

enum { USUAL_TOP = 10 };

/* clang-format off: a field to two or three lines */
static const field fields[] = {
    FIELD(next_options, variant, LIST, "EDITS", 0, STUDY_MOST_TEXT,
          "one variant: edits joined by ' + '; may be repeated"),
    FIELD(next_options, top, INT, "N", 1, 1 << 24,
          "how many of the most likely tokens (default 10; none with `of`, `diff` or `answer`)"),
    FIELD(
        next_options, of, LIST, "TEXTS", 0, STUDY_MOST_TEXT,
        "follow these tokens, e.g. ' Paris, Rome': commas between them, spaces count; may be repeated"),
    FIELD(next_options, diff, LIST, "A/B", 0, STUDY_MOST_TEXT,
          "the logit of token A minus that of token B; may be repeated"),
    FIELD(
        next_options, answer, LIST, "TEXT", 0, STUDY_MOST_TEXT,
        "the log-probability of this text after the prompt, of one token or more; may be repeated"),
    FIELD(next_options, at, POSITION, "N", INT32_MIN, INT32_MAX,
          "look after token N, from 0 on; negative: from the end (default -1)"),
    FIELD_FLAGGED(next_options, all,
                  "the loss of each token of the prompt instead, a line for each"),
};
/* clang-format on */

static int check_next(qkv_study *study, const void *given, qkv_error *err) {
    const next_options *o = given;
    (void)study;
    if (o->all && (o->top || o->of || o->diff || o->answer || o->at != QKV_AUTO))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`all` gives the losses of the prompt's tokens: leave out `top`, `of`, "
                        "`diff`, `answer` and `at`");
    int status = qkv_answer_texts_check("of", o->of, ',', err);
    if (status == QKV_OK) status = qkv_answer_texts_check("diff", o->diff, '/', err);
    return status == QKV_OK ? qkv_answer_texts_check("answer", o->answer, 0, err) : status;
}

/* ---- prompts ---- */

static int64_t top_of(const next_options *o) {
    if (o->top) return o->top;
    return o->of || o->diff || o->answer ? 0 : USUAL_TOP;
}

static qkv_next_options options_of(const next_study *n) {
    const edit_inputs *edits = &n->in->edits;
    return (qkv_next_options){.size = sizeof(qkv_next_options),
                              .variants = (const char *const *)n->variants,
                              .n_variants = n->n_variants,
                              .source_names = edits->names,
                              .source_tokens = edits->tokens,
                              .source_lengths = edits->lengths,
                              .n_sources = edits->n,
                              .data = edits->data,
                              .at = n->how->at,
                              .top = top_of(n->how),
                              .of = n->of.ids,
                              .n_of = n->of.n,
                              .diff = n->diff.ids,
                              .n_diff = n->diff.n / 2,
                              .answers = (const int32_t *const *)n->answers.tokens,
                              .answer_lengths = n->answers.lengths,
                              .n_answers = n->answers.n,
                              .all = n->how->all};
}

/* Of several prompts, messages name the one. */
static int tell_prompt(const next_study *n, size_t prompt, int status, const qkv_error *why,
                       qkv_error *err) {
    if (status == QKV_OK) return QKV_OK;
    if (n->in->prompts.n == 1) return *err = *why, status;
    qkv_fail_with(err, status, "prompt %zu: %s", prompt, why->message);
    return status;
}

/* A mistake in a later prompt shows before anything is computed. */
static int check_prompts(const next_study *n, qkv_error *err) {
    const qkv_next_options how = options_of(n);
    int status = QKV_OK;
    for (size_t i = 0; i < n->in->prompts.n && status == QKV_OK; i++) {
        const qkv_own_prompt *prompt = &n->in->prompts.items[i];
        qkv_error why = {0};
        status = qkv_next_check(n->in->model, prompt->tokens, prompt->n_tokens, &how, &why);
        status = tell_prompt(n, i, status, &why, err);
    }
    return status;
}

static int run_prompts(const next_study *n, qkv_error *err) {
    const qkv_next_options how = options_of(n);
    int status = qkv_study_begin(n->in, "prompts", n->in->prompts.n, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < n->in->prompts.n && status == QKV_OK; i++) {
        const qkv_own_prompt *prompt = &n->in->prompts.items[i];
        qkv_error why = {0};
        status = qkv_study_reach(n->in, (double)i, 1, &why);
        if (status == QKV_OK)
            status = qkv_next_new(&n->found[i], n->in->session, prompt->tokens, prompt->n_tokens,
                                  &how, &why);
        status = tell_prompt(n, i, status, &why, err);
    }
    return qkv_study_end(n->in, status);
}

static void warn_unchanged(const next_study *n) {
    const qkv_next *next = n->found[0];
    for (size_t v = 1; v < qkv_next_n_variants(next); v++) {
        const char *edit;
        for (size_t i = 0; (edit = qkv_next_edit_text(next, v, i)); i++) {
            if (!qkv_next_edit_ran(next, v, i))
                qkv_study_warn(
                    n->study, "%s (v%zu) was not computed: nothing that is looked at depends on it",
                    edit, v);
            else if (qkv_next_edit_changed(next, v, i) == 0)
                qkv_study_warn(n->study, "%s (v%zu) changed no value", edit, v);
        }
    }
}

/* ---- the study ---- */

static int find_tokens(next_study *n, qkv_error *err) {
    const qkv_model *model = n->in->model;
    n->variants = qkv_field_texts(n->how->variant, &n->n_variants);
    n->found = qkv_calloc(n->in->prompts.n, sizeof *n->found);
    if (!n->variants || !n->found) return qkv_fail_memory(err);
    int status = qkv_answers_read(&n->answers, n->study, model, n->how->answer, err);
    if (status == QKV_OK) status = qkv_answers_check_spaces(&n->answers, n->study, n->in, err);
    if (status == QKV_OK)
        status = qkv_token_list_read(&n->of, n->study, model, "of", n->how->of, err);
    if (status == QKV_OK)
        status = qkv_token_pairs_read(&n->diff, n->study, model, "diff", n->how->diff, err);
    return status;
}

static int make_next(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
    next_study n = {.study = study, .in = in, .how = given};
    int status = find_tokens(&n, err);
    if (status == QKV_OK) status = check_prompts(&n, err);
    if (status == QKV_OK) status = run_prompts(&n, err);
    if (status == QKV_OK) {
        warn_unchanged(&n);
        status = qkv_next_show(&n, err);
    }
    for (size_t i = 0; n.found && i < in->prompts.n; i++) qkv_next_free(n.found[i]);
    free((void *)n.found);
    free(n.variants);
    free(n.of.ids);
    free(n.diff.ids);
    qkv_answers_release(&n.answers);
    return status;
}

const study_kind qkv_study_next = {
    .name = "next",
    .title = "which tokens come next, and how edits change that",
    .description =
        "The most likely next tokens of the unedited model (baseline) and of every variant: rank, text, "
        "probability, and for variants the change of the probability and of the rank. The table 'variants' has "
        "KL(baseline || variant) of the whole distribution in nats. How edits are written: 'qkv help notation'.\n"
        "\n"
        "Each text of `of` and `diff` must be one token. Spaces before a word belong to it: ' "
        "Paris' and 'Paris' are different tokens. \\n, \\t, \\xNN and \\\\ are what they are "
        "elsewhere, '\\,' is a comma in `of` and '\\/' a slash in `diff`. A text that is not a token, "
        "but is one with a space before it, gets that space, with a warning; of "
        "the two of `diff`, both then get one.\n"
        "\n"
        "An `answer` may have several tokens; one that most likely lacks a space before it is "
        "warned of. The log-probability of an answer is the sum of those of its "
        "tokens, each given the prompt and the answer's tokens before it. Edits that name no tokens "
        "act on the answer, too; negative numbers count from the end of the prompt, and other "
        "prompts are followed by the same answer.\n"
        "\n"
        "With `all` every token of the prompt has a line with its loss, the negative logarithm of "
        "the probability that it had given the tokens before it, in nats; its change under each "
        "variant; and the KL of the distribution that predicts it. The table 'variants' has the means. Logits "
        "that do not fit into the session's memory are computed in several passes.\n"
        "\n"
        "Printed are tables in short: 'top', 'of', 'diff', 'answers' and 'variants'. The table 'tokens', that of a "
        "CSV, has all numbers: a row for each token of each list (top, of, diff, answer) and variant; the row of "
        "a pair has the difference as its logit. All changes are the variant's number minus the baseline's: a rank "
        "that becomes smaller is a token that moves up.\n",
    .examples =
        "qkv next -p 'The river runs to the' --variant 'z@3.h1=zero' --top 5\n"
        "qkv next -p 'The river runs to the' --of ' sea, land' --variant 'v@*=scale:0.5'\n"
        "qkv next -p 'The river runs to the' --answer ' wide blue sea' --variant 'z@3.h1=zero'\n",
    .fields = FIELD_TABLE(fields, QKV_FIELD_WORK),
    .options_size = sizeof(next_options),
    .least_prompts = 1,
    .most_prompts = SIZE_MAX,
    .no_pictures = 1,
    .edits = "variant",
    .check = check_next,
    .make = make_next,
};
