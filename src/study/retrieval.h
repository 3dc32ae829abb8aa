/*
 * Retrieval heads (Wu et al., arXiv 2404.15574) from the inside. A needle, a sentence that a question asks
 * for, is put into filler text; the model answers; a head has copied a token of the answer when its
 * largest weight, at the query that predicts the token, lies on that token inside the needle.
 *
 *     retrieval.c          options, scores, the study
 *     retrieval_needles.c  needles, from options
 *     retrieval_prompts.c  prompts: filler, needle, question; where the needle is
 *     retrieval_copies.c   answers, and what heads have copied
 *     retrieval_file.c     what was computed, on disk
 *     retrieval_show.c     tables and pictures
 */
#ifndef QKV_STUDY_RETRIEVAL_H
#define QKV_STUDY_RETRIEVAL_H

#include "store/journal.h"
#include "study/study.h"

enum { RETRIEVAL_GREEDY, RETRIEVAL_FORCED };

typedef struct retrieval_options {
    const char *lengths, *depths;           /* lists; NULL: usual ones */
    const char *needle, *question, *answer; /* NULL: a usual one; the whole needle */
    const char *needles;  /* several, in place of the three: a JSON object a line */
    const char *template; /* with {context} and {question}; NULL: a usual one */
    const char *system, *chat_template,
        *date; /* of a chat; NULL: none, the model's own, a fixed one */
    int decode;
    int32_t tokens; /* of an answer, at most; 0: 50 */
    int32_t all;    /* tests count whether their answer is right or not */
    int32_t chat;   /* the prompt is a user's message */
    int32_t parity; /* what the paper's code does */
    int32_t top;    /* rows of the ranking; 0: 20 */
} retrieval_options;

typedef struct retrieval_needle {
    char *text, *question, *answer; /* the answer is a part of the text */
} retrieval_needle;

typedef struct retrieval_test {
    size_t needle; /* its number */
    int64_t length;
    double depth;
    int32_t *tokens; /* the prompt */
    size_t n_tokens;
    size_t start, end; /* tokens of the answer inside the needle; equal: not found */
    int32_t *answer;   /* tokens that were decoded, or fed */
    size_t n_answer;
    char *text;    /* of them */
    double recall; /* of the answer's words; forced: the share of tokens that are the most likely */
    uint32_t *copied; /* by head: tokens of the needle; with parity, steps */
    int counts;
} retrieval_test;

typedef struct retrieval {
    const study_inputs *in;
    const retrieval_options *how;
    size_t n_layer, n_head, n_heads, n_new;
    retrieval_needle *needles;
    size_t n_needles, needles_capacity;
    double *lengths, *depths;
    size_t n_lengths, n_depths, lengths_capacity, depths_capacity;
    retrieval_test *tests; /* by needle, length, depth */
    size_t n_tests, n_counted;
    size_t n_filler;  /* tokens of the filler before it is repeated */
    double *scores;   /* by head; NaN: no test counts */
    size_t *n_copies; /* by head: tests that count in which it has copied something */
} retrieval;

/* retrieval_needles.c */
int qkv_retrieval_read_needles(retrieval *r, qkv_error *err);
/* The share of the words of `wanted` that `text` has, each as often as it is there: ROUGE-1 recall without
 * stemming. NaN where there is no word. */
double qkv_retrieval_recall(const char *wanted, const char *text);

/* retrieval_prompts.c: prompts of all tests, which fit into the model's context. */
int qkv_retrieval_make_prompts(retrieval *r, qkv_error *err);

/* retrieval_copies.c: the answer to one test, and what heads have copied of it. */
int qkv_retrieval_answer(const retrieval *r, retrieval_test *test, qkv_error *err);
/* What follows from the answer: its text; greedily, the recall. */
int qkv_retrieval_read_answer(const retrieval *r, retrieval_test *test, qkv_error *err);

/* retrieval_file.c: a journal (store/journal.h) of the answers of one model and way of decoding; those of other lengths,
 * depths and needles may be added later. */
int qkv_retrieval_file_open(qkv_journal *file, const retrieval *r, qkv_error *err);
/* Fills in the answer to a test, if it is there: the test then has `copied`. */
int qkv_retrieval_file_get(qkv_journal *file, const retrieval *r, retrieval_test *test,
                           qkv_error *err);
int qkv_retrieval_file_put(qkv_journal *file, const retrieval *r, const retrieval_test *test,
                           qkv_error *err);

/* retrieval_show.c */
int qkv_retrieval_show(const retrieval *r, qkv_study *study, qkv_error *err);

#endif
