/*
 * Sweeps that patch: two prompts, a clean and a corrupt one, and cells that run one of them with one
 * piece of the other put in.
 *
 *     denoise   runs the corrupt prompt, op patch:clean
 *     noise     runs the clean prompt, op patch:corrupt
 *
 * A map is one site, by positions (all heads) or by heads (all positions); each map has the same
 * columns in every layer. With receivers, pieces are heads, and only what they do by way of these counts
 * (patching_paths.h). The cells of a pair, in their order: the two unedited prompts, then by
 * direction, layer, map and column. Prompt 2i of the sweep is the clean one of pair i, 2i + 1 its
 * corrupt one.
 */
#ifndef QKV_SWEEP_PATCHING_H
#define QKV_SWEEP_PATCHING_H

#include "sweep/spec.h"
#include "sweep/sweep.h"

typedef enum qkv_patch_role { QKV_PATCH_CLEAN, QKV_PATCH_CORRUPT } qkv_patch_role;

/* What is read from the logits after one token, or after the tokens before each one of an answer. */
typedef enum qkv_patch_measure {
    QKV_PATCH_LOGIT_DIFF,
    QKV_PATCH_LOGIT,
    QKV_PATCH_PROB,
    QKV_PATCH_KL,
    QKV_PATCH_LOGPROB,
    QKV_PATCH_LOGPROB_DIFF,
    QKV_PATCH_MEASURES
} qkv_patch_measure;

typedef struct qkv_patch_answer {
    int32_t *tokens;
    size_t n; /* 0: not given */
} qkv_patch_answer;

enum {
    QKV_PATCH_PARTS = 2
}; /* numbers that a metric is made of: of the answer, and of the wrong one */

typedef struct qkv_patch_metric {
    char *text; /* "logit_diff: Mary/ John": as it was given, with spaces that were left out */
    qkv_patch_measure measure;
    int has_tokens;                            /* its own; else those of each pair */
    qkv_patch_answer answers[QKV_PATCH_PARTS]; /* that is good, that is not */
} qkv_patch_metric;

typedef struct qkv_patch_pair {
    char *texts[QKV_PATCH_PARTS]; /* of the answers; NULL where not given */
    qkv_patch_answer answers[QKV_PATCH_PARTS];
    /* Positions that stand for one another, clean's and corrupt's, ascending. */
    int32_t *clean, *corrupt;
    size_t n_aligned;
    int64_t first_difference; /* of the tokens */
} qkv_patch_pair;

typedef struct qkv_patch_map {
    qkv_site site;
    int by_head;
} qkv_patch_map;

/* Where the paths end that senders are patched along: patching_paths.c. */
typedef struct qkv_patch_receiver {
    char *text;              /* as it was given: "q@9.h9" */
    qkv_site site, captured; /* what is set, and where it comes from */
    uint8_t *layers;         /* n_layer bytes; NULL: the logits */
    char *rest;              /* after the layers: ".h9[-1]" */
} qkv_patch_receiver;

typedef struct qkv_patching {
    qkv_patch_pair *pairs;
    size_t n_pairs;
    char *align; /* as it was given; NULL: prompts are of equal length */
    qkv_patch_map *maps;
    size_t n_maps, maps_capacity;
    int by_position, by_head;     /* as it was given; both 0: as the sites have it */
    int32_t *positions;           /* of the clean prompt, ascending: columns */
    size_t n_positions;           /* 0 where no map is by positions */
    qkv_patch_role directions[2]; /* which prompt is run */
    size_t n_directions;
    qkv_patch_metric *metrics;
    size_t n_metrics, metrics_capacity;
    int64_t at; /* the token whose logits are looked at, as it was given; negative: from the end */
    int needs_clean;               /* a metric compares with the clean prompt's distribution */
    int64_t per_run;               /* cells of one direction of a pair */
    qkv_patch_receiver *receivers; /* none: pieces are patched for all that follows */
    size_t n_receivers, receivers_capacity;
    int to_logits;   /* the only receiver is what the output matrix reads */
    int freeze_mlps; /* paths through feed-forward blocks do not count */
    int is_parallel; /* attention and feed-forward of a layer read the same */
    char **warnings; /* about answers that most likely lack a space */
    size_t n_warnings, warnings_capacity;
} qkv_patching;

/* patching_spec.c */
int qkv_patching_is_meant(const json_t *object);
int qkv_patching_read(qkv_spec *spec, qkv_error *err);
/* What its canonical text says. */
json_t *qkv_patching_json(const qkv_sweep *sweep);
void qkv_patching_free(qkv_patching *patching);

/* patching_pairs.c: prompts, their answers, and which positions stand for which. */
int qkv_patching_pairs(qkv_spec *spec, qkv_error *err);
/* The positions that maps have as columns. */
int qkv_patching_columns(qkv_spec *spec, qkv_error *err);

/* patching_metrics.c */
int qkv_patching_metrics(qkv_spec *spec, qkv_error *err);
void qkv_patching_metric_free(qkv_patch_metric *metric);
/* The tokens of a pair's answers, of which either may be NULL. The texts, which the caller owns, get the
 * spaces that belong before them. */
int qkv_patching_find_answers(const qkv_model *model, char *texts[QKV_PATCH_PARTS],
                              qkv_patch_answer answers[QKV_PATCH_PARTS], qkv_error *err);
/* patching_spaces.c: warnings about answers, once prompts and metrics are there. */
int qkv_patching_check_spaces(qkv_spec *spec, qkv_error *err);

/* The answer that a part of a metric is about: the metric's own or the pair's; of no tokens where it is
 * about none. */
const qkv_patch_answer *qkv_patching_answer(const qkv_patch_metric *metric,
                                            const qkv_patch_pair *pair, size_t part);
size_t qkv_patching_n_parts(const qkv_patch_metric *metric);
/* A part of a metric from logits: those after the prompt or, for an answer of n tokens, n rows. `clean`
 * is the clean prompt's row. */
double qkv_patching_part(const qkv_patch_metric *metric, const qkv_patch_answer *answer,
                         const float *rows, const float *clean, size_t n_vocab);
/* The value of a metric from its parts. */
double qkv_patching_value(const qkv_patch_metric *metric, const double *parts);

/* patching_cells.c: as of sweep.h and qkv/sweep.h. */
int qkv_patching_count(qkv_sweep *sweep, qkv_error *err);
/* Do its prompts have equally many tokens? Else edits say which token takes which. */
int qkv_patching_is_one_length(const qkv_sweep *sweep, size_t pair);
qkv_cell qkv_patching_cell(const qkv_sweep *sweep, int64_t id);
/* All edits of a cell, which may be longer than what the cell shows, where both prompts are followed by
 * n_more tokens; the caller's to free. NULL: no memory. */
char *qkv_patching_edit(const qkv_sweep *sweep, const qkv_cell *cell, size_t n_more);
int64_t qkv_patching_block(const qkv_sweep *sweep, int64_t block, int64_t *n_cells);
/* The position of a prompt, counted from 0 on, whose logits are looked at. */
int64_t qkv_patching_at(const qkv_sweep *sweep, size_t prompt);
/* Whether a cell cannot differ from its run without the edit: before the first token that differs,
 * both prompts have the same values. */
int qkv_patching_is_idle(const qkv_sweep *sweep, const qkv_cell *cell);

/* patching_compute.c */
int qkv_patching_compute(const qkv_sweep *sweep, qkv_session *session, int64_t block,
                         double *values, qkv_error *err);
int qkv_patching_estimate(const qkv_sweep *sweep, qkv_session *session, qkv_run_stats *stats,
                          qkv_error *err);

#endif
