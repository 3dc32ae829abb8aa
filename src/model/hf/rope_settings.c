/*
 * RoPE's settings to GGUF keys, from both ways of writing them: rope_theta, rope_scaling and
 * partial_rotary_factor beside each other, or one object rope_parameters, which may hold an object
 * per kind of layer.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "model/hf/hf.h"

typedef struct rope {
    qkv_hf_config *config;
    qkv_hf_config scaling; /* its settings are those of the scaling; for the take functions */
    const char *object;    /* what the config calls them */
    double base, local_base, part; /* part: of the channels that turn */
    int has_part;                  /* it was said */
    int64_t dims;
} rope;

/* Most classes read the first name; those that may turn a part of the channels, one of the others. The
 * classes with two bases have names of their own for them outside of RoPE's object. */
static const char *const base_names[] = {"rope_theta", "rotary_emb_base", NULL};
static const char *const part_names[] = {"partial_rotary_factor", "rotary_pct", "rope_pct", NULL};

/* The first that is there wins; all are taken out. */
static int take_any_float(qkv_hf_config *config, const char *const *names, int n, double *value,
                          qkv_error *err) {
    int found = 0;
    for (int i = 0; i < n && names[i]; i++) {
        double number = 0;
        const int got = qkv_hf_take_float(config, names[i], 0, 1e12, &number, err);
        if (got < 0) return got;
        if (got && !found) *value = number;
        found |= got;
    }
    return found;
}

static int take_numbers(qkv_hf_config *from, rope *r, qkv_error *err) {
    const int n = r->config->hf->partial_rotary ? 3 : 1;
    const char *const own[] = {r->config->hf->rope_base, NULL};
    const int is_outside = from == r->config;
    int found = take_any_float(from, *own && is_outside ? own : base_names, n, &r->base, err);
    if (found >= 0) found = take_any_float(from, part_names, n, &r->part, err);
    r->has_part |= found > 0;
    return found < 0 ? found : QKV_OK;
}

/* {"full_attention": {...}, "sliding_attention": {...}}: the second may have a base of its own. */
static int take_local(rope *r, json_t *parameters, qkv_error *err) {
    json_t *local = json_object_get(parameters, "sliding_attention");
    if (!local) return QKV_OK;
    const char *type = json_string_value(json_object_get(local, "rope_type"));
    if (type && strcmp(type, "default") != 0)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: scaling '%.40s' of RoPE in layers with a window is not supported",
                        r->config->path, type);
    const json_t *base = json_object_get(local, "rope_theta");
    if (json_is_number(base)) r->local_base = json_number_value(base);
    return QKV_OK;
}

/* Finds the object of the scaling, whichever way it is written, and takes the base and the part. The
 * older way goes before the newer one, as it does there. */
static int find_scaling(rope *r, qkv_error *err) {
    int status = take_numbers(r->config, r, err);
    if (status != QKV_OK) return status;
    const char *local =
        r->config->hf->local_base ? r->config->hf->local_base : "rope_local_base_freq";
    if (r->config->family->local_rope)
        status = qkv_hf_take_float(r->config, local, 1, 1e12, &r->local_base, err);
    if (status < 0) return status;
    json_t *old = qkv_hf_take(r->config, "rope_scaling");
    if (r->config->hf->local_base && old && !qkv_hf_says_nothing(old)) {
        json_decref(old);
        return qkv_fail(
            err, QKV_ERR_UNSUPPORTED,
            "%s: rope_scaling, which here scales RoPE in layers with a window too, is not "
            "supported",
            r->config->path);
    }
    json_t *all = qkv_hf_take(r->config, "rope_parameters");
    json_t *used = old && !qkv_hf_says_nothing(old) ? old : all;
    status = used && !json_is_object(used)
                 ? qkv_fail(err, QKV_ERR_FORMAT, "%s: the settings of RoPE should be an object",
                            r->config->path)
                 : QKV_OK;
    r->object = used == old ? "rope_scaling" : "rope_parameters";
    json_t *full = json_object_get(used, "full_attention");
    if (status == QKV_OK && full) status = take_local(r, used, err);
    if (status == QKV_OK && json_is_object(full)) used = full;
    r->scaling = (qkv_hf_config){.path = r->config->path};
    if (status == QKV_OK) {
        r->scaling.settings = used ? qkv_json_copy(used) : json_object();
        status = r->scaling.settings ? take_numbers(&r->scaling, r, err) : qkv_fail_memory(err);
    }
    json_decref(old);
    json_decref(all);
    return status;
}

