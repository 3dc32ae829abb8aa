/*
 * Tokens that are written out in the text: "<|bos|>", "<|im_start|>", runs of spaces.
 *
 * Which of them swallow white space, stand alone or count in normalised text only is in keys of our
 * own, or known from the model's name.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "tokenizer/vocab_internal.h"

static int is_special(const qkv_vocab_token *token) {
    return token->length > 0 &&
           (token->type == QKV_TOKEN_CONTROL || token->type == QKV_TOKEN_USER_DEFINED ||
            token->type == QKV_TOKEN_UNKNOWN);
}

/* Of equal texts a user-defined token comes first, since it always counts, then the lower id. */
static int gather_specials(qkv_vocab *vocab, qkv_error *err) {
    size_t count = 0, n = 0;
    for (int32_t i = 0; i < vocab->n_tokens; i++) count += (size_t)is_special(&vocab->tokens[i]);
    int32_t *ids = qkv_calloc(count, sizeof *ids);
    if (!ids) return qkv_fail_memory(err);
    for (int user = 1; user >= 0; user--) {
        for (int32_t i = 0; i < vocab->n_tokens; i++) {
            const qkv_vocab_token *token = &vocab->tokens[i];
            if (is_special(token) && (token->type == QKV_TOKEN_USER_DEFINED) == user) ids[n++] = i;
        }
    }
    int status = qkv_token_index_init(&vocab->specials, vocab->tokens, ids, n, err);
    free(ids);
    return status;
}

/* Which special tokens swallow white space is not in the metadata; it goes by the model's name.
 * token NULL stands for every special token; later lines override earlier ones. */
static const struct {
    const char *key, *contains; /* in lower case */
    const char *token;
    uint8_t left, right;
} strip_rules[] = {
    {"general.name", "phi-3", NULL, 0, 1},
    {"general.name", "phi-3", "<unk>", 0, 0},
    {"general.name", "phi-3", "<s>", 0, 0},
    {"general.name", "phi-3", "<|endoftext|>", 0, 0},
    {"general.name", "phi3", NULL, 0, 1},
    {"general.name", "phi3", "<unk>", 0, 0},
    {"general.name", "phi3", "<s>", 0, 0},
    {"general.name", "phi3", "<|endoftext|>", 0, 0},
    {"general.name", "modern-bert", "[MASK]", 1, 0},
    {"tokenizer.ggml.pre", "jina-v2-de", "<mask>", 1, 0},
    {"tokenizer.ggml.pre", "jina-v2-es", "<mask>", 1, 0},
    {"tokenizer.ggml.pre", "jina-v2-code", "<mask>", 1, 0},
};

static int contains_ignoring_case(const char *text, const char *part) {
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && qkv_lower(text[i]) == part[i]) i++;
        if (!part[i]) return 1;
    }
    return 0;
}

/* A tokenizer.json says which tokens strip; what its directory is called says nothing. */
static int speaks_for_itself(const qkv_gguf *file) {
    const struct gguf_context *header = file->parts[0].header;
    return gguf_find_key(header, "qkv.tokenizer.ignore_merges") >= 0;
}

static int apply_strip_rules(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    if (speaks_for_itself(file)) return QKV_OK;
    for (size_t r = 0; r < sizeof strip_rules / sizeof *strip_rules; r++) {
        const char *value = NULL;
        int found = qkv_gguf_string(file, strip_rules[r].key, &value, err);
        if (found < 0) return found;
        if (!found || !contains_ignoring_case(value, strip_rules[r].contains)) continue;
        for (size_t i = 0; i < vocab->specials.count; i++) {
            qkv_vocab_token *token = &vocab->tokens[vocab->specials.ids[i]];
            if (strip_rules[r].token && strcmp(strip_rules[r].token, token->text) != 0) continue;
            token->strips_left = strip_rules[r].left;
            token->strips_right = strip_rules[r].right;
        }
    }
    return QKV_OK;
}

/* Keys of our own: each lists the tokens that have a property. */
enum property { STRIPS_LEFT, STRIPS_RIGHT, NORMALIZED, SINGLE_WORD, N_PROPERTIES };

static const char *const property_keys[N_PROPERTIES] = {
    [STRIPS_LEFT] = "qkv.tokenizer.lstrip",
    [STRIPS_RIGHT] = "qkv.tokenizer.rstrip",
    [NORMALIZED] = "qkv.tokenizer.normalized",
    [SINGLE_WORD] = "qkv.tokenizer.single_word",
};

static void set_property(qkv_vocab_token *token, enum property property) {
    if (property == STRIPS_LEFT) token->strips_left = 1;
    if (property == STRIPS_RIGHT) token->strips_right = 1;
    if (property == NORMALIZED) token->normalized = 1;
    if (property == SINGLE_WORD) token->single_word = 1;
}

int qkv_vocab_read_ids(const qkv_gguf *file, const char *key, const int32_t **ids, size_t *n,
                       qkv_error *err) {
    const struct gguf_context *header = file->parts[0].header;
    const int64_t id = gguf_find_key(header, key);
    *n = 0;
    if (id < 0) return QKV_OK;
    if (gguf_get_kv_type(header, id) != GGUF_TYPE_ARRAY ||
        gguf_get_arr_type(header, id) != GGUF_TYPE_INT32)
        return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s should be an array of 32-bit integers",
                        file->path, key);
    *ids = gguf_get_arr_data(header, id);
    *n = gguf_get_arr_n(header, id);
    return QKV_OK;
}

