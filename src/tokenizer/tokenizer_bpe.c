/*
 * Byte-level BPE, tokenizer.ggml.model = "gpt2".
 *
 * Token texts spell bytes as printable characters: a byte that is a printable Latin-1 character
 * stands for itself, the others are U+0100 onwards in order. The text is cut into words
 * (pretokenizer.c); inside each, neighbouring symbols merge in the order of the merge list
 * (tokenizer_ranks.c).
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tokenizer/tokenizer_ranks.h"
#include "tokenizer/vocab_internal.h"

#define REPLACEMENT 0xFFFDu /* character */
#define PRE_KEY "tokenizer.ggml.pre"
#define WHOLE_WORDS_KEY "qkv.tokenizer.ignore_merges"

enum { MAX_SPELLING = 0x144 }; /* one past the highest code point that spells a byte */

typedef struct bpe_state {
    qkv_string_map ids;       /* all token texts */
    int32_t byte_tokens[256]; /* or QKV_NO_TOKEN */
    uint16_t spelling[256];   /* the code point that spells each byte */
    qkv_merge_ranks ranks;
    int whole_words; /* a word that is a token is taken whole, whatever the merges say */
} bpe_state;

static void free_state(void *state) {
    bpe_state *bpe = state;
    qkv_string_map_release(&bpe->ids);
    qkv_merge_ranks_release(&bpe->ranks);
    free(bpe);
}

