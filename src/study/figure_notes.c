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
    if (!fig->causal && !fig->window) return;
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

static int make_small_print(qkv_figure *fig, const qkv_model_info *info, qkv_error *err) {
    const qkv_figure_options *o = &fig->options;
    qkv_text text = {0};
    qkv_text_append_model(&text, info->name, info->path);
    qkv_text_printf(&text, " \xc2\xb7 layer %d, head %d", (int)fig->layer, (int)fig->head);
    if (fig->sink >= 0) {
        qkv_text_printf(&text, " (strongest first-token sink, %.3f)", fig->sink);
    }
    if (fig->operations.length) qkv_text_printf(&text, " \xc2\xb7 %s", fig->operations.data);
    qkv_text_puts(&text, " \xc2\xb7 ");
    print_tokens(fig, &text);
    print_keys(o, &text);
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
