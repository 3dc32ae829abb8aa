/*
 * Metrics of the output: what a variant does to the distribution of the next token.
 *
 * Rows of logits are those of all positions, or of the last one alone where no metric asks for
 * more.
 */
#include <math.h>
#include <stdlib.h>

#include "base/logits.h"
#include "base/memory.h"
#include "measure/metric_sums.h"

/* Logits of one position, the baseline's and the variant's, and log Σ exp of each. */
typedef struct position {
    const float *base, *edited;
    qkv_log_sum base_sum, edited_sum;
    int64_t n_vocab;
} position;

static int64_t most_likely(const float *x, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) best = x[i] > x[best] ? i : best;
    return best;
}

static double kl_at(const position *p) {
    return qkv_logits_kl(p->base, p->base_sum, p->edited, p->edited_sum, (size_t)p->n_vocab);
}

/* A small number is added to both, and neither is made a distribution again. */
static double ships_of(const position *p, double add) {
    double sum = 0;
    for (int64_t i = 0; i < p->n_vocab; i++) {
        const double base = exp(qkv_logit_log_p(p->base[i], p->base_sum)) + add;
        const double edited = exp(qkv_logit_log_p(p->edited[i], p->edited_sum)) + add;
        if (base > 0) sum += base * log(base / edited);
    }
    return fmax(sum, 0);
}

static double top1_changed_at(const position *p) {
    return most_likely(p->base, p->n_vocab) != most_likely(p->edited, p->n_vocab);
}

/* −ln p of a token, in the variant and in the baseline. */
static double loss_at(const position *p, int32_t token) {
    return -qkv_logit_log_p(p->edited[token], p->edited_sum);
}

static double delta_loss_at(const position *p, int32_t token) {
    return loss_at(p, token) + qkv_logit_log_p(p->base[token], p->base_sum);
}

/* ---- over positions ---- */

typedef struct logit_run {
    const qkv_metric_sums *totals;
    const float *edited;
    const qkv_log_sum *edited_sums;
    int64_t n_rows, n_vocab;
} logit_run;

static position position_of(const logit_run *run, int64_t row) {
    return (position){.base = run->totals->logits + row * run->n_vocab,
                      .edited = run->edited + row * run->n_vocab,
                      .base_sum = run->totals->logit_sums[row],
                      .edited_sum = run->edited_sums[row],
                      .n_vocab = run->n_vocab};
}

static double at_position(const logit_run *run, double wanted, double (*value)(const position *)) {
    int64_t T = run->totals->n_tokens, row = (int64_t)wanted;
    if (row < 0) row += T;
    if (row < 0 || row >= T) return NAN;
    position p = position_of(run, run->n_rows == T ? row : 0);
    return value(&p);
}

static double mean_of(const logit_run *run, double (*value)(const position *)) {
    double sum = 0;
    for (int64_t row = 0; row < run->n_rows; row++) {
        position p = position_of(run, row);
        sum += value(&p);
    }
    return sum / (double)run->n_rows;
}

/* Every position but the last has a next token that is known. */
static double mean_of_next(const logit_run *run, double (*value)(const position *, int32_t)) {
    double sum = 0;
    int64_t n = run->n_rows - 1;
    for (int64_t row = 0; row < n; row++) {
        position p = position_of(run, row);
        sum += value(&p, run->totals->tokens[row + 1]);
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}

/* The last n tokens, which the rows before them predict. */
static double answer_of(const logit_run *run, int64_t n) {
    double sum = 0;
    if (n >= run->n_rows) return NAN;
    for (int64_t row = run->n_rows - 1 - n; row < run->n_rows - 1; row++) {
        position p = position_of(run, row);
        sum -= loss_at(&p, run->totals->tokens[row + 1]);
    }
    return sum;
}

static double value_of(const qkv_chosen_metric *metric, const logit_run *run) {
    position last;
    switch (metric->id) {
    case QKV_METRIC_SHIPS:
        last = position_of(run, run->n_rows - 1);
        return ships_of(&last, metric->parameters[0]);
    case QKV_METRIC_OUTPUT_KL:
        return at_position(run, metric->parameters[0], kl_at);
    case QKV_METRIC_TOP1_CHANGED:
        return at_position(run, metric->parameters[0], top1_changed_at);
    case QKV_METRIC_OUTPUT_KL_MEAN:
        return mean_of(run, kl_at);
    case QKV_METRIC_TOP1_CHANGED_SHARE:
        return mean_of(run, top1_changed_at);
    case QKV_METRIC_ANSWER:
        return answer_of(run, (int64_t)metric->parameters[0]);
    case QKV_METRIC_LOSS:
        return mean_of_next(run, loss_at);
    default:
        return mean_of_next(run, delta_loss_at);
    }
}

int qkv_metric_sums_logits(qkv_metric_sums *totals, size_t variant, const qkv_tensor *tensor,
                           qkv_error *err) {
    const qkv_measure *m = totals->measure;
    logit_run run = {.totals = totals,
                     .edited = tensor->data,
                     .n_rows = tensor->shape[0],
                     .n_vocab = tensor->shape[1]};
    qkv_log_sum *sums = qkv_calloc((size_t)run.n_rows, sizeof *sums);
    if (!sums) return qkv_fail_memory(err);
    for (int64_t row = 0; row < run.n_rows; row++)
        sums[row] = qkv_log_sum_exp(tensor->data + row * run.n_vocab, (size_t)run.n_vocab);
    if (variant == 0) {
        totals->logits = tensor->data;
        totals->logit_sums = sums;
    }
    run.edited_sums = sums;
    for (size_t i = 0; i < m->n_metrics; i++) {
        if (qkv_metric_needs(m->metrics[i].id) & (NEED_LOGITS | NEED_ALL_LOGITS))
            qkv_metric_sums_set(totals, qkv_sum_slot(totals, variant, -1, -1), i,
                                value_of(&m->metrics[i], &run));
    }
    if (variant) free(sums);
    return QKV_OK;
}
