/* tokenizer.bin of llama2.c, as the metadata of a GGUF file. See llama2c.h. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "format/gguf_file.h"
#include "model/llama2c.h"
#include "tokenizer/tokenizer_spm.h"
#include "tokenizer/vocab_internal.h"

#define KEY(name) "tokenizer.ggml." name

enum { N_SPECIAL = 3, N_BYTES = 256, HEADER_SIZE = 4, TOKEN_HEADER = 8 };

typedef struct vocabulary {
    size_t n;
    const char **texts;
    int32_t *types;
    float *scores;
    size_t *starts; /* of the texts in the pool */
    qkv_text pool;
} vocabulary;

static int32_t type_of(size_t id) {
    if (id == 0) return QKV_TOKEN_UNKNOWN;
    if (id < N_SPECIAL) return QKV_TOKEN_CONTROL;
    return id < N_SPECIAL + N_BYTES ? QKV_TOKEN_BYTE : QKV_TOKEN_NORMAL;
}

/* As GGUF files have it, whatever tokenizer.bin calls those that are special. */
static void append_token(qkv_text *pool, size_t id, const char *bytes, size_t length) {
    static const char *const special[N_SPECIAL] = {"<unk>", "<s>", "</s>"};
    if (id < N_SPECIAL) {
        qkv_text_puts(pool, special[id]);
    } else if (id < N_SPECIAL + N_BYTES) {
        qkv_text_printf(pool, "<0x%02X>", (unsigned)(id - N_SPECIAL));
    } else {
        for (size_t i = 0; i < length; i++) {
            if (bytes[i] == ' ')
                qkv_text_puts(pool, QKV_SPM_SPACE);
            else
                qkv_text_append(pool, &bytes[i], 1);
        }
    }
    qkv_text_append(pool, "", 1);
}

/* Reads the token at *at: 1, or 0 when it is not all there, or no text. */
static int read_token(vocabulary *v, size_t id, const qkv_mapping *map, size_t *at) {
    if (map->size - *at < TOKEN_HEADER) return 0;
    const uint32_t score = (uint32_t)qkv_little_endian(map->data + *at, 4);
    const size_t length = (size_t)qkv_little_endian(map->data + *at + 4, 4);
    const char *bytes = (const char *)map->data + *at + TOKEN_HEADER;
    *at += TOKEN_HEADER;
    if (length > map->size - *at) return 0;
    v->types[id] = type_of(id);
    if (v->types[id] == QKV_TOKEN_NORMAL && memchr(bytes, 0, length)) return 0;
    memcpy(&v->scores[id], &score, sizeof score);
    v->starts[id] = v->pool.length;
    append_token(&v->pool, id, bytes, length);
    *at += length;
    return 1;
}

static int read_tokens(vocabulary *v, const qkv_mapping *map, const char *path, qkv_error *err) {
    size_t at = HEADER_SIZE, id = 0;
    while (id < v->n && read_token(v, id, map, &at)) id++;
    if (v->pool.failed) return qkv_fail_memory(err);
    if (id == v->n && at == map->size) return QKV_OK;
    return qkv_fail(err, QKV_ERR_FORMAT, "%s is not a tokenizer of llama2.c with %zu tokens", path,
                    v->n);
}

static void set_keys(const vocabulary *v, struct gguf_context *meta) {
    for (size_t i = 0; i < v->n; i++) v->texts[i] = v->pool.data + v->starts[i];
    gguf_set_val_str(meta, KEY("model"), "llama");
    gguf_set_val_str(meta, KEY("pre"), "default");
    gguf_set_arr_str(meta, KEY("tokens"), v->texts, v->n);
    gguf_set_arr_data(meta, KEY("scores"), GGUF_TYPE_FLOAT32, v->scores, v->n);
    gguf_set_arr_data(meta, KEY("token_type"), GGUF_TYPE_INT32, v->types, v->n);
    gguf_set_val_u32(meta, KEY("unknown_token_id"), 0);
    gguf_set_val_u32(meta, KEY("bos_token_id"), 1);
    gguf_set_val_u32(meta, KEY("eos_token_id"), 2);
    gguf_set_val_bool(meta, KEY("add_bos_token"), true);
    gguf_set_val_bool(meta, KEY("add_eos_token"), false);
    gguf_set_val_bool(meta, KEY("add_space_prefix"), true);
}

int qkv_llama2c_read_tokenizer(struct gguf_context *meta, const char *dir, size_t n,
                               qkv_error *err) {
    vocabulary v = {.n = n};
    qkv_mapping map = {0};
    qkv_text path = {0};
    qkv_text_printf(&path, "%s/" QKV_LLAMA2C_TOKENIZER, dir);
    int status = path.failed ? qkv_fail_memory(err) : qkv_mapping_open(&map, path.data, err);
    /* A token takes eight bytes at least: what is allocated is bounded by the file. */
    if (status == QKV_OK && n > map.size / TOKEN_HEADER)
        status = qkv_fail(err, QKV_ERR_FORMAT, "%s is too short for %zu tokens", path.data, n);
    if (status == QKV_OK) {
        v.texts = qkv_calloc(n, sizeof *v.texts);
        v.types = qkv_calloc(n, sizeof *v.types);
        v.scores = qkv_calloc(n, sizeof *v.scores);
        v.starts = qkv_calloc(n, sizeof *v.starts);
        if (!v.texts || !v.types || !v.scores || !v.starts) status = qkv_fail_memory(err);
    }
    if (status == QKV_OK) status = read_tokens(&v, &map, path.data, err);
    if (status == QKV_OK) set_keys(&v, meta);
    free((void *)v.texts);
    free(v.types);
    free(v.scores);
    free(v.starts);
    qkv_text_release(&v.pool);
    qkv_mapping_close(&map);
    qkv_text_release(&path);
    return status;
}