/* ---- kinds of scaling ---- */

static int need_float(rope *r, const char *name, double *value, qkv_error *err) {
    const int found = qkv_hf_take_float(&r->scaling, name, 1e-6, 1e6, value, err);
    if (found < 0) return found;
    return found ? QKV_OK
                 : qkv_fail(err, QKV_ERR_FORMAT, "%s: the scaling of RoPE has no %s",
                            r->config->path, name);
}

/* How long prompts were before the scaling. Where the config says it outside of RoPE's settings, that
 * goes before what they say; where neither does, it is the context: 0 is returned. */
static int take_original(rope *r, int64_t *original, qkv_error *err) {
    static const char name[] = "original_max_position_embeddings";
    *original = r->config->n_ctx;
    const int inside = qkv_hf_take_int(&r->scaling, name, 1, 1 << 30, original, err);
    if (inside < 0) return inside;
    const int outside = qkv_hf_take_int(r->config, name, 1, 1 << 30, original, err);
    return outside < 0 ? outside : inside | outside;
}

static int write_linear(rope *r, qkv_error *err) {
    double factor = 1;
    const int status = need_float(r, "factor", &factor, err);
    if (status != QKV_OK) return status;
    qkv_hf_set_text(r->config, "rope.scaling.type", "linear");
    qkv_hf_set_float(r->config, "rope.scaling.factor", factor);
    return QKV_OK;
}

static double magnitude(double factor, double weight) {
    return factor <= 1 ? 1 : 0.1 * weight * log(factor) + 1;
}

/* What q and k are multiplied by, where it is not what YaRN takes by itself. */
static int write_yarn_attention(rope *r, double factor, qkv_error *err) {
    double given = 0, scale = 0, scale_all = 0;
    double usual = magnitude(factor, 1);
    const int has = qkv_hf_take_float(&r->scaling, "attention_factor", 1e-6, 1e6, &given, err);
    if (has < 0) return has;
    int found = qkv_hf_take_float(&r->scaling, "mscale", 0, 1e6, &scale, err);
    if (found >= 0)
        found = qkv_hf_take_float(&r->scaling, "mscale_all_dim", 0, 1e6, &scale_all, err);
    if (found < 0) return found;
    if (!has) given = usual;
    if (!has && scale != 0 && scale_all != 0)
        given = magnitude(factor, scale) / magnitude(factor, scale_all);
    if (r->config->family->yarn_log_divides && scale_all != 0) {
        qkv_hf_set_float(r->config, "rope.scaling.yarn_log_multiplier", scale_all);
        usual /= 1 + 0.1 * scale_all * log(factor);
    }
    if (given != usual) qkv_hf_set_float(r->config, "rope.scaling.attn_factor", given / usual);
    return QKV_OK;
}

