/*
 * The tables that some types are written with: a weight, or a group of four or eight, is an index. ggml
 * keeps them to itself, so they are read from what its own converters make of each index.
 */
#ifndef QKV_KERNEL_GRIDS_H
#define QKV_KERNEL_GRIDS_H

#include <stdint.h>

struct qkv_grids {
    int8_t iq2_xxs[256][8];
    int8_t iq2_xs[512][8];
    int8_t iq2_s[1024][8];
    int8_t iq3_xxs[256][4];
    int8_t iq3_s[512][4];
    int8_t iq1[2048][8];
    int8_t iq4[16], fp4[16];
    float mxfp4_scale[256], nvfp4_scale[256];
};

/* Constant once qkv_grids_learn has returned. */
extern struct qkv_grids qkv_grids;

/* Not to be called by two threads at once. */
void qkv_grids_learn(void);

#endif
