/*
 * The files of a tokeniser besides tokenizer.json: tokens that those beside it add, and what stands in
 * its place in older directories. Expected ids are those of transformers.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "gguf.h"
#include "support/scratch.h"
#include "support/small_tokenizer.h"
#include "tokenizer/tokenizer_files.h"

/* A directory under test. Single quotes stand for double ones in files of JSON. */
static void clear(void) {
    for (int i = 0; i < QKV_TOKENIZER_N_FILES; i++)
        unlink(scratch_path(qkv_tokenizer_file_name((enum qkv_tokenizer_file)i)));
}

static void put(const char *name, const char *text) {
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = strstr(name, ".json") ? copy : copy + strlen(copy); *c; c++) {
        if (*c == '\'') *c = '"';
    }
    scratch_write(name, copy, strlen(copy));
    free(copy);
}

typedef struct directory {
    struct gguf_context *meta;
    qkv_vocab *vocab; /* NULL: none */
    unsigned files;
} directory;

/* Of a model of that architecture with so many rows of embeddings; 0: not said. */
static int try_open(directory *d, const char *architecture, uint32_t n_rows, qkv_error *err) {
    *d = (directory){.meta = gguf_init_empty()};
    gguf_set_val_str(d->meta, "general.architecture", architecture);
    qkv_text key = {0};
    qkv_text_printf(&key, "%s.vocab_size", architecture);
    if (n_rows) gguf_set_val_u32(d->meta, key.data, n_rows);
    qkv_text_release(&key);
    int status = qkv_tokenizer_read(d->meta, scratch_path("."), &d->files, err);
    if (status != QKV_OK) return status;
    d->meta = written_and_read(d->meta);
    return qkv_vocab_load(&d->vocab, d->meta, "tokenizer", err);
}

static directory open_files(const char *architecture, uint32_t n_rows) {
    directory d;
    qkv_error err = {0};
    if (try_open(&d, architecture, n_rows, &err) != QKV_OK) fail_msg("%s", err.message);
    return d;
}

static void close_files(directory *d) {
    qkv_vocab_free(d->vocab);
    gguf_free(d->meta);
}

static void check_ids(const directory *d, const char *text, unsigned flags, const char *expected) {
    qkv_error err = {0};
    int32_t *ids = NULL;
    size_t n = 0;
    qkv_text got = {0};
    assert_non_null(d->vocab);
    if (qkv_vocab_tokenize(d->vocab, &ids, &n, text, strlen(text), flags, &err) != QKV_OK)
        fail_msg("'%s': %s", text, err.message);
    qkv_text_puts(&got, "");
    for (size_t i = 0; i < n; i++) qkv_text_printf(&got, i ? " %d" : "%d", (int)ids[i]);
    if (strcmp(got.data, expected) != 0)
        fail_msg("'%s' became %s, expected %s", text, got.data, expected);
    qkv_text_release(&got);
    free(ids);
}

static void refuse(const char *architecture, const char *part) {
    directory d;
    qkv_error err = {0};
    int status = try_open(&d, architecture, 0, &err);
    if (status == QKV_OK) fail_msg("was accepted; expected '%s'", part);
    if (!strstr(err.message, part)) fail_msg("'%s' does not hold '%s'", err.message, part);
    close_files(&d);
}

static int used(const directory *d, enum qkv_tokenizer_file file) {
    return (int)(d->files >> file & 1);
}

/* ---- beside tokenizer.json ---- */

/* a b c x -  with ids 1 to 5, "hole" 6, "xx" 7 */
#define MODEL                                                                                      \
    "{'type':'BPE','unk_token':'<unk>','vocab':{'<unk>':0,'a':1,'b':2,'c':3,'x':4,'-':5,"          \
    "'[hole]':6,'xx':7,' ':8},'merges':['x x']}"
#define PLAIN(added) FILE_OF(added, "null", "null", "null", MODEL)

static directory with_config(const char *json, const char *config, uint32_t n_rows) {
    clear();
    put("tokenizer.json", json);
    put("tokenizer_config.json", config);
    return open_files("llama", n_rows);
}

