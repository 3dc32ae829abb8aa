/*
 * Text to tokens, the part that all kinds share.
 *
 * Tokens that are written out are cut out first; what lies between is normalised, searched for
 * tokens once more where some are meant for normalised text, cut into words, and given to the kind
 * word by word.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "qkv/model.h"
#include "tokenizer/unicode_text.h"
#include "tokenizer/vocab_internal.h"

int qkv_token_list_push(qkv_token_list *list, int32_t id, qkv_error *err) {
    return QKV_PUSH(list->ids, list->capacity, list->count, id) ? QKV_OK : qkv_fail_memory(err);
}

int qkv_vocab_push_unknown(const qkv_vocab *vocab, qkv_token_list *out, char byte, qkv_error *err) {
    if (vocab->unknown != QKV_NO_TOKEN) return qkv_token_list_push(out, vocab->unknown, err);
    return qkv_fail(err, QKV_ERR_UNSUPPORTED,
                    "the vocabulary has no token for byte 0x%02X of the text", (unsigned char)byte);
}

typedef struct encoder {
    const qkv_vocab *vocab;
    const char *begin; /* of the whole text */
    int parse_special;
    int continues;               /* the text follows another one */
    const qkv_vocab_span *plain; /* where names of special tokens stay text; those left */
    size_t n_plain;
    const qkv_vocab_span *all_plain;
    size_t n_all_plain;
    qkv_encoding work;
    qkv_text normalized;
    qkv_match_budget budget;
} encoder;

typedef int encode_stretch(encoder *e, const char *text, size_t length, qkv_error *err);

/* White space as the special tokens' stripping rules mean it: ASCII only. */
static int is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int is_word_at(const char *text, size_t length) {
    uint32_t code;
    return length > 0 && qkv_utf8_decode(text, length, &code) > 0 && qkv_unicode_is_word(code);
}

static int is_word_before(const char *text, size_t at) {
    size_t start = at;
    while (start > 0 && at - start < 4) {
        start--;
        if (((unsigned char)text[start] & 0xc0) != 0x80) break;
    }
    return start < at && is_word_at(text + start, at - start);
}

/* How far from here on names of special tokens count: up to the next plain stretch, 0 in one. Places
 * are asked for in order. */
static size_t special_reach(encoder *e, const char *at, size_t length) {
    const size_t place = (size_t)(at - e->begin);
    while (e->n_plain && e->plain->end <= place) {
        e->plain++;
        e->n_plain--;
    }
    if (!e->n_plain || e->plain->start >= place + length) return length;
    return e->plain->start > place ? e->plain->start - place : 0;
}

/* The longest token written out at this place of the text, or of a normalised stretch of it. */
static int32_t match_special(encoder *e, const char *text, size_t length, int normalized,
                             size_t *taken) {
    const qkv_vocab *vocab = e->vocab;
    if (!e->parse_special || normalized)
        return qkv_vocab_match_special(vocab, text, length, e->parse_special, normalized, taken);
    const size_t reach = special_reach(e, text, length);
    const int32_t id = qkv_vocab_match_special(vocab, text, reach, 1, 0, taken);
    if (reach == length) return id;
    size_t other = 0;
    const int32_t plain = qkv_vocab_match_special(vocab, text, length, 0, 0, &other);
    if (plain == QKV_NO_TOKEN || (id != QKV_NO_TOKEN && *taken >= other)) return id;
    *taken = other;
    return plain;
}

/* Where the next special token starts, or `length`; and how long it is. */
static size_t find_special(encoder *e, const char *text, size_t from, size_t length, int normalized,
                           int32_t *id, size_t *taken) {
    const qkv_vocab *vocab = e->vocab;
    for (size_t i = from; i < length; i++) {
        *id = match_special(e, text + i, length - i, normalized, taken);
        if (*id == QKV_NO_TOKEN) continue;
        size_t end = i + *taken;
        if (!vocab->tokens[*id].single_word ||
            (!is_word_before(text, i) && !is_word_at(text + end, length - end)))
            return i;
        i = end - 1;
    }
    *id = QKV_NO_TOKEN;
    return length;
}

/* Special tokens written out in the text become themselves; `between` takes what is between. */
static int cut_specials(encoder *e, const char *text, size_t length, int normalized,
                        encode_stretch *between, qkv_error *err) {
    size_t at = 0;
    while (at < length) {
        int32_t id;
        size_t taken = 0, next = find_special(e, text, at, length, normalized, &id, &taken);
        const qkv_vocab_token *token = id == QKV_NO_TOKEN ? NULL : &e->vocab->tokens[id];
        size_t end = next;
        if (token && token->strips_left) {
            while (end > at && is_blank(text[end - 1])) end--;
        }
        if (end > at) {
            int status = between(e, text + at, end - at, err);
            if (status != QKV_OK) return status;
        }
        if (!token) break;
        if (qkv_token_list_push(&e->work.out, id, err) != QKV_OK) return QKV_ERR_MEMORY;
        at = next + taken;
        if (token->strips_right) {
            while (at < length && is_blank(text[at])) at++;
        }
    }
    return QKV_OK;
}

