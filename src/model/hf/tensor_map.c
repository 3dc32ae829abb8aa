/*
 * The tensors of a directory under the names that a GGUF file gives them.
 *
 * Every name of the tables is looked for in every layer. A tensor of the directory that no name asked
 * for is an error, unless it is known to be no weight: without it the result would be wrong.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "model/hf/hf.h"

static const qkv_hf_name common_layer_names[] = {
    {"input_layernorm", "attn_norm", NULL},    {"post_attention_layernorm", "ffn_norm", NULL},
    {"self_attn.q_proj", "attn_q", NULL},      {"self_attn.k_proj", "attn_k", NULL},
    {"self_attn.v_proj", "attn_v", NULL},      {"self_attn.o_proj", "attn_output", NULL},
    {"self_attn.q_norm", "attn_q_norm", NULL}, {"self_attn.k_norm", "attn_k_norm", NULL},
    {"mlp.gate_proj", "ffn_gate", NULL},       {"mlp.up_proj", "ffn_up", NULL},
    {"mlp.down_proj", "ffn_down", NULL},       {NULL, NULL, NULL},
};

static const qkv_hf_name common_model_names[] = {
    {"embed_tokens", "token_embd", NULL},
    {"norm", "output_norm", NULL},
    {NULL, NULL, NULL},
};

static const qkv_hf_name output_names[] = {{"lm_head", "output", NULL}, {NULL, NULL, NULL}};

/* Ends of names: buffers that old versions saved beside the weights. */
static const char *const common_ignored[] = {"rotary_emb.inv_freq", ".position_ids", NULL};

typedef struct binder {
    qkv_gguf *file;
    qkv_hf_dir *dir;
    const qkv_hf_config *config;
    size_t capacity;
} binder;

/* ---- finding sources ---- */

static qkv_st_tensor *find_with(const binder *b, const char *prefix, const char *name) {
    qkv_text full = {0};
    qkv_text_printf(&full, "%s%s", prefix, name);
    qkv_st_tensor *t = full.failed ? NULL : qkv_st_find(&b->dir->sources, full.data);
    qkv_text_release(&full);
    return t;
}

/* PREFIX NAME, or NAME alone: some files leave the prefix out. */
static qkv_st_tensor *find_source(const binder *b, const char *name) {
    const qkv_hf *hf = b->config->hf;
    const char *const plain[] = {hf->prefix ? hf->prefix : "model.", "", hf->other_prefix, NULL};
    qkv_st_tensor *t = NULL;
    for (const char *const *p = b->config->wrapper ? qkv_hf_text_prefixes : plain; *p && !t; p++)
        t = find_with(b, *p, name);
    return t;
}

/* The i-th name that `name` stands for, the caller's to free: NULL past the last. '#' counts without
 * end, "{a,b}" are two, and one without either is one. */
static char *expand(const char *name, int i, qkv_error *err, int *status) {
    const size_t before = strcspn(name, "#{");
    qkv_text text = {0};
    *status = QKV_OK;
    if (name[before] == '#') {
        qkv_text_printf(&text, "%.*s%d%s", (int)before, name, i, name + before + 1);
    } else if (name[before] == '{' && i < 2) {
        const char *first = name + before + 1, *comma = strchr(first, ','),
                   *end = strchr(first, '}');
        const char *chosen = i ? comma + 1 : first, *stop = i ? end : comma;
        qkv_text_printf(&text, "%.*s%.*s%s", (int)before, name, (int)(stop - chosen), chosen,
                        end + 1);
    } else if (name[before] == '\0' && i == 0) {
        qkv_text_puts(&text, name);
    } else {
        return NULL;
    }
    if (text.failed) *status = qkv_fail_memory(err);
    return text.failed ? NULL : text.data;
}

static int find_sources(const binder *b, qkv_tensor_maker *maker, const char *name,
                        qkv_error *err) {
    size_t capacity = 0;
    for (int i = 0;; i++) {
        int status;
        char *full = expand(name, i, err, &status);
        if (!full) return status;
        qkv_st_tensor *t = find_source(b, full);
        free(full);
        if (!t) return QKV_OK;
        if (!QKV_PUSH(maker->sources, capacity, maker->n_sources, t)) return qkv_fail_memory(err);
        t->used = 1;
    }
}

/* ---- adding tensors ---- */

static int keep_name(binder *b, const char *name, const char **kept, qkv_error *err) {
    char *copy = qkv_strdup(name);
    if (!copy || !QKV_PUSH(b->dir->names, b->dir->names_capacity, b->dir->n_names, copy)) {
        free(copy);
        return qkv_fail_memory(err);
    }
    *kept = copy;
    return QKV_OK;
}

