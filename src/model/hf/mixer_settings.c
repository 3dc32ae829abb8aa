/* Settings of linear mixers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/hf/hf.h"

#define MAX_NUMBER (1 << 20)

static int take(qkv_hf_config *config, const char *name, int32_t *out, qkv_error *err) {
    int64_t value = 0;
    const int found = qkv_hf_take_int(config, name, 1, MAX_NUMBER, &value, err);
    if (found < 0) return found;
    if (!found) return qkv_fail(err, QKV_ERR_FORMAT, "%s: no %s", config->path, name);
    *out = (int32_t)value;
    return QKV_OK;
}

static int write_shape(qkv_hf_config *config, qkv_error *err) {
    const qkv_mixer_shape *m = &config->mixer;
    if (m->inner > MAX_NUMBER || m->n_heads % m->n_groups != 0)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: %d heads in %d groups, of %d channels, are implausible", config->path,
                        m->n_heads, m->n_groups, m->inner);
    qkv_hf_set_int(config, "ssm.conv_kernel", m->n_taps);
    qkv_hf_set_int(config, "ssm.state_size", m->state);
    qkv_hf_set_int(config, "ssm.group_count", m->n_groups);
    qkv_hf_set_int(config, "ssm.time_step_rank", m->n_heads);
    qkv_hf_set_int(config, "ssm.inner_size", m->inner);
    return QKV_OK;
}

/* Which layers have the mixer: layer_types, or all but every n-th. */
static int read_types(qkv_hf_config *config, const json_t *types, const char *mixer,
                      int64_t interval, uint8_t *flags, qkv_error *err) {
    if (types && (!json_is_array(types) || json_array_size(types) < (size_t)config->n_layer))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: layer_types should be a list of %lld names",
                        config->path, (long long)config->n_layer);
    for (int64_t il = 0; il < config->n_layer; il++) {
        const char *type = json_string_value(json_array_get(types, (size_t)il));
        const int linear = type && strcmp(type, mixer) == 0;
        flags[il] = (uint8_t)(types ? linear : (il + 1) % interval != 0);
        if (!types || linear || (type && strcmp(type, "full_attention") == 0)) continue;
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: layer %lld is of type '%.40s'; full_attention and %s are supported",
                        config->path, (long long)il, type ? type : "?", mixer);
    }
    return QKV_OK;
}

static int read_layers(qkv_hf_config *config, qkv_error *err) {
    char key[128];
    int64_t interval = 4;
    const int found =
        qkv_hf_take_int(config, "full_attention_interval", 1, MAX_NUMBER, &interval, err);
    if (found < 0) return found;
    json_t *types = qkv_hf_take(config, "layer_types");
    uint8_t *flags = qkv_calloc((size_t)config->n_layer, 1);
    int status = flags ? read_types(config, types, "linear_attention", interval, flags, err)
                       : qkv_fail_memory(err);
    if (status == QKV_OK) {
        snprintf(key, sizeof key, "%s.attention.recurrent_layers", config->family->name);
        gguf_set_arr_data(config->meta, key, GGUF_TYPE_BOOL, flags, (size_t)config->n_layer);
        qkv_hf_set_int(config, "full_attention_interval", interval);
    }
    free(flags);
    json_decref(types);
    return status;
}

int qkv_hf_read_delta_net(qkv_hf_config *config, qkv_error *err) {
    qkv_mixer_shape *m = &config->mixer;
    int32_t width = 0;
    int status = take(config, "linear_conv_kernel_dim", &m->n_taps, err);
    if (status == QKV_OK) status = take(config, "linear_key_head_dim", &m->state, err);
    if (status == QKV_OK) status = take(config, "linear_num_key_heads", &m->n_groups, err);
    if (status == QKV_OK) status = take(config, "linear_num_value_heads", &m->n_heads, err);
    if (status == QKV_OK) status = take(config, "linear_value_head_dim", &width, err);
    if (status != QKV_OK) return status;
    const int64_t inner = (int64_t)width * m->n_heads;
    m->inner = inner > MAX_NUMBER ? MAX_NUMBER + 1 : (int32_t)inner;
    status = write_shape(config, err);
    return status == QKV_OK ? read_layers(config, err) : status;
}

