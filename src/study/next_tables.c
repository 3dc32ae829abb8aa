/* The study `next` as tables: lists in short, and one with all numbers; or losses. */
#include <math.h>
#include <string.h>

#include "study/next_study.h"

typedef int get_token(const qkv_next *next, size_t variant, size_t index, qkv_next_token *token);

/* One variant of one prompt. */
typedef struct next_place {
    const next_study *n;
    const qkv_next *next;
    size_t prompt, variant;
    const char *name; /* of the variant */
} next_place;

/* Adds the rows of a place to the table that was added last. */
typedef int add_rows(const next_place *at, qkv_error *err);

static int add_table(const next_study *n, const char *name, const char *title,
                     const char *const *columns, size_t n_columns, add_rows *add, qkv_error *err) {
    int status = qkv_study_add_table(n->study, name, title, columns, n_columns, err);
    for (size_t p = 0; p < n->in->prompts.n; p++) {
        for (size_t v = 0; v <= n->n_variants && status == QKV_OK; v++) {
            const next_place at = {.n = n,
                                   .next = n->found[p],
                                   .prompt = p,
                                   .variant = v,
                                   .name = v ? n->variants[v - 1] : "baseline"};
            status = add(&at, err);
        }
    }
    return status;
}
#define ADD_TABLE(n, name, title, columns, add, err)                                               \
    add_table(n, name, title, columns, sizeof(columns) / sizeof *(columns), add, err)

static int add_row(const next_place *at, const study_value *row, const qkv_text *text,
                   qkv_error *err) {
    if (text && text->failed) return qkv_fail_memory(err);
    return qkv_study_add_row(at->n->study, row, err);
}

/* ---- words ---- */

/* A token as people read it, "\n" with its quotes; its number where the model has no texts. */
static void append_shown(qkv_text *out, const qkv_model *model, int32_t token) {
    char *bytes = NULL;
    size_t length = 0;
    const int status = qkv_token_text(model, &bytes, &length, token, NULL);
    out->failed |= status == QKV_ERR_MEMORY;
    if (status == QKV_OK) {
        qkv_text_puts(out, "\"");
        qkv_text_append_visible(out, bytes, length);
        qkv_text_puts(out, "\"");
    } else {
        qkv_text_printf(out, "#%d", (int)token);
    }
    qkv_text_free(bytes);
}

/* A token's text as it is where it is UTF-8, else escapes. */
static void append_text(qkv_text *out, const qkv_model *model, int32_t token) {
    char *bytes = NULL;
    size_t length = 0;
    qkv_text_puts(out, "");
    const int status = qkv_token_text(model, &bytes, &length, token, NULL);
    out->failed |= status == QKV_ERR_MEMORY;
    if (status == QKV_OK) {
        if (memchr(bytes, '\0', length))
            qkv_text_append_visible(out, bytes, length);
        else
            qkv_text_append_utf8(out, bytes, length);
    }
    qkv_text_free(bytes);
}

/* ---- in short ---- */

static int add_short_tokens(const next_place *at, get_token *get, qkv_error *err) {
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && get(at->next, at->variant, i, &t); i++) {
        qkv_text shown = {0};
        append_shown(&shown, at->n->in->model, t.token);
        const study_value row[] = {STUDY_NUMBER(at->prompt),    STUDY_TEXT(at->name),
                                   STUDY_NUMBER(t.rank),        STUDY_TEXT(shown.data),
                                   STUDY_NUMBER(t.probability), STUDY_NUMBER(t.probability_change),
                                   STUDY_NUMBER(t.rank_change)};
        status = add_row(at, row, &shown, err);
        qkv_text_release(&shown);
    }
    return status;
}

static int add_short_top(const next_place *at, qkv_error *err) {
    return add_short_tokens(at, qkv_next_get, err);
}

static int add_short_of(const next_place *at, qkv_error *err) {
    return add_short_tokens(at, qkv_next_get_of, err);
}

static int add_short_diffs(const next_place *at, qkv_error *err) {
    const qkv_model *model = at->n->in->model;
    double diff, change;
    int status = QKV_OK;
    for (size_t i = 0;
         status == QKV_OK && qkv_next_get_diff(at->next, at->variant, i, &diff, &change); i++) {
        qkv_text shown = {0};
        append_shown(&shown, model, at->n->diff.ids[2 * i]);
        qkv_text_puts(&shown, " - ");
        append_shown(&shown, model, at->n->diff.ids[2 * i + 1]);
        const study_value row[] = {STUDY_NUMBER(at->prompt), STUDY_TEXT(at->name),
                                   STUDY_TEXT(shown.data), STUDY_NUMBER(diff),
                                   STUDY_NUMBER(change)};
        status = add_row(at, row, &shown, err);
        qkv_text_release(&shown);
    }
    return status;
}