/* The maker and what it takes are the tensor's from here on, also after a failure. */
static int add_tensor(binder *b, const char *name, qkv_tensor_maker *maker, qkv_gguf_tensor t,
                      qkv_error *err) {
    qkv_tensor_maker *kept = qkv_calloc(1, sizeof *kept);
    if (!kept || !QKV_PUSH(b->dir->makers, b->dir->makers_capacity, b->dir->n_makers, kept)) {
        free(kept);
        free((void *)maker->sources);
        free(maker->values);
        return qkv_fail_memory(err);
    }
    *kept = *maker;
    kept->base.make = qkv_tensor_make;
    if (strlen(name) >= GGML_MAX_NAME)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: the name %s is too long", b->file->path, name);
    int status = keep_name(b, name, &t.name, err);
    if (status != QKV_OK) return status;
    const int as_it_is = kept->kind->plan(kept, &t, err);
    if (as_it_is < 0) {
        if (err && err->status == as_it_is)
            return qkv_fail(err, as_it_is, "%s: %s", b->file->path, err->message);
        return as_it_is;
    }
    t.maker = &kept->base;
    if (as_it_is) {
        const qkv_st_tensor *source = kept->sources[0];
        t.part = source->part;
        /* Where a file does not align its numbers, they are copied when they are needed. */
        if ((uintptr_t)source->data % ggml_type_size(t.type) == 0)
            t.data = source->data;
        else
            kept->kind = &qkv_maker_copy;
    }
    if (!QKV_PUSH(b->file->tensors, b->capacity, b->file->n_tensors, t))
        return qkv_fail_memory(err);
    return QKV_OK;
}

/* One name of a table, if the directory has it. */
static int bind_name(binder *b, const qkv_maker_kind *kind, const char *from, const char *to,
                     qkv_error *err) {
    qkv_tensor_maker maker = {.kind = kind ? kind : &qkv_maker_copy,
                              .n_head = (int32_t)b->config->n_head,
                              .n_kv_head = (int32_t)b->config->n_kv_head,
                              .mixer = b->config->mixer,
                              .n_skipped = b->config->first_position};
    int status = find_sources(b, &maker, from, err);
    if (status != QKV_OK || maker.n_sources == 0) {
        free((void *)maker.sources);
        return status;
    }
    return add_tensor(b, to, &maker, (qkv_gguf_tensor){0}, err);
}

/* `before` and `layer` stand before the names: "layers.3." and "blk.3.", or "". */
static int bind_entry(binder *b, const qkv_hf_name *entry, const char *before, const char *layer,
                      qkv_error *err) {
    static const char *const suffixes[] = {".weight", ".bias"};
    const int is_whole = *entry->to == '=', both = !is_whole && strchr(entry->to, '.') == NULL;
    int status = QKV_OK;
    for (int i = 0; i < (both ? 2 : 1) && status == QKV_OK; i++) {
        qkv_text from = {0}, to = {0};
        const char *suffix = both ? suffixes[i] : "";
        qkv_text_printf(&from, "%s%s%s", before, entry->from, suffix);
        qkv_text_printf(&to, "%s%s%s", layer, entry->to + is_whole, suffix);
        status = from.failed || to.failed ? qkv_fail_memory(err)
                                          : bind_name(b, entry->maker, from.data, to.data, err);
        qkv_text_release(&from);
        qkv_text_release(&to);
    }
    return status;
}

/* A family's own entry for a name stands in place of the common one. */
static int is_replaced(const qkv_hf_name *own, const char *from) {
    for (; own && own->from; own++) {
        if (strcmp(own->from, from) == 0) return 1;
    }
    return 0;
}

/* Entries that `own` has too are left to it. */
static int bind_table(binder *b, const qkv_hf_name *table, const qkv_hf_name *own,
                      const char *before, const char *layer, qkv_error *err) {
    int status = QKV_OK;
    for (; table && table->from && status == QKV_OK; table++) {
        if (!is_replaced(own, table->from)) status = bind_entry(b, table, before, layer, err);
    }
    return status;
}

static int bind_own_and_common(binder *b, const qkv_hf_name *own, const qkv_hf_name *common,
                               const char *before, const char *layer, qkv_error *err) {
    int status = bind_table(b, own, NULL, before, layer, err);
    if (status == QKV_OK && !b->config->hf->plain_names)
        status = bind_table(b, common, own, before, layer, err);
    return status;
}

