/*
 * Lists of numbers as they are written on a command line or in a specification:
 *
 *     0.5,1e-3                     numbers
 *     linspace:FROM,TO,NUMBER      equal steps, both ends included
 *     logspace:FROM,TO,NUMBER      equal ratios
 *
 * and any mixture of them, separated by commas: 0,logspace:1e-4,1,5.
 */
#ifndef QKV_BASE_NUMBER_LIST_H
#define QKV_BASE_NUMBER_LIST_H

#include <stddef.h>

#include "base/fail.h"

/* How messages name the three ways. */
#define QKV_NUMBER_LIST_WAYS                                                                       \
    "numbers such as 0.5,1e-3, linspace:FROM,TO,NUMBER or logspace:FROM,TO,NUMBER"

/* The same list with numbers in place of every linspace and logspace; what was written as a number
 * stays as it was written, and is not checked. Freed with free. A mistake is QKV_ERR_SYNTAX. */
int qkv_number_list_expand(char **out, const char *list, qkv_error *err);

/* The number at *at of an expanded list, which is moved after it: 1, or 0 at the end, where *at is
 * NULL. *value is NaN where the text is not a finite number. */
int qkv_number_list_next(const char **at, const char **text, size_t *length, double *value);

#endif