/* New tokens get the ids that are stated. */
static void adds_tokens(void **state) {
    (void)state;
    directory d = with_config(PLAIN(""),
                              "{'added_tokens_decoder':{'10':{'content':'<b>','special':true},"
                              "'9':{'content':'<a>','special':false,'lstrip':true},"
                              "'12':{'content':'<c>','special':true}}}",
                              0);
    check_ids(&d, "a <a><b><c>", PARSE, "1 9 10 12");
    check_ids(&d, "<a>b", 0, "9 2");
    check_ids(&d, "<b>b", 0, "0 2 0 2");
    assert_int_equal(qkv_vocab_size(d.vocab), 13);
    close_files(&d);
}

/* An ordinary token makes room for the one that is stated in its place. */
static void replaces_placeholders(void **state) {
    (void)state;
    directory d = with_config(
        PLAIN(""), "{'added_tokens_decoder':{'6':{'content':'<im>','special':true}}}", 0);
    check_ids(&d, "a<im>b", PARSE, "1 6 2");
    assert_int_equal(qkv_vocab_size(d.vocab), 9);
    close_files(&d);
}

/* Properties of a token that is there are those of the configuration; its id stays. */
static void overrides_properties(void **state) {
    (void)state;
    const char *json = PLAIN("{'id':9,'content':'<a>','special':false}");
    directory d = with_config(json, "{}", 0);
    check_ids(&d, "<a> b", 0, "9 8 2");
    close_files(&d);
    d = with_config(
        json, "{'added_tokens_decoder':{'9':{'content':'<a>','special':true,'rstrip':true}}}", 0);
    check_ids(&d, "<a> b", PARSE, "9 2");
    check_ids(&d, "<a> b", 0, "0 1 0 8 2");
    close_files(&d);
    d = with_config(json, "{'added_tokens_decoder':{'30':{'content':'xx','special':true}}}", 0);
    check_ids(&d, "axxa", PARSE, "1 7 1");
    check_ids(&d, "xxx", PARSE, "7 4");
    assert_int_equal(qkv_vocab_size(d.vocab), 10);
    close_files(&d);
    /* Where another added token has the id, the next one after all. */
    d = with_config(json, "{'added_tokens_decoder':{'9':{'content':'<b>','special':true}}}", 0);
    check_ids(&d, "<a><b>", PARSE, "9 10");
    close_files(&d);
}

/* Tokens with a role and those listed as special are tokens, with the next ids. */
static void names_special_tokens(void **state) {
    (void)state;
    directory d = with_config(PLAIN(""),
                              "{'pad_token':'<pad>','eos_token':{'content':'xx','lstrip':true},"
                              "'additional_special_tokens':['<i>',{'content':'<pad>'}],"
                              "'extra_special_tokens':{'image':'<e>'}}",
                              0);
    check_ids(&d, "<pad>a xx<i><e>", PARSE, "9 1 7 10 11");
    close_files(&d);
}

/* Before the configuration listed them, two other files did. */
static void reads_older_lists(void **state) {
    (void)state;
    clear();
    put("tokenizer.json", PLAIN("{'id':9,'content':'<a>','special':true}"));
    put("tokenizer_config.json", "{'bos_token':'a','add_bos_token':true}");
    directory d = open_files("llama", 0);
    check_ids(&d, "b", ADD, "1 2");
    assert_false(used(&d, QKV_TOKENIZER_FILE_ROLES) || used(&d, QKV_TOKENIZER_FILE_ADDED));
    close_files(&d);
    put("special_tokens_map.json", "{'bos_token':'c','additional_special_tokens':['<s>']}");
    put("added_tokens.json", "{'<a>':9,'<s>':11,'<t>':10}");
    d = open_files("llama", 0);
    check_ids(&d, "b", ADD, "3 2");
    check_ids(&d, "<a><s><t>", PARSE, "9 11 10");
    check_ids(&d, "<t>", 0, "10");
    check_ids(&d, "<s>", 0, "0 0 0");
    assert_true(used(&d, QKV_TOKENIZER_FILE_ROLES) && used(&d, QKV_TOKENIZER_FILE_ADDED));
    close_files(&d);
    /* They say nothing where it does. */
    put("tokenizer_config.json",
        "{'bos_token':'a','add_bos_token':true,'added_tokens_decoder':{}}");
    d = open_files("llama", 0);
    check_ids(&d, "b", ADD, "1 2");
    assert_int_equal(qkv_vocab_size(d.vocab), 10);
    close_files(&d);
    /* Files that repeat what is known anyway do not count. */
    put("tokenizer_config.json", "{'bos_token':'a'}");
    put("special_tokens_map.json", "{'bos_token':'a'}");
    put("added_tokens.json", "{'<a>':9}");
    d = open_files("llama", 0);
    assert_false(used(&d, QKV_TOKENIZER_FILE_ROLES) || used(&d, QKV_TOKENIZER_FILE_ADDED));
    close_files(&d);
    put("added_tokens.json", "{'<a>':'nine'}");
    refuse("llama", "added_tokens.json");
    put("added_tokens.json", "[]");
    refuse("llama", "added_tokens.json");
}

