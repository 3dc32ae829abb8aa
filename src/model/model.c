/* Opening and describing models: the public face of this module. */
#define _POSIX_C_SOURCE 200809L
#include "model/model.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "model/hf/hf.h"

static int fail_architecture(const qkv_model *model, const char *name, qkv_error *err) {
    qkv_text known = {0};
    for (int i = 0; qkv_family_get(i); i++)
        qkv_text_printf(&known, "%s%s", i ? ", " : "", qkv_family_get(i)->name);
    int status = qkv_fail(err, QKV_ERR_UNSUPPORTED,
                          "%s: architecture '%.60s' is not supported; these are: %s",
                          model->file->path, name, known.data ? known.data : "");
    qkv_text_release(&known);
    return status;
}

static int find_family(qkv_model *model, qkv_error *err) {
    const char *name = NULL;
    int found = qkv_gguf_string(model->file, "general.architecture", &name, err);
    if (found < 0) return found;
    if (!found)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: general.architecture is missing",
                        model->file->path);
    model->family = qkv_family_find(name);
    return model->family ? QKV_OK : fail_architecture(model, name, err);
}

static int load_vocab(qkv_model *model, qkv_error *err) {
    int status =
        qkv_vocab_load(&model->vocab, model->file->parts[0].header, model->file->path, err);
    if (status != QKV_OK || !model->vocab) return status;
    /* Embeddings are sometimes padded to a round number of rows; a token without a row cannot
     * be. */
    if (qkv_vocab_size(model->vocab) > model->hp.n_vocab)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: the vocabulary has %d tokens but token_embd.weight only %d rows",
                        model->file->path, qkv_vocab_size(model->vocab), model->hp.n_vocab);
    return QKV_OK;
}

/* "IQ2_XXS": the type of most of the parameters. */
static void name_weights(qkv_model *model, const uint64_t params[GGML_TYPE_COUNT]) {
    int best = 0;
    for (int i = 1; i < GGML_TYPE_COUNT; i++) {
        if (params[i] > params[best]) best = i;
    }
    snprintf(model->weights_type, sizeof model->weights_type, "%s",
             ggml_type_name((enum ggml_type)best));
    for (char *c = model->weights_type; *c; c++) {
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    }
    model->info.weights_type = model->weights_type;
}

/* "F16 x 43, F32 x 13", most frequent first; counts the parameters on the way. */
static int summarise_tensors(qkv_model *model, qkv_error *err) {
    size_t counts[GGML_TYPE_COUNT] = {0};
    uint64_t params[GGML_TYPE_COUNT] = {0};
    size_t n = qkv_gguf_n_tensors(model->file);
    for (size_t i = 0; i < n; i++) {
        qkv_gguf_tensor t;
        qkv_gguf_get_tensor(model->file, i, &t);
        counts[t.type]++;
        params[t.type] += (uint64_t)(t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3]);
        model->info.n_params += (uint64_t)(t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3]);
    }
    name_weights(model, params);
    qkv_text text = {0};
    for (;;) {
        int best = 0;
        for (int i = 1; i < GGML_TYPE_COUNT; i++) {
            if (counts[i] > counts[best]) best = i;
        }
        if (counts[best] == 0) break;
        qkv_text_printf(&text, "%s%s x %zu", text.length ? ", " : "",
                        ggml_type_name((enum ggml_type)best), counts[best]);
        counts[best] = 0;
    }
    if (text.failed || !text.data) return qkv_fail_memory(err);
    model->tensor_types = text.data;
    return QKV_OK;
}

static int join_notices(qkv_model *model, qkv_error *err) {
    qkv_text text = {0};
    qkv_text_puts(&text, "");
    for (size_t i = 0; i < model->file->n_notices; i++)
        qkv_text_printf(&text, "%s%s", i ? "; " : "", model->file->notices[i]);
    model->notices = text.data;
    return text.failed ? qkv_fail_memory(err) : QKV_OK;
}

