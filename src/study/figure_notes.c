/*
 * What a figure says about itself: the small print for its reader, and the recipe that is embedded
 * in its files.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"
#include "qkv/version.h"
#include "study/figure.h"

/* ---- small print ---- */

static const char *scale_name(qkv_scale scale) {
    static const char *const names[] = {"linear", "log", "power"};
    return names[scale];
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
    if (fig->options.head != QKV_AUTO) {
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
    qkv_text_append_model(&text, info->name, info->path);
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
    qkv_text_printf(&text, " \xc2\xb7 %s scale", scale_name(o->scale));
    if (o->scale == QKV_SCALE_POWER) qkv_text_printf(&text, " (exponent %g)", qkv_figure_gamma(o));
    /* A no-break space: the version stays beside the name. */
    qkv_text_printf(&text, " %.4g to %.4g \xc2\xb7 qkv\xc2\xa0%s",
                    o->scale == QKV_SCALE_LOG ? qkv_figure_log_floor(fig) : fig->low, fig->high,
                    qkv_version());
    fig->small_print = text.data;
    return text.failed || fig->operations.failed ? qkv_fail_memory(err) : QKV_OK;
}

/* ---- recipe ---- */

static json_t *token_list(const study_prompt *prompt) {
    json_t *list = json_array();
    for (size_t i = 0; i < prompt->n_tokens; i++) {
        json_array_append_new(list, json_integer(prompt->tokens[i]));
    }
    return list;
}

static json_t *describe_inputs(const qkv_figure *fig) {
    json_t *list = json_array();
    for (size_t i = 0; i < fig->prompts.n; i++) {
        const study_prompt *prompt = &fig->prompts.items[i];
        json_t *input = json_pack("{s:o}", "tokens", token_list(prompt));
        if (prompt->text) {
            json_object_set_new(input, "text", qkv_json_string(prompt->text, prompt->length));
        }
        json_array_append_new(list, input);
    }
    return list;
}

static json_t *describe_sources(const qkv_figure *fig) {
    json_t *sources = json_object();
    for (size_t i = 0; i < fig->sources.n; i++) {
        const study_prompt *source = &fig->sources.items[i];
        qkv_text name = {0};
        qkv_text_append_utf8(&name, source->name, strlen(source->name));
        if (!name.failed) json_object_set_new(sources, name.data, token_list(source));
        qkv_text_release(&name);
    }
    return sources;
}

static json_t *describe_panels(const qkv_figure *fig) {
    json_t *list = json_array();
    for (size_t i = 0; i < fig->rows * fig->cols; i++) {
        const figure_cell *cell = &fig->cells[i];
        json_array_append_new(list,
                              json_pack("{s:i, s:i, s:i, s:o}", "row", (int)(i / fig->cols), "col",
                                        (int)(i % fig->cols), "input", (int)cell->prompt, "edits",
                                        qkv_json_text(cell->edits)));
    }
    return list;
}

/* null, where there was no command line. */
static json_t *describe_command(const qkv_figure_options *o) {
    if (o->n_command == 0) return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < o->n_command; i++) {
        json_array_append_new(list, qkv_json_text(o->command[i]));
    }
    return list;
}

/* The options that figures of many heads or layers have. */
static void describe_watched(const qkv_figure *fig, json_t *json) {
    const qkv_figure_options *o = &fig->options;
    json_t *layers = json_array();
    for (size_t i = 0; i < fig->shown.n_layers; i++) {
        json_array_append_new(layers, json_integer(fig->shown.layers[i]));
    }
    json_object_set_new(json, "kind", json_string(qkv_figure_kind_name(fig->kind)));
    json_object_set_new(json, "layers", layers);
    json_object_set_new(json, "variant", qkv_json_text(o->variant ? o->variant : ""));
    if (fig->kind == QKV_FIGURE_ROWS) {
        json_object_set_new(json, "query", json_integer(o->query));
        json_object_set_new(json, "by_head", json_boolean(o->layer != QKV_AUTO));
    }
}

static int make_recipe(qkv_figure *fig, const qkv_model *model, qkv_error *err) {
    char hash[33];
    const int status = qkv_model_hash(model, hash, err);
    if (status != QKV_OK) return status;
    const qkv_model_info *info = qkv_model_get_info(model);
    const qkv_locale host = qkv_locale_enter();
    json_t *json =
        json_pack("{s:s, s:o, s:o, s:s, s:s, s:i, s:i, s:[f, f], s:o, s:o, s:o}", "qkv_version",
                  qkv_version(), "command", describe_command(&fig->options), "model",
                  qkv_json_text(qkv_path_model(info->path)), "model_hash", hash, "site",
                  qkv_site_name(fig->site), "layer", (int)fig->layer, "head", (int)fig->head,
                  "range", fig->low, fig->high, "inputs", describe_inputs(fig), "sources",
                  describe_sources(fig), "panels", describe_panels(fig));
    if (qkv_figure_is_watched(fig)) describe_watched(fig, json);
    if (info->notices[0]) json_object_set_new(json, "model_notices", qkv_json_text(info->notices));
    fig->recipe = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    qkv_locale_leave(host);
    json_decref(json);
    return fig->recipe ? QKV_OK : qkv_fail_memory(err);
}

int qkv_figure_make_notes(qkv_figure *fig, const qkv_model *model, qkv_error *err) {
    const int status = make_small_print(fig, qkv_model_get_info(model), err);
    return status == QKV_OK ? make_recipe(fig, model, err) : status;
}