static int bind_layers(binder *b, qkv_error *err) {
    const qkv_hf *hf = b->config->hf;
    int status = QKV_OK;
    for (int64_t il = 0; il < b->config->n_layer && status == QKV_OK; il++) {
        char before[64], layer[32];
        snprintf(before, sizeof before, "%s%lld.", hf->block ? hf->block : "layers.",
                 (long long)il);
        snprintf(layer, sizeof layer, "blk.%lld.", (long long)il);
        status = bind_own_and_common(b, hf->layer_names, common_layer_names, before, layer, err);
    }
    return status;
}

/* What the embedding was bound to; NULL where there is none. */
static const qkv_st_tensor *find_embedding(const binder *b) {
    for (size_t i = 0; i < b->file->n_tensors; i++) {
        const qkv_gguf_tensor *t = &b->file->tensors[i];
        if (strcmp(t->name, "token_embd.weight") == 0)
            return ((const qkv_tensor_maker *)t->maker)->sources[0];
    }
    return NULL;
}

/* Of the same shape, but not the same numbers. */
static int is_other_matrix(const qkv_st_tensor *a, const qkv_st_tensor *b) {
    if (a->n_dims != b->n_dims) return 0;
    for (int i = 0; i < a->n_dims; i++) {
        if (a->shape[i] != b->shape[i]) return 0;
    }
    return a->type != b->type || memcmp(a->data, b->data, a->size) != 0;
}

/* Tied models may store the output's matrix all the same: it is the embedding. Where it is not, a model
 * was trained further without the tie, and transformers takes what is stored (since version 5). A bias is
 * the output's own in any case. */
static int bind_tied(binder *b, qkv_st_tensor *head, qkv_error *err) {
    const qkv_st_tensor *embedding = find_embedding(b);
    qkv_text text = {0};
    head->used = 1;
    if (!embedding || !is_other_matrix(head, embedding)) return QKV_OK;
    qkv_text_puts(&text, "the output is not tied to the embedding as config.json says: "
                         "lm_head.weight holds other numbers, and is used");
    const int status = qkv_gguf_add_notice(b->file, &text, err);
    return status == QKV_OK ? bind_name(b, NULL, "lm_head.weight", "output.weight", err) : status;
}

static int bind_output(binder *b, qkv_error *err) {
    if (b->config->family->has_no_logits) return QKV_OK;
    qkv_st_tensor *head = find_source(b, "lm_head.weight");
    if (b->config->tied == 1) {
        const int status = head ? bind_tied(b, head, err) : QKV_OK;
        return status == QKV_OK ? bind_name(b, NULL, "lm_head.bias", "output.bias", err) : status;
    }
    if (b->config->tied == 0 && !head && !b->config->hf->plain_output)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: lm_head.weight is missing, and tie_word_embeddings is false",
                        b->file->path);
    return bind_table(b, output_names, NULL, "", "", err);
}

static int bind_divisors(binder *b, const char *name, float *const *values, qkv_error *err) {
    if (!*values) return QKV_OK;
    const size_t n = b->config->n_divisors;
    qkv_tensor_maker maker = {.kind = &qkv_maker_values};
    const qkv_gguf_tensor t = {
        .type = GGML_TYPE_F32, .ne = {(int64_t)n, 1, 1, 1}, .size = n * sizeof(float)};
    maker.values = malloc(t.size);
    if (!maker.values) return qkv_fail_memory(err);
    memcpy(maker.values, *values, t.size);
    return add_tensor(b, name, &maker, t, err);
}

static int ends_with(const char *name, const char *end) {
    size_t length = strlen(name), n = strlen(end);
    return length >= n && strcmp(name + length - n, end) == 0;
}

static int is_ignored(const char *const *list, const char *name) {
    for (; list && *list; list++) {
        if (ends_with(name, *list)) return 1;
    }
    return 0;
}

/* ---- what is not bound ---- */

/* "vision_tower.x" and "model.vision_tower.x" are of the part vision_tower. */
static int is_of_part(const char *name, const char *part) {
    const size_t n = strlen(part);
    if (strncmp(name, "model.", 6) == 0) name += 6;
    return strncmp(name, part, n) == 0 && (name[n] == '.' || name[n] == '\0');
}

/* Marks the tensors of a part and counts them. */
static size_t leave_part(const binder *b, const char *part) {
    const qkv_st_list *list = &b->dir->sources;
    size_t n = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].used || !is_of_part(list->items[i].name, part)) continue;
        list->items[i].used = 1;
        n++;
    }
    return n;
}

