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
#include "qkv/sweep.h"
#include "qkv/sweep_reader.h"

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

/* spec.c: a sweep of a specification that was never a text. `prompts` are tokenized already, of patching the pairs' clean
 * and corrupt ones in turn, and the objects in `pairs` have answers alone; NULL: the specification has them. */
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

/* ---- what the rooms above use ---- */

const char *qkv_sweep_spec(const qkv_sweep *sweep);

/* The whole specification, defaults filled in, as one line of JSON with sorted keys, and the
 * XXH3-128 of it as 32 hexadecimal digits. */
const char *qkv_sweep_hash(const qkv_sweep *sweep);

/* 1: cells patch one prompt into another, and prompts 2i (clean) and 2i + 1 (corrupt) are a pair. */
int qkv_sweep_patches(const qkv_sweep *sweep);

/* NULL past the end. */
const char *qkv_sweep_metric(const qkv_sweep *sweep, size_t index);

/* What is most likely not meant: an answer of several tokens that follows its prompt without a space. NULL past
 * the end. */
const char *qkv_sweep_warning(const qkv_sweep *sweep, size_t index);

enum { QKV_EDIT_SIZE = 128 };

typedef struct qkv_cell {
    size_t size;
    int64_t id;
    size_t prompt;
    int32_t layer;            /* -1: all layers together, or a baseline that belongs to none */
    int32_t head;             /* query head; -1 likewise */
    const char *target;       /* "q", "k", ..., "none" */
    const char *op;           /* "scale", "mean:head", ...; "" for the baseline */
    double epsilon;           /* NaN where the operation has none */
    char edit[QKV_EDIT_SIZE]; /* as in qkv/plan.h; "" for the baseline */
    int64_t position;         /* of the clean prompt, where one is patched alone; -1: of none */
} qkv_cell;

#define QKV_CELL_INIT                                                                              \
    { .size = sizeof(qkv_cell) }

/* Fills *cell, whose texts belong to the sweep, and returns 1, or returns 0 past the end. */
int qkv_sweep_get_cell(const qkv_sweep *sweep, int64_t id, qkv_cell *cell);

/* ---- results ---- */

typedef struct qkv_sweep_writer qkv_sweep_writer;

/* Makes the file, or resumes one that was made for the same specification and model. shard is NULL,
 * or the part of the sweep that the file is for, e.g. "2/3". The path is the name of a file whatever
 * it looks like (":memory:"), and must not be empty. A file that other results of this or another
 * process are open on is refused: QKV_ERR_IO. */
int qkv_sweep_writer_open(qkv_sweep_writer **out, const qkv_sweep *sweep, const char *path,
                          const char *shard, qkv_error *err);

/* Leaves one file, without a log beside it. Accepts NULL; err tells what could not be written. */
int qkv_sweep_writer_close(qkv_sweep_writer *results, qkv_error *err);

/* Cells whose values are there. */
int qkv_sweep_writer_n_done(qkv_sweep_writer *results, int64_t *n, qkv_error *err);

typedef struct qkv_sweep_options {
    size_t size;
    int64_t shard, n_shards; /* this part of so many, from 1; 0: all of it */
    /* Called after every block with the number of cells done and wanted in this part; anything but
     * 0 stops the run; it can be resumed later. May be NULL. */
    int (*progress)(void *user, int64_t done, int64_t wanted);
    void *user;
} qkv_sweep_options;

#define QKV_SWEEP_OPTIONS_INIT                                                                     \
    { .size = sizeof(qkv_sweep_options) }

/* Computes and stores what is missing. *stopped (may be NULL) is 1 when progress ended it. The
 * session's own callback (qkv/progress.h) ends it in the middle of a block: QKV_ERR_CANCELLED.
 *
 * Products of matrices come out a little different, in the last bits, when several threads share
 * one. Give a session of one thread and every run of the sweep, in whatever pieces, has the same
 * values bit for bit; to use more cores, run shards. */
int qkv_sweep_run(const qkv_sweep *sweep, qkv_session *session, qkv_sweep_writer *results,
                  const qkv_sweep_options *options, int *stopped, qkv_error *err);

/* The tokens of a prompt, by the number that rows have. *tokens is the caller's to free with
 * qkv_tokens_free (qkv/model.h). */
int qkv_sweep_reader_prompt(qkv_sweep_reader *file, int64_t prompt, int32_t **tokens,
                            size_t *n_tokens, qkv_error *err);

/* ---- blocks: runs of cells of one prompt, and of one layer unless nothing is edited; computed and
 * stored together ---- */

int64_t qkv_sweep_n_blocks(const qkv_sweep *sweep);
/* First cell of a block, and how many it has; -1 and 0 where there is no such block. */
int64_t qkv_sweep_block(const qkv_sweep *sweep, int64_t block, int64_t *n_cells);
/* How many consecutive blocks one of n workers should take at a time: those of a prompt share its
 * forward pass. */
int64_t qkv_sweep_unit(const qkv_sweep *sweep, int64_t n_workers);

/* Whether a block belongs to the part `shard` (from 1) of n_shards; 0 shards: always. */
int qkv_sweep_in_shard(const qkv_sweep *sweep, int64_t block, int64_t shard, int64_t n_shards);

/* Cells of that part. */
int64_t qkv_sweep_shard_cells(const qkv_sweep *sweep, int64_t shard, int64_t n_shards);

/* How many cells of a block have no values yet. */
int qkv_sweep_writer_n_missing(qkv_sweep_writer *results, int64_t block, int64_t *n,
                               qkv_error *err);
/* Stores the values of a block in one transaction. */
int qkv_sweep_writer_put(qkv_sweep_writer *results, int64_t block, const double *values,
                         qkv_error *err);

#endif