static int spells_itself(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

/* The code point that spells each byte. */
static void byte_spellings(uint16_t spelling[256]) {
    uint16_t next = 0x100;
    for (unsigned i = 0; i < 256; i++) spelling[i] = spells_itself(i) ? (uint16_t)i : next++;
}

/* The byte that a code point spells, or -1. */
static int spelled_byte(uint32_t code) {
    if (code < 0x100) return spells_itself(code) ? (int)code : -1;
    if (code >= MAX_SPELLING) return -1;
    /* U+0100 to U+0120 are bytes 0x00 to 0x20, then 0x7f to 0xa0, and 0xad. */
    if (code <= 0x120) return (int)code - 0x100;
    return code == MAX_SPELLING - 1 ? 0xad : (int)code - 0x121 + 0x7f;
}

/* Tokens that text alone may become. */
static int is_ordinary(const qkv_vocab_token *token) {
    return token->type != QKV_TOKEN_CONTROL && token->type != QKV_TOKEN_UNKNOWN &&
           token->type != QKV_TOKEN_USER_DEFINED;
}

/* Of equal texts an ordinary token goes before a special one. */
static void index_tokens(const qkv_vocab *vocab, bpe_state *bpe) {
    for (int special = 0; special < 2; special++) {
        for (int32_t i = 0; i < vocab->n_tokens; i++) {
            const qkv_vocab_token *token = &vocab->tokens[i];
            if (token->length == 0 || is_ordinary(token) == special) continue;
            qkv_string_map_add(&bpe->ids, token->text, token->length, i);
        }
    }
    byte_spellings(bpe->spelling);
    for (unsigned i = 0; i < 256; i++) {
        char text[4];
        int32_t id = qkv_string_map_find(&bpe->ids, text, qkv_utf8_encode(bpe->spelling[i], text));
        if (id != QKV_NO_TOKEN && !is_ordinary(&vocab->tokens[id])) id = QKV_NO_TOKEN;
        bpe->byte_tokens[i] = id;
    }
}

static int load_words(qkv_vocab *vocab, bpe_state *bpe, const qkv_gguf *file, qkv_error *err) {
    const char *name = "default";
    int found = qkv_gguf_string(file, PRE_KEY, &name, err);
    if (found < 0) return found;
    if (name[0] == '\0') name = "default";
    if (vocab->pre) {
        name = "patterns";
    } else {
        int status = qkv_pretokenizer_new(&vocab->pre, name, file->path, err);
        if (status != QKV_OK) return status;
    }
    bpe->whole_words = qkv_pretokenizer_whole_words(vocab->pre);
    found = qkv_gguf_bool(file, WHOLE_WORDS_KEY, &bpe->whole_words, err);
    if (found < 0) return found;
    if (qkv_pretokenizer_adds_bos(vocab->pre) && vocab->bos != QKV_NO_TOKEN &&
        gguf_find_key(file->parts[0].header, "tokenizer.ggml.add_bos_token") < 0)
        vocab->add_bos = 1;
    qkv_text label = {0};
    qkv_text_printf(&label, "bpe (%s)", name);
    vocab->label = label.data;
    return label.failed ? qkv_fail_memory(err) : QKV_OK;
}

static int load(qkv_vocab *vocab, const qkv_gguf *file, qkv_error *err) {
    bpe_state *bpe = qkv_calloc(1, sizeof *bpe);
    vocab->state = bpe;
    vocab->add_space_prefix = 0; /* bytes in, the same bytes out */
    if (!bpe || !qkv_string_map_init(&bpe->ids, (size_t)vocab->n_tokens))
        return qkv_fail_memory(err);
    index_tokens(vocab, bpe);
    int status = load_words(vocab, bpe, file, err);
    return status == QKV_OK ? qkv_merge_ranks_load(&bpe->ranks, &bpe->ids, file, err) : status;
}

/* The token that the whole word is, or QKV_NO_TOKEN. */
static int32_t whole_word(const qkv_vocab *vocab, qkv_text *spelled, const char *word,
                          size_t length) {
    const bpe_state *bpe = vocab->state;
    spelled->length = 0;
    for (size_t i = 0; i < length; i++) {
        char text[4];
        size_t n = qkv_utf8_encode(bpe->spelling[(unsigned char)word[i]], text);
        qkv_text_append(spelled, text, n);
    }
    if (spelled->failed) return QKV_NO_TOKEN; /* reported by the caller */
    int32_t id = qkv_string_map_find(&bpe->ids, spelled->data, spelled->length);
    return id != QKV_NO_TOKEN && is_ordinary(&vocab->tokens[id]) ? id : QKV_NO_TOKEN;
}

/* A malformed byte that has no token: in a file of text it could not stand. */
static int is_lost(const bpe_state *bpe, const char *word, size_t length) {
    uint32_t code;
    return bpe->byte_tokens[(unsigned char)word[0]] == QKV_NO_TOKEN &&
           qkv_utf8_decode(word, length, &code) == 1 && code == REPLACEMENT;
}

/* The word with U+FFFD for every such byte, as programs write it that read text only; it is the same
 * word where there is none. */
static int replace_lost(const bpe_state *bpe, qkv_text *out, const char **word, size_t *length,
                        qkv_error *err) {
    size_t lost = 0;
    while (lost < *length && !is_lost(bpe, *word + lost, *length - lost)) lost++;
    if (lost == *length) return QKV_OK;
    out->length = 0;
    for (size_t i = 0; i < *length; i++) {
        if (is_lost(bpe, *word + i, *length - i))
            qkv_text_puts(out, "\xef\xbf\xbd");
        else
            qkv_text_append(out, *word + i, 1);
    }
    if (out->failed) return qkv_fail_memory(err);
    *word = out->data;
    *length = out->length;
    return QKV_OK;
}

static int encode(const qkv_vocab *vocab, qkv_encoding *work, const char *word, size_t length,
                  qkv_error *err) {
    const bpe_state *bpe = vocab->state;
    qkv_merger *merger = &work->merger;
    int status = QKV_OK;
    if (bpe->whole_words) {
        int32_t id = whole_word(vocab, &work->scratch, word, length);
        if (work->scratch.failed) return qkv_fail_memory(err);
        if (id != QKV_NO_TOKEN) return qkv_token_list_push(&work->out, id, err);
    }
    if (vocab->unknown == QKV_NO_TOKEN)
        status = replace_lost(bpe, &work->scratch, &word, &length, err);
    qkv_merger_clear(merger);
    for (size_t i = 0; i < length && status == QKV_OK; i++)
        status =
            qkv_merger_add(merger, (uint32_t)i, 1, bpe->byte_tokens[(unsigned char)word[i]], err);
    if (status == QKV_OK) status = qkv_merger_run(merger, qkv_merge_ranks_find, &bpe->ranks, err);
    for (int32_t i = 0; i >= 0 && status == QKV_OK; i = merger->symbols[i].next) {
        const qkv_symbol *symbol = &merger->symbols[i];
        status = symbol->id != QKV_NO_TOKEN
                     ? qkv_token_list_push(&work->out, symbol->id, err)
                     : qkv_vocab_push_unknown(vocab, &work->out, word[symbol->start], err);
    }
    return status;
}

/* Characters that spell no byte are kept as they are: such tokens were added as plain text. */
static void decode(const qkv_vocab_token *token, qkv_text *out) {
    if (token->type == QKV_TOKEN_USER_DEFINED) {
        qkv_text_append(out, token->text, token->length);
        return;
    }
    for (size_t i = 0; i < token->length;) {
        uint32_t code;
        size_t used = qkv_utf8_decode(token->text + i, token->length - i, &code);
        int byte = spelled_byte(code);
        const char single = (char)byte;
        qkv_text_append(out, byte < 0 ? token->text + i : &single, byte < 0 ? used : 1);
        i += used;
    }
}

const qkv_tokenizer qkv_tokenizer_bpe = {
    .model = "gpt2",
    .default_bos = QKV_NO_TOKEN,
    .default_eos = QKV_NO_TOKEN,
    .default_unknown = QKV_NO_TOKEN,
    .default_sep = QKV_NO_TOKEN,
    .add_bos = 0,
    .add_eos = 0,
    .add_space_prefix = 0,
    .load = load,
    .free_state = free_state,
    .encode = encode,
    .decode = decode,
};
