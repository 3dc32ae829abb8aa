/*
 * config.json to GGUF keys.
 *
 * Settings are taken out of the JSON object as they are read; unused_settings.c judges what is left at
 * the end.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "model/hf/hf.h"

#define MAX_NUMBER (1 << 30)
#define MAX_LAYERS 1024
#define MAX_HEADS 4096
#define MAX_HEAD_DIM 16384 /* RoPE may take a table of half as many numbers */

/* ---- taking and writing ---- */

json_t *qkv_hf_take(qkv_hf_config *config, const char *name) {
    json_t *value = json_incref(json_object_get(config->settings, name));
    json_object_del(config->settings, name);
    if (!json_is_null(value)) return value;
    json_decref(value);
    return NULL;
}

static int fail_kind(const qkv_hf_config *config, const char *name, const char *kind,
                     qkv_error *err) {
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be %s", config->path, name, kind);
}

/* 4096.0 is a whole number too; one beyond 64 bits is the largest or smallest that they hold. */
static int take_whole(qkv_hf_config *config, const char *name, int64_t *value, qkv_error *err) {
    json_t *json = qkv_hf_take(config, name);
    if (!json) return 0;
    const double number = json_number_value(json);
    const int is_whole = json_is_integer(json) || (json_is_real(json) && number == floor(number));
    *value = json_is_integer(json) ? json_integer_value(json)
             : number >= 0x1p62    ? INT64_MAX
             : number <= -0x1p62   ? INT64_MIN
                                   : (int64_t)number;
    json_decref(json);
    return is_whole ? 1 : fail_kind(config, name, "a whole number", err);
}

int qkv_hf_take_int(qkv_hf_config *config, const char *name, int64_t low, int64_t high,
                    int64_t *value, qkv_error *err) {
    int64_t number = 0;
    const int found = take_whole(config, name, &number, err);
    if (found <= 0) return found;
    if (number == INT64_MAX || number == INT64_MIN)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is far outside %lld to %lld", config->path,
                        name, (long long)low, (long long)high);
    if (number < low || number > high)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is %lld, outside %lld to %lld", config->path,
                        name, (long long)number, (long long)low, (long long)high);
    *value = number;
    return 1;
}

int qkv_hf_take_limit(qkv_hf_config *config, const char *name, int64_t high, int64_t *value,
                      qkv_error *err) {
    int64_t number = 0;
    const int found = take_whole(config, name, &number, err);
    if (found <= 0) return found;
    if (number < 0) return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is below 0", config->path, name);
    *value = number < high ? number : high;
    return 1;
}

int qkv_hf_take_float(qkv_hf_config *config, const char *name, double low, double high,
                      double *value, qkv_error *err) {
    json_t *json = qkv_hf_take(config, name);
    if (!json) return 0;
    const int is_number = json_is_number(json);
    const double number = json_number_value(json);
    json_decref(json);
    if (!is_number) return fail_kind(config, name, "a number", err);
    if (!(number >= low && number <= high))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is %g, outside %g to %g", config->path, name,
                        number, low, high);
    *value = number;
    return 1;
}

int qkv_hf_take_bool(qkv_hf_config *config, const char *name, int *value, qkv_error *err) {
    json_t *json = qkv_hf_take(config, name);
    if (!json) return 0;
    const int is_bool = json_is_boolean(json);
    *value = json_is_true(json);
    json_decref(json);
    return is_bool ? 1 : fail_kind(config, name, "true or false", err);
}

static const char *full_key(const qkv_hf_config *config, const char *key, char out[128]) {
    snprintf(out, 128, "%s.%s", config->family->name, key);
    return out;
}

void qkv_hf_set_int(qkv_hf_config *config, const char *key, int64_t value) {
    char full[128];
    gguf_set_val_u32(config->meta, full_key(config, key, full), (uint32_t)value);
}

void qkv_hf_set_float(qkv_hf_config *config, const char *key, double value) {
    char full[128];
    gguf_set_val_f32(config->meta, full_key(config, key, full), (float)value);
}

void qkv_hf_set_bool(qkv_hf_config *config, const char *key, int value) {
    char full[128];
    gguf_set_val_bool(config->meta, full_key(config, key, full), value != 0);
}

void qkv_hf_set_text(qkv_hf_config *config, const char *key, const char *value) {
    char full[128];
    gguf_set_val_str(config->meta, full_key(config, key, full), value);
}

void qkv_hf_set_layers(qkv_hf_config *config, const char *key, const int32_t *values) {
    char full[128];
    gguf_set_arr_data(config->meta, full_key(config, key, full), GGUF_TYPE_INT32, values,
                      (size_t)config->n_layer);
}

