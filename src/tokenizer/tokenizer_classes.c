/*
 * Directories without tokenizer.json: what transformers makes of the files that its tokeniser classes
 * had before.
 *
 * The class (tokenizer_config.json, else the usual one of the architecture) decides what is done to
 * text; the parts are put together here as a tokenizer.json would have them. Classes that are not in
 * the table leave the directory without a tokeniser.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "tokenizer/sentencepiece_file.h"
#include "tokenizer/tokenizer_json_internal.h"
#include "tokenizer/tokenizer_spm.h"

#define QWEN2_WORDS                                                                                \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+"      \
    "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* A setting of the configuration that is true or false. */
static int setting(const json_t *config, const char *key, int fallback) {
    const json_t *value = json_object_get(config, key);
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

static const char *role_text(const json_t *config, const char *role) {
    const json_t *value = json_object_get(config, role);
    if (json_is_object(value)) value = json_object_get(value, "content");
    return json_is_string(value) ? json_string_value(value) : "";
}

/* ---- the parts, by class ---- */

typedef struct part_trees {
    json_t *model, *normalizer, *pre; /* NULL: none */
} part_trees;

static int make_gpt2(part_trees *parts, qkv_tokenizer_json *reader, qkv_error *err) {
    (void)err;
    parts->model = json_pack("{s:s}", "type", "BPE");
    parts->pre = json_pack("{s:s, s:b}", "type", "ByteLevel", "add_prefix_space",
                           setting(reader->config, "add_prefix_space", 0));
    return QKV_OK;
}

static int make_qwen2(part_trees *parts, qkv_tokenizer_json *reader, qkv_error *err) {
    (void)reader;
    (void)err;
    parts->model = json_pack("{s:s}", "type", "BPE");
    parts->normalizer = json_pack("{s:s}", "type", "NFC");
    parts->pre =
        json_pack("{s:s, s:[{s:s, s:{s:s}, s:s}, {s:s, s:b, s:b}]}", "type", "Sequence",
                  "pretokenizers", "type", "Split", "pattern", "Regex", QWEN2_WORDS, "behavior",
                  "Isolated", "type", "ByteLevel", "add_prefix_space", 0, "use_regex", 0);
    return QKV_OK;
}

static int make_bert(part_trees *parts, qkv_tokenizer_json *reader, qkv_error *err) {
    (void)err;
    const int lower = setting(reader->config, "do_lower_case", 1);
    reader->wraps = 1;
    parts->model = json_pack("{s:s, s:s}", "type", "WordPiece", "unk_token",
                             role_text(reader->config, "unk_token"));
    parts->normalizer =
        json_pack("{s:s, s:b, s:b, s:b}", "type", "BertNormalizer", "handle_chinese_chars",
                  setting(reader->config, "tokenize_chinese_chars", 1), "strip_accents",
                  setting(reader->config, "strip_accents", lower), "lowercase", lower);
    parts->pre = json_pack("{s:s}", "type", "BertPreTokenizer");
    return QKV_OK;
}

/* "legacy" puts the mark before every stretch between special tokens, otherwise it goes before the
 * whole text only. */
static int make_llama(part_trees *parts, qkv_tokenizer_json *reader, qkv_error *err) {
    qkv_pieces_facts facts;
    int status = qkv_pieces_read_facts(&facts, reader->pieces, err);
    if (status != QKV_OK) return status;
    if (!facts.is_bpe || facts.has_charsmap) {
        json_decref(facts.roles);
        return QKV_OK;
    }
    const int prefix = facts.adds_prefix && setting(reader->config, "add_prefix_space", 1);
    const int legacy = setting(reader->config, "legacy", 1);
    if (qkv_json_put_missing(reader->config, facts.roles) != 0) {
        json_decref(facts.roles);
        return qkv_fail_memory(err);
    }
    parts->model =
        json_pack("{s:s, s:s, s:b, s:b}", "type", "BPE", "unk_token",
                  role_text(facts.roles, "unk_token"), "fuse_unk", 1, "byte_fallback", 1);
    if (legacy || !prefix) {
        json_t *steps = json_array();
        if (prefix)
            qkv_json_push(steps,
                          json_pack("{s:s, s:s}", "type", "Prepend", "prepend", QKV_SPM_SPACE));
        qkv_json_push(steps, json_pack("{s:s, s:{s:s}, s:s}", "type", "Replace", "pattern",
                                       "String", " ", "content", QKV_SPM_SPACE));
        parts->normalizer = json_pack("{s:s, s:o}", "type", "Sequence", "normalizers", steps);
    } else {
        parts->pre = json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace", "replacement",
                               QKV_SPM_SPACE, "prepend_scheme", "first", "split", 0);
    }
    reader->by_score = 1;
    json_decref(facts.roles);
    return QKV_OK;
}

