/*
 * qkv weights from the inside: the circuits of heads (qkv/circuits.h) as tables and pictures.
 * weights_study_heads.c has what belongs to one head, weights_study_pairs.c what belongs to two.
 */
#ifndef QKV_STUDY_WEIGHTS_STUDY_H
#define QKV_STUDY_WEIGHTS_STUDY_H

#include "measure/circuits.h"
#include "study/study.h"

/* As the words of the option stand. */
typedef enum weights_circuit { WEIGHTS_OV, WEIGHTS_QK, WEIGHTS_COMPOSITION } weights_circuit;
#define WEIGHTS_CIRCUITS "ov|qk|composition"

typedef struct weights_options {
    int circuit; /* weights_circuit */
    const char *layers, *heads;
    int32_t raw;
    int32_t minus_random; /* of composition scores */
    int64_t top;          /* lines of a ranking; 0: 20 */
} weights_options;

int qkv_weights_show_heads(qkv_study *study, const study_inputs *in, const weights_options *options,
                           qkv_error *err);
int qkv_weights_show_pairs(qkv_study *study, const study_inputs *in, const weights_options *options,
                           qkv_error *err);

/* The library's options, which borrow the texts. */
qkv_circuit_options qkv_weights_circuit_options(const study_inputs *in,
                                                const weights_options *options);
/* How many lines of a ranking of n. */
size_t qkv_weights_top(const weights_options *options, size_t n);
void qkv_weights_free_labels(char **labels, size_t n);

#endif
