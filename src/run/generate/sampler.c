/*
 * Choosing the next token from logits.
 *
 * A draw has to be the same on every machine: the exponential is our own, made of operations that IEEE
 * 754 rounds in one way only, sums are taken in one order, and the random number depends on seed and
 * step alone.
 */
#include <math.h>
#include <stdlib.h>

#include "base/logits.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/sized.h"
#include "qkv/generate.h"
#include "run/run.h"

int32_t qkv_sample_greedy(const float *logits, size_t n_vocab) {
    int32_t best = -1;
    for (size_t i = 0; logits && i < n_vocab; i++) {
        if (best < 0 || logits[i] > logits[best]) best = (int32_t)i;
    }
    return best;
}

double qkv_log_probability(const float *logits, size_t n_vocab, int32_t token) {
    if (!logits || token < 0 || (size_t)token >= n_vocab) return NAN;
    return qkv_logit_log_p(logits[token], qkv_log_sum_exp(logits, n_vocab));
}

/* ---- drawing ---- */

static int read_options(qkv_sampler_options *own, const qkv_sampler_options *options,
                        qkv_error *err) {
    int status = qkv_sized_read(own, sizeof *own, options, "qkv_sampler_options", err);
    if (status != QKV_OK) return status;
    if (!(own->temperature >= 0) || !isfinite(own->temperature))
        return qkv_fail(err, QKV_ERR_ARGUMENT,
                        "`temperature` must be 0 (the most likely token) or above");
    if (own->top_k < 0)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`top_k` must be 0 (all tokens) or above");
    if (!(own->top_p >= 0 && own->top_p <= 1))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`top_p` must lie between 0 and 1");
    if (!(own->min_p >= 0 && own->min_p <= 1))
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`min_p` must lie between 0 and 1");
    return QKV_OK;
}

int qkv_sampler_check(const qkv_sampler_options *options, qkv_error *err) {
    qkv_sampler_options own = QKV_SAMPLER_OPTIONS_INIT;
    return read_options(&own, options, err);
}

/* e^x for x <= 0, to about 1e-15. Every product is part of an fma: nothing is left to the compiler. */
static double exact_exp(double x) {
    static const double log2_e = 0x1.71547652b82fep+0;
    static const double ln2_high = 0x1.62e42fefa39efp-1, ln2_low = 0x1.abc9e3b39803fp-56;
    if (x < -700) return 0;
    const double k = floor(fma(x, log2_e, 0.5));
    const double r = fma(-k, ln2_low, fma(-k, ln2_high, x));
    double sum = 1;
    for (int i = 13; i > 0; i--) sum = fma(sum, r / i, 1); /* 1 + r (1 + r/2 (1 + r/3 ...)) */
    return ldexp(sum, (int)k);
}

typedef struct candidate {
    int32_t token;
    double weight; /* in relation to the most likely token */
} candidate;

static int by_weight(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
    return (x->token > y->token) - (x->token < y->token);
}

static double total_of(const candidate *list, size_t n) {
    double total = 0;
    for (size_t i = 0; i < n; i++) total += list[i].weight;
    return total;
}

/* How many of the candidates, most likely first, stay. */
static size_t cut_off(const qkv_sampler_options *how, const candidate *list, size_t n) {
    if (how->top_k && (uint64_t)how->top_k < n) n = (size_t)how->top_k;
    if (how->top_p > 0 && how->top_p < 1) {
        const double enough = how->top_p * total_of(list, n);
        double sum = 0;
        size_t i = 0;
        while (i < n && sum < enough) sum += list[i++].weight;
        n = i;
    }
    while (n > 1 && list[n - 1].weight < how->min_p) n--;
    return n;
}

static int32_t draw(const candidate *list, size_t n, uint64_t key) {
    const double share = (double)(qkv_random_mix(key, 0) >> 11) / 9007199254740992.0; /* [0, 1) */
    const double target = share * total_of(list, n);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += list[i].weight;
        if (sum > target) return list[i].token;
    }
    return list[0].token;
}

int qkv_sample(const qkv_sampler_options *options, const float *logits, size_t n_vocab,
               uint64_t step, int32_t *token, qkv_error *err) {
    QKV_NEED(err, token);
    *token = -1;
    QKV_NEED(err, logits);
    qkv_sampler_options how = QKV_SAMPLER_OPTIONS_INIT;
    int status = read_options(&how, options, err);
    if (status != QKV_OK) return status;
    if (n_vocab == 0 || n_vocab > INT32_MAX)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "%zu tokens to choose from", n_vocab);
    for (size_t i = 0; i < n_vocab; i++) {
        if (!isfinite(logits[i]))
            return qkv_fail(err, QKV_ERR_NUMERIC, "the logit of token %zu is not finite", i);
    }
    *token = qkv_sample_greedy(logits, n_vocab);
    if (how.temperature == 0) return QKV_OK;
    candidate *list = qkv_calloc(n_vocab, sizeof *list);
    if (!list) return qkv_fail_memory(err);
    const double most = (double)logits[*token];
    for (size_t i = 0; i < n_vocab; i++)
        list[i] = (candidate){(int32_t)i, exact_exp(((double)logits[i] - most) / how.temperature)};
    qsort(list, n_vocab, sizeof *list, by_weight);
    *token = draw(list, cut_off(&how, list, n_vocab), qkv_random_mix(how.seed, step));
    free(list);
    return QKV_OK;
}