/* ---- short convolutions ---- */

/* Older configs name the layers with attention. */
static int read_indices(qkv_hf_config *config, const json_t *list, uint8_t *flags, qkv_error *err) {
    memset(flags, list ? 1 : 0, (size_t)config->n_layer);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const int64_t il = json_integer_value(item);
        if (!json_is_integer(item) || il < 0 || il >= config->n_layer)
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: full_attn_idxs should be numbers of layers",
                            config->path);
        flags[il] = 0;
    }
    return QKV_OK;
}

/* Layers without attention have no key/value heads. */
static int write_heads(qkv_hf_config *config, const uint8_t *flags, qkv_error *err) {
    char key[128];
    int32_t *heads = qkv_calloc((size_t)config->n_layer, sizeof *heads);
    if (!heads) return qkv_fail_memory(err);
    for (int64_t il = 0; il < config->n_layer; il++)
        heads[il] = flags[il] ? 0 : (int32_t)config->n_kv_head;
    snprintf(key, sizeof key, "%s.attention.head_count_kv", config->family->name);
    gguf_set_arr_data(config->meta, key, GGUF_TYPE_INT32, heads, (size_t)config->n_layer);
    free(heads);
    return QKV_OK;
}

static int read_conv_layers(qkv_hf_config *config, qkv_error *err) {
    json_t *types = qkv_hf_take(config, "layer_types");
    json_t *indices = qkv_hf_take(config, "full_attn_idxs");
    uint8_t *flags = qkv_calloc((size_t)config->n_layer, 1);
    int status = flags ? QKV_OK : qkv_fail_memory(err);
    if (status == QKV_OK)
        status = types ? read_types(config, types, "conv", 1, flags, err)
                       : read_indices(config, indices, flags, err);
    if (status == QKV_OK) status = write_heads(config, flags, err);
    free(flags);
    json_decref(types);
    json_decref(indices);
    return status;
}

/* The width of the feed-forward, by its older name first; it may be said before it is cut to two thirds and
 * rounded up. */
static int read_width(qkv_hf_config *config, qkv_error *err) {
    int64_t multiple = 256, width = config->n_ff;
    double factor = 1;
    int adjusts = 0;
    int found = qkv_hf_take_int(config, "block_ff_dim", 1, MAX_NUMBER, &width, err);
    if (found >= 0) found = qkv_hf_take_bool(config, "block_auto_adjust_ff_dim", &adjusts, err);
    if (found >= 0)
        found = qkv_hf_take_int(config, "block_multiple_of", 1, MAX_NUMBER, &multiple, err);
    if (found >= 0)
        found = qkv_hf_take_float(config, "block_ffn_dim_multiplier", 1e-3, 1e3, &factor, err);
    if (found < 0) return found;
    const int64_t two_thirds = 2 * width / 3; /* rounded down, as the class does */
    if (adjusts) width = (int64_t)(factor * (double)two_thirds);
    config->n_ff = adjusts ? (width + multiple - 1) / multiple * multiple : width;
    qkv_hf_set_int(config, "feed_forward_length", config->n_ff);
    return QKV_OK;
}

int qkv_hf_read_short_conv(qkv_hf_config *config, qkv_error *err) {
    qkv_mixer_shape *m = &config->mixer;
    int status = take(config, "conv_L_cache", &m->n_taps, err);
    if (status != QKV_OK) return status;
    qkv_hf_set_int(config, "shortconv.l_cache", m->n_taps);
    status = read_conv_layers(config, err);
    return status == QKV_OK ? read_width(config, err) : status;
}
