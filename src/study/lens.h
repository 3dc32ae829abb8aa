/* The logit lens from the inside: lens.c computes, lens_show.c puts it into tables and pictures. */
#ifndef QKV_STUDY_LENS_H
#define QKV_STUDY_LENS_H

#include "study/study.h"

typedef struct lens_options {
    int32_t top;        /* 0: 5 */
    const char *answer; /* of one token or more, of which the first counts; or two: A/B */
    int32_t heads;      /* 1: which part of the answer's logit each head adds */
} lens_options;

/* What one layer would predict after one token. */
typedef struct lens_cell {
    int32_t *top; /* the most likely tokens, in order */
    double *p;    /* their probabilities */
    double answer_logit, answer_p;
    int64_t answer_rank; /* 1: the most likely one */
} lens_cell;

typedef struct lens {
    int32_t n_layer, n_embd, n_vocab, n_top;
    size_t n_tokens;
    int32_t answer;   /* -1: none */
    int32_t against;  /* the token whose logit is taken away; -1: none */
    lens_cell *cells; /* [layers, positions] */
    int32_t *tokens;  /* of all cells */
    double *probabilities;
} lens;

/* Release it also after a failure. */
int qkv_lens_compute(lens *l, qkv_session *session, const qkv_own_prompt *prompt, qkv_error *err);
void qkv_lens_release(lens *l);
lens_cell *qkv_lens_at(const lens *l, int32_t layer, size_t position);

/* lens_show.c */
int qkv_lens_show(const lens *l, qkv_study *study, const study_inputs *in, const char *answer,
                  qkv_error *err);

/* lens_heads.c: direct logit attribution, of the last token; `answer` is for people. */
int qkv_lens_heads(const lens *l, qkv_study *study, const study_inputs *in, const char *answer,
                   qkv_error *err);

#endif
