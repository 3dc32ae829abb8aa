/* Compressed caches, in plain loops over one head: see ref_pass.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reference/ref_cases.h"
#include "reference/ref_pass.h"

enum { MOST_TOKENS = 320 };

/* The weight of every key in row i, over the keys that are there. */
static void weigh(const ref_pass *p, int layer, const ref_view *s, int h, int i, const int *there,
                  double *weight) {
    const float *sinks = p->m->layers[layer].sinks;
    double sum = sinks ? exp((double)sinks[h]) : 0; /* small numbers: no need to take the largest */
    for (int j = 0; j < s->n_col; j++) {
        weight[j] = there[j] ? exp(*ref_at(s, h, i, j)) : 0;
        sum += weight[j];
    }
    for (int j = 0; j < s->n_col; j++) weight[j] /= sum;
}

/* H2O: the cache holds `a` keys at most, of which the last `b` are never dropped. */
static void keep_heavy(const ref_pass *p, const ref_edit *e, int layer, const ref_view *s, int h,
                       double *out) {
    int held[MOST_TOKENS] = {0};
    double total[MOST_TOKENS] = {0}, weight[MOST_TOKENS];
    for (int i = 0; i < s->n_row; i++) {
        int there[MOST_TOKENS] = {0}, seen[MOST_TOKENS] = {0}, size = 0;
        held[i] = 1;
        for (int j = 0; j < s->n_col; j++) {
            seen[j] = ref_in(ref_visible(p, layer, i), j);
            there[j] = seen[j] && held[j];
            size += there[j];
        }
        const int drops = ref_in(e->rows, i);
        while (drops && size > (int)e->a) {
            int least = -1;
            for (int j = i - (int)e->b; j >= 0; j--)
                if (there[j] && (least < 0 || total[j] <= total[least])) least = j;
            there[least] = held[least] = 0;
            size--;
        }
        weigh(p, layer, s, h, i, drops ? there : seen, weight);
        for (int j = 0; j < s->n_col; j++) {
            total[j] += weight[j];
            if (seen[j] && !there[j]) out[i * s->n_col + j] = -INFINITY;
        }
    }
}

/* The rule of H2O's code for evaluation, written as there: a set of heavy keys for every row, and the
 * recent ones beside it. Weights are those with all keys. */
static void keep_evaluated(const ref_pass *p, const ref_edit *e, int layer, const ref_view *s,
                           int h, double *out) {
    const int n_heavy = (int)e->a - (int)e->b + 1;
    int heavy[MOST_TOKENS] = {0};
    double total[MOST_TOKENS] = {0}, weight[MOST_TOKENS];
    for (int i = 0; i < s->n_row; i++) {
        int seen[MOST_TOKENS] = {0}, chosen[MOST_TOKENS] = {0};
        for (int j = 0; j < s->n_col; j++) {
            seen[j] = ref_in(ref_visible(p, layer, i), j);
            if (!seen[j]) heavy[j] = 0;
        }
        for (int n = 0; ref_in(e->rows, i) && n < n_heavy - 1; n++) { /* the largest so far */
            int most = -1;
            for (int j = 0; j < i; j++)
                if (heavy[j] && !chosen[j] && (most < 0 || total[j] >= total[most])) most = j;
            if (most >= 0) chosen[most] = 1;
        }
        if (ref_in(e->rows, i)) memcpy(heavy, chosen, sizeof heavy);
        heavy[i] = 1;
        weigh(p, layer, s, h, i, seen, weight);
        for (int j = 0; j < s->n_col; j++) {
            total[j] += weight[j];
            if (seen[j] && !heavy[j] && i - j >= (int)e->b) out[i * s->n_col + j] = -INFINITY;
        }
    }
}

/* SnapKV: queries [prompt - b, prompt) vote with their weights, summed over three neighbours; the
 * a - b keys before them with most votes are left to the queries after the prompt. */
