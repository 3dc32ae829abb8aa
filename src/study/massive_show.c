/* Tables and pictures of massive activations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "draw/draw.h"
#include "study/massive.h"

#define COLUMNS(...) ((const char *const[]){__VA_ARGS__})
#define ROW(...) ((study_value[]){__VA_ARGS__})
#define N STUDY_NUMBER
#define T STUDY_TEXT

static const char *const changes[MASSIVE_CHANGES] = {"original", "massive activations set to zero",
                                                     "massive activations set to their mean",
                                                     "as many of median size set to zero"};

/* ---- which channels, at which tokens ---- */

/* A channel at the first token, or at one text elsewhere: finds that are shown as one row. */
typedef struct massive_group {
    const massive_find *first; /* of them */
    const char *token;         /* its label; of first tokens that differ, none */
    int32_t first_layer, last_layer;
    double largest;
    double prompts, last_prompt; /* how many of them, and the last counted */
    int32_t position;            /* -1: several */
} massive_group;

typedef struct massive_groups {
    massive_group *items;
    size_t n, capacity;
} massive_groups;

static const char *token_of(const massive_work *w, const massive_find *find) {
    return w->in->prompts.items[find->prompt].labels[find->position];
}

static massive_group *find_group(const massive_work *w, massive_groups *groups,
                                 const massive_find *find) {
    const char *token = token_of(w, find);
    for (size_t i = 0; i < groups->n; i++) {
        massive_group *g = &groups->items[i];
        if (g->first->channel != find->channel || (g->position == 0) != (find->position == 0))
            continue;
        if (find->position == 0 || strcmp(g->token, token) == 0) return g;
    }
    const massive_group fresh = {.first = find,
                                 .token = token,
                                 .first_layer = find->layer,
                                 .last_layer = find->layer,
                                 .last_prompt = -1,
                                 .position = find->position};
    if (!QKV_PUSH(groups->items, groups->capacity, groups->n, fresh)) return NULL;
    return &groups->items[groups->n - 1];
}

static void take_find(const massive_work *w, massive_group *g, const massive_find *find) {
    if (strcmp(g->token, token_of(w, find)) != 0) g->token = "(several)";
    if (find->layer < g->first_layer) g->first_layer = find->layer;
    if (find->layer > g->last_layer) g->last_layer = find->layer;
    if (find->position != g->position) g->position = -1;
    if (fabs((double)find->value) > g->largest) g->largest = fabs((double)find->value);
    if ((double)find->prompt != g->last_prompt) g->prompts += 1; /* finds come prompt by prompt */
    g->last_prompt = (double)find->prompt;
}

static int by_size(const void *a, const void *b) {
    const massive_group *x = a, *y = b;
    if (x->prompts != y->prompts) return x->prompts < y->prompts ? 1 : -1;
    if (x->largest != y->largest) return x->largest < y->largest ? 1 : -1;
    return x->first->channel - y->first->channel;
}

static int add_activations(const massive_work *w, qkv_error *err) {
    massive_groups groups = {0};
    int status = qkv_study_add_table(w->study, "activations", "Massive activations",
                                     COLUMNS("channel", "token", "position", "prompts",
                                             "first_layer", "last_layer", "mean", "largest"),
                                     8, err);
    for (size_t i = 0; i < w->n_finds && status == QKV_OK; i++) {
        massive_group *g = find_group(w, &groups, &w->finds[i]);
        if (g)
            take_find(w, g, &w->finds[i]);
        else
            status = qkv_fail_memory(err);
    }
    if (groups.n) qsort(groups.items, groups.n, sizeof *groups.items, by_size);
    for (size_t i = 0; i < groups.n && status == QKV_OK; i++) {
        const massive_group *g = &groups.items[i];
        status = qkv_study_add_row(
            w->study,
            ROW(N(g->first->channel), T(g->token), N(g->position < 0 ? NAN : g->position),
                N(g->prompts), N(g->first_layer), N(g->last_layer),
                N(qkv_massive_mean(w, g->first->channel, g->first->position == 0)), N(g->largest)),
            err);
    }
    free(groups.items);
    return status;
}

/* ---- perplexities and layers ---- */

static double loss_of(const massive_work *w, int change) {
    return w->loss[change] / (double)w->n_losses;
}

/* Without any there is nothing to set. */
static int count_changes(const massive_work *w) {
    return w->layer < 0 ? 1 : MASSIVE_CHANGES;
}

