#include "cli/run_changes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/json_tokens.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/columns.h"
#include "qkv/generate.h"
#include "qkv/measure.h"
#include "qkv/next.h"

/* ---- attention weights ---- */

static void look_for_cell(cli_change *change, const qkv_tensor *base, const qkv_tensor *edited,
                          size_t head) {
    const int64_t T = base->shape[2], from = (int64_t)head * T * T;
    for (int64_t i = 0; i < T * T; i++) {
        const double before = (double)base->data[from + i], after = (double)edited->data[from + i];
        if (fabs(after - before) <= fabs(change->after - change->before)) continue;
        change->before = before;
        change->after = after;
        change->cell_head = base->heads[head];
        change->query = i / T;
        change->key = i % T;
    }
}

static int compare_maps(cli_change *change, const qkv_measure *tv, const qkv_tensor *base,
                        const qkv_tensor *edited, qkv_error *err) {
    const int64_t T = base->shape[2];
    change->n_heads = base->n_heads;
    change->head_tv = -1;
    for (size_t h = 0; h < (size_t)base->n_heads; h++) {
        double value;
        qkv_pattern pattern = QKV_PATTERN_INIT;
        pattern.weights = edited->data + (int64_t)h * T * T;
        pattern.baseline = base->data + (int64_t)h * T * T;
        pattern.n_tokens = T;
        const int status = qkv_measure_pattern(tv, &pattern, &value, err);
        if (status != QKV_OK) return status;
        change->tv += value / base->n_heads;
        if (value > change->head_tv) {
            change->head_tv = value;
            change->head = base->heads[h];
            change->index = h;
        }
        look_for_cell(change, base, edited, h);
    }
    return QKV_OK;
}

int cli_changes_find(cli_changes *changes, const cli_outcome *outcome, qkv_error *err) {
    qkv_measure *tv = NULL;
    size_t variant;
    qkv_site site;
    int32_t layer;
    qkv_tensor edited = QKV_TENSOR_INIT, base = QKV_TENSOR_INIT;
    const qkv_result *result = outcome->result;
    int status = qkv_measure_new(&tv, "tv", NULL, err);
    for (size_t i = 0;
         status == QKV_OK && qkv_result_item(result, i, &variant, &site, &layer, &edited); i++) {
        if (variant == 0 || site != QKV_SITE_PATTERN || edited.reduction != QKV_REDUCTION_NONE)
            continue;
        if (!qkv_result_get(result, 0, site, layer, &base) || base.data == edited.data) continue;
        cli_change change = {.variant = variant, .layer = layer};
        status = compare_maps(&change, tv, &base, &edited, err);
        if (status == QKV_OK && !QKV_PUSH(changes->items, changes->capacity, changes->n, change))
            status = qkv_fail_memory(err);
    }
    qkv_measure_free(tv);
    return status;
}

void cli_changes_release(cli_changes *changes) {
    free(changes->items);
    *changes = (cli_changes){0};
}

static void print_token(const cli_outcome *outcome, int64_t position) {
    qkv_text text = {0};
    size_t n;
    const int32_t *tokens = qkv_plan_tokens(outcome->plan, &n);
    cli_append_token(&text, outcome->model, tokens[position]);
    printf("%s (%" PRId64 ")", cli_shown(&text), position);
    qkv_text_release(&text);
}

static void print_change(const cli_change *change, const cli_outcome *outcome) {
    char name[32], head[24];
    snprintf(name, sizeof name, "v%zu, layer %" PRId32, change->variant, change->layer);
    snprintf(head, sizeof head, "h%" PRId32, change->head);
    qkv_print(stdout, "%-15s  %15.4g  %5s %-9.4g  ", name, change->tv, head, change->head_tv);
    if (change->before == change->after) {
        printf("none\n");
        return;
    }
    qkv_print(stdout, "h%" PRId32 " %.4f -> %.4f, ", change->cell_head, change->before,
              change->after);
    print_token(outcome, change->query);
    printf(" on ");
    print_token(outcome, change->key);
    putchar('\n');
}