/* Parts of a larger model that are not loaded. */
static int leave_parts(const binder *b, qkv_error *err) {
    if (!b->config->wrapper) return QKV_OK;
    qkv_text text = {0};
    size_t n_parts = 0;
    qkv_text_printf(&text, "only the language part of %s is used",
                    b->config->wrapper->architecture);
    for (const char *const *part = qkv_hf_other_parts; *part; part++) {
        const size_t n = leave_part(b, *part);
        if (!n) continue;
        qkv_text_printf(&text, "%s%zu of %s", n_parts++ ? ", " : "; tensors left out: ", n, *part);
    }
    return qkv_gguf_add_notice(b->file, &text, err);
}

/* ---- numbers that are tensors here and keys there ---- */

static int take_number(binder *b, const qkv_hf_name *entry, int64_t il, float *out,
                       qkv_error *err) {
    char name[128];
    snprintf(name, sizeof name, "%s%lld.%s",
             b->config->hf->block ? b->config->hf->block : "layers.", (long long)il, entry->from);
    qkv_st_tensor *t = find_source(b, name);
    int64_t n = 1;
    for (int i = 0; t && i < t->n_dims; i++) n *= t->shape[i];
    *out = t && n == 1 ? (float)qkv_st_value(t, 0) : NAN;
    if (!t || !isfinite(*out))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor %s should be one number", b->file->path,
                        name);
    t->used = 1;
    return QKV_OK;
}

static int write_numbers(binder *b, const qkv_hf_name *entry, qkv_error *err) {
    const size_t n = (size_t)b->config->n_layer;
    int status = QKV_OK;
    float *values = qkv_calloc(n, sizeof *values);
    if (!values) return qkv_fail_memory(err);
    for (size_t il = 0; il < n && status == QKV_OK; il++)
        status = take_number(b, entry, (int64_t)il, &values[il], err);
    if (status == QKV_OK)
        gguf_set_arr_data(b->config->meta, entry->to, GGUF_TYPE_FLOAT32, values, n);
    free(values);
    return status;
}

static int bind_numbers(binder *b, qkv_error *err) {
    int status = QKV_OK;
    for (const qkv_hf_name *n = b->config->hf->layer_numbers; n && n->from && status == QKV_OK; n++)
        status = write_numbers(b, n, err);
    return status;
}

/* ---- all of them ---- */

/* "model.layers.46.x" of a model of 46 layers. */
static int is_of_later_layer(const binder *b, const char *name) {
    const qkv_hf *hf = b->config->hf;
    const char *block = hf->block ? hf->block : "layers.", *at = strstr(name, block);
    if (!hf->leaves_later_layers || !at) return 0;
    char *end = NULL;
    return strtol(at + strlen(block), &end, 10) >= b->config->n_layer && *end == '.';
}

static int refuse_unknown(const binder *b, qkv_error *err) {
    const qkv_st_list *list = &b->dir->sources;
    for (size_t i = 0; i < list->count; i++) {
        const qkv_st_tensor *t = &list->items[i];
        if (t->used || is_ignored(common_ignored, t->name) || is_of_later_layer(b, t->name) ||
            is_ignored(b->config->hf->ignored, t->name) ||
            (b->config->hf->ignored_part && is_of_part(t->name, b->config->hf->ignored_part)))
            continue;
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: tensor %.100s is not part of %s as it is known here; without it the "
                        "result would be wrong",
                        b->file->path, t->name, b->config->architecture);
    }
    return QKV_OK;
}

int qkv_hf_bind_tensors(qkv_gguf *file, const qkv_hf_config *config, qkv_error *err) {
    binder b = {.file = file, .dir = file->source, .config = config};
    int status = bind_own_and_common(&b, config->hf->model_names, common_model_names, "", "", err);
    if (status == QKV_OK) status = bind_output(&b, err);
    if (status == QKV_OK) status = bind_divisors(&b, "rope_freqs.weight", &config->rope_freqs, err);
    if (status == QKV_OK)
        status = bind_divisors(&b, "rope_factors_long.weight", &config->rope_long, err);
    if (status == QKV_OK)
        status = bind_divisors(&b, "rope_factors_short.weight", &config->rope_short, err);
    if (status == QKV_OK) status = bind_layers(&b, err);
    if (status == QKV_OK) status = bind_numbers(&b, err);
    if (status == QKV_OK) status = leave_parts(&b, err);
    return status == QKV_OK ? refuse_unknown(&b, err) : status;
}
