/*
 * Turns at BLAS.
 *
 * OpenBLAS has one number of threads for the whole process. It decides how a product is cut, and so
 * how it is rounded; and setting it frees buffers that another thread's product may be using. So
 * sessions whose numbers are equal compute together, and one with another number waits until they
 * are done. Turns are taken in the order of asking: nobody waits for ever.
 *
 * What the number was before is put back when the last one leaves, and so is the calling thread's
 * number of OpenMP threads, which OpenBLAS sets along with its own.
 *
 * The threads of a product wait for one another, so that a team smaller than what was asked for
 * would wait for ever. OpenMP gives such teams where it may adjust their size (OMP_DYNAMIC) or has
 * no active levels; both are set otherwise for the calling thread during its turn.
 */
#ifndef QKV_RUN_BLAS_TURN_H
#define QKV_RUN_BLAS_TURN_H

#include "base/steps.h"

typedef struct qkv_blas_turn {
    /* of the calling thread, before */
    int openmp_threads, openmp_dynamic, openmp_levels;
} qkv_blas_turn;

/* 1, or 0: `steps` were stopped while it waited, or there is no memory for the buffers that OpenBLAS
 * would allocate (it tries for ever) or for the stacks of threads. Must not be called by a thread
 * that has a turn. */
int qkv_blas_enter(qkv_blas_turn *turn, int n_threads, qkv_steps *steps);
void qkv_blas_leave(qkv_blas_turn turn);

#endif