static int add_short_answers(const next_place *at, qkv_error *err) {
    qkv_next_answer a = QKV_NEXT_ANSWER_INIT;
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && qkv_next_get_answer(at->next, at->variant, i, &a); i++) {
        const qkv_text *text = &at->n->answers.texts[i];
        qkv_text shown = {0};
        qkv_text_puts(&shown, "\"");
        qkv_text_append_visible(&shown, text->data, text->length);
        qkv_text_puts(&shown, "\"");
        const study_value row[] = {
            STUDY_NUMBER(at->prompt),        STUDY_TEXT(at->name),
            STUDY_TEXT(shown.data),          STUDY_NUMBER(a.n_tokens),
            STUDY_NUMBER(a.log_probability), STUDY_NUMBER(a.log_probability_change)};
        status = add_row(at, row, &shown, err);
        qkv_text_release(&shown);
    }
    return status;
}

static int add_kl(const next_place *at, qkv_error *err) {
    if (at->variant == 0) return QKV_OK;
    const study_value row[] = {STUDY_NUMBER(at->prompt), STUDY_TEXT(at->name),
                               STUDY_NUMBER(qkv_next_kl(at->next, at->variant))};
    return qkv_study_add_row(at->n->study, row, err);
}

/* "after token 6, " the"" of a single prompt. */
static int title_of(const next_study *n, const char *words, qkv_text *title, qkv_error *err) {
    qkv_text_puts(title, words);
    if (n->in->prompts.n == 1) {
        const int64_t at = qkv_next_position(n->found[0]);
        qkv_text_printf(title, " after token %d, ", (int)at);
        append_shown(title, n->in->model, n->in->prompts.items[0].tokens[at]);
    }
    return title->failed ? qkv_fail_memory(err) : QKV_OK;
}

static int add_short(const next_study *n, qkv_error *err) {
    static const char *const of_tokens[] = {
        "prompt", "variant", "rank", "token", "probability", "probability_change", "rank_change"};
    static const char *const of_diffs[] = {"prompt", "variant", "pair", "difference", "change"};
    static const char *const of_answers[] = {"prompt", "variant",         "answer",
                                             "tokens", "log_probability", "log_probability_change"};
    static const char *const of_variants[] = {"prompt", "variant", "kl"};
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    qkv_text title = {0};
    int status = QKV_OK;
    if (qkv_next_get(n->found[0], 0, 0, &t)) {
        status = title_of(n, "The most likely next tokens", &title, err);
        if (status == QKV_OK)
            status = ADD_TABLE(n, "top", title.data, of_tokens, add_short_top, err);
    }
    qkv_text_release(&title);
    if (status == QKV_OK && n->of.n) {
        status = title_of(n, "The tokens asked for, as next tokens", &title, err);
        if (status == QKV_OK) status = ADD_TABLE(n, "of", title.data, of_tokens, add_short_of, err);
    }
    qkv_text_release(&title);
    if (status == QKV_OK && n->diff.n)
        status = ADD_TABLE(n, "diff", "Differences of logits", of_diffs, add_short_diffs, err);
    if (status == QKV_OK && n->answers.n)
        status = ADD_TABLE(n, "answers", "Log-probabilities of answers after the prompt",
                           of_answers, add_short_answers, err);
    if (status == QKV_OK && n->n_variants)
        status = ADD_TABLE(n, "variants", "KL(baseline || variant) of the next token, in nats",
                           of_variants, add_kl, err);
    return status;
}

/* ---- all numbers ---- */

#define NONE STUDY_NUMBER((double)NAN)

static int add_tokens_of(const next_place *at, const char *list, get_token *get, qkv_error *err) {
    const double kl = qkv_next_kl(at->next, at->variant);
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && get(at->next, at->variant, i, &t); i++) {
        qkv_text text = {0};
        append_text(&text, at->n->in->model, t.token);
        const study_value row[] = {STUDY_NUMBER(at->prompt),
                                   STUDY_TEXT(at->name),
                                   STUDY_NUMBER(qkv_next_position(at->next)),
                                   STUDY_TEXT(list),
                                   STUDY_NUMBER(t.token),
                                   STUDY_TEXT(text.data),
                                   STUDY_NUMBER(t.rank),
                                   STUDY_NUMBER(t.rank_change),
                                   STUDY_NUMBER(t.logit),
                                   STUDY_NUMBER(t.logit_change),
                                   STUDY_NUMBER(t.probability),
                                   STUDY_NUMBER(t.probability_change),
                                   STUDY_NUMBER(kl),
                                   NONE,
                                   NONE};
        status = add_row(at, row, &text, err);
        qkv_text_release(&text);
    }
    return status;
}