static int add_perplexities(const massive_work *w, qkv_error *err) {
    int status = qkv_study_add_table(w->study, "perplexity", "What the model is worth without them",
                                     COLUMNS("what", "loss", "perplexity"), 3, err);
    for (int c = 0; c < count_changes(w) && status == QKV_OK; c++)
        status = qkv_study_add_row(
            w->study, ROW(T(changes[c]), N(loss_of(w, c)), N(exp(loss_of(w, c)))), err);
    return status;
}

static int add_layers(const massive_work *w, qkv_error *err) {
    const double n = (double)w->in->prompts.n;
    int status = qkv_study_add_table(
        w->study, "layers", "Sizes after every layer, mean over prompts",
        COLUMNS("layer", "top_1", "top_2", "top_3", "median", "ratio", "massive"), 7, err);
    for (int32_t l = 0; l < w->n_layer && status == QKV_OK; l++) {
        const massive_layer *at = &w->layers[l];
        const double ratio = at->median > 0 ? at->top[0] / at->median : (double)NAN;
        status =
            qkv_study_add_row(w->study,
                              ROW(N(l), N(at->top[0] / n), N(at->top[1] / n), N(at->top[2] / n),
                                  N(at->median / n), N(ratio), N(at->count / n)),
                              err);
    }
    return status;
}

/* ---- pictures ---- */

static int draw_sizes(const massive_work *w, qkv_error *err) {
    static const char *const labels[MASSIVE_TOP + 1] = {"largest", "second", "third", "median"};
    const size_t n = (size_t)w->n_layer;
    double *numbers = qkv_calloc((MASSIVE_TOP + 2) * n, sizeof *numbers);
    qkv_series series[MASSIVE_TOP + 1];
    qkv_lines lines = QKV_LINES_INIT;
    if (!numbers) return qkv_fail_memory(err);
    for (size_t l = 0; l < n; l++) {
        const massive_layer *at = &w->layers[l];
        numbers[l] = (double)l;
        for (size_t i = 0; i <= MASSIVE_TOP; i++) {
            const double sum = i < MASSIVE_TOP ? at->top[i] : at->median;
            numbers[(i + 1) * n + l] = sum > 0 ? sum / (double)w->in->prompts.n : (double)NAN;
        }
    }
    for (size_t i = 0; i <= MASSIVE_TOP; i++)
        series[i] = (qkv_series){.size = sizeof *series,
                                 .label = labels[i],
                                 .x = numbers,
                                 .y = numbers + (i + 1) * n,
                                 .n = n};
    lines.series = series;
    lines.n_series = MASSIVE_TOP + 1;
    lines.x.label = "layer";
    lines.y.label = "size of elements of the residual stream";
    lines.y.scale = QKV_SCALE_LOG;
    const int status = qkv_study_add_lines(w->study, "sizes", NULL, &lines, err);
    free(numbers);
    return status;
}

static int draw_perplexities(const massive_work *w, qkv_error *err) {
    qkv_bar bars[MASSIVE_CHANGES];
    qkv_bars chart = QKV_BARS_INIT;
    for (int c = 0; c < MASSIVE_CHANGES; c++) {
        const double loss = loss_of(w, c);
        bars[c] = (qkv_bar){
            .size = sizeof *bars, .label = changes[c], .value = loss, .lower = loss, .upper = loss};
    }
    chart.bars = bars;
    chart.n_bars = (size_t)count_changes(w);
    chart.axis.label = "ln of the perplexity: mean loss (nats)";
    return qkv_study_add_bars(w->study, "perplexity", "Perplexity With Massive Activations Changed",
                              &chart, err);
}

static void describe(const massive_work *w) {
    qkv_study_set_title(w->study, "Massive Activations of the Residual Stream");
    qkv_study_note(w->study,
                   "massive: above %g and above %g times the median size after its layer; %zu "
                   "prompts",
                   w->how.size, w->how.ratio, w->in->prompts.n);
    if (w->layer >= 0)
        qkv_study_note(w->study, "set after layer %d, at the tokens that have them", (int)w->layer);
}

int qkv_massive_show(const massive_work *w, qkv_error *err) {
    describe(w);
    int status = add_activations(w, err);
    if (status == QKV_OK) status = add_perplexities(w, err);
    if (status == QKV_OK) status = add_layers(w, err);
    if (status == QKV_OK) status = draw_sizes(w, err);
    return status == QKV_OK ? draw_perplexities(w, err) : status;
}
