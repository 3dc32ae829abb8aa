/*
 * Routers: which experts a token goes to, and what each of them counts.
 *
 * In this order, token by token, from the router's scores of all experts:
 *
 *     weights   a softmax over all, or a sigmoid of each
 *     choice    the best k by weight plus a bias that serves the choice alone; where experts stand in groups,
 *               first the best groups (by their best expert, or the sum of their best two), then the best of
 *               these
 *     shares    the weights of the chosen, without the bias; brought to a sum of 1 or not; times a factor
 *
 * The sparse mixer chooses one after the other: each has its share of a softmax over those that come close
 * to it. What a model has of all this is in qkv_router (model/model.h).
 */
#include <math.h>

#include "run/graph/build.h"

static void softmax(const float *scores, int64_t n, float *out) {
    float largest = -INFINITY, sum = 0;
    for (int64_t e = 0; e < n; e++) largest = fmaxf(largest, scores[e]);
    for (int64_t e = 0; e < n; e++) sum += out[e] = expf(scores[e] - largest);
    for (int64_t e = 0; e < n; e++) out[e] /= sum;
}

static void weigh(const qkv_router *router, const float *scores, int64_t n, float *weights) {
    if (router->kind == QKV_ROUTER_SOFTMAX) softmax(scores, n, weights);
    if (router->kind == QKV_ROUTER_SIGMOID)
        for (int64_t e = 0; e < n; e++) weights[e] = 1 / (1 + expf(-scores[e]));
}

/* The best of `values` that is not out of the choice (-INFINITY); the first one where none is better, so that
 * it is an expert whatever the values are. */
static int64_t best_of(const float *values, int64_t n) {
    int64_t best = 0;
    for (int64_t e = 1; e < n; e++)
        if (values[e] > values[best] || (values[best] == -INFINITY && values[e] != -INFINITY))
            best = e;
    return best;
}

/* ---- groups ---- */

static float group_value(const float *values, int64_t n, int32_t n_best) {
    float first = -INFINITY, second = -INFINITY;
    for (int64_t e = 0; e < n; e++) {
        if (values[e] > first) {
            second = first;
            first = values[e];
        } else if (values[e] > second) {
            second = values[e];
        }
    }
    return n_best > 1 && n > 1 ? first + second : first;
}

/* Experts of all groups but the best are out of the choice. */
static void choose_groups(const qkv_router *router, float *values, int64_t n) {
    float groups[QKV_MAX_EXPERTS];
    const int64_t n_groups = router->n_groups, each = n / n_groups;
    for (int64_t i = 0; i < n_groups; i++)
        groups[i] = group_value(values + i * each, each, router->group_best);
    uint8_t used[QKV_MAX_EXPERTS] = {0};
    for (int32_t k = 0; k < router->n_groups_used; k++) {
        const int64_t best = best_of(groups, n_groups);
        used[best] = 1;
        groups[best] = -INFINITY;
    }
    for (int64_t e = 0; e < n; e++)
        if (!used[e / each]) values[e] = -INFINITY;
}

/* ---- choices ---- */

static void choose_best(float *values, int64_t n, int64_t k, int32_t *chosen) {
    for (int64_t i = 0; i < k; i++) {
        chosen[i] = (int32_t)best_of(values, n);
        values[chosen[i]] = -INFINITY;
    }
}

/* Without bias and groups the order of the scores is that of the weights, and finer. */
static void choose(const qkv_router *router, const float *scores, const float *bias, int64_t n,
                   int64_t k, int32_t *chosen) {
    float values[QKV_MAX_EXPERTS];
    if (bias || router->n_groups > 1)
        weigh(router, scores, n, values);
    else
        for (int64_t e = 0; e < n; e++) values[e] = scores[e];
    for (int64_t e = 0; e < n && bias; e++) values[e] += bias[e];
    if (router->n_groups > 1) choose_groups(router, values, n);
    choose_best(values, n, k, chosen);
}

/* ---- shares ---- */