/* A pair as it was given, A/B. */
static int add_diffs(const next_place *at, qkv_error *err) {
    const qkv_model *model = at->n->in->model;
    double diff, change;
    int status = QKV_OK;
    for (size_t i = 0;
         status == QKV_OK && qkv_next_get_diff(at->next, at->variant, i, &diff, &change); i++) {
        qkv_text pair = {0};
        append_text(&pair, model, at->n->diff.ids[2 * i]);
        qkv_text_puts(&pair, "/");
        append_text(&pair, model, at->n->diff.ids[2 * i + 1]);
        const study_value row[] = {STUDY_NUMBER(at->prompt),
                                   STUDY_TEXT(at->name),
                                   STUDY_NUMBER(qkv_next_position(at->next)),
                                   STUDY_TEXT("diff"),
                                   NONE,
                                   STUDY_TEXT(pair.data),
                                   NONE,
                                   NONE,
                                   STUDY_NUMBER(diff),
                                   STUDY_NUMBER(change),
                                   NONE,
                                   NONE,
                                   STUDY_NUMBER(qkv_next_kl(at->next, at->variant)),
                                   NONE,
                                   NONE};
        status = add_row(at, row, &pair, err);
        qkv_text_release(&pair);
    }
    return status;
}

static int add_answers(const next_place *at, qkv_error *err) {
    qkv_next_answer a = QKV_NEXT_ANSWER_INIT;
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && qkv_next_get_answer(at->next, at->variant, i, &a); i++) {
        const qkv_text *answer = &at->n->answers.texts[i];
        qkv_text text = {0};
        qkv_text_append_utf8(&text, answer->data, answer->length);
        const study_value row[] = {STUDY_NUMBER(at->prompt),
                                   STUDY_TEXT(at->name),
                                   STUDY_NUMBER(qkv_next_position(at->next)),
                                   STUDY_TEXT("answer"),
                                   NONE,
                                   STUDY_TEXT(text.data),
                                   NONE,
                                   NONE,
                                   NONE,
                                   NONE,
                                   STUDY_NUMBER(a.probability),
                                   STUDY_NUMBER(a.probability_change),
                                   STUDY_NUMBER(qkv_next_kl(at->next, at->variant)),
                                   STUDY_NUMBER(a.log_probability),
                                   STUDY_NUMBER(a.log_probability_change)};
        status = add_row(at, row, &text, err);
        qkv_text_release(&text);
    }
    return status;
}

static int add_numbers(const next_place *at, qkv_error *err) {
    int status = add_tokens_of(at, "top", qkv_next_get, err);
    if (status == QKV_OK) status = add_tokens_of(at, "of", qkv_next_get_of, err);
    if (status == QKV_OK) status = add_diffs(at, err);
    return status == QKV_OK ? add_answers(at, err) : status;
}

static int show_position(const next_study *n, qkv_error *err) {
    static const char *const columns[] = {
        "prompt",       "variant",         "position",
        "list",         "token",           "text",
        "rank",         "rank_change",     "logit",
        "logit_change", "probability",     "probability_change",
        "kl",           "log_probability", "log_probability_change"};
    int status = add_short(n, err);
    n->study->n_printed = n->study->n_tables;
    n->study->numbers_table = n->study->n_tables;
    return status == QKV_OK ? ADD_TABLE(n, "tokens", "All numbers", columns, add_numbers, err)
                            : status;
}

/* ---- losses ---- */

static int add_losses(const next_place *at, qkv_error *err) {
    qkv_next_loss loss = QKV_NEXT_LOSS_INIT;
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && qkv_next_get_loss(at->next, at->variant, i, &loss);
         i++) {
        qkv_text text = {0};
        append_text(&text, at->n->in->model, loss.token);
        const study_value row[] = {STUDY_NUMBER(at->prompt),       STUDY_TEXT(at->name),
                                   STUDY_NUMBER(loss.position),    STUDY_NUMBER(loss.token),
                                   STUDY_TEXT(text.data),          STUDY_NUMBER(loss.loss),
                                   STUDY_NUMBER(loss.loss_change), STUDY_NUMBER(loss.rank),
                                   STUDY_NUMBER(loss.rank_change), STUDY_NUMBER(loss.kl)};
        status = add_row(at, row, &text, err);
        qkv_text_release(&text);
    }
    return status;
}

static int add_mean(const next_place *at, qkv_error *err) {
    const double mean = qkv_next_mean_loss(at->next, at->variant);
    const study_value row[] = {STUDY_NUMBER(at->prompt), STUDY_TEXT(at->name), STUDY_NUMBER(mean),
                               STUDY_NUMBER(mean - qkv_next_mean_loss(at->next, 0))};
    return qkv_study_add_row(at->n->study, row, err);
}

static int show_losses(const next_study *n, qkv_error *err) {
    static const char *const columns[] = {"prompt",      "variant", "position",    "token",
                                          "text",        "loss",    "loss_change", "rank",
                                          "rank_change", "kl"};
    static const char *const of_means[] = {"prompt", "variant", "mean_loss", "mean_loss_change"};
    const int status = ADD_TABLE(n, "losses", "The loss of each token of the prompt, in nats",
                                 columns, add_losses, err);
    n->study->n_printed = 2;
    return status == QKV_OK ? ADD_TABLE(n, "variants", "Means", of_means, add_mean, err) : status;
}

int qkv_next_show(const next_study *n, qkv_error *err) {
    qkv_study_set_title(n->study, "What Comes Next");
    return n->how->all ? show_losses(n, err) : show_position(n, err);
}
