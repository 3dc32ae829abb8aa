/* qkv next as data: CSV, a number of rows for each variant, and JSON. */
#include <inttypes.h>
#include <string.h>

#include "base/csv.h"
#include "base/json_tokens.h"
#include "cli/next.h"

typedef int get_token(const qkv_next *next, size_t variant, size_t index, qkv_next_token *token);

/* A token's text in a file: as it is where it is UTF-8, else escapes. */
static void append_text(qkv_text *out, const qkv_model *model, int32_t token) {
    char *bytes = NULL;
    size_t length = 0;
    qkv_text_puts(out, "");
    if (qkv_token_text(model, &bytes, &length, token, NULL) == QKV_OK) {
        if (memchr(bytes, '\0', length))
            qkv_text_append_visible(out, bytes, length);
        else
            qkv_text_append_utf8(out, bytes, length);
    }
    qkv_text_free(bytes);
}

/* ---- CSV ---- */

void cli_next_csv_head(qkv_text *out, int all) {
    qkv_text_puts(out, all ? "prompt,variant,position,token,text,loss,loss_change,rank,"
                             "rank_change,kl\n"
                           : "prompt,variant,position,list,token,text,rank,rank_change,logit,"
                             "logit_change,probability,probability_change,kl\n");
}

static void append_field(qkv_text *out, const qkv_text *field) {
    out->failed |= field->failed;
    qkv_csv_append(out, field->data ? field->data : "");
}

/* "prompt,variant,position," */
static void append_place(qkv_text *out, const cli_next *it, size_t variant, int64_t position) {
    qkv_text name = {0};
    const char *edits = cli_next_variant(it, variant);
    qkv_text_append_utf8(&name, edits, strlen(edits));
    qkv_text_printf(out, "%zu,", it->number);
    append_field(out, &name);
    qkv_text_printf(out, ",%" PRId64 ",", position);
    qkv_text_release(&name);
}

static void append_token_text(qkv_text *out, const cli_next *it, int32_t token) {
    qkv_text text = {0};
    append_text(&text, it->model, token);
    append_field(out, &text);
    qkv_text_release(&text);
}

static void append_tokens(qkv_text *out, const cli_next *it, size_t variant, const char *list,
                          get_token *get) {
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    for (size_t i = 0; get(it->next, variant, i, &t); i++) {
        append_place(out, it, variant, qkv_next_position(it->next));
        qkv_text_printf(out, "%s,%" PRId32 ",", list, t.token);
        append_token_text(out, it, t.token);
        qkv_text_printf(out, ",%" PRId64 ",%" PRId64 ",%.9g,%.9g,%.12g,%.12g,%.12g\n", t.rank,
                        t.rank_change, t.logit, t.logit_change, t.probability, t.probability_change,
                        qkv_next_kl(it->next, variant));
    }
}

/* A pair as it was given, A/B. */
static void append_pair(qkv_text *out, const cli_next *it, size_t pair) {
    append_text(out, it->model, it->diff[2 * pair]);
    qkv_text_puts(out, "/");
    append_text(out, it->model, it->diff[2 * pair + 1]);
}

static void append_diffs(qkv_text *out, const cli_next *it, size_t variant) {
    double diff, change;
    for (size_t i = 0; qkv_next_get_diff(it->next, variant, i, &diff, &change); i++) {
        qkv_text pair = {0};
        append_pair(&pair, it, i);
        append_place(out, it, variant, qkv_next_position(it->next));
        qkv_text_puts(out, "diff,,");
        append_field(out, &pair);
        qkv_text_printf(out, ",,,%.9g,%.9g,,,%.12g\n", diff, change,
                        qkv_next_kl(it->next, variant));
        qkv_text_release(&pair);
    }
}

static void append_losses(qkv_text *out, const cli_next *it, size_t variant) {
    qkv_next_loss loss = QKV_NEXT_LOSS_INIT;
    for (size_t i = 0; qkv_next_get_loss(it->next, variant, i, &loss); i++) {
        append_place(out, it, variant, loss.position);
        qkv_text_printf(out, "%" PRId32 ",", loss.token);
        append_token_text(out, it, loss.token);
        qkv_text_printf(out, ",%.12g,%.12g,%" PRId64 ",%" PRId64 ",%.12g\n", loss.loss,
                        loss.loss_change, loss.rank, loss.rank_change, loss.kl);
    }
}