/* ---- classes ---- */

#define ENDOFTEXT "\"<|endoftext|>\""

static const struct tokenizer_class {
    const char *names, *architectures; /* "|a|b|" */
    enum qkv_tokenizer_file files[2];  /* the second may be the first again */
    const char *defaults;              /* of the configuration, as JSON */
    int (*make)(part_trees *parts, qkv_tokenizer_json *reader, qkv_error *err);
} classes[] = {
    {"|GPT2Tokenizer|CodeGenTokenizer|",
     "|gpt2|starcoder2|phi2|",
     {QKV_TOKENIZER_FILE_VOCAB_JSON, QKV_TOKENIZER_FILE_MERGES},
     "{\"bos_token\":" ENDOFTEXT ",\"eos_token\":" ENDOFTEXT ",\"unk_token\":" ENDOFTEXT "}",
     make_gpt2},
    {"|Qwen2Tokenizer|",
     "|qwen2|qwen3|qwen3moe|",
     {QKV_TOKENIZER_FILE_VOCAB_JSON, QKV_TOKENIZER_FILE_MERGES},
     "{\"eos_token\":" ENDOFTEXT ",\"unk_token\":" ENDOFTEXT ",\"pad_token\":" ENDOFTEXT "}",
     make_qwen2},
    {"|BertTokenizer|DistilBertTokenizer|",
     "|bert|",
     {QKV_TOKENIZER_FILE_VOCAB_TXT, QKV_TOKENIZER_FILE_VOCAB_TXT},
     "{\"unk_token\":\"[UNK]\",\"sep_token\":\"[SEP]\",\"pad_token\":\"[PAD]\","
     "\"cls_token\":\"[CLS]\",\"mask_token\":\"[MASK]\"}",
     make_bert},
    {"|LlamaTokenizer|GemmaTokenizer|InternLM2Tokenizer|",
     "|llama|gemma|gemma2|gemma3|phi3|",
     {QKV_TOKENIZER_FILE_PIECES, QKV_TOKENIZER_FILE_PIECES},
     "{\"add_bos_token\":true,\"add_eos_token\":false}",
     make_llama},
};

/* "|a|b|" holds a word of so many letters. */
static int holds(const char *list, const char *word, size_t length) {
    for (const char *at = list; at && *at; at = strchr(at + 1, '|')) {
        if (strncmp(at + 1, word, length) == 0 && at[1 + length] == '|') return 1;
    }
    return 0;
}

/* Of the class, or where none is named, of the architecture. NULL: not known. */
static const struct tokenizer_class *find_class(const json_t *config, const char *architecture) {
    const char *name = json_string_value(json_object_get(config, "tokenizer_class"));
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const char *word = name ? name : architecture;
        size_t length = strlen(word);
        if (name && length > 4 && strcmp(name + length - 4, "Fast") == 0) length -= 4;
        if (holds(name ? classes[i].names : classes[i].architectures, word, length))
            return &classes[i];
    }
    return NULL;
}

/* ---- files ---- */