/* ---- the family ---- */

static int stands_for(const qkv_hf *hf, const char *architecture) {
    for (const char *const *name = hf->architectures; *name; name++) {
        if (strcmp(*name, architecture) == 0) return 1;
    }
    return 0;
}

static int fail_architecture(const qkv_hf_config *config, const char *name, qkv_error *err) {
    qkv_text known = {0};
    for (int i = 0; qkv_family_get(i); i++) {
        for (const qkv_hf *hf = qkv_family_get(i)->hf; hf; hf = hf->next) {
            for (const char *const *a = hf->architectures; *a; a++)
                qkv_text_printf(&known, "%s%s", known.length ? ", " : "", *a);
        }
    }
    for (const qkv_hf_wrapper *w = qkv_hf_wrappers; w->architecture; w++)
        qkv_text_printf(&known, ", %s", w->architecture);
    int status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                          "%s: architecture '%.100s' is not supported; these are: %s", config->path,
                          name, known.data ? known.data : "");
    qkv_text_release(&known);
    return status;
}

const qkv_hf_class *qkv_hf_class_find(const char *model_type) {
    for (int i = 0; qkv_family_get(i); i++) {
        for (const qkv_hf *hf = qkv_family_get(i)->hf; hf; hf = hf->next) {
            for (const qkv_hf_class *c = hf->classes; c->model_type; c++) {
                if (strcmp(c->model_type, model_type) == 0) return c;
            }
        }
    }
    return NULL;
}

