/*
 * What patching measures: logit_diff:A/B, logit:A, prob:A and kl, of the logits after one token,
 * @-1 being the last. Tokens are written as they read, with spaces before a word: " Mary/ John".
 *
 * The log-probability of an answer, logprob:A, and the difference of two, logprob_diff:A/B, may be of
 * several tokens; so may prob:A. The answer then follows the prompt, and each of its tokens is predicted by
 * those before it.
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
#include "base/text.h"
#include "qkv/next.h"
#include "sweep/patching.h"

static const struct {
    const char *name;
    size_t n_answers;
    int is_several; /* an answer may be several tokens */
} measures[QKV_PATCH_MEASURES] = {[QKV_PATCH_LOGIT_DIFF] = {"logit_diff", 2, 0},
                                  [QKV_PATCH_LOGIT] = {"logit", 1, 0},
                                  [QKV_PATCH_PROB] = {"prob", 1, 1},
                                  [QKV_PATCH_KL] = {"kl", 0, 0},
                                  [QKV_PATCH_LOGPROB] = {"logprob", 1, 1},
                                  [QKV_PATCH_LOGPROB_DIFF] = {"logprob_diff", 2, 1}};
#define KNOWN_METRICS "logit_diff:A/B, logit:A, prob:A, logprob:A, logprob_diff:A/B and kl"

/* The names of results are one line of at most 200 bytes. */
enum { LONGEST_METRIC = 200 };
#define LAST_TOKEN (-1)