/* A token that was added without a row of embeddings is text; the vocabulary itself must fit. */
static void drops_tokens_without_rows(void **state) {
    (void)state;
    const char *config = "{'added_tokens_decoder':{'9':{'content':'<a>','special':true},"
                         "'10':{'content':'<b>','special':true}}}";
    directory d = with_config(PLAIN(""), config, 10);
    check_ids(&d, "<a><b>b", PARSE, "9 0 2 0 2");
    assert_int_equal(qkv_vocab_size(d.vocab), 10);
    close_files(&d);
    d = with_config(PLAIN(""), config, 8);
    assert_int_equal(qkv_vocab_size(d.vocab), 9);
    close_files(&d);
}

/* The class of BERT takes its settings from the configuration. */
static void overrides_bert(void **state) {
    (void)state;
    const char *json =
        FILE_OF("", "{'type':'BertNormalizer','lowercase':false}", "{'type':'BertPreTokenizer'}",
                "null", "{'type':'WordPiece','unk_token':'?','vocab':{'?':0,'a':1,'A':2}}");
    directory d = with_config(json, "{'do_lower_case':true}", 0);
    check_ids(&d, "a A", 0, "1 2");
    close_files(&d);
    d = with_config(json, "{'do_lower_case':true,'tokenizer_class':'BertTokenizer'}", 0);
    check_ids(&d, "a A", 0, "1 1");
    close_files(&d);
}

static void refuses_bad_lists(void **state) {
    (void)state;
    static const char *const bad[] = {"{'x':{'content':'<a>'}}", "{'-1':{'content':'<a>'}}",
                                      "{'9':{'text':'<a>'}}", "{'9':'<a>'}",
                                      "{'99999999999':{'content':'<a>'}}"};
    clear();
    put("tokenizer.json", PLAIN(""));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char config[200];
        snprintf(config, sizeof config, "{'added_tokens_decoder':%s}", bad[i]);
        put("tokenizer_config.json", config);
        refuse("llama", "no number or no content");
    }
    put("tokenizer_config.json", "{'added_tokens_decoder':{'9':{'content':'<a>','special':1}}}");
    refuse("llama", "special");
}

/* ---- in its place ---- */

/* \u0120 is the space; "12" merges unless digits are cut apart. */
#define BYTE_VOCAB                                                                                 \
    "{'a':0,'b':1,'\\u0120':2,'ab':3,'\\u0120a':4,'1':5,'12':6,'2':7,'<|endoftext|>':8,"           \
    "'\\u00c3':9,'\\u00a9':10,'\\u00c3\\u00a9':11,'e':12,'\\u00cc':13,'\\u0123':14}"
#define BYTE_MERGES "#version: 0.2\na b\n\xc4\xa0 a\r\n1 2\n\n\xc3\x83 \xc2\xa9"

static void put_merges(const char *config) {
    clear();
    put("vocab.json", BYTE_VOCAB);
    put("merges.txt", BYTE_MERGES);
    if (config) put("tokenizer_config.json", config);
}

