/*
 * The labels along one side of a panel, made and measured before anything has a place.
 *
 * Tokens where each gets room, every second or third where they are crowded, and beyond that
 * indices at round steps. Labels are a figure's smallest print but never below what can be read.
 */
#ifndef QKV_DRAW_AXIS_H
#define QKV_DRAW_AXIS_H

#include "draw/lettering.h"

typedef struct qkv_axis_label {
    PangoLayout *layout;
    double at; /* middle of its cell, in points from the panel's first edge */
} qkv_axis_label;

typedef struct qkv_axis {
    qkv_axis_label *labels;
    size_t n_labels;
    double size;  /* of the letters, points */
    double depth; /* how far the labels reach away from the panel */
    int upright;  /* turned to read from bottom to top */
    int marked;   /* thinned out: each label gets a tick */
} qkv_axis;

typedef struct qkv_axis_input {
    char *const *labels; /* NULL: indices */
    int32_t n;
    int32_t first; /* index of the first cell */
    double pitch;  /* side of a cell, points */
    double limit;  /* longest label, points */
    int below;     /* 1: below the panel, 0: left of it */
    int flat;      /* labels are numbers or short words: set like indices, however far apart */
    int indices;   /* 1: indices, also where labels would have room */
} qkv_axis_input;

/* Every how many cells of this side a label is drawn; 0: none, indices take their place. */
int qkv_axis_stride(const qkv_lettering *lettering, double pitch);

int qkv_axis_make(qkv_axis *axis, const qkv_lettering *lettering, const qkv_axis_input *input,
                  qkv_error *err);
void qkv_axis_release(qkv_axis *axis);

#endif
