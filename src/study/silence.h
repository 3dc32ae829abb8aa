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
#define SILENCE_FIELD(type, name, member, kind, words, least, most, value, help)                   \
    {                                                                                              \
        name, FIELD_##kind, offsetof(type, silence) + offsetof(silence_options, member), words,    \
            least, most, value, help, NULL, NULL                                                   \
    }
#define SILENCE_FIELDS(type)                                                                       \
    SILENCE_FIELD(type, "target", target, WORD, "q|k|v", 0, 0, NULL,                               \
                  "what of a head is silenced: queries (default), keys or values"),                \
        SILENCE_FIELD(type, "op", op, WORD, "scale|zero|mean", 0, 0, NULL,                         \
                      "how: times `epsilon` (default), zero, or the mean over heads"),             \
        SILENCE_FIELD(type, "epsilon", epsilon, REAL, NULL, 0, 1, "X",                             \
                      "the factor of scale (default 1e-5)"),                                       \
        SILENCE_FIELD(type, "parity", parity, FLAG, NULL, 0, 0, NULL,                              \
                      "what the paper's code does, where that differs from the paper")

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
/* Edits of a head after those that are there, joined by " + ". */
void qkv_silence_add(qkv_text *edits, const silence *how, int32_t layer, int32_t head);

#endif
