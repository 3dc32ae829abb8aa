/* Numbers of heads as rankings and pictures: layers down, heads across. */
#ifndef QKV_STUDY_HEAD_TABLES_H
#define QKV_STUDY_HEAD_TABLES_H

#include "study/study.h"

typedef struct head_value {
    int32_t layer, head;
    double value;           /* NaN: none */
    double lowest, highest; /* over prompts; the value itself where there is nothing else */
    size_t n_tops;          /* prompts that have it among their first */
    double top_sum;         /* of its values there */
} head_value;

/* In the order of layers and heads, values taken from n_layer × n_head numbers. NULL: no memory. */
head_value *qkv_head_values(size_t n_layer, size_t n_head, const double *values);
/* The largest first; of equal ones the one that comes first. Those without a value come last. */
void qkv_head_values_sort(head_value *heads, size_t n);

/* One panel of a picture: heads in the order of layers and heads. */
typedef struct head_panel {
    const head_value *heads;
    const char *title; /* NULL: none */
} head_panel;

int qkv_head_map(qkv_study *study, const char *name, const head_panel *panels, size_t n_panels,
                 size_t n_layer, size_t n_head, const char *label, qkv_error *err);
/* The first of a ranking as bars. */
int qkv_head_bars(qkv_study *study, const char *name, const head_value *ranked, size_t n,
                  const char *label, qkv_error *err);

#endif