static int encode_words(encoder *e, const char *text, size_t length, qkv_error *err) {
    const qkv_vocab *vocab = e->vocab;
    if (!vocab->pre) return vocab->kind->encode(vocab, &e->work, text, length, err);
    qkv_span *pieces = NULL;
    size_t count = 0;
    int status = qkv_pretokenizer_split(vocab->pre, text, length, &e->budget, &pieces, &count, err);
    for (size_t i = 0; i < count && status == QKV_OK; i++)
        status = vocab->kind->encode(vocab, &e->work, text + pieces[i].start,
                                     pieces[i].end - pieces[i].start, err);
    free(pieces);
    return status;
}

/* Does a plain stretch in here hold the name of a token that counts in normalised text? */
static int has_plain_name(const encoder *e, const char *text, size_t length) {
    const size_t from = (size_t)(text - e->begin);
    size_t taken;
    for (size_t k = 0; k < e->n_all_plain && e->all_plain[k].start < from + length; k++) {
        const qkv_vocab_span *span = &e->all_plain[k];
        for (size_t i = span->start > from ? span->start : from; i < span->end && i < from + length;
             i++)
            if (qkv_vocab_match_special(e->vocab, e->begin + i, span->end - i, 1, 1, &taken) !=
                QKV_NO_TOKEN)
                return 1;
    }
    return 0;
}

static int encode_raw(encoder *e, const char *text, size_t length, qkv_error *err);

/* Places in normalised text are not those of the text, so such a stretch has no special tokens. */
static int encode_stretch_plainly(encoder *e, const char *text, size_t length, qkv_error *err) {
    const int before = e->parse_special;
    if (e->vocab->forms.count > 0 && before && has_plain_name(e, text, length))
        e->parse_special = 0;
    const int status = encode_raw(e, text, length, err);
    e->parse_special = before;
    return status;
}

static int encode_raw(encoder *e, const char *text, size_t length, qkv_error *err) {
    if (e->vocab->normalizer) {
        const qkv_stretch_place place = text != e->begin ? QKV_STRETCH_LATER
                                        : e->continues   ? QKV_STRETCH_CONTINUES
                                                         : QKV_STRETCH_FIRST;
        int status = qkv_normalizer_run(e->vocab->normalizer, &e->normalized, text, length, place,
                                        &e->budget, err);
        if (status != QKV_OK) return status;
        text = e->normalized.data;
        length = e->normalized.length;
        if (length == 0) return QKV_OK;
    }
    return e->vocab->forms.count > 0 ? cut_specials(e, text, length, 1, encode_words, err)
                                     : encode_words(e, text, length, err);
}

static int add(encoder *e, int wanted, int32_t id, qkv_error *err) {
    return wanted ? qkv_token_list_push(&e->work.out, id, err) : QKV_OK;
}

int qkv_vocab_tokenize(const qkv_vocab *vocab, int32_t **tokens, size_t *n_tokens, const char *text,
                       size_t length, unsigned flags, qkv_error *err) {
    return qkv_vocab_tokenize_around(vocab, tokens, n_tokens, text, length, flags, NULL, 0, err);
}

int qkv_vocab_tokenize_around(const qkv_vocab *vocab, int32_t **tokens, size_t *n_tokens,
                              const char *text, size_t length, unsigned flags,
                              const qkv_vocab_span *plain, size_t n_plain, qkv_error *err) {
    *tokens = NULL;
    *n_tokens = 0;
    int special = (flags & QKV_TOKENIZE_ADD_SPECIAL) != 0;
    if (length > QKV_VOCAB_MAX_TEXT)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "the text has %zu bytes, more than %zu", length,
                        (size_t)QKV_VOCAB_MAX_TEXT);
    encoder e = {.vocab = vocab,
                 .begin = text,
                 .parse_special = (flags & QKV_TOKENIZE_PARSE_SPECIAL) != 0,
                 .continues = (flags & QKV_TOKENIZE_CONTINUES) != 0,
                 .plain = plain,
                 .n_plain = n_plain,
                 .all_plain = plain,
                 .n_all_plain = n_plain,
                 .budget = qkv_match_budget_for(length)};
    /* Never NULL on success, not even for no tokens at all. */
    e.work.out = (qkv_token_list){.ids = qkv_calloc(8, sizeof(int32_t)), .capacity = 8};
    if (!e.work.out.ids) return qkv_fail_memory(err);
    int status = add(&e, special && vocab->add_bos, vocab->bos, err);
    if (status == QKV_OK) status = cut_specials(&e, text, length, 0, encode_stretch_plainly, err);
    if (status == QKV_OK) status = add(&e, special && vocab->add_eos, vocab->eos, err);
    if (status == QKV_OK) status = add(&e, special && vocab->add_sep, vocab->sep, err);
    qkv_merger_release(&e.work.merger);
    qkv_text_release(&e.work.scratch);
    qkv_text_release(&e.normalized);
    if (status != QKV_OK) {
        free(e.work.out.ids);
        return status;
    }
    *tokens = e.work.out.ids;
    *n_tokens = e.work.out.count;
    return QKV_OK;
}
