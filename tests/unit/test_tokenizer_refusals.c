/*
 * tokenizer.json files that are wrong: each is refused with one line that says what is wrong, and
 * damage anywhere gives a message or a vocabulary, never a crash. Files that are right are in
 * test_tokenizer_parts.c.
 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gguf.h"
#include "support/scratch.h"
#include "support/small_tokenizer.h"
#include "tokenizer/tokenizer_files.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
/* A file with one part of its own; the others are right. */
#define MODEL_OF(model) FILE_OF("", "null", "null", "null", model)
#define PRE_OF(pre) FILE_OF("", "null", pre, "null", BYTES)

static const struct {
    const char *json, *part;
} wrong[] = {
    {"", "tokenizer.json"},
    {"[]", "not an object"},
    {"{'model'", "well-formed"},
    {"{'model':{}}x", "well-formed"},
    {"{}", "no model"},
    {"{'model':null}", "no model"},
    {"{'model':3}", "not an object"},
    {MODEL_OF("{'type':'WordLevel','vocab':{}}"), "'WordLevel'"},
    {MODEL_OF("{'type':'BPE','vocab':{},'merges':[]}"), "0 tokens"},
    {MODEL_OF("{'type':'BPE','vocab':[['a',0]],'merges':[]}"), "no vocabulary of its kind"},
    {MODEL_OF("{'type':'Unigram','vocab':{'a':0}}"), "no vocabulary of its kind"},
    {MODEL_OF("{'type':'BPE','merges':[]}"), "no vocabulary of its kind"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0}}"), "no merges"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':'0'},'merges':[]}"), "malformed"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':-1},'merges':[]}"), "out of range"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0.5},'merges':[]}"), "out of range"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':4294967296},'merges':[]}"), "out of range"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':1e300},'merges':[]}"), "out of range"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0,'b':0},'merges':[]}"), "two tokens have the id 0"},
    {MODEL_OF("{'type':'BPE','vocab':{'a\\q':0},'merges':[]}"), "malformed"},
    {MODEL_OF("{'type':'BPE','vocab':{'a\\u00':0},'merges':[]}"), "malformed"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0 'b':1},'merges':[]}"), "malformed"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0},'merges':['']}"), "merge 0"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0},'merges':['a']}"), "merge 0"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0},'merges':['a a a']}"), "merge 0"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0},'merges':[['a','a b']]}"), "merge 0"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0},'merges':[['a']]}"), "merge 0"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0},'merges':[3]}"), "merge 0"},
    {MODEL_OF("{'type':'BPE','vocab':{'a':0},'merges':['a a']}"), "must be tokens"},
    {MODEL_OF("{'type':'Unigram','vocab':[['a']]}"), "malformed"},
    {MODEL_OF("{'type':'Unigram','vocab':[['a',0]],'unk_id':7}"), "unk_id"},
    {MODEL_OF("{'type':'WordPiece','vocab':{'a':0},'unk_token':'?'}"), "unk_token"},
    {MODEL_OF("{'type':'WordPiece','vocab':{'a':0},'max_input_chars_per_word':0}"),
     "max_word_characters"},
    {NORMALIZED("{'type':'Magic'}"), "normalizer 'Magic'"},
    {NORMALIZED("{'type':'ByteLevel'}"), "normalizer 'ByteLevel'"},
    {NORMALIZED("{'kind':'NFC'}"), "without a type"},
    {NORMALIZED("[1]"), "without a type"},
    {NORMALIZED("{'type':'Sequence'}"), "no normalizers"},
    {NORMALIZED("{'type':'Sequence','normalizers':[{'type':'Magic'}]}"), "'Magic'"},
    {NORMALIZED("{'type':'Prepend'}"), "Prepend has no text"},
    {NORMALIZED("{'type':'Replace','content':''}"), "no pattern"},
    {NORMALIZED("{'type':'Replace','pattern':{'String':''},'content':'x'}"), "empty text"},
    {NORMALIZED("{'type':'Replace','pattern':{'Regex':'('},'content':'x'}"), "offset 1"},
    {NORMALIZED("{'type':'Strip','strip_left':'yes'}"), "strip_left"},
    {NORMALIZED("{'type':'Precompiled','precompiled_charsmap':'!'}"), "base64"},
    {NORMALIZED("{'type':'Precompiled','precompiled_charsmap':'AAAA'}"), "other than Unigram"},
    {FILE_OF("", "{'type':'Precompiled','precompiled_charsmap':'AAAA'}", "null", "null",
             UNIGRAM("")),
     "character map is damaged"},
    {PRE_OF("{'type':'Magic'}"), "pre-tokenizer 'Magic'"},
    {PRE_OF("{'type':'UnicodeScripts'}"), "pre-tokenizer 'UnicodeScripts'"},
    {PRE_OF("{'type':'Sequence'}"), "no pretokenizers"},
    {PRE_OF("{'type':'Split','pattern':{'Regex':'a'},'behavior':'Odd','invert':false}"), "'Odd'"},
    {PRE_OF("{'type':'Split','pattern':{'Regex':'a'},'behavior':'MergedWithNext','invert':true}"),
     "inverted"},
    {PRE_OF("{'type':'Split','behavior':'Isolated'}"), "no pattern"},
    {PRE_OF("{'type':'Split','pattern':{'Regex':'(a'},'behavior':'Isolated'}"), "pattern"},
    {PRE_OF("{'type':'Split','pattern':{'Regex':'[a'},'behavior':'Isolated'}"), "no end"},
    {PRE_OF("{'type':'Split','pattern':{'Regex':'[a&&b]'},'behavior':'Isolated'}"), "intersection"},
    {PRE_OF("{'type':'Split','pattern':{'Regex':'[a[^b]]'},'behavior':'Isolated'}"), "negated"},
    {PRE_OF("{'type':'Split','pattern':{'Regex':'a\\\\'},'behavior':'Isolated'}"), "backslash"},
    {PRE_OF("{'type':'Split','pattern':{'Regex':'a\\\\K'},'behavior':'Isolated'}"), "escape"},
    {PRE_OF("{'type':'Split','pattern':{'Regex':'a{2}+'},'behavior':'Isolated'}"), "repetition"},
    {PRE_OF("{'type':'CharDelimiterSplit'}"), "no delimiter"},
    {PRE_OF("{'type':'Metaspace','replacement':'_'}"), "U+2581"},
    {PRE_OF("{'type':'Metaspace','replacement':'\\u2581','prepend_scheme':'odd'}"), "'odd'"},
    {PRE_OF("{'type':'Sequence','pretokenizers':[{'type':'Digits'},"
            "{'type':'Metaspace','replacement':'\\u2581'}]}"),
     "Metaspace after"},
    {PRE_OF("{'type':'Sequence','pretokenizers':[{'type':'Digits'},{'type':'ByteLevel'}]}"),
     "add_prefix_space"},
    {FILE_OF("", "null", ONLY_BYTES, "null", UNIGRAM("")), "other than BPE"},
    {FILE_OF("{'id':0,'content':'zz'}", "null", "null", "null", CHARACTERS), "another token"},
    {FILE_OF("{'id':99999999,'content':'zz'}", "null", "null", "null", CHARACTERS), "out of range"},
    {FILE_OF("{'id':-1,'content':'zz'}", "null", "null", "null", CHARACTERS), "out of range"},
    {FILE_OF("{'id':50}", "null", "null", "null", CHARACTERS), "no content"},
    {FILE_OF("7", "null", "null", "null", CHARACTERS), "no content"},
    {FILE_OF("{'id':22,'content':'zz','special':'yes'}", "null", "null", "null", CHARACTERS),
     "special"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) refuse_tokenizer(wrong[i].json, NULL, wrong[i].part);
    qkv_error err = {0};
    struct gguf_context *meta = gguf_init_empty();
    unsigned files = 1;
    assert_int_equal(qkv_tokenizer_read(meta, scratch_path("nowhere"), &files, &err), QKV_OK);
    assert_int_equal(files, 0);
    assert_int_equal(gguf_get_n_kv(meta), 0);
    gguf_free(meta);
}

