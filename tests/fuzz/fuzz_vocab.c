/*
 * Fuzzer: the bytes are lines that describe a vocabulary, each a letter and a value. It becomes
 * GGUF metadata, is loaded, and what follows the first empty line is tokenised with it. Unlike the
 * fuzzer of files, which mostly meets lengths that no longer fit, this one gets to the tables.
 *
 *     m NAME   tokenizer.ggml.model        t DxTEXT  a token: type D, score x - '0'
 *     p NAME   tokenizer.ggml.pre          + A B     a merge
 *     n NAME   general.name                b N, e N, u N   ids of BOS, EOS, unknown
 *                                          B N, E N, S N   whether to add BOS, EOS, a space
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gguf.h"
#include "harness.h"
#include "model/model.h"

enum { MAX_ITEMS = 4096 };

#define KEY(name) "tokenizer.ggml." name

typedef struct description {
    struct gguf_context *gguf;
    const char *tokens[MAX_ITEMS];
    int32_t types[MAX_ITEMS];
    float scores[MAX_ITEMS];
    size_t n_tokens;
    const char *merges[MAX_ITEMS];
    size_t n_merges;
} description;

static const struct {
    char letter;
    char kind; /* string, id, truth */
    const char *key;
} keys[] = {
    {'m', 's', KEY("model")},
    {'p', 's', KEY("pre")},
    {'n', 's', "general.name"},
    {'b', 'i', KEY("bos_token_id")},
    {'e', 'i', KEY("eos_token_id")},
    {'u', 'i', KEY("unknown_token_id")},
    {'B', 't', KEY("add_bos_token")},
    {'E', 't', KEY("add_eos_token")},
    {'S', 't', KEY("add_space_prefix")},
};

static void add_token(description *d, const char *value) {
    if (d->n_tokens == MAX_ITEMS || !value[0] || !value[1]) return;
    d->types[d->n_tokens] = value[0] - '0';
    d->scores[d->n_tokens] = (float)(value[1] - '0');
    d->tokens[d->n_tokens++] = value + 2;
}

static void add_line(description *d, const char *line) {
    if (!line[0] || line[1] != ' ') return;
    const char *value = line + 2;
    if (line[0] == 't') add_token(d, value);
    if (line[0] == '+' && d->n_merges < MAX_ITEMS) d->merges[d->n_merges++] = value;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (keys[i].letter != line[0]) continue;
        if (keys[i].kind == 's') gguf_set_val_str(d->gguf, keys[i].key, value);
        if (keys[i].kind == 'i')
            gguf_set_val_u32(d->gguf, keys[i].key, (uint32_t)strtoul(value, NULL, 10));
        if (keys[i].kind == 't') gguf_set_val_bool(d->gguf, keys[i].key, value[0] == '1');
    }
}

/* Lines up to the first empty one; returns what is after it. Cuts the text into strings. */
static char *describe(description *d, char *text) {
    while (*text && *text != '\n') {
        char *end = text + strcspn(text, "\n");
        char *next = *end ? end + 1 : end;
        *end = '\0';
        add_line(d, text);
        text = next;
    }
    if (d->n_tokens) {
        gguf_set_arr_str(d->gguf, KEY("tokens"), d->tokens, d->n_tokens);
        gguf_set_arr_data(d->gguf, KEY("token_type"), GGUF_TYPE_INT32, d->types, d->n_tokens);
        gguf_set_arr_data(d->gguf, KEY("scores"), GGUF_TYPE_FLOAT32, d->scores, d->n_tokens);
    }
    gguf_set_arr_str(d->gguf, KEY("merges"), d->merges, d->n_merges);
    return *text ? text + 1 : text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static description d;
    d = (description){.gguf = gguf_init_empty()};
    char *copy = qkv_strndup((const char *)data, size);
    FUZZ_REQUIRE(copy && d.gguf);
    const char *text = describe(&d, copy);
    qkv_model model = {0};
    qkv_error err = {0};
    fuzz_watch_memory(size, FUZZ_TABLES);
    int status = qkv_vocab_load(&model.vocab, d.gguf, "vocabulary", &err);
    fuzz_check_memory();
    if (status != QKV_OK) fuzz_check_status(status, model.vocab, &err);
    if (model.vocab) {
        model.info.n_vocab = qkv_vocab_size(model.vocab);
        fuzz_use_text(&model, text, size - (size_t)(text - copy));
        fuzz_show_tokens(&model);
    }
    qkv_vocab_free(model.vocab);
    gguf_free(d.gguf);
    free(copy);
    return 0;
}
