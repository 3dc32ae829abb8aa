/* Writes tokenizer.json with jansson, as the tokenizers library lays it out. */
#define _POSIX_C_SOURCE 200809L
#include "support/tokenizer_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/text.h"
#include "support/scratch.h"

#define KEY(name) "tokenizer.ggml." name
#define BLANK "\xe2\x96\x81"

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4 };

const char *tokenizer_dir(const char *json, const char *config) {
    scratch_write("tokenizer.json", json, strlen(json));
    if (config)
        scratch_write("tokenizer_config.json", config, strlen(config));
    else
        unlink(scratch_path("tokenizer_config.json"));
    return scratch_path(".");
}

typedef struct source {
    const struct gguf_context *gguf;
    const tokenizer_parts *parts;
    int64_t tokens;
    size_t count;
    const int32_t *types;
    const float *scores; /* or NULL */
} source;

static source open_source(const struct gguf_context *gguf, const tokenizer_parts *parts) {
    int64_t types = gguf_find_key(gguf, KEY("token_type"));
    int64_t scores = gguf_find_key(gguf, KEY("scores"));
    source s = {gguf, parts, gguf_find_key(gguf, KEY("tokens")), 0, NULL, NULL};
    s.count = gguf_get_arr_n(gguf, s.tokens);
    s.types = gguf_get_arr_data(gguf, types);
    s.scores = scores < 0 ? NULL : gguf_get_arr_data(gguf, scores);
    return s;
}

static const char *token(const source *s, size_t i) {
    return gguf_get_arr_str(s->gguf, s->tokens, i);
}

static json_t *parse(const char *text) {
    json_error_t err;
    json_t *tree = text ? json_loads(text, JSON_DECODE_ANY, &err) : json_null();
    if (!tree) fail_msg("%s: %s", err.text, text);
    return tree;
}

static json_t *added_tokens(const source *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->count; i++) {
        int type = s->types[i];
        if (type != UNKNOWN && type != CONTROL && type != USER) continue;
        json_array_append_new(list,
                              json_pack("{s:i,s:s,s:b,s:b,s:b,s:b,s:b}", "id", (int)i, "content",
                                        token(s, i), "special", type != USER, "normalized", 0,
                                        "lstrip", 0, "rstrip", 0, "single_word", 0));
    }
    return list;
}

/* ---- vocabularies ---- */

/* WordPiece marks what continues a word. */
static void plain_text(const source *s, size_t i, qkv_text *out) {
    const char *text = token(s, i);
    out->length = 0;
    if (strcmp(s->parts->model, "WordPiece") != 0 || s->types[i] != NORMAL)
        qkv_text_puts(out, text);
    else if (strncmp(text, BLANK, 3) == 0)
        qkv_text_puts(out, text + 3);
    else
        qkv_text_printf(out, "##%s", text);
}

static json_t *vocabulary(const source *s) {
    int is_list = strcmp(s->parts->model, "Unigram") == 0;
    json_t *vocab = is_list ? json_array() : json_object();
    qkv_text text = {0};
    for (size_t i = 0; i < s->count; i++) {
        plain_text(s, i, &text);
        if (is_list)
            json_array_append_new(vocab, json_pack("[s,f]", text.data, (double)s->scores[i]));
        else if (text.length > 0)
            json_object_set_new_nocheck(vocab, text.data, json_integer((json_int_t)i));
    }
    qkv_text_release(&text);
    return vocab;
}

/* ---- merges ---- */

typedef struct scored_merge {
    int32_t left, right;
    float score;
    size_t order;
} scored_merge;

static int compare_merges(const void *left, const void *right) {
    const scored_merge *a = left, *b = right;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    if (a->left != b->left) return a->left < b->left ? -1 : 1;
    return (a->right > b->right) - (a->right < b->right);
}

