/* One model under measurement: its plans, made before any clock runs. */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "bench.h"

void bench_edit_text(char out[BENCH_EDIT_SIZE], int index, int32_t layer) {
    static const char *const sites[] = {"q", "k", "v"};
    static const char *const factors[] = {"5e-1", "1e-3", "1e-10"};
    snprintf(out, BENCH_EDIT_SIZE, "%s@%d=scale:%s", sites[index / 3], (int)layer,
             factors[index % 3]);
}

static int make_plan(bench_case *c, qkv_plan **out, const char *capture, qkv_error *err) {
    int status = qkv_plan_new(out, c->model, c->tokens, c->setting->n_tokens, err);
    return status == QKV_OK ? qkv_plan_add_capture(*out, capture, err) : status;
}

static int make_pattern_plan(bench_case *c, qkv_plan **out, int32_t layer, int n_edits,
                             qkv_error *err) {
    char text[BENCH_EDIT_SIZE];
    snprintf(text, sizeof text, "pattern@%d", (int)layer);
    int status = make_plan(c, out, text, err);
    for (int i = 0; i < n_edits && status == QKV_OK; i++) {
        bench_edit_text(text, i, layer);
        status = qkv_plan_add_variant(*out, text, NULL, err);
    }
    return status;
}

static int make_sweep(bench_case *c, qkv_sweep **out, const char *rest, qkv_error *err) {
    qkv_text spec = {0};
    for (size_t i = 0; i < c->setting->n_tokens; i++) {
        qkv_text_printf(&spec, "%s%d", i ? "," : "{\"prompts\": [[", (int)c->tokens[i]);
    }
    qkv_text_printf(&spec, "]], %s}", rest);
    const int status =
        spec.failed ? qkv_fail_memory(err) : qkv_sweep_new(out, c->model, spec.data, err);
    qkv_text_release(&spec);
    return status;
}

/* The edits of the grid, in every layer; and each head of the middle layer off in turn. */
static int make_sweeps(bench_case *c, qkv_error *err) {
    char heads[160];
    snprintf(heads, sizeof heads,
             "\"layers\": [%d], \"targets\": \"z\", \"ops\": \"zero\", "
             "\"metrics\": \"output_kl\"",
             (int)c->layer);
    const int status = make_sweep(
        c, &c->sweep, "\"epsilon\": [0.5, 1e-3, 1e-10], \"metrics\": \"first_column\"", err);
    if (status == QKV_OK && c->last && c->setting->wanted[BENCH_OUTPUTS]) {
        return make_sweep(c, &c->outputs, heads, err);
    }
    return status;
}

/* All plans at once: they are small, and mistakes (a prompt too long) show before any work. */
static int make_plans(bench_case *c, qkv_error *err) {
    int status = make_plan(c, &c->forward, "logits", err);
    if (status == QKV_OK && make_plan(c, &c->last, "logits[-1]", NULL) != QKV_OK) {
        qkv_plan_free(c->last);
        c->last = NULL;
    }
    if (status == QKV_OK) status = make_pattern_plan(c, &c->trunk, c->layer, 0, err);
    for (int32_t il = 0; il < c->info->n_layer && status == QKV_OK; il++) {
        status = make_pattern_plan(c, &c->grids[il], il, BENCH_EDITS, err);
    }
    return status == QKV_OK ? make_sweeps(c, err) : status;
}

/* Ids below 1000, so that even a long prompt fits on a child's command line. */
static int make_tokens(bench_case *c, qkv_error *err) {
    const size_t n = c->setting->n_tokens;
    const size_t ids = c->info->n_vocab < 1000 ? (size_t)c->info->n_vocab : 1000;
    c->tokens = qkv_calloc(n, sizeof *c->tokens);
    if (!c->tokens) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) c->tokens[i] = (int32_t)((i * 31 + 7) % ids);
    return QKV_OK;
}

static int make_samples(bench_case *c, qkv_error *err) {
    for (int i = 0; i < BENCH_COUNT; i++) {
        if (!c->setting->wanted[i] || (i == BENCH_FORWARD_LAST && !c->last) ||
            (i == BENCH_OUTPUTS && !c->outputs)) {
            continue;
        }
        c->samples[i].values = qkv_calloc(c->setting->n_rounds, sizeof(double));
        if (!c->samples[i].values) return qkv_fail_memory(err);
    }
    return QKV_OK;
}

int bench_case_open(bench_case *c, const bench_setting *setting, const char *name, const char *path,
                    qkv_error *err) {
    *c = (bench_case){.setting = setting, .name = qkv_strdup(name), .path = qkv_strdup(path)};
    if (!c->name || !c->path) return qkv_fail_memory(err);
    int status = qkv_model_open(&c->model, path, err);
    if (status != QKV_OK) return status;
    c->info = qkv_model_get_info(c->model);
    c->layer = c->info->n_layer / 2;
    c->grids = qkv_calloc((size_t)c->info->n_layer, sizeof(qkv_plan *));
    if (!c->grids) return qkv_fail_memory(err);
    status = make_tokens(c, err);
    if (status == QKV_OK) status = make_plans(c, err);
    return status == QKV_OK ? make_samples(c, err) : status;
}

void bench_case_release(bench_case *c) {
    for (int i = 0; i < BENCH_COUNT; i++) free(c->samples[i].values);
    for (int32_t i = 0; c->grids && i < c->info->n_layer; i++) qkv_plan_free(c->grids[i]);
    free(c->grids);
    qkv_sweep_free(c->sweep);
    qkv_sweep_free(c->outputs);
    qkv_plan_free(c->trunk);
    qkv_plan_free(c->last);
    qkv_plan_free(c->forward);
    qkv_session_free(c->warm);
    qkv_model_free(c->model);
    free(c->tokens);
    free(c->path);
    free(c->name);
    *c = (bench_case){0};
}