static int write_yarn(rope *r, qkv_error *err) {
    static const struct {
        const char *name, *key;
    } numbers[] = {{"beta_fast", "rope.scaling.yarn_beta_fast"},
                   {"beta_slow", "rope.scaling.yarn_beta_slow"}};
    double factor = 1, number = 0;
    int64_t original = 0;
    int truncate = 1;
    int status = need_float(r, "factor", &factor, err);
    if (status == QKV_OK) status = take_original(r, &original, err);
    if (status < 0) return status;
    qkv_hf_set_text(r->config, "rope.scaling.type", "yarn");
    qkv_hf_set_float(r->config, "rope.scaling.factor", factor);
    qkv_hf_set_int(r->config, "rope.scaling.original_context_length", original);
    for (size_t i = 0; i < 2; i++) {
        const int found = qkv_hf_take_float(&r->scaling, numbers[i].name, 1e-6, 1e6, &number, err);
        if (found < 0) return found;
        if (found) qkv_hf_set_float(r->config, numbers[i].key, number);
    }
    status = qkv_hf_take_bool(&r->scaling, "truncate", &truncate, err);
    if (status < 0) return status;
    if (!truncate) qkv_hf_set_bool(r->config, "rope.scaling.yarn_truncate", 0);
    return write_yarn_attention(r, factor, err);
}

/* Llama 3: fast pairs are left alone, slow ones divided, those between blended. Single precision and
 * the order of operations are those of llama.cpp's converter, to the last bit. */
static int write_llama3(rope *r, qkv_error *err) {
    double factor = 8, low = 1, high = 4;
    int64_t original = 0;
    int status = need_float(r, "factor", &factor, err);
    if (status == QKV_OK) status = need_float(r, "low_freq_factor", &low, err);
    if (status == QKV_OK) status = need_float(r, "high_freq_factor", &high, err);
    if (status == QKV_OK) status = take_original(r, &original, err);
    if (status < 0) return status;
    const size_t n = (size_t)r->dims / 2;
    float *out = qkv_calloc(n, sizeof *out);
    if (!out) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        const float frequency = 1 / powf((float)r->base, (float)(2 * i) / (float)r->dims);
        const float wave = 1 / frequency * (float)(2 * 3.141592653589793);
        const float blend = (1 / wave * (float)original - (float)low) / (float)(high - low);
        out[i] = 1 / ((1 - blend) / (float)factor + blend);
        if (wave < (float)((double)original / high))
            out[i] = 1;
        else if (wave > (float)((double)original / low))
            out[i] = (float)factor;
    }
    r->config->rope_freqs = out;
    r->config->n_divisors = n;
    return QKV_OK;
}

/* One of the lists of divisors of models for long contexts. */
static int take_divisors(rope *r, const char *name, float **out, qkv_error *err) {
    json_t *list = qkv_hf_take(&r->scaling, name);
    const size_t n = (size_t)r->dims / 2;
    int status = QKV_OK;
    if (!json_is_array(list) || json_array_size(list) != n)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be a list of %zu numbers",
                          r->config->path, name, n);
    if (status == QKV_OK && !(*out = qkv_calloc(n, sizeof **out))) status = qkv_fail_memory(err);
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        (*out)[i] = (float)json_number_value(json_array_get(list, i));
        if (!((*out)[i] > 0))
            status = qkv_fail(err, QKV_ERR_FORMAT, "%s: %s holds something that is not a divisor",
                              r->config->path, name);
    }
    json_decref(list);
    return status;
}

/* By the length of the prompt, short or long: two that are the same are known. */
static int take_magnitudes(rope *r, double *attention, qkv_error *err) {
    double is_short = 0, is_long = 0;
    int found = qkv_hf_take_float(&r->scaling, "short_mscale", 1e-6, 1e6, &is_short, err);
    if (found >= 0) found = qkv_hf_take_float(&r->scaling, "long_mscale", 1e-6, 1e6, &is_long, err);
    if (found < 0) return found;
    if (is_short != is_long)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: short_mscale and long_mscale are supported only where they are equal",
                        r->config->path);
    if (is_short != 0) *attention = is_short;
    return QKV_OK;
}