static void add_merge(const source *s, json_t *list, const char *left, const char *right) {
    if (s->parts->pairs)
        json_array_append_new(list, json_pack("[s,s]", left, right));
    else
        json_array_append_new(list, json_sprintf("%s %s", left, right));
}

/* Every way to make a token of two, the best scores first. */
static json_t *merges_of_scores(const source *s, const json_t *vocab) {
    scored_merge *all = NULL;
    size_t n = 0, capacity = 0;
    json_t *list = json_array();
    for (size_t i = 0; i < s->count; i++) {
        const char *text = token(s, i);
        char left[256];
        if (s->types[i] != NORMAL || strlen(text) >= sizeof left) continue;
        for (size_t cut = 1; text[cut]; cut++) {
            memcpy(left, text, cut);
            left[cut] = '\0';
            const json_t *a = json_object_get(vocab, left);
            const json_t *b = json_object_get(vocab, text + cut);
            if (!a || !b) continue;
            const scored_merge merge = {(int32_t)json_integer_value(a),
                                        (int32_t)json_integer_value(b), s->scores[i], n};
            assert_true(QKV_PUSH(all, capacity, n, merge));
        }
    }
    qsort(all, n, sizeof *all, compare_merges);
    for (size_t i = 0; i < n; i++)
        add_merge(s, list, token(s, (size_t)all[i].left), token(s, (size_t)all[i].right));
    free(all);
    return list;
}

static json_t *merges(const source *s, const json_t *vocab) {
    int64_t key = gguf_find_key(s->gguf, KEY("merges"));
    if (key < 0) return merges_of_scores(s, vocab);
    json_t *list = json_array();
    for (size_t i = 0; i < gguf_get_arr_n(s->gguf, key); i++) {
        char *text = qkv_strdup(gguf_get_arr_str(s->gguf, key, i));
        char *blank = strchr(text + 1, ' ');
        *blank = '\0';
        add_merge(s, list, text, blank + 1);
        free(text);
    }
    return list;
}

/* ---- the whole ---- */

static json_t *model(const source *s) {
    json_t *tree = json_pack("{s:s}", "type", s->parts->model);
    json_t *vocab = vocabulary(s);
    int64_t unknown = gguf_find_key(s->gguf, KEY("unknown_token_id"));
    if (strcmp(s->parts->model, "BPE") == 0) {
        json_object_set_new(tree, "merges", merges(s, vocab));
        json_object_set_new(tree, "byte_fallback", json_boolean(s->parts->byte_fallback));
        json_object_set_new(tree, "ignore_merges", json_boolean(s->parts->ignore_merges));
        json_object_set_new(tree, "fuse_unk", json_true());
        json_object_set_new(tree, "dropout", json_null());
    } else if (strcmp(s->parts->model, "Unigram") == 0) {
        json_object_set_new(tree, "unk_id", json_integer(gguf_get_val_u32(s->gguf, unknown)));
    } else {
        json_object_set_new(tree, "unk_token",
                            json_string(token(s, gguf_get_val_u32(s->gguf, unknown))));
    }
    json_object_set_new(tree, "vocab", vocab);
    return tree;
}

const char *tokenizer_dir_of(const struct gguf_context *gguf, const tokenizer_parts *parts) {
    const source s = open_source(gguf, parts);
    json_t *tree = json_object();
    json_object_set_new(tree, "version", json_string("1.0"));
    json_object_set_new(tree, "truncation", json_null());
    json_object_set_new(tree, "added_tokens", added_tokens(&s));
    json_object_set_new(tree, "normalizer", parse(parts->normalizer));
    json_object_set_new(tree, "pre_tokenizer", parse(parts->pre_tokenizer));
    json_object_set_new(tree, "post_processor", parse(parts->post_processor));
    json_object_set_new(tree, "model", model(&s));
    char *text = json_dumps(tree, JSON_INDENT(1));
    assert_non_null(text);
    const char *dir = tokenizer_dir(text, NULL);
    free(text);
    json_decref(tree);
    return dir;
}