static int fail_measure(const char *name, size_t length, qkv_error *err) {
    qkv_nearest near = qkv_nearest_of(name, length);
    for (int i = 0; i < QKV_PATCH_MEASURES; i++) qkv_nearest_try(&near, measures[i].name);
    return qkv_fail(err, QKV_ERR_SYNTAX, "patching has no metric '%.*s'%s; it has " KNOWN_METRICS,
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

/* *text gets a space before it. */
static int put_space(char **text, qkv_error *err) {
    qkv_text with = {0};
    qkv_text_printf(&with, " %s", *text);
    if (with.failed) return qkv_fail_memory(err);
    free(*text);
    *text = with.data;
    return QKV_OK;
}

/* One answer, or two that are compared. */
static int find_answers(const qkv_model *model, size_t n, const char *const *texts,
                        const size_t *lengths, qkv_patch_answer *answers, int *spaced,
                        qkv_error *err) {
    int32_t *tokens[QKV_PATCH_PARTS] = {0};
    size_t n_tokens[QKV_PATCH_PARTS] = {0};
    const int status =
        n == 2 ? qkv_find_answer_pair(model, tokens, n_tokens, spaced, texts, lengths, err)
               : qkv_find_answer(model, tokens, n_tokens, spaced, texts[0], lengths[0], err);
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        answers[i] = (qkv_patch_answer){tokens[i], n_tokens[i]};
    return status;
}

int qkv_patching_find_answers(const qkv_model *model, char *texts[QKV_PATCH_PARTS],
                              qkv_patch_answer answers[QKV_PATCH_PARTS], qkv_error *err) {
    const size_t first = texts[0] ? 0 : 1, n = texts[0] && texts[1] ? 2 : 1;
    const char *given[QKV_PATCH_PARTS] = {0};
    size_t lengths[QKV_PATCH_PARTS] = {0};
    int spaced[QKV_PATCH_PARTS] = {0};
    if (!texts[first]) return QKV_OK;
    for (size_t i = 0; i < n; i++) {
        given[i] = texts[first + i];
        lengths[i] = strlen(given[i]);
    }
    int status = find_answers(model, n, given, lengths, answers + first, spaced, err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        if (spaced[i]) status = put_space(&texts[first + i], err);
    }
    return status;
}

/* A token of a metric: its text, and as it is written, from `from` to `to`. */
typedef struct written {
    qkv_text text;
    const char *from, *to;
} written;

/* A logit is that of one token. */
static int check_single(const qkv_patch_metric *metric, const qkv_model *model,
                        const qkv_text *token, const qkv_patch_answer *answer, qkv_error *err) {
    const char *text = token->data;
    size_t length = token->length;
    int32_t ignored;
    qkv_error why = {0};
    if (measures[metric->measure].is_several || answer->n == 1) return QKV_OK;
    strip_quotes(&text, &length);
    const int status = qkv_find_token(model, &ignored, text, length, &why);
    if (status == QKV_OK) return QKV_OK;
    return qkv_fail(err, status, "%s; %s takes several", why.message,
                    measures[metric->measure].n_answers == 2 ? "logprob_diff:A/B" : "logprob:A");
}

/* The tokens of a metric; `shown` gets them as they are written, with spaces that were left out. */
static int take_tokens(qkv_patch_metric *metric, const qkv_model *model, const written *of,
                       qkv_text *shown, qkv_error *err) {
    const size_t n = measures[metric->measure].n_answers;
    const char *texts[QKV_PATCH_PARTS] = {0};
    size_t lengths[QKV_PATCH_PARTS] = {0};
    int spaced[QKV_PATCH_PARTS] = {0};
    for (size_t i = 0; i < n; i++) {
        if (of[i].text.failed) return qkv_fail_memory(err);
        texts[i] = of[i].text.data;
        lengths[i] = of[i].text.length;
        strip_quotes(&texts[i], &lengths[i]);
    }
    int status = find_answers(model, n, texts, lengths, metric->answers, spaced, err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        const char *from = of[i].from;
        if (i) qkv_text_puts(shown, "/");
        if (texts[i] != of[i].text.data) qkv_text_append(shown, from++, 1);
        qkv_text_puts(shown, spaced[i] ? " " : "");
        qkv_text_append(shown, from, (size_t)(of[i].to - from));
        status = check_single(metric, model, &of[i].text, &metric->answers[i], err);
    }
    return status == QKV_OK && shown->failed ? qkv_fail_memory(err) : status;
}

/* "A/B" */
static int read_tokens(qkv_patch_metric *metric, const qkv_model *model, const char *at,
                       qkv_text *shown, qkv_error *err) {
    const size_t wanted = measures[metric->measure].n_answers;
    const char *name = measures[metric->measure].name;
    const char *what = measures[metric->measure].is_several ? "answer" : "token";
    written of[QKV_PATCH_PARTS] = {0};
    qkv_text more = {0};
    qkv_error why = {0};
    size_t n = 0;
    for (;; at++) {
        const char *from = at;
        at = qkv_read_escaped(n < wanted ? &of[n].text : &more, at, '/');
        if (n < wanted) {
            of[n].from = from;
            of[n].to = at;
        }
        n++;
        if (!*at) break;
    }
    qkv_text_release(&more);
    int status = QKV_OK;
    if (n == wanted) status = take_tokens(metric, model, of, shown, &why);
    for (size_t i = 0; i < wanted; i++) qkv_text_release(&of[i].text);
    if (status != QKV_OK) return qkv_fail(err, status, "metric %s: %s", name, why.message);
    metric->has_tokens = 1;
    if (n == wanted) return QKV_OK;
    if (wanted == 2)
        return qkv_fail(err, QKV_ERR_SYNTAX, "metric %s wants two %ss, A/B, not %zu", name, what,
                        n);
    return qkv_fail(err, QKV_ERR_SYNTAX,
                    "metric %s wants one %s, not %zu; a / that is part of it is written \\/", name,
                    what, n);
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
    const size_t length = read_position(metric->text, at);
    char *head = qkv_strndup(metric->text, length);
    qkv_text shown = {0};
    if (!head) return qkv_fail_memory(err);
    const size_t name = strcspn(head, ":");
    int status = find_measure(metric, head, name, err);
    if (status == QKV_OK && head[name] && !measures[metric->measure].n_answers)
        status = qkv_fail(err, QKV_ERR_SYNTAX, "metric %.*s has no tokens", (int)name, head);
    else if (status == QKV_OK && head[name]) {
        qkv_text_append(&shown, head, name + 1);
        status = read_tokens(metric, model, head + name + 1, &shown, err);
        qkv_text_puts(&shown, metric->text + length);
        if (status == QKV_OK && shown.failed) status = qkv_fail_memory(err);
    }
    free(head);
    if (status == QKV_OK && metric->has_tokens) {
        free(metric->text);
        metric->text = shown.data;
        return QKV_OK;
    }
    qkv_text_release(&shown);
    return status;
}

size_t qkv_patching_n_parts(const qkv_patch_metric *metric) {
    const size_t n = measures[metric->measure].n_answers;
    return n ? n : 1;
}

const qkv_patch_answer *qkv_patching_answer(const qkv_patch_metric *metric,
                                            const qkv_patch_pair *pair, size_t part) {
    static const qkv_patch_answer none = {0};
    if (part >= measures[metric->measure].n_answers) return &none;
    return metric->has_tokens ? &metric->answers[part] : &pair->answers[part];
}

/* Without tokens of its own a metric is of each pair's. An answer of several tokens follows the whole
 * prompt. */
static int check_answers(const qkv_patching *p, const qkv_patch_metric *metric, int64_t at,
                         qkv_error *err) {
    const char *name = measures[metric->measure].name;
    const size_t wanted = measures[metric->measure].n_answers;
    for (size_t i = 0; i < p->n_pairs; i++) {
        for (size_t k = 0; k < wanted; k++) {
            const size_t n = qkv_patching_answer(metric, &p->pairs[i], k)->n;
            if (n == 0)
                return qkv_fail(err, QKV_ERR_SYNTAX,
                                wanted == 2
                                    ? "metric %s needs two tokens: give %s:A/B, or answer and "
                                      "wrong of every pair"
                                    : "metric %s needs a token: give %s:A, or answer of every pair",
                                metric->text, name);
            if (n > 1 && !measures[metric->measure].is_several)
                return qkv_fail(err, QKV_ERR_SYNTAX,
                                "pair %zu: \"%s\" is %zu tokens, and metric %s is of one; "
                                "%s takes several",
                                i, p->pairs[i].texts[k], n, name,
                                wanted == 2 ? "logprob_diff" : "logprob");
            if (n > 1 && at != LAST_TOKEN)
                return qkv_fail(
                    err, QKV_ERR_SYNTAX,
                    "metric '%s': an answer of several tokens follows the whole prompt: "
                    "leave out @%lld",
                    metric->text, (long long)at);
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
    if (status == QKV_OK) status = check_answers(p, &metric, at, err);
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
        qkv_patching_metric_free(&metric);
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
        return qkv_fail(err, QKV_ERR_SYNTAX, "patching needs a metric: " KNOWN_METRICS);
    if (!json_is_array(given)) status = add_metric(spec, given, err);
    for (size_t i = 0; i < json_array_size(given) && status == QKV_OK; i++)
        status = add_metric(spec, json_array_get(given, i), err);
    spec->sweep->n_metrics = spec->sweep->patching->n_metrics;
    if (status == QKV_OK) status = check_position(spec->sweep, err);
    return status == QKV_OK ? qkv_patching_check_spaces(spec, err) : status;
}

void qkv_patching_metric_free(qkv_patch_metric *metric) {
    free(metric->text);
    for (size_t k = 0; k < QKV_PATCH_PARTS; k++) qkv_tokens_free(metric->answers[k].tokens);
}

/* ---- values ---- */

static double log_p_of(const qkv_patch_answer *answer, const float *rows, size_t n_vocab) {
    double sum = 0;
    for (size_t i = 0; i < answer->n; i++, rows += n_vocab)
        sum += qkv_logit_log_p(rows[answer->tokens[i]], qkv_log_sum_exp(rows, n_vocab));
    return sum;
}

double qkv_patching_part(const qkv_patch_metric *metric, const qkv_patch_answer *answer,
                         const float *rows, const float *clean, size_t n_vocab) {
    switch (metric->measure) {
    case QKV_PATCH_LOGIT_DIFF:
    case QKV_PATCH_LOGIT:
        return (double)rows[answer->tokens[0]];
    case QKV_PATCH_KL:
        return qkv_logits_kl(clean, qkv_log_sum_exp(clean, n_vocab), rows,
                             qkv_log_sum_exp(rows, n_vocab), n_vocab);
    default:
        return log_p_of(answer, rows, n_vocab);
    }
}

double qkv_patching_value(const qkv_patch_metric *metric, const double *parts) {
    if (metric->measure == QKV_PATCH_PROB) return exp(parts[0]);
    return qkv_patching_n_parts(metric) == 2 ? parts[0] - parts[1] : parts[0];
}
