/*
 * Results files of sweeps, made by hand: the tables that `qkv plot` reads, with values that are
 * easy to work out.
 */
#ifndef QKV_TESTS_SUPPORT_SWEEP_MAKER_H
#define QKV_TESTS_SUPPORT_SWEEP_MAKER_H

#include <stdint.h>

typedef struct sweep_shape {
    int layers, heads, prompts;
    const char *targets;  /* "q,k" */
    const char *ops;      /* "scale,zero": only scale and noise have an ε */
    const char *epsilons; /* "1e-3,1" */
    const char *metrics;  /* "sink,kl": kl is undefined where nothing is edited */
    int64_t done;         /* so many cells have results; below 0: all */
} sweep_shape;

/* The value of an unedited cell is (1 + layer + head) / (layers + heads) + prompt / 100. An edit of
 * the first target with ε multiplies it by ε / (ε + 0.01), one of the second by half as much less,
 * and so on; without ε by 0. kl is a thousandth of it. Returns 0 where SQLite fails. */
int make_sweep(const char *path, const sweep_shape *shape);

#endif
