/*
 * The circuits of heads, from weights alone: what a head copies (OV), what it looks for (QK), and
 * which heads read what others write (Elhage et al. 2021, "A Mathematical Framework for Transformer
 * Circuits").
 *
 * A head's matrices act on columns: W_Q, W_K and W_V are d x D, W_O is D x d; a query head has the
 * W_K and W_V of its group. Then
 *
 *     W_OV = W_O W_V         what a token adds to the stream of one that attends to it
 *     W_QK = W_Qᵀ W_K        xᵀ W_QK y is the score of query x and key y
 *
 * Both are D x D and of rank d; nothing of that size is made of them. Norms are folded into the
 * matrices, as TransformerLens does (fold_ln): the weights of the norm before attention into W_Q, W_K
 * and W_V, those of a norm after attention and the model's factor of residuals into W_O, those of
 * QK-norm into W_Q and W_K, those of the last norm into the output matrix; where a norm takes away the
 * mean, readers and writers do so too. With `raw` matrices are what the file has. Left out either way,
 * because they are not matrices: the norms' division (also QK-norm's), biases, RoPE (scores are those
 * of distance 0), the factor of scores, caps and learned sinks.
 *
 * The session lends its threads and its callback (qkv/progress.h); no prompt is run. Objects are independent of it. Sums are taken in one order: the number of
 * threads changes no bit.
 */
#ifndef QKV_MEASURE_CIRCUITS_H
#define QKV_MEASURE_CIRCUITS_H

#include "qkv/session.h"
#include <stddef.h>
#include <stdint.h>

typedef struct qkv_circuit_options {
    size_t size;
    const char *layers, *heads; /* as in edits: "3", "0-5,7"; NULL: all */
    int32_t raw;                /* 1: norms are not folded in */
    /* Called in the caller's thread before each layer, or pair of layers; anything but 0 stops the
     * work: QKV_ERR_CANCELLED. NULL: not called. */
    int (*progress)(void *user, int64_t done, int64_t wanted);
    void *user;
} qkv_circuit_options;

#define QKV_CIRCUIT_OPTIONS_INIT                                                                   \
    { .size = sizeof(qkv_circuit_options) }

/* ---- one head ---- */

typedef enum qkv_circuit_kind { QKV_CIRCUIT_OV, QKV_CIRCUIT_QK } qkv_circuit_kind;

typedef struct qkv_circuits qkv_circuits;

/* With λ the eigenvalues of a matrix, its score is Σλ / Σ|λ|, from -1 to 1; NaN where all are 0. */
typedef struct qkv_circuit {
    size_t size;
    int32_t layer, head;
    double norm;           /* Frobenius: √(Σσ²) */
    double effective_rank; /* exp(-Σ p ln p), p = σ / Σσ (Roy and Vetterli 2007) */
    /* Of the full circuit, from token to token: W_U W_OV W_E, the copying score; W_Eᵀ W_QK W_E, the
     * matching score. The former is NaN for a model without logits. */
    double score;
    double stream_score; /* of W_OV or W_QK itself */
    /* min(D, d) singular values, largest first; they belong to the circuits. */
    const double *singular;
    size_t n_singular;
    /* The full circuit's eigenvalues, d of them (all others are 0), largest first; NULL where there
     * are none. */
    const double *real, *imaginary;
    size_t n_eigen;
} qkv_circuit;

#define QKV_CIRCUIT_INIT                                                                           \
    { .size = sizeof(qkv_circuit) }

/* options may be NULL. A layer or head that the model does not have is an error. */
int qkv_circuits_new(qkv_circuits **out, qkv_session *session, qkv_circuit_kind kind,
                     const qkv_circuit_options *options, qkv_error *err);
void qkv_circuits_free(qkv_circuits *circuits);
/* By layer, then head. Fills *circuit and returns 1, or 0 past the end. */
int qkv_circuits_get(const qkv_circuits *circuits, size_t index, qkv_circuit *circuit);

/* ---- two heads ---- */

/* Which input of the later head reads what the earlier one writes:
 *
 *     Q   ‖W_QKᵀ W_OV‖ / (‖W_QK‖ ‖W_OV‖)
 *     K   ‖W_QK W_OV‖ / (‖W_QK‖ ‖W_OV‖)
 *     V   ‖W_OV W_OV‖ / (‖W_OV‖ ‖W_OV‖)
 *
 * the first matrix being the later head's, all norms Frobenius's. From 0 to 1. */
typedef enum qkv_composition_kind {
    QKV_COMPOSITION_Q,
    QKV_COMPOSITION_K,
    QKV_COMPOSITION_V,
    QKV_COMPOSITION_COUNT
} qkv_composition_kind;

typedef struct qkv_composition qkv_composition;

/* All pairs of the chosen heads of different layers. QKV_ERR_UNSUPPORTED where norms stand in the
 * residual stream itself (BERT). */
int qkv_composition_new(qkv_composition **out, qkv_session *session,
                        const qkv_circuit_options *options, qkv_error *err);
void qkv_composition_free(qkv_composition *composition);
/* The chosen heads, by layer, then head: 1, or 0 past the end. */
int qkv_composition_head(const qkv_composition *composition, size_t index, int32_t *layer,
                         int32_t *head);
/* Of two of them, by their indices; NaN where the first is not of a later layer. */
double qkv_composition_score(const qkv_composition *composition, qkv_composition_kind kind,
                             size_t later, size_t earlier);
/* What matrices of these shapes with random Gaussian factors have: 1/√D, or 1/√(D−1) where means are
 * taken away. */
double qkv_composition_random(const qkv_composition *composition);

#endif