void cli_next_csv_rows(qkv_text *out, const cli_next *it, int all) {
    for (size_t v = 0; v < qkv_next_n_variants(it->next); v++) {
        if (all) {
            append_losses(out, it, v);
            continue;
        }
        append_tokens(out, it, v, "top", qkv_next_get);
        append_tokens(out, it, v, "of", qkv_next_get_of);
        append_diffs(out, it, v);
    }
}

/* ---- JSON ---- */

static json_t *text_json(const qkv_model *model, int32_t token) {
    char *bytes = NULL;
    size_t length = 0;
    const int status = qkv_token_text(model, &bytes, &length, token, NULL);
    json_t *json = status == QKV_OK ? qkv_json_string(bytes, length) : json_null();
    qkv_text_free(bytes);
    return json;
}

static json_t *tokens_json(const cli_next *it, size_t variant, get_token *get) {
    json_t *list = json_array();
    qkv_next_token t = QKV_NEXT_TOKEN_INIT;
    for (size_t i = 0; get(it->next, variant, i, &t); i++)
        json_array_append_new(
            list,
            json_pack("{s:i, s:o, s:I, s:I, s:f, s:f, s:f, s:f}", "token", (int)t.token, "text",
                      text_json(it->model, t.token), "rank", (json_int_t)t.rank, "rank_change",
                      (json_int_t)t.rank_change, "logit", t.logit, "logit_change", t.logit_change,
                      "probability", t.probability, "probability_change", t.probability_change));
    return list;
}

static json_t *diffs_json(const cli_next *it, size_t variant) {
    json_t *list = json_array();
    double diff, change;
    for (size_t i = 0; qkv_next_get_diff(it->next, variant, i, &diff, &change); i++)
        json_array_append_new(list, json_pack("{s:[o,o], s:f, s:f}", "texts",
                                              text_json(it->model, it->diff[2 * i]),
                                              text_json(it->model, it->diff[2 * i + 1]),
                                              "difference", diff, "change", change));
    return list;
}

static json_t *losses_json(const cli_next *it, size_t variant) {
    json_t *list = json_array();
    qkv_next_loss loss = QKV_NEXT_LOSS_INIT;
    for (size_t i = 0; qkv_next_get_loss(it->next, variant, i, &loss); i++)
        json_array_append_new(
            list, json_pack("{s:I, s:i, s:o, s:f, s:f, s:I, s:I, s:f}", "position",
                            (json_int_t)loss.position, "token", (int)loss.token, "text",
                            text_json(it->model, loss.token), "loss", loss.loss, "loss_change",
                            loss.loss_change, "rank", (json_int_t)loss.rank, "rank_change",
                            (json_int_t)loss.rank_change, "kl", loss.kl));
    return list;
}

static json_t *variant_json(const cli_next *it, size_t variant, int all) {
    json_t *edits = qkv_json_text(variant ? cli_next_variant(it, variant) : "");
    if (all)
        return json_pack("{s:I, s:o, s:f, s:o}", "variant", (json_int_t)variant, "edits", edits,
                         "mean_loss", qkv_next_mean_loss(it->next, variant), "losses",
                         losses_json(it, variant));
    return json_pack("{s:I, s:o, s:f, s:o, s:o, s:o}", "variant", (json_int_t)variant, "edits",
                     edits, "kl", qkv_next_kl(it->next, variant), "top",
                     tokens_json(it, variant, qkv_next_get), "of",
                     tokens_json(it, variant, qkv_next_get_of), "diff", diffs_json(it, variant));
}

json_t *cli_next_json(const cli_next *it, int all) {
    const cli_prompt *prompt = it->prompt;
    json_t *variants = json_array();
    for (size_t v = 0; v < qkv_next_n_variants(it->next); v++)
        json_array_append_new(variants, variant_json(it, v, all));
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o}", "text",
        prompt->text ? qkv_json_string(prompt->text, prompt->length) : json_null(), "tokens",
        qkv_json_token_ids(prompt->tokens, prompt->n_tokens), "token_strings",
        qkv_json_token_strings(it->model, prompt->tokens, prompt->n_tokens), "position",
        all ? json_null() : json_integer((json_int_t)qkv_next_position(it->next)), "variants",
        variants);
}