/* Where no architecture is named, that of models of this type. */
static const char *name_architecture(const qkv_hf_config *config) {
    const json_t *list = json_object_get(config->settings, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    const char *type = json_string_value(json_object_get(config->settings, "model_type"));
    const int is_silent = !list || qkv_hf_says_nothing(list);
    const qkv_hf_class *known = is_silent && type ? qkv_hf_class_find(type) : NULL;
    return known ? known->architecture : name;
}

/* The class of the architecture; the family's first where it has none of its own. */
static const qkv_hf_class *class_of(const qkv_hf_config *config) {
    if (config->part) return config->part;
    for (const qkv_hf_class *c = config->hf->classes; c->model_type; c++) {
        if (strcmp(c->architecture, config->architecture) == 0) return c;
    }
    return config->hf->classes;
}

/* transformers goes by model_type where it knows that: a Mistral that calls itself a Llama has its
 * window. Where it is of another family, the architecture is more to be trusted. */
static void prefer_type(qkv_hf_config *config) {
    const char *type = json_string_value(json_object_get(config->settings, "model_type"));
    const qkv_hf_class *typed = type ? qkv_hf_class_find(type) : NULL;
    if (typed && typed != class_of(config) && stands_for(config->hf, typed->architecture))
        config->architecture = typed->architecture;
}

static int find_family(qkv_hf_config *config, qkv_error *err) {
    const char *name = name_architecture(config);
    if (!name)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: architectures does not name the kind of model this is", config->path);
    for (int i = 0; qkv_family_get(i); i++) {
        const qkv_family *family = qkv_family_get(i);
        const qkv_hf *hf = family->hf;
        while (hf && !stands_for(hf, name)) hf = hf->next;
        if (!hf) continue;
        config->family = family;
        config->hf = hf;
        for (const char *const *a = config->hf->architectures; *a; a++) {
            if (strcmp(*a, name) == 0) config->architecture = *a;
        }
        prefer_type(config);
        return QKV_OK;
    }
    return fail_architecture(config, name, err);
}

static int add_missing(qkv_hf_config *config, const char *text, qkv_error *err) {
    json_t *defaults = qkv_json_parse(text, strlen(text), 0, NULL);
    const int failed = !defaults || qkv_json_put_missing(config->settings, defaults) != 0;
    json_decref(defaults);
    return failed ? qkv_fail_memory(err) : QKV_OK;
}

static int add_defaults(qkv_hf_config *config, qkv_error *err) {
    const qkv_hf_class *known = class_of(config);
    int status = add_missing(config, known->defaults, err);
    if (status == QKV_OK && config->wrapper && known->part_defaults)
        status = add_missing(config, known->part_defaults, err);
    return status;
}

/* ---- the common numbers ---- */

/* One number under whichever of the names it has; there may be no limit to it. */
static int take_any_int(qkv_hf_config *config, const char *const *names, int no_limit,
                        int64_t *value, qkv_error *err) {
    int found = 0;
    for (; *names; names++) {
        int64_t number = 0;
        const int got = no_limit ? qkv_hf_take_limit(config, *names, MAX_NUMBER, &number, err)
                                 : qkv_hf_take_int(config, *names, 0, MAX_NUMBER, &number, err);
        if (got < 0) return got;
        if (got && !found) *value = number;
        found |= got;
    }
    return found;
}

/* X(variable, key, required, names...) */
#define COMMON_INTS(X)                                                                             \
    X(n_layer, "block_count", 1, "num_hidden_layers", "n_layer", "n_layers", "num_layers")         \
    X(n_ctx, "context_length", 1, "max_position_embeddings", "n_positions", "n_ctx",               \
      "max_sequence_length", "max_seq_len", "seq_length")                                          \
    X(n_embd, "embedding_length", 1, "hidden_size", "n_embd", "n_embed", "dim", "d_model")         \
    X(n_ff, "feed_forward_length", 0, "intermediate_size", "n_inner", "ffn_hidden_size",           \
      "hidden_dim", "ffn_dim")                                                                     \
    X(n_head, "attention.head_count", 1, "num_attention_heads", "n_head", "n_heads", "num_heads")  \
    X(n_kv_head, "attention.head_count_kv", 0, "num_key_value_heads", "num_kv_heads", "n_head_kv")

#define EXPERT_INTS(X)                                                                             \
    X(n_expert, "expert_count", 0, "num_local_experts", "num_experts", "n_routed_experts")         \
    X(n_used, "expert_used_count", 0, "num_experts_per_tok")

/* A dense model's class does not read the settings of experts. */
static int has_experts(const qkv_hf_config *config) {
    const char *only = config->hf->expert_architecture;
    return (config->family->keys & QKV_READS(EXPERTS)) != 0 &&
           (!only || strcmp(only, config->architecture) == 0);
}

static int read_numbers(qkv_hf_config *config, qkv_error *err) {
    int64_t n_layer = 0, n_ctx = 0, n_embd = 0, n_ff = 0, n_head = 0, n_kv_head = 0, n_expert = 0,
            n_used = 0, head_dim = 0;
    int found;
#define READ_INT(variable, key, required, ...)                                                     \
    found = take_any_int(config, (const char *const[]){__VA_ARGS__, NULL}, &variable == &n_ctx,    \
                         &variable, err);                                                          \
    if (found < 0) return found;                                                                   \
    if (required && (!found || variable == 0))                                                     \
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: no %s", config->path,                            \
                        ((const char *const[]){__VA_ARGS__})[0]);                                  \
    if (found) qkv_hf_set_int(config, key, variable);
    COMMON_INTS(READ_INT)
    if (has_experts(config)) {
        EXPERT_INTS(READ_INT)
    }
#undef READ_INT
    config->n_ff = n_ff ? n_ff : 4 * n_embd;
    qkv_hf_set_int(config, "feed_forward_length", config->n_ff);
    found = qkv_hf_take_int(config, "head_dim", 1, MAX_NUMBER, &head_dim, err);
    if (found < 0) return found;
    if (found) {
        qkv_hf_set_int(config, "attention.key_length", head_dim);
        qkv_hf_set_int(config, "attention.value_length", head_dim);
    }
    config->n_layer = n_layer;
    config->n_ctx = n_ctx;
    config->n_embd = n_embd;
    config->n_head = n_head;
    config->n_kv_head = n_kv_head ? n_kv_head : n_head;
    config->head_dim = found ? head_dim : n_embd / n_head;
    config->full_head_dim = config->head_dim;
    if (config->family->proportional_rope)
        found = qkv_hf_take_int(config, "global_head_dim", 1, MAX_HEAD_DIM, &config->full_head_dim,
                                err);
    if (found < 0) return found;
    if (n_layer > MAX_LAYERS || n_head > MAX_HEADS || config->n_kv_head > n_head ||
        n_head % config->n_kv_head != 0 || config->head_dim > MAX_HEAD_DIM)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: %lld layers of %lld query and %lld key/value heads of width %lld "
                        "are implausible",
                        config->path, (long long)n_layer, (long long)n_head,
                        (long long)config->n_kv_head, (long long)config->head_dim);
    return QKV_OK;
}