/* A softmax over the chosen alone is one over all, of which they are kept and brought to a sum of 1. */
static void share_softmax(const qkv_router *router, const float *scores, int64_t n,
                          const int32_t *chosen, int64_t k, float *shares) {
    float weights[QKV_MAX_EXPERTS];
    if (router->is_normed) {
        for (int64_t i = 0; i < k; i++) weights[i] = scores[chosen[i]];
        softmax(weights, k, shares);
        return;
    }
    softmax(scores, n, weights);
    for (int64_t i = 0; i < k; i++) shares[i] = weights[chosen[i]];
}

static void share_sigmoid(const qkv_router *router, const float *scores, int64_t n,
                          const int32_t *chosen, int64_t k, float *shares) {
    float sum = 1e-20f;
    (void)n;
    for (int64_t i = 0; i < k; i++) sum += shares[i] = 1 / (1 + expf(-scores[chosen[i]]));
    for (int64_t i = 0; i < k && router->is_normed; i++) shares[i] /= sum;
}

/* Of those not chosen before, what lies further below the chosen one than 2 · jitter of the larger of the two
 * does not take part. */
static void share_mixer(const qkv_router *router, const float *scores, int64_t n,
                        const int32_t *chosen, int64_t k, float *shares) {
    uint8_t gone[QKV_MAX_EXPERTS] = {0};
    for (int64_t i = 0; i < k; i++) {
        const float best = scores[chosen[i]];
        float sum = 0;
        for (int64_t e = 0; e < n; e++) {
            const float scale = fmaxf(fabsf(scores[e]), best);
            if (!gone[e] && !((best - scores[e]) / scale > 2 * router->jitter))
                sum += expf(scores[e] - best);
        }
        shares[i] = 1 / sum;
        gone[chosen[i]] = 1;
    }
}

typedef void share_maker(const qkv_router *router, const float *scores, int64_t n,
                         const int32_t *chosen, int64_t k, float *shares);

static share_maker *const share_makers[QKV_ROUTER_COUNT] = {
    [QKV_ROUTER_SOFTMAX] = share_softmax,
    [QKV_ROUTER_SIGMOID] = share_sigmoid,
    [QKV_ROUTER_MIXER] = share_mixer,
};

/* ---- operations of the graph ---- */

/* chosen [k, T·B] of scores [E, T·B] and a bias [E], which may be missing. */
static void run_choose(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_router *router = data;
    const struct ggml_tensor *scores = dst->src[0];
    const float *bias = dst->src[1] ? (const float *)dst->src[1]->data : NULL;
    const int64_t n = scores->ne[0], k = dst->ne[0];
    for (int64_t t = ith; t < scores->ne[1]; t += nth)
        choose(router, (const float *)scores->data + t * n, bias, n, k,
               (int32_t *)dst->data + t * k);
}

/* shares [1, k, T·B] of scores [E, T·B] and chosen [k, T·B]. */
static void run_share(struct ggml_tensor *dst, int ith, int nth, void *data) {
    const qkv_router *router = data;
    const struct ggml_tensor *scores = dst->src[0], *chosen = dst->src[1];
    const int64_t n = scores->ne[0], k = chosen->ne[0];
    for (int64_t t = ith; t < scores->ne[1]; t += nth) {
        float *shares = (float *)dst->data + t * k;
        share_makers[router->kind](router, (const float *)scores->data + t * n, n,
                                   (const int32_t *)chosen->data + t * k, k, shares);
        for (int64_t i = 0; i < k; i++) shares[i] *= router->factor;
    }
}

qkv_route qkv_route_tokens(qkv_graph *g, struct ggml_tensor *scores, struct ggml_tensor *bias) {
    const qkv_hparams *hp = &g->model->hp;
    const int64_t k = hp->n_expert_used, n = scores->ne[1];
    void *router = (void *)&hp->router;
    struct ggml_tensor *from[] = {scores, bias};
    qkv_route route;
    route.chosen = ggml_custom_4d(g->ctx, GGML_TYPE_I32, k, n, 1, 1, from, bias ? 2 : 1, run_choose,
                                  GGML_N_TASKS_MAX, router);
    from[1] = route.chosen;
    route.share = ggml_custom_4d(g->ctx, GGML_TYPE_F32, 1, k, n, 1, from, 2, run_share,
                                 GGML_N_TASKS_MAX, router);
    return route;
}