/* A file's own name for itself says less than the one it was asked for by. */
static int name_model(qkv_model *model, qkv_error *err) {
    size_t length = 0;
    const char *pulled = qkv_path_pulled(model->file->path, &length);
    if (!pulled) {
        model->info.label = model->info.name;
        return QKV_OK;
    }
    model->info.label = model->label = qkv_strndup(pulled, length);
    return model->label ? QKV_OK : qkv_fail_memory(err);
}

static int describe(qkv_model *model, qkv_error *err) {
    int status = summarise_tensors(model, err);
    if (status == QKV_OK) status = join_notices(model, err);
    if (status != QKV_OK) return status;
    const qkv_hparams *hp = &model->hp;
    qkv_model_info *info = &model->info;
    info->path = model->file->path;
    info->name = "";
    status = qkv_gguf_string(model->file, "general.name", &info->name, err);
    if (status < 0) return status;
    status = name_model(model, err);
    if (status != QKV_OK) return status;
    info->architecture = model->family->name;
    info->position = model->position;
    info->tensor_types = model->tensor_types;
    info->notices = model->notices;
    info->tokenizer = model->vocab ? qkv_vocab_kind(model->vocab) : "none";
    info->n_layer = hp->n_layer;
    info->n_embd = hp->n_embd;
    info->n_head = hp->largest.n_head;
    info->n_kv_head = hp->largest.n_kv_head;
    info->head_dim = hp->largest.head_dim;
    info->n_ff = hp->largest.n_ff;
    info->n_vocab = hp->n_vocab;
    info->n_ctx = hp->n_ctx;
    info->window = hp->is_chunked ? 0 : hp->window;
    info->chunk = hp->is_chunked ? hp->window : 0;
    for (int32_t il = 0; il < hp->n_layer; il++)
        info->n_windowed += qkv_layer_window(model, il) > 0;
    info->causal = hp->causal;
    info->n_expert = hp->n_expert;
    info->n_expert_used = hp->n_expert_used;
    info->has_logits = model->output != NULL;
    info->has_sink = hp->has_sink;
    info->has_final_norm = hp->has_final_norm;
    const struct ggml_tensor *segments = model->w[QKV_MODEL_TOKEN_TYPES];
    info->has_segments =
        segments && segments->ne[1] > 1 && model->vocab && qkv_vocab_has_segments(model->vocab);
    info->attn_softcap = (double)hp->attn_softcap;
    info->attn_scale = (double)hp->attn_scale;
    info->tied_output = model->output == model->w[QKV_MODEL_TOKEN_EMBD];
    info->n_files = (int32_t)model->file->n_parts;
    info->file_size = qkv_gguf_size(model->file);
    return QKV_OK;
}

int qkv_model_file_open(qkv_gguf **out, const char *path, qkv_error *err) {
    return qkv_is_directory(path) ? qkv_hf_open(out, path, err) : qkv_gguf_open(out, path, err);
}

int qkv_model_open_by(qkv_model **out, const char *path, qkv_file_opener *open, qkv_error *err) {
    *out = NULL;
    qkv_model *model = qkv_calloc(1, sizeof *model);
    if (!model) return qkv_fail_memory(err);
    atomic_init(&model->n_owners, 1);
    qkv_ggml_log_enter();
    const qkv_locale host = qkv_locale_enter(); /* jansson reads the numbers of a directory */
    model->hash = qkv_model_hash_cache_new();
    int status = model->hash ? open(&model->file, path, err) : qkv_fail_memory(err);
    if (status == QKV_OK) status = find_family(model, err);
    if (status == QKV_OK) status = qkv_hparams_read(model, err);
    if (status == QKV_OK) status = qkv_weights_bind(model, err);
    if (status == QKV_OK) status = load_vocab(model, err);
    if (status == QKV_OK) status = describe(model, err);
    qkv_locale_leave(host);
    qkv_ggml_log_leave();
    if (status != QKV_OK) {
        qkv_model_free(model);
        return status;
    }
    *out = model;
    return QKV_OK;
}