static int write_longrope(rope *r, qkv_error *err) {
    int64_t original = 0;
    double given = 0;
    int status = take_original(r, &original, err);
    if (status < 0) return status;
    if (status == 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: no original_max_position_embeddings",
                        r->config->path);
    r->config->n_divisors = (size_t)r->dims / 2;
    status = take_divisors(r, "long_factor", &r->config->rope_long, err);
    if (status == QKV_OK) status = take_divisors(r, "short_factor", &r->config->rope_short, err);
    if (status != QKV_OK) return status;
    double scale = (double)r->config->n_ctx / (double)original;
    int found = qkv_hf_take_float(&r->scaling, "factor", 1e-6, 1e6, &scale, err);
    if (found < 0) return found;
    double attention = scale > 1 ? sqrt(1 + log(scale) / log((double)original)) : 1;
    found = qkv_hf_take_float(&r->scaling, "attention_factor", 1e-6, 1e6, &given, err);
    if (found < 0) return found;
    if (found) attention = given;
    if (r->config->hf->longrope_has_magnitudes) found = take_magnitudes(r, &attention, err);
    if (found < 0) return found;
    qkv_hf_set_int(r->config, "rope.scaling.original_context_length", original);
    qkv_hf_set_float(r->config, "rope.scaling.attn_factor", attention);
    return QKV_OK;
}

/* NTK scaling by the prompt's length begins beyond the context, where no prompt is taken. */
static int write_dynamic(rope *r, qkv_error *err) {
    double factor = 1, alpha = 0;
    int found = need_float(r, "factor", &factor, err);
    if (found != QKV_OK || !r->config->hf->dynamic_has_alpha) return found;
    found = qkv_hf_take_float(&r->scaling, "alpha", 0, 1e12, &alpha, err);
    if (found < 0 || alpha == 0) return found < 0 ? found : QKV_OK;
    const double width = (double)r->config->head_dim;
    qkv_hf_set_float(r->config, "rope.freq_base", r->base * pow(alpha, width / (width - 2)));
    return QKV_OK;
}

static int write_nothing(rope *r, qkv_error *err) {
    if (!r->config->family->proportional_rope || r->part == 1) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: RoPE on %g of the channels is supported for %s only where it is "
                    "proportional",
                    r->config->path, r->part, r->config->architecture);
}

/* M-RoPE turns by three positions, of time, height and width. Those of text are equal, which makes it plain
 * RoPE; the sections say which pair turns by which position. */
static void skip_sections(const rope *r) {
    json_object_del(r->scaling.settings, "mrope_section");
    json_object_del(r->scaling.settings, "mrope_interleaved");
}

/* Some of the pairs turn, by frequencies that are spread over the whole head; the others are divided by a
 * number that stops them. */
static int write_proportional(rope *r, qkv_error *err) {
    const size_t n = (size_t)r->dims / 2, turned = (size_t)(r->part * (double)n);
    if (!r->config->family->proportional_rope)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: proportional RoPE is not supported for %s",
                        r->config->path, r->config->architecture);
    float *out = qkv_calloc(n, sizeof *out);
    if (!out) return qkv_fail_memory(err);
    for (size_t i = 0; i < n; i++) out[i] = i < turned ? 1.0f : 1e30f;
    r->config->rope_freqs = out;
    r->config->n_divisors = n;
    return QKV_OK;
}

static const struct scaling_kind {
    const char *name;
    int (*write)(rope *r, qkv_error *err);
} kinds[] = {
    {"default", write_nothing},   {"linear", write_linear},
    {"yarn", write_yarn},         {"llama3", write_llama3},
    {"longrope", write_longrope}, {"su", write_longrope},
    {"dynamic", write_dynamic},   {"proportional", write_proportional},
};

