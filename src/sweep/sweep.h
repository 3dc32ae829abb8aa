/*
 * What a sweep is made of. Lists are in the order in which cells count through them: prompts,
 * layers, heads, then per head the baseline (when it is wanted there) and targets × settings.
 */
#ifndef QKV_SWEEP_SWEEP_H
#define QKV_SWEEP_SWEEP_H

#include <jansson.h>
#include <stdatomic.h>

#include "base/prompt.h"
#include "qkv/measure.h"
#include "qkv/sweep_blocks.h"

/* In place of the number of a layer or head: all of them in one edit. */
#define QKV_TOGETHER (-1)

/* An operation with its ε. */
typedef struct qkv_setting {
    char *op;       /* without ε: "scale", "mean:head" */
    char *text;     /* as edits have it: "scale:0.001" */
    double epsilon; /* NaN: it has none */
} qkv_setting;

struct qkv_sweep {
    atomic_size_t n_owners;
    qkv_model *model; /* kept alive */
    qkv_own_prompt *prompts;
    size_t n_prompts, prompts_capacity;
    int32_t *layers, *heads; /* ascending; or one QKV_TOGETHER */
    size_t n_layers, n_heads;
    qkv_site *targets;
    size_t n_targets, targets_capacity;
    int baseline; /* target "none" is wanted too */
    qkv_setting *settings;
    size_t n_settings, settings_capacity;
    char *metrics; /* separated by commas */
    qkv_measure *measure;
    size_t n_metrics;
    int at_output;
    /* Every cell needs a variant of its own: what is measured depends on other heads than its own.
     */
    int isolated;
    /* Edits may not show in what is looked at, so that the planner would keep no trunk. */
    int anchored;
    struct qkv_patching *patching; /* cells patch one prompt into another: patching.h; else NULL */
    int parse_special;
    int64_t length; /* tokens that prompts are cut to, 0 = as they are */
    char *json;
    char hash[33];
    /* Counts of cells. */
    int64_t first_baseline; /* 1: a prompt's first cell is the baseline, of no layer */
    int64_t per_head, per_layer, per_prompt; /* of patching: per pair of prompts */
    size_t n_groups;                         /* prompts, or pairs of them */
    int64_t block_cells, layer_blocks, prompt_blocks;
};

/* spec.c: a sweep of a specification that was never a text. Of patching, `prompts` are the pairs' clean and corrupt ones
 * in turn, and the objects in `pairs` have answers alone; NULL: the specification has them. */
int qkv_sweep_make(qkv_sweep **out, const qkv_model *model, const json_t *object,
                   const qkv_own_prompts *prompts, qkv_error *err);
/* One more who needs the sweep and frees it. */
qkv_sweep *qkv_sweep_retain(const qkv_sweep *sweep);

/* cells.c: fills in the counts, once everything else is there. */
int qkv_sweep_count(qkv_sweep *sweep, qkv_error *err);

/* Which variant of its layer a cell is: its own number, or one for all heads; -1: the baseline. */
int64_t qkv_cell_variant(const qkv_sweep *sweep, int64_t id);
/* The edits of that variant. */
void qkv_cell_variant_text(const qkv_sweep *sweep, int64_t id, char **text);

/* run.c: whether there is such a part. */
int qkv_sweep_check_shard(int64_t shard, int64_t n_shards, qkv_error *err);

/* A list of numbers as notation has it, "0,2,5"; "*" for QKV_TOGETHER. NULL: no memory. */
char *qkv_sweep_list(const int32_t *numbers, size_t n);

#endif