/* Every beginning of a file, and every file with one byte changed: a message or a vocabulary. */
static void test_damaged_files(void **state) {
    (void)state;
    static const char *const files[] = {
        FILE_OF(TAG, "{'type':'NFC'}", METASPACE("first", "true"), "null", SPM),
        FILE_OF(BERT_ADDED, "{'type':'BertNormalizer'}", "{'type':'BertPreTokenizer'}", BERT_ENDS,
                PIECES),
    };
    for (size_t f = 0; f < COUNT(files); f++) {
        size_t length = strlen(files[f]);
        for (size_t i = 0; i < 2 * length; i += 2) {
            char *copy = strdup(files[f]);
            qkv_vocab *vocab = NULL;
            qkv_error err = {0};
            assert_non_null(copy);
            if (i < length)
                copy[i] = '\0';
            else
                copy[i - length] = "'{}[],:\\0a"[i % 10];
            int status = read_tokenizer(&vocab, copy, NULL, &err);
            assert_true((status == QKV_OK) == (vocab != NULL));
            assert_true(status == QKV_OK || err.message[0] != '\0');
            int32_t *ids = NULL;
            size_t n = 0;
            if (vocab) qkv_vocab_tokenize(vocab, &ids, &n, "ab \xff a<t>", 9, ADD | PARSE, NULL);
            free(ids);
            qkv_vocab_free(vocab);
            free(copy);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