static int read_epsilon(qkv_hf_config *config, qkv_error *err) {
    static const char *const rms[] = {"rms_norm_eps", NULL};
    static const char *const layer[] = {"layer_norm_eps", "layer_norm_epsilon", "norm_eps", NULL};
    const int is_rms = config->family->norm == QKV_NORM_RMS;
    const char *const own[] = {config->hf->epsilon, NULL};
    const char *const *names = *own ? own : is_rms ? rms : layer;
    if (config->hf->fixed_epsilon != 0) {
        qkv_hf_set_float(config, "attention.layer_norm_epsilon", config->hf->fixed_epsilon);
        return QKV_OK;
    }
    for (const char *const *name = names; *name; name++) {
        double value = 0;
        const int found = qkv_hf_take_float(config, *name, 0, 1, &value, err);
        if (found < 0) return found;
        if (!found) continue;
        qkv_hf_set_float(
            config, is_rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
            value);
        return QKV_OK;
    }
    return qkv_fail(err, QKV_ERR_FORMAT, "%s: no %s", config->path, names[0]);
}

/* Most classes take any function by its name; written where it is not the family's own. */
static int read_activation(qkv_hf_config *config, qkv_error *err) {
    const char *setting = config->hf->activation ? config->hf->activation : "hidden_act";
    const char *usual = config->hf->usual_activations;
    json_t *value = qkv_hf_take(config, setting);
    char quoted[64];
    if (!value) return QKV_OK;
    snprintf(quoted, sizeof quoted, "|%.48s|",
             json_is_string(value) ? json_string_value(value) : "?");
    const int found = json_is_string(value) ? qkv_activation_find(json_string_value(value)) : -1;
    json_decref(value);
    if (config->hf->fixed_activation || (usual && strstr(usual, quoted))) return QKV_OK;
    if (found < 0)
        return qkv_fail(
            err, QKV_ERR_UNSUPPORTED,
            "%s: %s is '%.*s'; silu, gelu and the names of its tanh form, relu and relu2 are supported",
            config->path, setting, (int)strlen(quoted) - 2, quoted + 1);
    if (found != (int)config->family->activation)
        qkv_hf_set_text(config, "hidden_activation", qkv_activation_name(found));
    return QKV_OK;
}

static int read_ties(qkv_hf_config *config, qkv_error *err) {
    int tied = 0;
    const int found = qkv_hf_take_bool(config, "tie_word_embeddings", &tied, err);
    config->tied = found > 0 ? tied : -1;
    return found < 0 ? found : QKV_OK;
}

/* ---- the family's settings ---- */

static int check_must(qkv_hf_config *config, const qkv_hf_setting *s, qkv_error *err) {
    json_t *value = qkv_hf_take(config, s->name);
    if (!value) return QKV_OK;
    const double number = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
    const int is_number = json_is_boolean(value) || json_is_number(value);
    json_decref(value);
    if (is_number && number == s->number) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: %s is supported only as %g", config->path,
                    s->name, s->number);
}

static int check_word(qkv_hf_config *config, const qkv_hf_setting *s, qkv_error *err) {
    json_t *value = qkv_hf_take(config, s->name);
    const char *word = json_string_value(value);
    const int fits = !value || (word && strcmp(word, s->key) == 0);
    json_decref(value);
    if (fits) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: %s is supported only as '%s'", config->path,
                    s->name, s->key);
}

static int check_refused(qkv_hf_config *config, const qkv_hf_setting *s, qkv_error *err) {
    json_t *value = qkv_hf_take(config, s->name);
    const int fits = !value || qkv_hf_says_nothing(value);
    json_decref(value);
    if (fits) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: the setting %s of %s is not supported, and to ignore it would compute "
                    "another model",
                    config->path, s->name, config->architecture);
}

static int apply_setting(qkv_hf_config *config, const qkv_hf_setting *s, qkv_error *err) {
    int64_t integer = 0;
    double number = 0;
    int boolean = 0, found = 0;
    char full[128];
    switch (s->use) {
    case QKV_HF_INT:
        found = qkv_hf_take_int(config, s->name, 0, MAX_NUMBER, &integer, err);
        if (found > 0) qkv_hf_set_int(config, s->key, integer);
        break;
    case QKV_HF_FLOAT:
        found = qkv_hf_take_float(config, s->name, -1e30, 1e30, &number, err);
        if (found > 0) qkv_hf_set_float(config, s->key, number);
        break;
    case QKV_HF_BOOL:
        found = qkv_hf_take_bool(config, s->name, &boolean, err);
        if (found > 0) qkv_hf_set_bool(config, s->key, boolean);
        break;
    case QKV_HF_MUST:
        found = check_must(config, s, err);
        break;
    case QKV_HF_SKIP:
        json_object_del(config->settings, s->name);
        break;
    case QKV_HF_WORD:
        found = check_word(config, s, err);
        break;
    case QKV_HF_TEXT:
        if (gguf_find_key(config->meta, full_key(config, s->key, full)) < 0)
            qkv_hf_set_text(config, s->key, s->name);
        break;
    case QKV_HF_REFUSE:
        found = check_refused(config, s, err);
        break;
    }
    return found < 0 ? found : QKV_OK;
}

