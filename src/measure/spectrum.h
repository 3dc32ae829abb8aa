/*
 * Singular values and vectors, eigenvalues: the one place that calls LAPACK, which comes with OpenBLAS.
 *
 * Matrices are column-major and are overwritten. Calls are made one at a time, whatever thread they
 * come from.
 */
#ifndef QKV_MEASURE_SPECTRUM_H
#define QKV_MEASURE_SPECTRUM_H

#include "base/fail.h"

/* The min(rows, cols) singular values of a, largest first. */
int qkv_singular_values(double *values, double *a, int rows, int cols, qkv_error *err);
/* The first `rank` left singular vectors, rows x rank; rank is at most min(rows, cols). */
int qkv_left_vectors(double *vectors, double *a, int rows, int cols, int rank, qkv_error *err);
/* R of a = QR, min(rows, cols) x cols, zeros below its diagonal: a and R have the same lengths and
 * angles, aᵀa = RᵀR. */
int qkv_triangle(double *r, double *a, int rows, int cols, qkv_error *err);
/* The n eigenvalues of a, n x n, in no particular order; conjugate ones follow each other. */
int qkv_eigenvalues(double *real, double *imaginary, double *a, int n, qkv_error *err);
/* Sum of the principal angles, in radians, between the spans of two orthonormal rows x rank
 * matrices. */
int qkv_subspace_angle(double *angle, const double *u, const double *w, int rows, int rank,
                       qkv_error *err);

#endif