void cli_changes_print(const cli_changes *changes, const cli_outcome *outcome) {
    if (changes->n == 0) return;
    printf("\n%-15s  %15s  %-15s  %s\n", "attention", "total variation", " most in",
           "weight that changed most, and its query and key");
    for (size_t i = 0; i < changes->n; i++) print_change(&changes->items[i], outcome);
}

json_t *cli_changes_json(const cli_changes *changes) {
    json_t *list = json_array();
    for (size_t i = 0; i < changes->n; i++) {
        const cli_change *c = &changes->items[i];
        qkv_json_push(list, json_pack("{s:I, s:i, s:f, s:i, s:f, s:{s:i, s:I, s:I, s:f, s:f}}",
                                      "variant", (json_int_t)c->variant, "layer", (int)c->layer,
                                      "total_variation", c->tv, "head", (int)c->head,
                                      "head_total_variation", c->head_tv, "largest_change", "head",
                                      (int)c->cell_head, "query", (json_int_t)c->query, "key",
                                      (json_int_t)c->key, "before", c->before, "after", c->after));
    }
    return list;
}

/* ---- tokens that come next ---- */

enum { SHOWN = 5 };

/* The last token whose logits are there, or -1. */
static int64_t last_captured(const qkv_plan *plan) {
    size_t n;
    qkv_plan_tokens(plan, &n);
    while (n > 0 && !qkv_plan_wants_logits(plan, n - 1)) n--;
    return (int64_t)n - 1;
}

static const float *last_row(const cli_outcome *outcome, size_t variant, size_t *n_vocab) {
    qkv_tensor logits = QKV_TENSOR_INIT;
    if (!qkv_result_get(outcome->result, variant, QKV_SITE_LOGITS, 0, &logits)) return NULL;
    if (logits.channels) return NULL; /* of some tokens only */
    *n_vocab = (size_t)logits.shape[1];
    return logits.data + (size_t)(logits.shape[0] - 1) * *n_vocab;
}

void cli_next_line_print(const cli_outcome *outcome) {
    const float *row;
    size_t n_vocab;
    for (size_t v = 0; (row = last_row(outcome, v, &n_vocab)) != NULL; v++) {
        int32_t tokens[SHOWN];
        const size_t n = qkv_most_likely_tokens(row, n_vocab, tokens, SHOWN);
        if (v == 0) {
            printf("\nmost likely after token ");
            print_token(outcome, last_captured(outcome->plan));
            putchar('\n');
        }
        printf("v%zu", v);
        for (size_t i = 0; i < n; i++) {
            qkv_text text = {0};
            cli_append_token(&text, outcome->model, tokens[i]);
            qkv_print(stdout, "  %s %.4f", cli_shown(&text),
                      exp(qkv_log_probability(row, n_vocab, tokens[i])));
            qkv_text_release(&text);
        }
        putchar('\n');
    }
}

static json_t *token_json(const cli_outcome *outcome, const float *row, size_t n_vocab,
                          int32_t token) {
    return json_pack("{s:i, s:o, s:f}", "token", (int)token, "text",
                     qkv_json_token_string(outcome->model, token), "probability",
                     exp(qkv_log_probability(row, n_vocab, token)));
}

json_t *cli_next_line_json(const cli_outcome *outcome) {
    json_t *list = json_array();
    const float *row;
    size_t n_vocab;
    for (size_t v = 0; (row = last_row(outcome, v, &n_vocab)) != NULL; v++) {
        int32_t tokens[SHOWN];
        json_t *top = json_array();
        const size_t n = qkv_most_likely_tokens(row, n_vocab, tokens, SHOWN);
        for (size_t i = 0; i < n; i++)
            qkv_json_push(top, token_json(outcome, row, n_vocab, tokens[i]));
        qkv_json_push(list, json_pack("{s:I, s:I, s:o}", "variant", (json_int_t)v, "position",
                                      (json_int_t)last_captured(outcome->plan), "top", top));
    }
    return list;
}