static void reads_vocab_and_merges(void **state) {
    (void)state;
    /* By the architecture, and by the class, which goes before it. */
    put_merges(NULL);
    directory d = open_files("gpt2", 0);
    check_ids(&d, "ab ab12\xc3\xa9", 0, "3 2 3 6 11");
    check_ids(&d, "ab<|endoftext|>", PARSE | ADD, "3 8");
    close_files(&d);
    put_merges("{'tokenizer_class':'GPT2Tokenizer','add_prefix_space':true,'add_bos_token':true}");
    d = open_files("qwen2", 0);
    check_ids(&d, "ab12", ADD, "8 2 3 6");
    close_files(&d);
    /* Qwen 2 composes characters and cuts digits apart. */
    put_merges("{'tokenizer_class':'Qwen2TokenizerFast',"
               "'added_tokens_decoder':{'15':{'content':'<|im|>','special':true}}}");
    d = open_files("llama", 0);
    check_ids(&d, "ab12e\xcc\x81<|im|>", PARSE | ADD, "3 5 7 11 15");
    assert_true(used(&d, QKV_TOKENIZER_FILE_VOCAB_JSON) && used(&d, QKV_TOKENIZER_FILE_MERGES) &&
                used(&d, QKV_TOKENIZER_FILE_CONFIG));
    close_files(&d);
}

/* What is uncertain leaves the directory without a tokeniser, not without a model. */
static void leaves_others_alone(void **state) {
    (void)state;
    put_merges("{'tokenizer_class':'SomeOtherTokenizer'}");
    directory d = open_files("gpt2", 0);
    assert_null(d.vocab);
    assert_int_equal(d.files, 0);
    close_files(&d);
    put_merges(NULL);
    unlink(scratch_path("merges.txt"));
    d = open_files("gpt2", 0);
    assert_null(d.vocab);
    close_files(&d);
    clear();
    put("tokenizer.model", "IQ== 0\nIg== 1\n"); /* that of another library */
    d = open_files("llama", 0);
    assert_null(d.vocab);
    close_files(&d);
    clear();
    put("tokenizer_config.json", "{");
    d = open_files("gpt2", 0);
    assert_null(d.vocab);
    close_files(&d);
}

static void refuses_bad_merges(void **state) {
    (void)state;
    static const char *const bad[] = {"a\n", "a b a\n", " b\n", "a \n",
                                      "#version: 0.2\n#version x y"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_merges(NULL);
        put("merges.txt", bad[i]);
        refuse("gpt2", "of merges.txt is not two tokens");
    }
    put("merges.txt", "a 9\n");
    refuse("gpt2", "merge 0");
    put("vocab.json", "{'a':}");
    refuse("gpt2", "vocab.json");
}

static void reads_lines_of_words(void **state) {
    (void)state;
    static const char vocab[] =
        "[PAD]\n[UNK]\n[CLS]\r\n[SEP]\nthe\nol\n##d\n\nthe\n\xc3\xa9\ne\nThe";
    clear();
    put("vocab.txt", vocab);
    directory d = open_files("bert", 0);
    /* Of equal lines the last one counts. */
    check_ids(&d, "The old \xc3\xa9", ADD, "2 8 5 6 10 3");
    check_ids(&d, "[SEP]xyz", PARSE, "3 1");
    close_files(&d);
    put("tokenizer_config.json", "{'do_lower_case':false}");
    d = open_files("bert", 0);
    check_ids(&d, "The the \xc3\xa9", ADD, "2 11 8 9 3");
    close_files(&d);
    put("tokenizer_config.json", "{'strip_accents':false,'tokenizer_class':'DistilBertTokenizer'}");
    d = open_files("llama", 0);
    check_ids(&d, "The \xc3\xa9", 0, "8 9");
    close_files(&d);
}

/* ---- tokenizer.model ---- */

static void put_varint(qkv_text *out, uint64_t value) {
    for (; value > 127; value >>= 7) {
        const char byte = (char)((value & 127) | 128);
        qkv_text_append(out, &byte, 1);
    }
    const char last = (char)value;
    qkv_text_append(out, &last, 1);
}

static void put_number(qkv_text *out, unsigned field, uint64_t value) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

static void put_bytes(qkv_text *out, unsigned field, const char *bytes, size_t length) {
    put_varint(out, field << 3 | 2);
    put_varint(out, length);
    qkv_text_append(out, bytes, length);
}

static void put_piece(qkv_text *out, const char *text, float score, unsigned type) {
    qkv_text piece = {0};
    put_bytes(&piece, 1, text, strlen(text));
    put_varint(&piece, 2 << 3 | 5);
    qkv_text_append(&piece, (const char *)&score, sizeof score);
    if (type != 1) put_number(&piece, 3, type);
    put_bytes(out, 1, piece.data, piece.length);
    qkv_text_release(&piece);
}

