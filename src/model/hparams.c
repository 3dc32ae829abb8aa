/* Reads the numbers of an architecture from the metadata and refuses those that cannot be meant. */
#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "model/model.h"

#define MAX_LAYERS 4096
#define MAX_WIDTH (1 << 20)
#define MAX_HEADS 4096
#define MAX_VOCAB (1 << 24)

/* ARCH.suffix as an integer; `fallback` where it is absent, which for a negative fallback is an
 * error. */
static int read_int(const qkv_model *model, const char *suffix, int64_t low, int64_t high,
                    int64_t fallback, int32_t *out, qkv_error *err) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", model->family->name, suffix);
    int64_t value = fallback;
    int found = qkv_gguf_int(model->file, key, low, high, &value, err);
    if (found < 0) return found;
    if (!found && fallback < 0)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is missing", model->file->path, key);
    *out = (int32_t)value;
    return QKV_OK;
}

static int read_heads(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    int32_t value_dim = 0;
    int status = read_int(model, "attention.head_count", 1, MAX_HEADS, -1, &hp->n_head, err);
    if (status == QKV_OK)
        status = read_int(model, "attention.head_count_kv", 1, MAX_HEADS, hp->n_head,
                          &hp->n_kv_head, err);
    if (status != QKV_OK) return status;
    if (hp->n_head % hp->n_kv_head != 0)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: %d query heads cannot share %d key/value heads evenly",
                        model->file->path, hp->n_head, hp->n_kv_head);

    int64_t split = hp->n_embd % hp->n_head == 0 ? hp->n_embd / hp->n_head : -1;
    status = read_int(model, "attention.key_length", 1, MAX_WIDTH, split, &hp->head_dim, err);
    if (status == QKV_OK)
        status =
            read_int(model, "attention.value_length", 1, MAX_WIDTH, hp->head_dim, &value_dim, err);
    if (status != QKV_OK) return status;
    if (value_dim != hp->head_dim)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                        "%s: keys of width %d with values of width %d are not supported",
                        model->file->path, hp->head_dim, value_dim);
    if ((int64_t)hp->head_dim * hp->n_head > MAX_WIDTH)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %d heads of width %d are more than can be meant",
                        model->file->path, hp->n_head, hp->head_dim);
    return QKV_OK;
}

static int read_norm_eps(qkv_model *model, qkv_error *err) {
    char key[128];
    double eps = 0;
    snprintf(key, sizeof key, "%s.attention.layer_norm_%sepsilon", model->family->name,
             model->family->norm == QKV_NORM_RMS ? "rms_" : "");
    int found = qkv_gguf_float(model->file, key, 0, 1, &eps, err);
    if (found < 0) return found;
    if (!found) return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s is missing", model->file->path, key);
    model->hp.norm_eps = (float)eps;
    return QKV_OK;
}

/* The vocabulary's size is that of the embedding; metadata must not contradict it. */
static int read_vocab_size(qkv_model *model, qkv_error *err) {
    qkv_gguf_tensor embedding;
    if (!qkv_gguf_find_tensor(model->file, "token_embd.weight", &embedding))
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: tensor token_embd.weight is missing",
                        model->file->path);
    if (embedding.ne[1] < 1 || embedding.ne[1] > MAX_VOCAB)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: token_embd.weight has %lld rows, outside 1 to %d",
                        model->file->path, (long long)embedding.ne[1], MAX_VOCAB);
    model->hp.n_vocab = (int32_t)embedding.ne[1];

    int32_t claimed = 0;
    int status = read_int(model, "vocab_size", 1, MAX_VOCAB, model->hp.n_vocab, &claimed, err);
    if (status != QKV_OK) return status;
    if (claimed != model->hp.n_vocab)
        return qkv_fail(err, QKV_ERR_FORMAT,
                        "%s: %s.vocab_size is %d but token_embd.weight has %d rows",
                        model->file->path, model->family->name, claimed, model->hp.n_vocab);
    return QKV_OK;
}

/* Keys that change what a model computes and that no family here knows. A file that sets one is
 * refused: to ignore it would silently run another model. */
static const char *const refused_keys[] = {
    "expert_count",          "attn_logit_softcapping",   "final_logit_softcapping",
    "attention.scale",       "attention.clamp_kqv",      "attention.max_alibi_bias",
    "logit_scale",           "residual_scale",           "embedding_scale",
    "use_parallel_residual", "attention.key_length_mla", "attention.temperature_scale",
};

static int refuse_key(const qkv_model *model, const char *suffix, qkv_error *err) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", model->family->name, suffix);
    if (qkv_gguf_is_zero(model->file, key)) return QKV_OK;
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "%s: %s is set, which architecture %s as it is known here lacks",
                    model->file->path, key, model->family->name);
}

static int refuse_unknown_behaviour(const qkv_model *model, qkv_error *err) {
    int status = QKV_OK;
    for (size_t i = 0; status == QKV_OK && i < sizeof refused_keys / sizeof refused_keys[0]; i++)
        status = refuse_key(model, refused_keys[i], err);
    if (status != QKV_OK) return status;
    char key[128];
    int causal = 1;
    snprintf(key, sizeof key, "%s.attention.causal", model->family->name);
    status = qkv_gguf_bool(model->file, key, &causal, err);
    if (status < 0) return status;
    return causal ? QKV_OK
                  : qkv_fail(err, QKV_ERR_UNSUPPORTED,
                             "%s: %s is false; only causal models are supported", model->file->path,
                             key);
}

int qkv_hparams_read(qkv_model *model, qkv_error *err) {
    qkv_hparams *hp = &model->hp;
    int status = read_int(model, "block_count", 1, MAX_LAYERS, -1, &hp->n_layer, err);
    if (status == QKV_OK)
        status = read_int(model, "embedding_length", 1, MAX_WIDTH, -1, &hp->n_embd, err);
    if (status == QKV_OK)
        status = read_int(model, "feed_forward_length", 1, MAX_WIDTH, -1, &hp->n_ff, err);
    if (status == QKV_OK)
        status = read_int(model, "context_length", 1, 1 << 30, -1, &hp->n_ctx, err);
    if (status == QKV_OK)
        status = read_int(model, "attention.sliding_window", 0, INT32_MAX, 0, &hp->window, err);
    if (status == QKV_OK) status = read_heads(model, err);
    if (status == QKV_OK) status = read_norm_eps(model, err);
    if (status == QKV_OK) status = read_vocab_size(model, err);
    if (status == QKV_OK) status = qkv_rope_read(model, err);
    if (status == QKV_OK) status = refuse_unknown_behaviour(model, err);
    hp->attn_scale = status == QKV_OK ? 1.0f / sqrtf((float)hp->head_dim) : 0;
    return status;
}
