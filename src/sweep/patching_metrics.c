/*
 * What patching measures: logit_diff:A/B, logit:A, prob:A and kl, of the logits behind one token,
 * @-1 being the last. Tokens are written as they read, with blanks before a word: " Mary/ John".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/escapes.h"
#include "base/fail.h"
#include "base/logits.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/number.h"
#include "qkv/next.h"
#include "sweep/patching.h"

static const struct {
    const char *name;
    size_t n_tokens;
} measures[QKV_PATCH_MEASURES] = {[QKV_PATCH_LOGIT_DIFF] = {"logit_diff", 2},
                                  [QKV_PATCH_LOGIT] = {"logit", 1},
                                  [QKV_PATCH_PROB] = {"prob", 1},
                                  [QKV_PATCH_KL] = {"kl", 0}};

/* The names of results are one line of at most 200 bytes. */
enum { LONGEST_METRIC = 200 };
#define LAST_TOKEN (-1)

static int fail_measure(const char *name, size_t length, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(name, length);
    for (int i = 0; i < QKV_PATCH_MEASURES; i++) qkv_nearest_try(&near, measures[i].name);
    return qkv_fail(
        err, QKV_ERR_SYNTAX,
        "patching has no metric '%.*s'%s; it has logit_diff:A/B, logit:A, prob:A and kl",
        (int)length, name, qkv_nearest_hint(&near));
}

static int find_measure(qkv_patch_metric *metric, const char *name, size_t length, qkv_error *err) {
    for (int i = 0; i < QKV_PATCH_MEASURES; i++) {
        if (strlen(measures[i].name) != length || memcmp(measures[i].name, name, length) != 0)
            continue;
        metric->measure = (qkv_patch_measure)i;
        return QKV_OK;
    }
    return fail_measure(name, length, err);
}

/* ---- tokens ---- */

/* "@-2" at the end of a text: returns the length of the rest. Other @ are part of a token, and so is
 * one inside quotes: logit:"@1". */
static size_t read_position(const char *text, int64_t *at) {
    const char *found = strrchr(text, '@');
    *at = LAST_TOKEN;
    if (!found || !qkv_parse_int(found + 1, strlen(found + 1), at)) return strlen(text);
    return (size_t)(found - text);
}

/* Quotes around a token are not part of it. */
static void strip_quotes(const char **text, size_t *length) {
    if (*length < 3 || (*text)[0] != '"' || (*text)[*length - 1] != '"') return;
    ++*text;
    *length -= 2;
}

static int find_token(const qkv_model *model, const qkv_text *written, int32_t *token,
                      qkv_error *err) {
    const char *text = written->data;
    size_t length = written->length;
    strip_quotes(&text, &length);
    return qkv_find_token(model, token, text, length, err);
}

/* "A/B" */
static int read_tokens(qkv_patch_metric *metric, const qkv_model *model, const char *at,
                       qkv_error *err) {
    const size_t wanted = measures[metric->measure].n_tokens;
    const char *name = measures[metric->measure].name;
    qkv_text text = {0};
    qkv_error why = {0};
    size_t n = 0;
    int status = QKV_OK;
    for (;; at++) {
        at = qkv_read_escaped(&text, at, '/');
        if (text.failed) status = qkv_fail_memory(&why);
        if (status == QKV_OK && n < wanted)
            status = find_token(model, &text, &metric->tokens[n], &why);
        n++;
        if (!*at || status != QKV_OK) break;
    }
    qkv_text_release(&text);
    if (status != QKV_OK) return qkv_fail(err, status, "metric %s: %s", name, why.message);
    metric->has_tokens = 1;
    if (n == wanted) return QKV_OK;
    return qkv_fail(err, QKV_ERR_SYNTAX,
                    wanted == 2 ? "metric %s wants two tokens, A/B, not %zu"
                                : "metric %s wants one token, not %zu; a token's own / is "
                                  "written \\/",
                    name, n);
}

/* ---- metrics ---- */

static int is_one_line(const char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 127) return 0;
    }
    return 1;
}

static int parse(qkv_patch_metric *metric, const qkv_model *model, int64_t *at, qkv_error *err) {
    if (strlen(metric->text) > LONGEST_METRIC || !is_one_line(metric->text))
        return qkv_fail(err, QKV_ERR_SYNTAX,
                        "a metric is one line of at most %d bytes; \\n, \\t and \\xNN may stand in "
                        "it",
                        LONGEST_METRIC);
    char *head = qkv_strndup(metric->text, read_position(metric->text, at));
    if (!head) return qkv_fail_memory(err);
    const size_t name = strcspn(head, ":");
    int status = find_measure(metric, head, name, err);
    if (status == QKV_OK && head[name] && !measures[metric->measure].n_tokens)
        status = qkv_fail(err, QKV_ERR_SYNTAX, "metric %.*s has no tokens", (int)name, head);
    else if (status == QKV_OK && head[name])
        status = read_tokens(metric, model, head + name + 1, err);
    free(head);
    return status;
}