/* What a file says about its training (type: 1 Unigram, 2 BPE) and about a space before the text. */
static void put_pieces(qkv_text *out, unsigned type, int prefix) {
    static const struct {
        const char *text;
        float score;
        unsigned type;
    } pieces[] = {{"<unk>", 0, 2},
                  {"<s>", 0, 3},
                  {"</s>", 0, 3},
                  {"<0xC3>", 0, 6},
                  {"<0xA9>", 0, 6},
                  {"\xe2\x96\x81", -9, 1},
                  {"a", -9, 1},
                  {"b", -9, 1},
                  {"ab", -2, 1},
                  {"\xe2\x96\x81"
                   "a",
                   -1, 1},
                  {"[hole]", -3, 1},
                  {"<u>", 0, 4}};
    qkv_text trainer = {0}, normalizer = {0};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        put_piece(out, pieces[i].text, pieces[i].score, pieces[i].type);
    put_number(&trainer, 3, type);
    put_number(&trainer, 43, UINT64_MAX); /* pad_id -1 */
    put_bytes(&normalizer, 1, "identity", 8);
    put_number(&normalizer, 3, (uint64_t)prefix);
    put_bytes(out, 2, trainer.data, trainer.length);
    put_bytes(out, 3, normalizer.data, normalizer.length);
    qkv_text_release(&trainer);
    qkv_text_release(&normalizer);
}

static void write_pieces(unsigned type, int prefix) {
    qkv_text file = {0};
    put_pieces(&file, type, prefix);
    clear();
    scratch_write("tokenizer.model", file.data, file.length);
    qkv_text_release(&file);
}

static void reads_pieces(void **state) {
    (void)state;
    write_pieces(2, 1);
    directory d = open_files("llama", 0);
    check_ids(&d, "ab ab", ADD, "1 9 7 9 7");
    check_ids(&d, "b\xc3\xa9<u>a</s>ab", PARSE, "5 7 3 4 11 9 2 9 7");
    check_ids(&d, "</s>", 0, "5 0");
    close_files(&d);
    put("tokenizer_config.json",
        "{'legacy':false,'add_bos_token':false,'add_eos_token':true,"
        "'added_tokens_decoder':{'10':{'content':'<im>','special':true}}}");
    d = open_files("llama", 0);
    check_ids(&d, "ab<im>ab", PARSE | ADD, "9 7 10 8 2");
    assert_true(used(&d, QKV_TOKENIZER_FILE_PIECES) && used(&d, QKV_TOKENIZER_FILE_CONFIG));
    close_files(&d);
    write_pieces(2, 0);
    d = open_files("gemma", 0);
    check_ids(&d, "ab a", ADD, "1 8 9");
    close_files(&d);
    write_pieces(1, 1);
    d = open_files("llama", 0);
    assert_null(d.vocab);
    close_files(&d);
}

/* Every beginning of a file, and every file with one byte changed: a message or a vocabulary. */
static void survives_damage(void **state) {
    (void)state;
    qkv_text file = {0};
    put_pieces(&file, 2, 1);
    clear();
    for (size_t i = 1; i < 2 * file.length; i++) {
        const size_t at = i % file.length;
        directory d;
        qkv_error err = {0};
        file.data[at] = (char)~file.data[at];
        scratch_write("tokenizer.model", file.data, i < file.length ? i : file.length);
        file.data[at] = (char)~file.data[at];
        int status = try_open(&d, "llama", 0, &err);
        if (status != QKV_OK && (!err.message[0] || strchr(err.message, '\n')))
            fail_msg("'%s' is not one line", err.message);
        close_files(&d);
    }
    qkv_text_release(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_tokens),
        cmocka_unit_test(replaces_placeholders),
        cmocka_unit_test(overrides_properties),
        cmocka_unit_test(names_special_tokens),
        cmocka_unit_test(reads_older_lists),
        cmocka_unit_test(drops_tokens_without_rows),
        cmocka_unit_test(overrides_bert),
        cmocka_unit_test(refuses_bad_lists),
        cmocka_unit_test(reads_vocab_and_merges),
        cmocka_unit_test(leaves_others_alone),
        cmocka_unit_test(refuses_bad_merges),
        cmocka_unit_test(reads_lines_of_words),
        cmocka_unit_test(reads_pieces),
        cmocka_unit_test(survives_damage),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
