/*
 * What a figure says about itself: the small print for its reader. It ends with the id of the recipe,
 * by which that can be found where a file has lost it.
 */
#include <inttypes.h>

#include "base/file.h"
#include "qkv/version.h"
#include "study/figure.h"

/* ---- small print ---- */

static void print_scale(const qkv_figure *fig, qkv_text *text) {
    const double low = fig->scale == QKV_SCALE_LOG ? qkv_figure_log_floor(fig) : fig->low;
    qkv_text_printf(text, " \xc2\xb7 %s scale", qkv_scale_name(fig->scale));
    if (fig->scale == QKV_SCALE_POWER) qkv_text_printf(text, " (exponent %.3g)", fig->gamma);
    qkv_text_printf(text, " %.4g to %.4g", low, fig->high);
}

/* Nothing in the look of the papers, where they are like a weight of 0. */
static void print_masked(const qkv_figure *fig, qkv_text *text) {
    int has_mask = 0;
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        has_mask |= fig->cells[i].causal || fig->cells[i].window;
    }
    if (!has_mask) return;
    if (fig->masked == QKV_MASKED_WHITE) qkv_text_puts(text, " \xc2\xb7 masked cells are white");
    if (fig->masked == QKV_MASKED_HATCH) qkv_text_puts(text, " \xc2\xb7 masked cells are hatched");
}

static void print_tokens(const qkv_figure *fig, qkv_text *text) {
    for (size_t i = 0; i < fig->prompts.n; i++) {
        qkv_text_printf(text, "%s%zu", i ? ", " : "", fig->prompts.items[i].n_tokens);
    }
    qkv_text_puts(text, fig->prompts.n == 1 && fig->prompts.items[0].n_tokens == 1 ? " token"
                                                                                   : " tokens");
}

static void print_keys(const qkv_figure_options *o, qkv_text *text) {
    if (o->skip_keys == 1) {
        qkv_text_puts(text, ", first key left out");
    } else if (o->skip_keys) {
        qkv_text_printf(text, ", first %" PRId64 " keys left out", o->skip_keys);
    }
    if (o->sink_column) qkv_text_puts(text, ", learned sink as first column");
}

/* Which layers and heads are shown. */
static void print_places(const qkv_figure *fig, qkv_text *text) {
    const figure_places *shown = &fig->shown;
    if (!qkv_figure_is_watched(fig)) {
        qkv_text_printf(text, "layer %d, head %d", (int)fig->layer, (int)fig->head);
        return;
    }
    if (shown->n_layers == 1) {
        qkv_text_printf(text, "layer %d", (int)fig->layer);
    } else if (fig->options.layers) {
        qkv_text_printf(text, "layers %s", fig->options.layers);
    } else {
        qkv_text_printf(text, "all %zu layers", shown->n_layers);
    }
    if (fig->options.heads) {
        qkv_text_printf(text, ", head%s %s", shown->n_heads == 1 ? "" : "s", fig->options.heads);
    } else if (fig->options.head != QKV_AUTO) {
        qkv_text_printf(text, ", head %d", (int)fig->head);
    } else {
        const int averaged = fig->kind == QKV_FIGURE_ROWS && fig->options.layer == QKV_AUTO;
        qkv_text_printf(text, averaged ? ", mean over %zu heads" : ", all %zu heads",
                        shown->n_heads);
    }
    if (fig->kind == QKV_FIGURE_HEADS) qkv_text_puts(text, " (queries down, keys across)");
}

/* Small maps of long prompts have fewer cells than weights. */
static void print_pooling(const qkv_figure *fig, qkv_text *text) {
    const figure_cell *cell = &fig->cells[0];
    if (fig->kind != QKV_FIGURE_HEADS || cell->n_rows == fig->prompts.items[0].n_tokens) return;
    qkv_text_printf(text,
                    " \xc2\xb7 maps of %zu \xc3\x97 %zu cells, each the largest %s of its block",
                    cell->n_rows, cell->n_cols, fig->options.diff ? "change" : "weight");
}

static int make_small_print(qkv_figure *fig, const qkv_model_info *info, qkv_error *err) {
    const qkv_figure_options *o = &fig->options;
    qkv_text text = {0};
    qkv_text_append_model(&text, info->label, info->path, info->weights_type);
    qkv_text_puts(&text, " \xc2\xb7 ");
    print_places(fig, &text);
    if (fig->sink >= 0) {
        qkv_text_printf(&text, " (strongest first-token sink, %.3f)", fig->sink);
    }
    if (fig->operations.length) qkv_text_printf(&text, " \xc2\xb7 %s", fig->operations.data);
    qkv_text_puts(&text, " \xc2\xb7 ");
    print_tokens(fig, &text);
    print_keys(o, &text);
    print_pooling(fig, &text);
    if (o->diff) qkv_text_puts(&text, " \xc2\xb7 edited minus unmodified");
    print_scale(fig, &text);
    print_masked(fig, &text);
    /* A no-break space: the version stays beside the name. */
    qkv_text_printf(&text, " \xc2\xb7 qkv\xc2\xa0%s \xc2\xb7 %s", qkv_version(), fig->id);
    fig->small_print = text.data;
    return text.failed || fig->operations.failed ? qkv_fail_memory(err) : QKV_OK;
}

int qkv_figure_make_notes(qkv_figure *fig, const qkv_session *session, qkv_error *err) {
    const int status = qkv_figure_make_recipe(fig, session, err);
    if (status != QKV_OK) return status;
    return make_small_print(fig, qkv_model_get_info(qkv_session_model(session)), err);
}
