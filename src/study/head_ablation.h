/*
 * How the studies of Zhou et al. (arXiv 2410.13708) silence a head: its queries, keys or values, times a
 * small ε before RoPE, or replaced by a mean over heads. docs/studies.md says where the paper's code does
 * something else; `parity` does what the code does.
 */
#ifndef QKV_STUDY_HEAD_ABLATION_H
#define QKV_STUDY_HEAD_ABLATION_H

#include "base/text.h"
#include "study/study.h"

enum { ABLATE_Q, ABLATE_K, ABLATE_V };
enum { ABLATE_SCALE, ABLATE_ZERO, ABLATE_MEAN };

typedef struct ablation_options {
    int target, op;
    double epsilon; /* 0: 1e-5 */
    int32_t parity;
} ablation_options;

/* Lines of a table of fields, for options that have the field `ablation_options ablation`. */
#define ABLATION_FIELD(type, name, member, kind, words, least, most, value, help)                  \
    {                                                                                              \
        name, FIELD_##kind, offsetof(type, ablation) + offsetof(ablation_options, member), words,  \
            least, most, value, help, NULL, NULL                                                   \
    }
#define ABLATION_FIELDS(type)                                                                      \
    ABLATION_FIELD(type, "target", target, WORD, "q|k|v", 0, 0, NULL,                              \
                   "what of a head is silenced: queries (default), keys or values"),               \
        ABLATION_FIELD(type, "op", op, WORD, "scale|zero|mean", 0, 0, NULL,                        \
                       "how: times `epsilon` (default), zero, or the mean over heads"),            \
        ABLATION_FIELD(type, "epsilon", epsilon, REAL, NULL, 0, 1, "X",                            \
                       "the factor of scale (default 1e-5)"),                                      \
        ABLATION_FIELD(type, "parity", parity, FLAG, NULL, 0, 0, NULL,                             \
                       "what the paper's code does, where that differs from the paper")

/* As edits have it: "q" and "scale:1e-05". */
typedef struct head_ablation {
    const char *target;
    char op[40];
} head_ablation;

/* Fails where the paper's code cannot do it either. */
int qkv_head_ablation_of(head_ablation *out, const ablation_options *options,
                         const qkv_model *model, qkv_error *err);
/* A line for the small print: "queries times 1e-05 before RoPE". */
void qkv_head_ablation_note(qkv_study *study, const head_ablation *how);
/* Edits of a head after those that are there, joined by " + ". */
void qkv_head_ablation_add(qkv_text *edits, const head_ablation *how, int32_t layer, int32_t head);

#endif
