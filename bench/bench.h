/*
 * qkv-bench, its parts: what is measured, on which models, and how it is told.
 *
 * A measurement is a line in BENCH_LIST and a function. Models are measured in turn, round after
 * round, so that whatever else the machine does falls on all of them alike.
 */
#ifndef QKV_BENCH_BENCH_H
#define QKV_BENCH_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "qkv/session.h"
#include "qkv/sweep.h"

/* X(identifier, function, name, what it is). All are seconds, but for memory, which is bytes. Fresh
 * means a session that has run nothing; making it is not part of the time. */
#define BENCH_LIST(X)                                                                              \
    X(LOAD, load, "load", "opening the model")                                                     \
    X(FORWARD, forward, "forward", "all logits, fresh session")                                    \
    X(FORWARD_LAST, forward_last, "forward-last", "the last token's logits, fresh session")        \
    X(TRUNK, trunk, "trunk", "the middle layer's pattern, fresh session")                          \
    X(GRID, grid, "grid", "the same under nine edits, fresh session")                              \
    X(GRID_WARM, grid_warm, "grid-warm", "the same in a session that has run it")                  \
    X(SWEEP, sweep, "sweep", "the grid of every layer, first-token weights, fresh session")        \
    X(OUTPUTS, outputs, "sweep-output", "heads of the middle layer off in turn, fresh session")    \
    X(EPSILON, epsilon, "epsilon", "another factor for the queries, session that ran the grid")    \
    X(TOKEN, token, "token", "one more token of a text")                                           \
    X(TOKENS, tokens, "token-4", "one more token of a text and of three variants")                 \
    X(START, start, "start", "the grid from process start to a written file")                      \
    X(MEMORY, memory, "memory", "largest resident memory of that process")

#define BENCH_ENUM(id, function, name, what) BENCH_##id,
enum bench_id { BENCH_LIST(BENCH_ENUM) BENCH_COUNT };
#undef BENCH_ENUM

extern const char *const bench_names[BENCH_COUNT];
extern const char *const bench_whats[BENCH_COUNT];

typedef struct bench_setting {
    size_t n_tokens;
    size_t n_rounds;
    int32_t n_threads;       /* 0: all cores */
    int wanted[BENCH_COUNT]; /* --only */
    const char *scratch;     /* a directory for what children write */
    const char *program;     /* qkv, which children run */
} bench_setting;

typedef struct bench_samples {
    double *values; /* n_rounds; NULL when this was not measured */
    size_t n;
} bench_samples;

/* One model under measurement. */
typedef struct bench_case {
    const bench_setting *setting;
    char *name; /* "gpt2-124m f32", or the path */
    char *path;
    qkv_model *model;
    const qkv_model_info *info;
    int32_t layer; /* the middle one, whose pattern is looked at */
    int32_t *tokens;
    qkv_plan *forward, *last, *trunk; /* last: NULL where logits of one token cannot be had */
    qkv_plan **grids;                 /* one for every layer */
    qkv_sweep *sweep, *outputs;       /* in the layers; at the output, NULL where it has none */
    qkv_session *warm;                /* has run the middle layer's grid */
    unsigned epsilons;                /* how many have been used up */
    bench_samples samples[BENCH_COUNT];
} bench_case;

/* ---- bench_case.c ---- */

/* Opens the model at `path` and makes its plans; name and path are copied. Release it also after a
 * failure. */
int bench_case_open(bench_case *c, const bench_setting *setting, const char *name, const char *path,
                    qkv_error *err);
void bench_case_release(bench_case *c);

/* Edit `index` (0 to 8) of a grid: {q, k, v} x three factors, all heads. */
enum { BENCH_EDITS = 9, BENCH_EDIT_SIZE = 64 };
void bench_edit_text(char out[BENCH_EDIT_SIZE], int index, int32_t layer);

/* ---- bench_measure.c ---- */

/* Reads the weights into memory once, and runs what later measurements want to find done. */
int bench_warm_up(bench_case *c, qkv_error *err);
/* Adds one sample of everything that is wanted, but for memory. */
int bench_round(bench_case *c, qkv_error *err);
/* Memory is taken before anything is computed here: a child's figure is never below what its
 * parent held when it was started. */
int bench_memory(bench_case *c, qkv_error *err);

/* ---- bench_child.c ---- */

/* Runs qkv with the case's grid, from start to a file in the scratch directory. */
int bench_child(const bench_case *c, double *seconds, double *peak_bytes, qkv_error *err);
/* Seconds of a clock that never goes back. */
double bench_now(void);

/* ---- bench_scratch.c ---- */

/* A new directory in TMPDIR or /tmp. */
int bench_scratch_make(char **out, qkv_error *err);
/* Removes it with the files in it; frees the path. */
void bench_scratch_remove(char *path);

/* ---- bench_report.c ---- */

void bench_print_table(const bench_case *cases, size_t n);
int bench_print_json(const bench_case *cases, size_t n, qkv_error *err);

#endif
