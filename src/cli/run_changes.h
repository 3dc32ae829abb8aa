/* What edits did to a result: to attention weights, head by head, and to the tokens that come next. */
#ifndef QKV_CLI_RUN_CHANGES_H
#define QKV_CLI_RUN_CHANGES_H

#include "base/json.h"
#include "qkv/session.h"

/* A result with what it was made of. */
typedef struct cli_outcome {
    const qkv_result *result;
    const qkv_plan *plan;
    const qkv_model *model;
} cli_outcome;

/* The patterns of one layer under one variant, against the baseline's. */
typedef struct cli_change {
    size_t variant;
    int32_t layer;
    int32_t n_heads;
    double tv;         /* total variation, the mean over the heads captured */
    int32_t head;      /* the one that changed most ... */
    size_t index;      /* ... its place among those captured */
    double head_tv;    /* ... and its own */
    int32_t cell_head; /* where the weight is that changed most */
    int64_t query, key;
    double before, after;
} cli_change;

typedef struct cli_changes {
    cli_change *items;
    size_t n, capacity;
} cli_changes;

/* Of all whole maps that a variant can have changed. Release also after a failure. */
int cli_changes_find(cli_changes *changes, const cli_outcome *outcome, qkv_error *err);
void cli_changes_release(cli_changes *changes);
void cli_changes_print(const cli_changes *changes, const cli_outcome *outcome);
/* NULL without memory. */
json_t *cli_changes_json(const cli_changes *changes);

/* The most likely tokens after the last token whose logits were captured, for each variant. */
void cli_next_line_print(const cli_outcome *outcome);
json_t *cli_next_line_json(const cli_outcome *outcome);

/* run_map.c: the head that changed most as a small map, beside the baseline's; without variants the
 * head that was captured, if it is one. */
void cli_map_print(const cli_changes *changes, const cli_outcome *outcome);

/* ---- run_table.c ---- */

int cli_print_result(const cli_outcome *outcome, qkv_error *err);
/* The same as JSON: {"edits": [...], "tensors": [...], "changes": [...], "next": [...]}; NULL without
 * memory. */
json_t *cli_result_json(const cli_outcome *outcome);

/* One line on standard error for every edit that changed nothing. */
void cli_warn_unchanged(const qkv_result *result);

#endif
