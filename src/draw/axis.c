/* Labels along a panel's side: which of them, how large, how deep. See axis.h. */
#include "draw/axis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "draw/grid_data.h"
#include "draw/ticks.h"

static const double LARGEST = 7, SMALLEST = 5; /* points */
static const double LEADING = 1.16;            /* from line to line, in letter sizes */
static const int MOST_THINNED = 3;             /* every third token still reads as a text */
static const double NUMBER_SIZE = 6.5, NUMBER_GAP = 3;

static int add_label(qkv_axis *axis, const qkv_lettering *lettering, const char *text,
                     qkv_words_kind kind, double limit, double at) {
    PangoLayout *layout = qkv_words_new(lettering, text, kind, axis->size, limit);
    if (!layout) return 0;
    axis->labels[axis->n_labels++] = (qkv_axis_label){layout, at};
    return 1;
}

static double widest(const qkv_axis *axis) {
    double width = 0;
    for (size_t i = 0; i < axis->n_labels; i++) {
        width = fmax(width, qkv_words_width(axis->labels[i].layout));
    }
    return width;
}

static int make_tokens(qkv_axis *axis, const qkv_lettering *lettering, const qkv_axis_input *input,
                       int stride) {
    axis->upright = input->below;
    axis->marked = stride > 1;
    for (int32_t i = 0; i < input->n; i += stride) {
        if (!add_label(axis, lettering, input->labels[i], QKV_WORDS_LABEL, input->limit,
                       (i + 0.5) * input->pitch)) {
            return 0;
        }
    }
    axis->depth = widest(axis);
    return 1;
}

/* The label of a cell by its number: `text`, or the caller's where labels are set like indices. */
static const char *index_text(char text[QKV_NUMBER_SIZE], const qkv_axis_input *input, int32_t i) {
    if (input->flat && input->labels) return input->labels[i];
    snprintf(text, QKV_NUMBER_SIZE, "%d", input->first + i);
    return text;
}

/* How far apart indices must be: their width below a panel, their height left of it. */
static double index_room(const qkv_lettering *lettering, const qkv_axis_input *input) {
    const double size = qkv_lettering_size(lettering, NUMBER_SIZE);
    if (!input->below) return size * LEADING;
    double width = 0;
    for (int32_t i = input->flat && input->labels ? 0 : input->n - 1; i < input->n; i++) {
        char text[QKV_NUMBER_SIZE];
        PangoLayout *layout = qkv_words_new(lettering, index_text(text, input, i), QKV_WORDS_LABEL,
                                            size, input->limit);
        if (!layout) return -1;
        width = fmax(width, qkv_words_width(layout));
        g_object_unref(layout);
    }
    return width + NUMBER_GAP;
}

static int make_indices(qkv_axis *axis, const qkv_lettering *lettering,
                        const qkv_axis_input *input) {
    const double room = index_room(lettering, input);
    if (room < 0) return 0;
    /* A panel of hundreds of cells takes about six numbers, not as many as could be squeezed in. */
    double least = room / input->pitch;
    if (least > 1) least = fmax(least, input->n / 7.0);
    const int step = qkv_nice_step(least);
    axis->size = qkv_lettering_size(lettering, NUMBER_SIZE);
    axis->marked = step > 1;
    const int32_t last = input->first + input->n - 1;
    for (int64_t k = (input->first + (int64_t)step - 1) / step * step; k <= last; k += step) {
        char text[QKV_NUMBER_SIZE];
        const int32_t i = (int32_t)(k - input->first);
        if (!add_label(axis, lettering, index_text(text, input, i), QKV_WORDS_LABEL, input->limit,
                       (i + 0.5) * input->pitch)) {
            return 0;
        }
    }
    axis->depth = input->below ? axis->size * LEADING : widest(axis);
    return 1;
}

static double label_size(const qkv_lettering *lettering, double pitch) {
    const double least = fmax(SMALLEST, lettering->least);
    return fmin(fmax(qkv_lettering_size(lettering, LARGEST), least), fmax(least, pitch / LEADING));
}

int qkv_axis_stride(const qkv_lettering *lettering, double pitch) {
    const double stride = ceil(label_size(lettering, pitch) * LEADING / pitch - 1e-9);
    return stride <= MOST_THINNED ? (int)stride : 0;
}

int qkv_axis_make(qkv_axis *axis, const qkv_lettering *lettering, const qkv_axis_input *input,
                  qkv_error *err) {
    *axis = (qkv_axis){0};
    axis->labels = qkv_calloc((size_t)input->n, sizeof *axis->labels);
    if (!axis->labels) return qkv_fail_memory(err);
    axis->size = label_size(lettering, input->pitch);
    const int stride = qkv_axis_stride(lettering, input->pitch);
    int tokens = input->labels && stride && !input->flat && !input->indices;
    if (input->flat && stride && qkv_labels_are_words(input->labels, input->n)) {
        /* Words stand upright where they would meet; numbers are thinned out. */
        const double room = index_room(lettering, input);
        tokens = room > input->pitch;
    }
    const int made =
        tokens ? make_tokens(axis, lettering, input, stride) : make_indices(axis, lettering, input);
    if (made) return QKV_OK;
    qkv_axis_release(axis);
    return qkv_fail_memory(err);
}

void qkv_axis_release(qkv_axis *axis) {
    for (size_t i = 0; i < axis->n_labels; i++) g_object_unref(axis->labels[i].layout);
    free(axis->labels);
    *axis = (qkv_axis){0};
}