int qkv_hf_apply_object(qkv_hf_config *config, const char *name, const qkv_hf_setting *settings,
                        qkv_error *err) {
    json_t *given = qkv_hf_take(config, name), *value;
    const char *left;
    if (!given) return QKV_OK;
    if (!json_is_object(given)) {
        json_decref(given);
        return fail_kind(config, name, "an object", err);
    }
    qkv_hf_config inner = *config; /* writes where the whole does */
    inner.settings = qkv_json_copy(given);
    json_decref(given);
    int status = inner.settings ? QKV_OK : qkv_fail_memory(err);
    for (const qkv_hf_setting *s = settings; s->name && status == QKV_OK; s++)
        status = apply_setting(&inner, s, err);
    if (status == QKV_OK) {
        json_object_foreach(inner.settings, left, value) {
            if (!json_is_null(value)) qkv_hf_ignore(config, name, left);
        }
    }
    json_decref(inner.settings);
    return status;
}

static int has_window(const qkv_hf_config *config) {
    const char *only = config->hf->window_architecture;
    return config->hf->window && (!only || strcmp(only, config->architecture) == 0);
}

int qkv_hf_apply_settings(qkv_hf_config *config, const qkv_hf_setting *settings, qkv_error *err) {
    int status = QKV_OK;
    for (const qkv_hf_setting *s = settings; s && s->name && status == QKV_OK; s++)
        status = apply_setting(config, s, err);
    return status;
}

static int apply_settings(qkv_hf_config *config, qkv_error *err) {
    int status = qkv_hf_apply_settings(config, config->hf->settings, err);
    if (status == QKV_OK && config->hf->configure) status = config->hf->configure(config, err);
    if (status == QKV_OK && has_window(config)) status = qkv_hf_window_read(config, err);
    return status;
}

int qkv_hf_read_query_scale(qkv_hf_config *config, qkv_error *err) {
    const int by_width = config->n_layer == config->family->width_scaled_layers;
    const double usual =
        by_width ? (double)config->n_embd / (double)config->n_head : (double)config->head_dim;
    double scalar = usual;
    const int found = qkv_hf_take_float(config, "query_pre_attn_scalar", 1e-6, 1e9, &scalar, err);
    if (found < 0) return found;
    if (scalar != usual) qkv_hf_set_float(config, "attention.scale", 1 / sqrt(scalar));
    return QKV_OK;
}

int qkv_hf_read_expert_norm(qkv_hf_config *config, qkv_error *err) {
    const int usual = !config->family->experts_keep_shares;
    int norm = 0;
    const int found = qkv_hf_take_bool(config, "norm_topk_prob", &norm, err);
    if (found < 0) return found;
    if (norm != usual) qkv_hf_set_bool(config, "expert_weights_norm", norm);
    return QKV_OK;
}

/* ---- all of them ---- */

int qkv_hf_config_read(qkv_hf_config *config, json_t *json, qkv_error *err) {
    config->settings = qkv_json_copy(json);
    if (!config->settings) return qkv_fail_memory(err);
    int status = qkv_hf_unwrap(config, err);
    if (status == QKV_OK) status = find_family(config, err);
    if (status == QKV_OK) status = add_defaults(config, err);
    if (status != QKV_OK) return status;
    gguf_set_val_str(config->meta, "general.architecture", config->family->name);
    gguf_set_val_str(config->meta, "general.type", "model");
    status = read_numbers(config, err);
    if (status == QKV_OK) status = read_epsilon(config, err);
    if (status == QKV_OK) status = read_activation(config, err);
    if (status == QKV_OK) status = read_ties(config, err);
    if (status == QKV_OK && config->family->position == QKV_POSITION_ROPE)
        status = config->hf->rotary_dim ? qkv_hf_rotary_dim_read(config, err)
                                        : qkv_hf_rope_read(config, err);
    if (status == QKV_OK) status = apply_settings(config, err);
    return status == QKV_OK ? qkv_hf_check_unused(config, err) : status;
}

void qkv_hf_config_release(qkv_hf_config *config) {
    json_decref(config->settings);
    json_decref(config->outer);
    qkv_text_release(&config->ignored);
    free(config->rope_freqs);
    free(config->rope_long);
    free(config->rope_short);
}
