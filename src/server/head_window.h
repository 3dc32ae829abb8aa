/*
 * A part of one head's map, taken from its rows while they are computed: however long the prompt, no
 * more than the part is in memory.
 */
#ifndef QKV_SERVER_HEAD_WINDOW_H
#define QKV_SERVER_HEAD_WINDOW_H

#include "run/run.h"

typedef struct qkv_head_window {
    int64_t r0, r1, c0, c1; /* queries and keys, the ends not included */
    int64_t side;           /* cells of the longer side at most */
    int64_t rows, cols;     /* cells */
    int64_t extent;   /* tokens of the longer side: cell of token t is (t - r0) * cells / extent */
    int64_t cells;    /* of the longer side */
    float *values[2]; /* rows x cols, before and after: the largest weight of each cell */
    int arrived;      /* rows of the variant came */
} qkv_head_window;

/* Fills in what follows from the first five. Release it also after a failure. */
int qkv_head_window_open(qkv_head_window *window, qkv_error *err);
void qkv_head_window_release(qkv_head_window *window);
/* For qkv_observer.rows; `user` is the window. */
void qkv_head_window_look(void *user, const qkv_rows *rows);
/* After the run: what no edit can reach is as before. */
void qkv_head_window_finish(qkv_head_window *window);

#endif