qkv_model *qkv_model_retain(const qkv_model *model) {
    /* The only thing that changes about a model, so it is const everywhere else. */
    qkv_model *counted = (qkv_model *)model;
    if (counted) atomic_fetch_add_explicit(&counted->n_owners, 1, memory_order_relaxed);
    return counted;
}

void qkv_model_free(qkv_model *model) {
    if (!model) return;
    /* The last owner must see what the others did before they left. */
    if (atomic_fetch_sub_explicit(&model->n_owners, 1, memory_order_acq_rel) > 1) return;
    qkv_weights_release(model);
    qkv_vocab_free(model->vocab);
    qkv_hparams_release(&model->hp);
    free(model->tensor_types);
    free(model->label);
    free(model->position);
    free(model->notices);
    qkv_gguf_free(model->file);
    qkv_model_hash_cache_free(model->hash);
    free(model);
}

const qkv_model_info *qkv_model_get_info(const qkv_model *model) {
    return model ? &model->info : NULL;
}

const char *qkv_model_notice(const qkv_model *model, size_t index) {
    return model && index < model->file->n_notices ? model->file->notices[index] : NULL;
}

int qkv_model_hash(const qkv_model *model, char out[33], qkv_error *err) {
    QKV_NEED(err, model);
    QKV_NEED(err, out);
    return qkv_model_hash_get(model->hash, model->file, out, err);
}

const char *qkv_family_name(size_t index) {
    const qkv_family *family = index < INT_MAX ? qkv_family_get((int)index) : NULL;
    return family ? family->name : NULL;
}

static int need_vocab(const qkv_model *model, qkv_error *err) {
    if (model->vocab) return QKV_OK;
    if (model->file->source) /* a directory */
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s has no tokenizer that can be read (tokenizer.json, or the files of an "
                        "older GPT-2, Qwen 2, BERT or Llama); give token ids instead of text",
                        model->file->path);
    return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s has no tokenizer; give token ids instead of text",
                    model->file->path);
}

int qkv_tokenize(const qkv_model *model, int32_t **tokens, size_t *n_tokens, const char *text,
                 size_t length, unsigned flags, qkv_error *err) {
    QKV_NEED(err, tokens);
    QKV_NEED(err, n_tokens);
    *tokens = NULL;
    *n_tokens = 0;
    QKV_NEED(err, model);
    if (length) QKV_NEED(err, text);
    int status = need_vocab(model, err);
    return status ? status
                  : qkv_vocab_tokenize(model->vocab, tokens, n_tokens, text ? text : "", length,
                                       flags, err);
}

int qkv_detokenize(const qkv_model *model, char **text, size_t *length, const int32_t *tokens,
                   size_t n_tokens, int keep_special, qkv_error *err) {
    QKV_NEED(err, text);
    QKV_NEED(err, length);
    *text = NULL;
    *length = 0;
    QKV_NEED(err, model);
    if (n_tokens) QKV_NEED(err, tokens);
    int status = need_vocab(model, err);
    return status ? status
                  : qkv_vocab_detokenize(model->vocab, text, length, tokens, n_tokens, keep_special,
                                         err);
}

int qkv_token_text(const qkv_model *model, char **text, size_t *length, int32_t token,
                   qkv_error *err) {
    QKV_NEED(err, text);
    QKV_NEED(err, length);
    *text = NULL;
    *length = 0;
    QKV_NEED(err, model);
    int status = need_vocab(model, err);
    return status ? status : qkv_vocab_token_text(model->vocab, text, length, token, err);
}

int qkv_is_end_token(const qkv_model *model, int32_t token) {
    return model && model->vocab ? qkv_vocab_is_end(model->vocab, token) : 0;
}

void qkv_tokens_free(int32_t *tokens) {
    free(tokens);
}

void qkv_text_free(char *text) {
    free(text);
}