/* Without tokens of its own a metric is of each pair's. */
static int check_answers(const qkv_patching *p, const qkv_patch_metric *metric, qkv_error *err) {
    const size_t wanted = measures[metric->measure].n_tokens;
    for (size_t i = 0; i < p->n_pairs && !metric->has_tokens; i++) {
        for (size_t k = 0; k < wanted; k++) {
            if (p->pairs[i].tokens[k] >= 0) continue;
            return qkv_fail(err, QKV_ERR_SYNTAX,
                            wanted == 2
                                ? "metric %s needs two tokens: give %s:A/B, or answer and wrong "
                                  "of every pair"
                                : "metric %s needs a token: give %s:A, or answer of every pair",
                            metric->text, measures[metric->measure].name);
        }
    }
    return QKV_OK;
}

static int add_metric(qkv_spec *spec, const json_t *item, qkv_error *err) {
    qkv_patching *p = spec->sweep->patching;
    int64_t at = LAST_TOKEN;
    if (!json_is_string(item))
        return qkv_fail(err, QKV_ERR_SYNTAX, "metrics of patching are texts: logit_diff:A/B");
    qkv_patch_metric metric = {.text = qkv_strdup(json_string_value(item))};
    if (!metric.text) return qkv_fail_memory(err);
    int status = parse(&metric, spec->sweep->model, &at, err);
    if (status == QKV_OK) status = check_answers(p, &metric, err);
    if (status == QKV_OK && p->n_metrics && at != p->at)
        status = qkv_fail(err, QKV_ERR_SYNTAX,
                          "metrics look at one position together, not at @%lld and @%lld",
                          (long long)p->at, (long long)at);
    for (size_t i = 0; i < p->n_metrics && status == QKV_OK; i++) {
        if (strcmp(p->metrics[i].text, metric.text) == 0)
            status = qkv_fail(err, QKV_ERR_SYNTAX, "metric '%s' is given twice", metric.text);
    }
    if (status == QKV_OK && !QKV_PUSH(p->metrics, p->metrics_capacity, p->n_metrics, metric))
        status = qkv_fail_memory(err);
    if (status != QKV_OK) {
        free(metric.text);
        return status;
    }
    p->at = at;
    p->needs_clean |= metric.measure == QKV_PATCH_KL;
    return QKV_OK;
}

static int check_position(const qkv_sweep *s, qkv_error *err) {
    const int64_t at = s->patching->at;
    for (size_t i = 0; i < s->n_prompts; i++) {
        const int64_t n = (int64_t)s->prompts[i].n_tokens;
        if (at < n && at >= -n) continue;
        return qkv_fail(err, QKV_ERR_PLAN,
                        "position @%lld is out of range: the %s prompt has @0 to @%lld, or @-%lld "
                        "to @-1 from its end",
                        (long long)at, i % 2 ? "corrupt" : "clean", (long long)n - 1, (long long)n);
    }
    return QKV_OK;
}

int qkv_patching_metrics(qkv_spec *spec, qkv_error *err) {
    const json_t *given = json_object_get(spec->object, "metrics");
    int status = QKV_OK;
    if (!given || (json_is_array(given) && json_array_size(given) == 0))
        return qkv_fail(err, QKV_ERR_SYNTAX,
                        "patching needs a metric: logit_diff:A/B, logit:A, prob:A or kl");
    if (!json_is_array(given)) status = add_metric(spec, given, err);
    for (size_t i = 0; i < json_array_size(given) && status == QKV_OK; i++)
        status = add_metric(spec, json_array_get(given, i), err);
    spec->sweep->n_metrics = spec->sweep->patching->n_metrics;
    return status == QKV_OK ? check_position(spec->sweep, err) : status;
}

double qkv_patching_measure(const qkv_patch_metric *metric, const qkv_patch_pair *pair,
                            const float *row, const float *clean, size_t n_vocab) {
    const int32_t *tokens = metric->has_tokens ? metric->tokens : pair->tokens;
    switch (metric->measure) {
    case QKV_PATCH_LOGIT_DIFF:
        return (double)row[tokens[0]] - (double)row[tokens[1]];
    case QKV_PATCH_LOGIT:
        return (double)row[tokens[0]];
    case QKV_PATCH_PROB:
        return exp(qkv_logit_log_p(row[tokens[0]], qkv_log_sum_exp(row, n_vocab)));
    case QKV_PATCH_KL:
        return qkv_logits_kl(clean, qkv_log_sum_exp(clean, n_vocab), row,
                             qkv_log_sum_exp(row, n_vocab), n_vocab);
    default:
        return NAN;
    }
}
