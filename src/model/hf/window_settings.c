/*
 * The sliding window: how wide it is, and which layers have it.
 *
 * layer_types says it layer by layer; before there was such a list, every n-th layer saw everything
 * (sliding_window_pattern), or the window began at a layer (max_window_layers), or all had it. Where
 * that is not the family's own rule, it is written as attention.sliding_window_pattern.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/hf/hf.h"

typedef struct window {
    qkv_hf_config *config;
    int64_t width, period, first; /* first: of the layers that have it */
    uint8_t *flags;               /* n_layer */
} window;

static int has_by_rule(const qkv_family *family, int64_t period, int64_t il) {
    return period == 0 || (il + !family->full_layer_first) % period != 0;
}

static int reads(const window *w, int setting) {
    return (w->config->hf->window & setting) != 0;
}

static int take_numbers(window *w, qkv_error *err) {
    qkv_hf_config *config = w->config;
    int use = 1;
    w->period = config->family->window_period;
    int found;
    if (reads(w, QKV_HF_WINDOW_LOCAL)) {
        found = qkv_hf_take_int(config, "local_attention", 1, 1 << 30, &w->width, err);
        if (found < 0) return found;
        found = qkv_hf_take_int(config, "global_attn_every_n_layers", 1, 4096, &w->period, err);
        return found < 0 ? found : QKV_OK;
    }
    found = qkv_hf_take_limit(config, "sliding_window", 1 << 30, &w->width, err);
    if (found >= 0 && reads(w, QKV_HF_WINDOW_USE))
        found = qkv_hf_take_bool(config, "use_sliding_window", &use, err);
    if (found >= 0 && reads(w, QKV_HF_WINDOW_PERIOD))
        found = qkv_hf_take_int(config, "_sliding_window_pattern", 0, 4096, &w->period, err);
    if (found >= 0 && reads(w, QKV_HF_WINDOW_PERIOD))
        found = qkv_hf_take_int(config, "sliding_window_pattern", 0, 4096, &w->period, err);
    if (found >= 0 && reads(w, QKV_HF_WINDOW_FIRST))
        found = qkv_hf_take_limit(config, "max_window_layers", 1 << 30, &w->first, err);
    if (!use) w->width = 0;
    return found < 0 ? found : QKV_OK;
}

static int read_types(window *w, const json_t *types, qkv_error *err) {
    if (!json_is_array(types) || json_array_size(types) < (size_t)w->config->n_layer)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: layer_types should be a list of %lld names",
                        w->config->path, (long long)w->config->n_layer);
    for (size_t il = 0; il < (size_t)w->config->n_layer; il++) {
        const char *type = json_string_value(json_array_get(types, il));
        const int is_last = il + 1 == (size_t)w->config->n_layer;
        int slides = type && strcmp(type, "sliding_attention") == 0;
        if (!slides && (!type || strcmp(type, "full_attention") != 0))
            return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                            "%s: layer %zu has attention of type '%.40s'; full_attention and "
                            "sliding_attention are supported",
                            w->config->path, il, type ? type : "?");
        if (slides && !w->width)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: layer_types has windows, sliding_window none",
                            w->config->path);
        if (is_last && w->config->hf->last_sees_all) slides = 0;
        w->flags[il] = (uint8_t)slides;
    }
    return QKV_OK;
}

static int write_window(const window *w, qkv_error *err) {
    qkv_hf_config *config = w->config;
    int any = 0, by_rule = 1;
    for (int64_t il = 0; il < config->n_layer; il++) {
        any |= w->flags[il];
        by_rule &= w->flags[il] == has_by_rule(config->family, config->family->window_period, il);
    }
    if (any && !by_rule && config->family->rope_skip_period)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: these layers with a window are not those that %s is known with",
                        config->path, config->architecture);
    if (any || config->hf->writes_no_window)
        qkv_hf_set_int(config, "attention.sliding_window", any ? w->width : 0);
    if (any && (!by_rule || config->hf->writes_window_layers)) {
        char key[128];
        snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", config->family->name);
        gguf_set_arr_data(config->meta, key, GGUF_TYPE_BOOL, w->flags, (size_t)config->n_layer);
    }
    return QKV_OK;
}

int qkv_hf_window_read(qkv_hf_config *config, qkv_error *err) {
    window w = {.config = config, .flags = qkv_calloc((size_t)config->n_layer, 1)};
    if (!w.flags) return qkv_fail_memory(err);
    int status = take_numbers(&w, err);
    json_t *types = reads(&w, QKV_HF_WINDOW_TYPES) ? qkv_hf_take(config, "layer_types") : NULL;
    for (int64_t il = 0; il < config->n_layer && w.width; il++)
        w.flags[il] = (uint8_t)(il >= w.first && has_by_rule(config->family, w.period, il));
    if (status == QKV_OK && types) status = read_types(&w, types, err);
    if (status == QKV_OK) status = write_window(&w, err);
    json_decref(types);
    free(w.flags);
    return status;
}