static int dump(qkv_text *out, json_t *tree, qkv_json_span *part, qkv_error *err) {
    if (!tree) return QKV_OK;
    char *text = qkv_json_dump(tree, JSON_ENCODE_ANY);
    if (text) qkv_text_puts(out, text);
    free(text);
    if (!text || out->failed) return qkv_fail_memory(err);
    *part = (qkv_json_span){out->data, out->length};
    return QKV_OK;
}

static int make_parts(qkv_older_files *older, qkv_tokenizer_json *reader,
                      const struct tokenizer_class *class, qkv_error *err) {
    part_trees parts = {0};
    json_t *defaults = qkv_json_parse(class->defaults, strlen(class->defaults), 0, NULL);
    if (!defaults || qkv_json_put_missing(reader->config, defaults)) return qkv_fail_memory(err);
    json_decref(defaults);
    int status = class->make(&parts, reader, err);
    if (status == QKV_OK) status = dump(&older->model, parts.model, &reader->model, err);
    if (status == QKV_OK)
        status = dump(&older->normalizer, parts.normalizer, &reader->normalizer, err);
    if (status == QKV_OK) status = dump(&older->pre, parts.pre, &reader->pre, err);
    json_decref(parts.model);
    json_decref(parts.normalizer);
    json_decref(parts.pre);
    return status;
}

static int map_files(qkv_older_files *older, const struct tokenizer_class *class, const char *dir,
                     qkv_error *err) {
    qkv_text second = {0};
    int status = qkv_tokenizer_map_file(&older->maps[0], &older->path, dir, class->files[0], err);
    if (status == QKV_OK)
        status = qkv_tokenizer_map_file(&older->maps[1], &second, dir, class->files[1], err);
    qkv_text_release(&second);
    return status;
}

/* Whose the bytes are. */
static void assign(qkv_tokenizer_json *reader, enum qkv_tokenizer_file file,
                   const qkv_mapping *map) {
    const qkv_json_span bytes = {(const char *)map->data, map->size};
    if (file == QKV_TOKENIZER_FILE_VOCAB_JSON)
        reader->vocab = qkv_json_whole(bytes.text, bytes.length);
    if (file == QKV_TOKENIZER_FILE_MERGES) reader->merge_lines = bytes;
    if (file == QKV_TOKENIZER_FILE_VOCAB_TXT) reader->vocab_lines = bytes;
    if (file == QKV_TOKENIZER_FILE_PIECES) reader->pieces = bytes;
    reader->files |= 1U << file;
}

/* One that cannot be read is there, too. */
static int has_file(const char *dir, enum qkv_tokenizer_file file) {
    qkv_mapping map = {0};
    qkv_text path = {0};
    const int status = qkv_tokenizer_map_file(&map, &path, dir, file, NULL);
    const int there = status != QKV_OK || map.data;
    qkv_mapping_close(&map);
    qkv_text_release(&path);
    return there;
}

int qkv_older_files_open(qkv_older_files *older, qkv_tokenizer_json *reader, const char *dir,
                         const char *architecture, qkv_error *err) {
    *older = (qkv_older_files){0};
    int any = 0;
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        any |= has_file(dir, classes[i].files[0]);
    if (!any) return QKV_OK;
    int status = qkv_json_read_config(reader, dir, err);
    const struct tokenizer_class *class =
        status == QKV_OK ? find_class(reader->config, architecture) : NULL;
    if (class) status = map_files(older, class, dir, err);
    if (status == QKV_OK && class && older->maps[0].data && older->maps[1].data) {
        reader->path = older->path.data;
        for (int i = 0; i < 2; i++) assign(reader, class->files[i], &older->maps[i]);
        status = make_parts(older, reader, class, err);
    }
    if (!reader->model.text) reader->files = 0;
    return status;
}

void qkv_older_files_close(qkv_older_files *older) {
    for (int i = 0; i < 2; i++) qkv_mapping_close(&older->maps[i]);
    qkv_text_release(&older->path);
    qkv_text_release(&older->model);
    qkv_text_release(&older->normalizer);
    qkv_text_release(&older->pre);
}
