/*
 * How the studies of Zhou et al. (arXiv 2410.13708) silence a head: its queries, keys or values, times a
 * small ε before RoPE, or replaced by a mean over heads. docs/studies.md says where the paper's code does
 * something else; `parity` does what the code does.
 */
#ifndef QKV_STUDY_SILENCE_H
#define QKV_STUDY_SILENCE_H

#include "base/text.h"
#include "study/study.h"

enum { SILENCE_Q, SILENCE_K, SILENCE_V };
enum { SILENCE_SCALE, SILENCE_ZERO, SILENCE_MEAN };

typedef struct silence_options {
    int target, op;
    double epsilon; /* 0: 1e-5 */
    int32_t parity;
} silence_options;

/* Lines of a table of fields, for options that have the field `silence_options silence`. */
#define SILENCE_FIELDS(type)                                                                       \
    {"target", FIELD_WORD, offsetof(type, silence.target), "q|k|v", 0, 0},                         \
        {"op", FIELD_WORD, offsetof(type, silence.op), "scale|zero|mean", 0, 0},                   \
        {"epsilon", FIELD_REAL, offsetof(type, silence.epsilon), NULL, 0, 1}, {                    \
        "parity", FIELD_FLAG, offsetof(type, silence.parity), NULL, 0, 0                           \
    }

/* As edits have it: "q" and "scale:1e-05". */
typedef struct silence {
    const char *target;
    char op[40];
} silence;

/* Fails where the paper's code cannot do it either. */
int qkv_silence_of(silence *out, const silence_options *options, const qkv_model *model,
                   qkv_error *err);
/* A line for the small print: "queries times 1e-05 before RoPE". */
void qkv_silence_note(qkv_study *study, const silence *how);
/* Edits of a head behind those that are there, joined by " + ". */
void qkv_silence_add(qkv_text *edits, const silence *how, int32_t layer, int32_t head);

#endif
