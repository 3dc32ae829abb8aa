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
static int read_types(qkv_hf_config *config, const json_t *types, int64_t interval, uint8_t *flags,
                      qkv_error *err) {
    if (types && (!json_is_array(types) || json_array_size(types) < (size_t)config->n_layer))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: layer_types should be a list of %lld names",
                        config->path, (long long)config->n_layer);
    for (int64_t il = 0; il < config->n_layer; il++) {
        const char *type = json_string_value(json_array_get(types, (size_t)il));
        const int linear = type && strcmp(type, "linear_attention") == 0;
        flags[il] = (uint8_t)(types ? linear : (il + 1) % interval != 0);
        if (!types || linear || (type && strcmp(type, "full_attention") == 0)) continue;
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: layer %lld is of type '%.40s'; full_attention and linear_attention are "
                        "supported",
                        config->path, (long long)il, type ? type : "?");
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
    int status = flags ? read_types(config, types, interval, flags, err) : qkv_fail_memory(err);
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