static int read_property(qkv_vocab *vocab, const qkv_gguf *file, enum property property,
                         qkv_error *err) {
    const char *key = property_keys[property];
    const int32_t *ids = NULL;
    size_t n = 0;
    const int status = qkv_vocab_read_ids(file, key, &ids, &n, err);
    if (status != QKV_OK) return status;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= vocab->n_tokens || !is_special(&vocab->tokens[ids[i]]))
            return qkv_fail(err, QKV_ERR_FORMAT, "%s: %s: %d is not a special token", file->path,
                            key, (int)ids[i]);
        set_property(&vocab->tokens[ids[i]], property);
    }
    return QKV_OK;
}

int qkv_vocab_index_specials(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    int status = gather_specials(vocab, err);
    if (status == QKV_OK) status = apply_strip_rules(vocab, file, err);
    for (int p = 0; p < N_PROPERTIES && status == QKV_OK; p++)
        status = read_property(vocab, file, (enum property)p, err);
    return status;
}

/* ---- in normalised text ---- */

/* All forms together, in bytes, for each byte of a special token; and for nothing at all. */
enum { MAX_GROWTH = 8, MIN_FORMS = 1 << 16 };

static int append_form(qkv_vocab *vocab, int32_t id, qkv_text *form, qkv_match_budget *budget,
                       size_t most, const char *path, qkv_error *err) {
    qkv_token_forms *forms = &vocab->forms;
    const qkv_vocab_token *token = &vocab->tokens[id];
    int status = QKV_OK;
    form->length = 0;
    if (vocab->normalizer)
        status =
            qkv_normalizer_form(vocab->normalizer, form, token->text, token->length, budget, err);
    else
        qkv_text_append(form, token->text, token->length);
    if (status == QKV_OK && form->failed) status = qkv_fail_memory(err);
    if (status != QKV_OK || form->length == 0) return status;
    if (form->length > most - forms->pool.length)
        return qkv_fail(err, QKV_ERR_UNSUPPORTED, "%s: the normalizer makes tokens too long", path);
    forms->tokens[forms->count] = *token;
    forms->tokens[forms->count].length = (uint32_t)form->length;
    forms->ids[forms->count++] = id;
    qkv_text_append(&forms->pool, form->data, form->length);
    return forms->pool.failed ? qkv_fail_memory(err) : QKV_OK;
}

/* Of equal ones the first counts: user-defined tokens, as in gather_specials. */
static int make_forms(qkv_vocab *vocab, size_t count, size_t most, const char *path,
                      qkv_error *err) {
    qkv_token_forms *forms = &vocab->forms;
    qkv_match_budget budget = qkv_match_budget_for((size_t)vocab->n_tokens);
    qkv_text form = {0};
    int status = QKV_OK;
    forms->tokens = qkv_calloc(count, sizeof *forms->tokens);
    forms->ids = qkv_calloc(count, sizeof *forms->ids);
    if (!forms->tokens || !forms->ids) return qkv_fail_memory(err);
    for (int user = 1; user >= 0; user--) {
        for (size_t i = 0; i < vocab->specials.count && status == QKV_OK; i++) {
            const int32_t id = vocab->specials.ids[i];
            const qkv_vocab_token *token = &vocab->tokens[id];
            if (token->normalized && user == (token->type == QKV_TOKEN_USER_DEFINED))
                status = append_form(vocab, id, &form, &budget, most, path, err);
        }
    }
    qkv_text_release(&form);
    return status;
}

static int index_forms(qkv_token_forms *forms, qkv_error *err) {
    int32_t *all = qkv_calloc(forms->count, sizeof *all);
    size_t start = 0;
    if (!all) return qkv_fail_memory(err);
    for (size_t i = 0; i < forms->count; i++) {
        forms->tokens[i].text = forms->pool.data + start;
        start += forms->tokens[i].length;
        all[i] = (int32_t)i;
    }
    int status = qkv_token_index_init(&forms->index, forms->tokens, all, forms->count, err);
    free(all);
    return status;
}

int qkv_vocab_form_specials(qkv_vocab *vocab, const char *path, qkv_error *err) {
    size_t count = 0, bytes = 0;
    for (size_t i = 0; i < vocab->specials.count; i++) {
        const qkv_vocab_token *token = &vocab->tokens[vocab->specials.ids[i]];
        count += token->normalized;
        bytes += token->normalized ? token->length : 0;
    }
    if (count == 0) return QKV_OK;
    int status = make_forms(vocab, count, bytes * MAX_GROWTH + MIN_FORMS, path, err);
    return status == QKV_OK ? index_forms(&vocab->forms, err) : status;
}

void qkv_token_forms_release(qkv_token_forms *forms) {
    free(forms->tokens);
    free(forms->ids);
    qkv_text_release(&forms->pool);
    qkv_token_index_release(&forms->index);
}

/* ---- in a text ---- */

int32_t qkv_vocab_match_special(const qkv_vocab *vocab, const char *text, size_t length,
                                int parse_special, int normalized, size_t *taken) {
    int32_t best = QKV_NO_TOKEN;
    if (length == 0) return best;
    const qkv_token_index *index = normalized ? &vocab->forms.index : &vocab->specials;
    const qkv_vocab_token *tokens = normalized ? vocab->forms.tokens : vocab->tokens;
    qkv_token_cursor cursor = qkv_token_index_start(index, text[0]);
    if (cursor.low >= cursor.high) return best;
    do {
        int32_t id = qkv_token_index_get(index, tokens, &cursor);
        if (id == QKV_NO_TOKEN) continue;
        if (tokens[id].normalized != normalized ||
            (!parse_special && tokens[id].type != QKV_TOKEN_USER_DEFINED))
            continue;
        best = normalized ? vocab->forms.ids[id] : id;
        *taken = tokens[id].length;
    } while (cursor.depth < length &&
             qkv_token_index_step(index, tokens, &cursor, text[cursor.depth]));
    return best;
}
