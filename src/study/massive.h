/* The study `massive` from the inside: what was found, for the file that makes tables and pictures of
 * it. docs/studies.md has the definitions. */
#ifndef QKV_STUDY_MASSIVE_H
#define QKV_STUDY_MASSIVE_H

#include "study/study.h"

enum { MASSIVE_TOP = 3 };

typedef struct massive_settings {
    double size, ratio; /* 0: 100 and 1000 */
    int32_t layer;      /* after which activations are set; QKV_AUTO: the first that has any */
} massive_settings;

/* One massive activation. */
typedef struct massive_find {
    uint32_t prompt;
    int32_t layer, position, channel;
    float value;
} massive_find;

/* Sums over prompts. */
typedef struct massive_layer {
    double top[MASSIVE_TOP], median, count;
    double largest, largest_ratio; /* of all prompts */
} massive_layer;

/* What is done to them. */
typedef enum massive_change {
    MASSIVE_ORIGINAL,
    MASSIVE_ZERO,
    MASSIVE_MEAN,
    MASSIVE_CONTROL,
    MASSIVE_CHANGES
} massive_change;

typedef struct massive_work {
    qkv_study *study;
    const study_inputs *in;
    massive_settings how; /* with defaults filled in */
    int32_t n_layer, n_embd;
    massive_layer *layers;
    massive_find *finds;
    size_t n_finds, capacity;
    int32_t layer; /* after which they are set; -1: there are none */
    double loss[MASSIVE_CHANGES];
    uint64_t n_losses;
} massive_work;

/* Of a channel, at the first token or elsewhere, after the layer where it is set: the mean of its massive
 * values over prompts; NaN where there are none. */
double qkv_massive_mean(const massive_work *w, int32_t channel, int is_first);

/* massive_set.c: the losses of all prompts with the activations set. */
int qkv_massive_set(massive_work *w, qkv_error *err);
/* massive_show.c: tables and pictures. */
int qkv_massive_show(const massive_work *w, qkv_error *err);

#endif