static void keep_voted(const ref_pass *p, const ref_edit *e, int layer, const ref_view *s, int h,
                       double *out) {
    const int before = REF_PROMPT - (int)e->b, n_left = (int)e->a - (int)e->b;
    double votes[MOST_TOKENS] = {0}, weight[MOST_TOKENS];
    for (int i = before; i < REF_PROMPT; i++) {
        int seen[MOST_TOKENS] = {0};
        for (int j = 0; j < s->n_col; j++) seen[j] = ref_in(ref_visible(p, layer, i), j);
        weigh(p, layer, s, h, i, seen, weight);
        for (int j = 0; j < before; j++) votes[j] += weight[j];
    }
    for (int j = 0; j < before; j++) {
        int better = 0;
        const double own = (j ? votes[j - 1] : 0) + votes[j] + (j + 1 < before ? votes[j + 1] : 0);
        for (int k = 0; k < before; k++) {
            const double other =
                (k ? votes[k - 1] : 0) + votes[k] + (k + 1 < before ? votes[k + 1] : 0);
            better += other > own || (k < j && fabs(other - own) == 0);
        }
        for (int i = REF_PROMPT; i < s->n_row && better >= n_left; i++)
            out[i * s->n_col + j] = -INFINITY;
    }
}

/* One element, given the least and largest of its group. */
static double level(double x, double least, double most, int bits) {
    const double n = pow(2, bits) - 1;
    return most > least ? least + nearbyint((x - least) / (most - least) * n) * (most - least) / n
                        : x;
}

int ref_is_late(ref_op op) {
    return op == REF_LATE_CHANNEL || op == REF_LATE_TOKEN;
}

/* After a prompt of five: four tokens at a time; or all but the query's own and four before it. */
int ref_late_seen(ref_op op, int i) {
    if (i < 5) return 0;
    return op == REF_LATE_CHANNEL ? i - i % 4 : i - 4;
}

/* `b` tokens of a channel, or channels of a token, have one range; the last two tokens have none. */
static void quantize(const ref_edit *e, const ref_view *x, int h, double *out) {
    const int by_channel = e->op == REF_QUANT_CHANNEL || e->op == REF_LATE_CHANNEL;
    const int size = (int)e->b;
    int kept = e->op == REF_QUANT_EVERY ? 0 : 2;
    if (ref_is_late(e->op)) kept = x->n_row - ref_late_seen(e->op, x->n_row - 1);
    for (int t = 0; t < x->n_row - kept; t++)
        for (int c = 0; c < x->n_col; c++) {
            const int first = (by_channel ? t : c) / size * size;
            if (by_channel && first + size > x->n_row - kept) continue;
            double least = INFINITY, most = -INFINITY;
            for (int k = first; k < first + size; k++) {
                const double other = by_channel ? *ref_at(x, h, k, c) : *ref_at(x, h, t, k);
                least = fmin(least, other);
                most = fmax(most, other);
            }
            out[t * x->n_col + c] = level(*ref_at(x, h, t, c), least, most, (int)e->a);
        }
}

int ref_is_compression(ref_op op) {
    return op == REF_H2O || op == REF_H2O_EVAL || op == REF_SNAPKV || op == REF_QUANT_CHANNEL ||
           op == REF_QUANT_TOKEN || op == REF_QUANT_EVERY || ref_is_late(op);
}

void ref_compress(const ref_pass *p, const ref_edit *e, int layer, const ref_view *x, int h,
                  double *out) {
    if (x->n_row > MOST_TOKENS) abort();
    for (int t = 0; t < x->n_row; t++)
        for (int c = 0; c < x->n_col; c++) out[t * x->n_col + c] = *ref_at(x, h, t, c);
    if (e->op == REF_H2O)
        keep_heavy(p, e, layer, x, h, out);
    else if (e->op == REF_H2O_EVAL)
        keep_evaluated(p, e, layer, x, h, out);
    else if (e->op == REF_SNAPKV)
        keep_voted(p, e, layer, x, h, out);
    else
        quantize(e, x, h, out);
}