static int write_scaling(rope *r, qkv_error *err) {
    json_t *old = qkv_hf_take(&r->scaling, "type");
    json_t *type = qkv_hf_take(&r->scaling, "rope_type");
    const char *name = json_string_value(type ? type : old);
    int status = QKV_OK, known = 0;
    if (!type && !old) name = "default";
    if (name && r->config->hf->yarn_is_longrope && strcmp(name, "yarn") == 0) name = "longrope";
    if (name && r->config->part && strcmp(name, "mrope") == 0) name = "default";
    for (size_t i = 0; name && i < sizeof kinds / sizeof *kinds && !known; i++) {
        if (strcmp(kinds[i].name, name) != 0) continue;
        known = 1;
        status = kinds[i].write(r, err);
    }
    skip_sections(r);
    if (!known)
        status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                          "%s: scaling of RoPE of type '%.40s'; default, linear, dynamic, yarn, "
                          "llama3, longrope and proportional are supported",
                          r->config->path, name ? name : "?");
    json_decref(old);
    json_decref(type);
    return status;
}

/* All that a kind of scaling uses has been taken out. */
static void ignore_rest(const rope *r) {
    const char *name;
    json_t *value;
    json_object_foreach(r->scaling.settings, name, value) {
        if (!json_is_null(value)) qkv_hf_ignore(r->config, r->object, name);
    }
}

/* Where no share is given, the number of channels may be. */
static int take_width(rope *r, qkv_error *err) {
    qkv_hf_config *config = r->config;
    int64_t width = 0;
    if (!config->hf->rotary_width) return QKV_OK;
    const int found =
        qkv_hf_take_int(config, config->hf->rotary_width, 2, config->head_dim, &width, err);
    if (found > 0 && !r->has_part) r->part = (double)width / (double)config->head_dim;
    return found < 0 ? found : QKV_OK;
}

static int write_numbers(rope *r, qkv_error *err) {
    qkv_hf_config *config = r->config;
    const int may_part = config->hf->partial_rotary || config->family->proportional_rope;
    const int status = take_width(r, err);
    if (status != QKV_OK) return status;
    if (!(r->part > 0 && r->part <= 1) || (r->part != 1 && !may_part))
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: RoPE on %g of the channels is not supported for %s", config->path,
                        r->part, config->architecture);
    r->dims = (int64_t)(r->part * (double)config->head_dim);
    if (config->family->proportional_rope) r->dims = config->full_head_dim;
    if (r->dims < 2 || r->dims % 2 != 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: RoPE cannot turn %lld channels in pairs",
                        config->path, (long long)r->dims);
    qkv_hf_set_int(config, "rope.dimension_count", r->dims);
    if (config->full_head_dim != config->head_dim)
        qkv_hf_set_int(config, "rope.dimension_count_swa", config->head_dim);
    qkv_hf_set_float(config, "rope.freq_base", r->base);
    if (r->local_base != 0 && (config->family->local_base != 0 || r->local_base != r->base))
        qkv_hf_set_float(config, "rope.freq_base_swa", r->local_base);
    return QKV_OK;
}

/* Settings that a family keeps among RoPE's. */
static int apply_own_settings(rope *r, qkv_error *err) {
    qkv_hf_config inner = *r->config;
    inner.settings = r->scaling.settings;
    return qkv_hf_apply_settings(&inner, r->config->hf->rope_settings, err);
}

int qkv_hf_rope_read(qkv_hf_config *config, qkv_error *err) {
    rope r = {.config = config, .base = 10000, .part = 1};
    int status = find_scaling(&r, err);
    if (status == QKV_OK) status = write_numbers(&r, err);
    if (status == QKV_OK) status = write_scaling(&r, err);
    if (status == QKV_OK) status = apply_own_settings(&r, err);
    if (status == QKV_OK) ignore_rest(&r);
    json_decref(r.scaling.settings);
    return status;
}

int qkv_hf_rotary_dim_read(qkv_hf_config *config, qkv_error *err) {
    int64_t dims = 0;
    const int found = qkv_hf_take_int(config, "rotary_dim", 2, config->head_dim, &dims, err);
    if (found < 0) return found;
    if (!found || dims % 2 != 0)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: rotary_dim should say how many channels turn, an even number",
                        config->path);
    qkv_hf_set_int(config, "rope.dimension_count", dims);
    qkv_hf_set_float(config, "rope.freq_base", 10000);
    return QKV_OK;
}
