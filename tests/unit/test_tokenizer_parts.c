/*
 * Every part of tokenizer.json by itself, in small files: normalisers, pre-tokenisers,
 * post-processors, options, added tokens; and every way in which a file can be wrong.
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

#include "base/text.h"
#include "gguf.h"
#include "qkv/model.h"
#include "support/scratch.h"
#include "support/tokenizer_file.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocab.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define ADD QKV_TOKENIZE_ADD_SPECIAL
#define PARSE QKV_TOKENIZE_PARSE_SPECIAL

/* Single quotes stand for double ones, for the sake of reading. */
static char *quoted(const char *text) {
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = copy; *c; c++) {
        if (*c == '\'') *c = '"';
    }
    return copy;
}

/* As a converter would: what is understood must be the same from a file. */
static struct gguf_context *written_and_read(struct gguf_context *meta) {
    const char *path = scratch_path("converted.gguf");
    struct gguf_init_params params = {.no_alloc = true, .ctx = NULL};
    assert_true(gguf_write_to_file(meta, path, true));
    gguf_free(meta);
    meta = gguf_init_from_file(path, params);
    assert_non_null(meta);
    return meta;
}

static int read_json(qkv_vocab **vocab, const char *json, const char *config, qkv_error *err) {
    char *text = quoted(json), *settings = config ? quoted(config) : NULL;
    const char *dir = tokenizer_dir(text, settings);
    struct gguf_context *meta = gguf_init_empty();
    *vocab = NULL;
    int status = qkv_tokenizer_json_read(meta, dir, err);
    if (status == QKV_OK) {
        meta = written_and_read(meta);
        status = qkv_vocab_load(vocab, meta, dir, err);
    }
    gguf_free(meta);
    free(text);
    free(settings);
    return status;
}

static void check(const char *json, const char *config, const char *text, unsigned flags,
                  const char *expected) {
    qkv_vocab *vocab = NULL;
    qkv_error err = {0};
    int32_t *ids = NULL;
    size_t n = 0;
    qkv_text got = {0};
    if (read_json(&vocab, json, config, &err) != QKV_OK) fail_msg("%s\n%s", err.message, json);
    if (qkv_vocab_tokenize(vocab, &ids, &n, text, strlen(text), flags, &err) != QKV_OK)
        fail_msg("%s\n%s", err.message, json);
    qkv_text_puts(&got, "");
    for (size_t i = 0; i < n; i++) {
        char *piece = NULL;
        size_t length = 0;
        assert_int_equal(qkv_vocab_token_text(vocab, &piece, &length, ids[i], &err), QKV_OK);
        qkv_text_printf(&got, i ? "|%s" : "%s", piece);
        free(piece);
    }
    if (strcmp(got.data, expected) != 0)
        fail_msg("'%s' became '%s', expected '%s'\n%s", text, got.data, expected, json);
    qkv_text_release(&got);
    free(ids);
    qkv_vocab_free(vocab);
}

static void refuse(const char *json, const char *config, const char *part) {
    qkv_vocab *vocab = NULL;
    qkv_error err = {0};
    int status = read_json(&vocab, json, config, &err);
    if (status == QKV_OK) fail_msg("was accepted: %s", json);
    assert_int_equal(status, err.status);
    assert_null(vocab);
    if (!strstr(err.message, part)) fail_msg("'%s' does not hold '%s'", err.message, part);
    if (strchr(err.message, '\n')) fail_msg("'%s' has several lines", err.message);
}

/* ---- normalisers: over characters, each a token ---- */

/* Characters that are tokens become themselves, all others <unk>. */
#define LETTERS                                                                                    \
    "'<unk>':0,'a':1,'b':2,'c':3,'A':4,'B':5,'\\u00e9':6,'e':7,'\\u0301':8,' ':9,'\\u2581':10,"    \
    "'x':11,'f':12,'i':13,'1':14,'!':15,'<':16,'>':17,'-':18,'\\n':19,'\\u4e2d':20,'E':21"
#define FILE_OF(added, normalizer, pre, post, model)                                               \
    "{'version':'1.0','added_tokens':[" added "],'normalizer':" normalizer ",'pre_tokenizer':" pre \
    ",'post_processor':" post ",'decoder':null,'model':" model "}"
#define CHARACTERS "{'type':'BPE','unk_token':'<unk>','vocab':{" LETTERS "},'merges':[]}"
#define NORMALIZED(normalizer) FILE_OF("", normalizer, "null", "null", CHARACTERS)

static const struct {
    const char *normalizer, *text, *expected;
} normalizers[] = {
    {"null", "aBe\xcc\x81", "a|B|e|\xcc\x81"},
    {"{'type':'NFC'}", "e\xcc\x81", "é"},
    {"{'type':'NFD'}", "é", "e|\xcc\x81"},
    {"{'type':'NFKC'}", "ﬁ\xef\xbc\xa1", "f|i|A"},
    {"{'type':'NFKD'}", "ﬁé", "f|i|e|\xcc\x81"},
    {"{'type':'Lowercase'}", "aBc", "a|b|c"},
    {"{'type':'StripAccents'}", "e\xcc\x81", "e"},
    {"{'type':'Strip','strip_left':true,'strip_right':false}", "  a\n", "a|\n"},
    {"{'type':'Strip','strip_left':false,'strip_right':true}", " a\xe3\x80\x80\n", " |a"},
    {"{'type':'Strip'}", "   ", ""},
    {"{'type':'Prepend','prepend':'xx'}", "a", "x|x|a"},
    {"{'type':'Prepend','prepend':'x'}", "", ""},
    {"{'type':'Replace','pattern':{'String':'ab'},'content':'-'}", "aabab", "a|-|-"},
    {"{'type':'Replace','pattern':{'Regex':' {2,}'},'content':' '}", "a   b c", "a| |b| |c"},
    {"{'type':'Replace','pattern':{'Regex':'\\\\s'},'content':'-'}", "a\n\xc2\xa0", "a|-|-"},
    {"{'type':'Nmt'}", "a\tb\x01", "a| |b"},
    {"{'type':'BertNormalizer','clean_text':true,'handle_chinese_chars':true,"
     "'strip_accents':null,'lowercase':true}",
     "A\tÉ中\x01", "a| |e| |<unk>| "},
    {"{'type':'BertNormalizer','clean_text':true,'handle_chinese_chars':false,"
     "'strip_accents':false,'lowercase':true}",
     "Aé", "a|é"},
    {"{'type':'BertNormalizer','clean_text':false,'handle_chinese_chars':false,"
     "'strip_accents':true,'lowercase':false}",
     "Aé", "A|e"},
    {"{'type':'Sequence','normalizers':[{'type':'NFD'},{'type':'StripAccents'},"
     "{'type':'Lowercase'}]}",
     "É", "e"},
    {"{'type':'Sequence','normalizers':[]}", "a", "a"},
};

static void test_normalizers(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(normalizers); i++) {
        char json[2048];
        snprintf(json, sizeof json, NORMALIZED("%s"), normalizers[i].normalizer);
        /* U+4E2D is a token; the unknown token stands for it here, so as to be printable. */
        char *cut = strstr(json, ",'\\u4e2d':20");
        memmove(cut, cut + strlen(",'\\u4e2d':20"), strlen(cut + strlen(",'\\u4e2d':20")) + 1);
        check(json, NULL, normalizers[i].text, 0, normalizers[i].expected);
    }
}

/* ---- pre-tokenisers: merges show where words end ---- */

/* Runs of any of the characters merge, unless they are cut apart. */
#define BYTES                                                                                      \
    "{'type':'BPE','vocab':{'a':0,'b':1,'1':2,'2':3,'!':4,'?':5,'\\u0120':6,'-':7,'ab':8,'12':9,"  \
    "'!?':10,'\\u0120a':11,'a-':12,'-a':13,'b1':14,'a!':15,'\\u0120\\u0120':16,'\\u010a':17,"      \
    "'--':18,'ba':19},'merges':['a b','1 2','! ?','\\u0120 a','a -','- a','b 1','a !',"            \
    "'\\u0120 \\u0120','- -','b a']}"
#define ONLY_BYTES "{'type':'ByteLevel','add_prefix_space':false,'use_regex':false}"
#define WORDS(pre)                                                                                 \
    FILE_OF("", "null", "{'type':'Sequence','pretokenizers':[" pre "," ONLY_BYTES "]}", "null",    \
            BYTES)

static const struct {
    const char *pre, *text, *expected;
} words[] = {
    {ONLY_BYTES, "ab12!? a", "ab|12|!?| a"},
    {ONLY_BYTES, "ba--", "b|a-|-"},
    {"{'type':'ByteLevel','add_prefix_space':false,'use_regex':true}", "b12 a!?", "b|12| a|!?"},
    {"{'type':'ByteLevel','add_prefix_space':true,'use_regex':true}", "a", " a"},
    {"{'type':'ByteLevel','add_prefix_space':true,'use_regex':true}", " a", " a"},
    {"{'type':'Digits','individual_digits':true}", "b12", "b|1|2"},
    {"{'type':'Digits','individual_digits':false}", "b12", "b|12"},
    {"{'type':'Punctuation','behavior':'Isolated'}", "a!?", "a|!|?"},
    {"{'type':'Punctuation'}", "a!?", "a|!|?"},
    {"{'type':'Punctuation','behavior':'Contiguous'}", "a!?", "a|!?"},
    {"{'type':'Punctuation','behavior':'Removed'}", "a!b", "a|b"},
    {"{'type':'Punctuation','behavior':'MergedWithPrevious'}", "a!b", "a!|b"},
    {"{'type':'Punctuation','behavior':'MergedWithNext'}", "a-ab", "a|-|ab"},
    {"{'type':'WhitespaceSplit'}", "a b\n1", "a|b|1"},
    {"{'type':'Whitespace'}", "ab!? 1", "ab|!?|1"},
    {"{'type':'CharDelimiterSplit','delimiter':'-'}", "a-a--b", "a|a|b"},
    {"{'type':'BertPreTokenizer'}", "a b!?", "a|b|!|?"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'Isolated','invert':false}", "a-a--",
     "a|-|a|-|-"},
    {"{'type':'Split','pattern':{'String':'-'},'behavior':'Contiguous','invert':false}", "a--a",
     "a|--|a"},
    {"{'type':'Split','pattern':{'Regex':'[ab]+'},'behavior':'Removed','invert':true}", "ab1ab",
     "ab|ab"},
    {"{'type':'Split','pattern':{'Regex':'\\\\p{N}{1,3}+'},'behavior':'Isolated','invert':false}",
     "a1212", "a|12|12"},
    {"{'type':'Split','pattern':{'Regex':'[a[b1]]'},'behavior':'Isolated','invert':false}", "ab1",
     "a|b|1"},
    {"{'type':'Split','pattern':{'Regex':'^a'},'behavior':'Isolated','invert':false}", "ab\nab",
     "a|b|\n|a|b"},
    {"{'type':'Split','pattern':{'Regex':'x*'},'behavior':'Isolated','invert':false}", "ab", "ab"},
};

static void test_words(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(words); i++) {
        char json[4096];
        snprintf(json, sizeof json, WORDS("%s"), words[i].pre);
        check(json, NULL, words[i].text, 0, words[i].expected);
    }
}

#define METASPACE(scheme, split)                                                                   \
    "{'type':'Metaspace','replacement':'\\u2581','prepend_scheme':'" scheme "','split':" split "}"
#define SPM                                                                                        \
    "{'type':'BPE','unk_token':'<unk>','byte_fallback':true,'fuse_unk':true,'vocab':{'<unk>':0,"   \
    "'\\u2581':1,'a':2,'b':3,'\\u2581a':4,'b\\u2581':5,'<0xC3>':6,'<0xA9>':7},'merges':"           \
    "[['b','\\u2581'],['\\u2581','a']]}"
#define TAG "{'id':8,'content':'<t>','special':true,'normalized':false}"

static void test_metaspace(void **state) {
    (void)state;
    const char *always = FILE_OF(TAG, "null", METASPACE("always", "false"), "null", SPM);
    const char *first = FILE_OF(TAG, "null", METASPACE("first", "false"), "null", SPM);
    const char *never = FILE_OF(TAG, "null", METASPACE("never", "false"), "null", SPM);
    const char *split = FILE_OF(TAG, "null", METASPACE("never", "true"), "null", SPM);
    const char *old =
        FILE_OF(TAG, "null", "{'type':'Metaspace','replacement':'\\u2581','add_prefix_space':true}",
                "null", SPM);
    check(always, NULL, "a", 0, " a");
    check(always, NULL, " a", 0, " a"); /* one blank is enough */
    check(always, NULL, "a<t>a", PARSE, " a|<t>| a");
    check(old, NULL, "a<t>a", PARSE, " a|<t>| a");
    check(first, NULL, "a<t>a", PARSE, " a|<t>|a");
    check(first, NULL, "<t>a", PARSE, "<t>|a");
    check(never, NULL, "a", 0, "a");
    check(never, NULL, "b a", 0, "b |a"); /* in the order of the merges */
    check(split, NULL, "b a", 0, "b| a");
    check(never, NULL, "é", 0, "\xc3|\xa9");
    check(never, NULL, "xx", 0, "<unk>"); /* fused */
    check(never, NULL, "xax", 0, "<unk>|a|<unk>");
}

/* ---- WordPiece and Unigram ---- */

#define PIECES                                                                                     \
    "{'type':'WordPiece','unk_token':'[UNK]','continuing_subword_prefix':'##',"                    \
    "'max_input_chars_per_word':6,'vocab':{'[UNK]':0,'[CLS]':1,'[SEP]':2,'a':3,'##b':4,'ab':5,"    \
    "'##c':6,'!':7,'##ab':8}}"
#define BERT_ADDED                                                                                 \
    "{'id':1,'content':'[CLS]','special':true},{'id':2,'content':'[SEP]','special':true}"
#define BERT_ENDS "{'type':'BertProcessing','sep':['[SEP]',2],'cls':['[CLS]',1]}"

static void test_wordpiece(void **state) {
    (void)state;
    const char *json = FILE_OF(BERT_ADDED, "{'type':'BertNormalizer'}",
                               "{'type':'BertPreTokenizer'}", BERT_ENDS, PIECES);
    check(json, NULL, "abc", 0, " ab|c");
    check(json, NULL, "ABB", 0, " ab|b");
    check(json, NULL, "aab!", 0, " a|ab| !");
    check(json, NULL, "ad", 0, "[UNK]");
    check(json, NULL, "ab", ADD, "[CLS]| ab|[SEP]");
    check(json, NULL, "", ADD, "[CLS]|[SEP]");
    check(json, NULL, "abbbbb", 0, " ab|b|b|b|b");
    check(json, NULL, "abbbbbb", 0, "[UNK]"); /* too long */
    check(json, NULL, "[SEP]", PARSE, "[SEP]");
    check(json, NULL, "ab\u2581ab", 0, "[UNK]"); /* the mark of a start is none in the text */
    check(json, NULL, "\u2581", 0, "[UNK]");
    /* Nothing is added without a post-processor; words end at blanks only. */
    check(FILE_OF(BERT_ADDED, "null", "{'type':'WhitespaceSplit'}", "null", PIECES), NULL, "ab a!",
          ADD, " ab|[UNK]");
    check(FILE_OF(BERT_ADDED, "null", "null", "null", PIECES), NULL, "ab a", 0, "[UNK]");
}

#define UNIGRAM(options)                                                                           \
    "{'type':'Unigram','unk_id':0," options "'vocab':[['<unk>',0],['\\u2581',-2],['a',-3],"        \
    "['b',-3.5],['ab',-5],['\\u2581a',-4],['<0xC3>',-9],['<0xA9>',-9]]}"

static void test_unigram(void **state) {
    (void)state;
    const char *json = FILE_OF("", "null", METASPACE("always", "true"), "null", UNIGRAM(""));
    check(json, NULL, "ab", 0, " |ab"); /* -7, against -7.5 */
    check(json, NULL, "aba", 0, " |ab|a");
    check(json, NULL, "a", 0, " a");
    check(json, NULL, "xxa", 0, " |<unk>|a");
    check(json, NULL, "é", 0, " |<unk>");
    const char *by_word = FILE_OF("", "null",
                                  "{'type':'Sequence','pretokenizers':[{'type':'WhitespaceSplit'},"
                                  "{'type':'Metaspace','replacement':'\\u2581'}]}",
                                  "null", UNIGRAM(""));
    check(by_word, NULL, " a\n\tab ", 0, " a| |ab");
    check(by_word, NULL, "a \u2581a", 0, " a| a");
    check(
        FILE_OF("", "null", METASPACE("always", "true"), "null", UNIGRAM("'byte_fallback':true,")),
        NULL, "é", 0, " |\xc3|\xa9");
}

/* ---- added tokens ---- */

static void test_added_tokens(void **state) {
    (void)state;
    const char *plain =
        FILE_OF("{'id':22,'content':'<x>','special':false}", "null", "null", "null", CHARACTERS);
    check(plain, NULL, "a<x>b", 0, "a|<x>|b");
    const char *special =
        FILE_OF("{'id':22,'content':'<x>','special':true}", "null", "null", "null", CHARACTERS);
    check(special, NULL, "a<x>b", 0, "a|<|x|>|b");
    check(special, NULL, "a<x>b", PARSE, "a|<x>|b");
    const char *strips = FILE_OF("{'id':22,'content':'<x>','lstrip':true},"
                                 "{'id':23,'content':'<f>','rstrip':true}",
                                 "null", "null", "null", CHARACTERS);
    check(strips, NULL, "a <x> b", 0, "a|<x>| |b");
    check(strips, NULL, "a <f> b", 0, "a| |<f>|b");
    const char *single =
        FILE_OF("{'id':22,'content':'ab','single_word':true}", "null", "null", "null", CHARACTERS);
    check(single, NULL, "ab", 0, "ab");
    check(single, NULL, "ab-ab!", 0, "ab|-|ab|!");
    check(single, NULL, "aab abc éab", 0, "a|a|b| |a|b|c| |é|a|b");
    /* Looked for in the normalised text, or before that. */
    const char *late = FILE_OF("{'id':22,'content':'ab','normalized':true}", "{'type':'Lowercase'}",
                               "null", "null", CHARACTERS);
    const char *early = FILE_OF("{'id':22,'content':'ab','normalized':false}",
                                "{'type':'Lowercase'}", "null", "null", CHARACTERS);
    check(late, NULL, "ABcab", 0, "ab|c|ab");
    check(early, NULL, "ABcab", 0, "a|b|c|ab");
    refuse(FILE_OF("{'id':22,'content':'AB','normalized':true}", "{'type':'Lowercase'}", "null",
                   "null", CHARACTERS),
           NULL, "'AB' is looked for in normalized text");
    /* Ids may have gaps. */
    check(FILE_OF("{'id':30,'content':'<x>'}", "null", "null", "null", CHARACTERS), NULL, "<x>", 0,
          "<x>");
}

/* ---- what is put around a text ---- */

#define TEMPLATE(before, after)                                                                    \
    "{'type':'TemplateProcessing','single':[" before "{'Sequence':{'id':'A','type_id':0}}" after   \
    "],'pair':[],'special_tokens':{'x':{'id':'x','ids':[11],'tokens':['x']},"                      \
    "'!':{'id':'!','ids':[15],'tokens':['!']}}}"
#define TOKEN(name) "{'SpecialToken':{'id':'" name "','type_id':0}}"

static void test_ends(void **state) {
    (void)state;
    const char *none = FILE_OF("", "null", "null", "null", CHARACTERS);
    const char *both =
        FILE_OF("", "null", "null", TEMPLATE(TOKEN("x") ",", "," TOKEN("!")), CHARACTERS);
    const char *nested = FILE_OF(
        "", "null", "null",
        "{'type':'Sequence','processors':[{'type':'ByteLevel'}," TEMPLATE(TOKEN("x") ",", "") "]}",
        CHARACTERS);
    check(none, NULL, "a", ADD, "a");
    check(both, NULL, "a", ADD, "x|a|!");
    check(both, NULL, "a", 0, "a");
    check(nested, NULL, "a", ADD, "x|a");
    check(FILE_OF("", "null", "null", "{'type':'RobertaProcessing','sep':['!',15],'cls':['x',11]}",
                  CHARACTERS),
          NULL, "a", ADD, "x|a|!");
    /* The configuration beside it. */
    check(none, "{'bos_token':'x','eos_token':'!','add_bos_token':true}", "a", ADD, "x|a");
    check(none, "{'bos_token':'x','eos_token':{'content':'!'},'add_eos_token':true}", "a", ADD,
          "a|!");
    check(none, "{'bos_token':'x','eos_token':'!'}", "a", ADD, "a");
    check(none, "{'bos_token':null}", "a", ADD, "a");
    check(both, "{'bos_token':'x','add_bos_token':false}", "a", ADD, "a|!");
    check(both, "{'bos_token':'b','add_bos_token':false}", "a", ADD, "x|a|!"); /* another token */
    refuse(FILE_OF("", "null", "null", TEMPLATE(TOKEN("x") "," TOKEN("!") ",", ""), CHARACTERS),
           NULL, "several tokens at one end");
    refuse(FILE_OF("", "null", "null", "{'type':'TemplateProcessing','single':[" TOKEN("x") "]}",
                   CHARACTERS),
           NULL, "not one token");
    refuse(FILE_OF("", "null", "null", "{'type':'BertProcessing','sep':['!',99],'cls':['x',11]}",
                   CHARACTERS),
           NULL, "adds id 99");
    refuse(FILE_OF("", "null", "null", "{'type':'BertProcessing'}", CHARACTERS), NULL,
           "has no cls");
    refuse(FILE_OF("", "null", "null", "{'type':'Postal'}", CHARACTERS), NULL, "'Postal'");
    refuse(none, "{'bos_token':'x','add_bos_token':1}", "add_bos_token");
    refuse(none, "[1]", "tokenizer_config.json");
    refuse(none, "{", "tokenizer_config.json");
}

/* ---- options of BPE ---- */

static void test_options(void **state) {
    (void)state;
#define MERGED(options)                                                                            \
    FILE_OF("", "null", ONLY_BYTES, "null",                                                        \
            "{'type':'BPE'," options                                                               \
            "'vocab':{'a':0,'b':1,'c':2,'ab':3,'abc':4},'merges':['a b']}")
    check(MERGED(""), NULL, "abc", 0, "ab|c");
    check(MERGED("'ignore_merges':true,"), NULL, "abc", 0, "abc");
    check(MERGED("'dropout':null,'continuing_subword_prefix':null,'end_of_word_suffix':'',"), NULL,
          "ab", 0, "ab");
    check(MERGED("'dropout':0.0,"), NULL, "ab", 0, "ab");
    refuse(MERGED("'dropout':0.1,"), NULL, "dropout");
    refuse(MERGED("'end_of_word_suffix':'</w>',"), NULL, "end_of_word_suffix '</w>'");
    refuse(MERGED("'continuing_subword_prefix':'##',"), NULL, "continuing_subword_prefix '##'");
    refuse(MERGED("'byte_fallback':3,"), NULL, "byte_fallback");
    refuse(MERGED("'unk_token':'?',"), NULL, "unk_token '?'");
    /* Files of old leave the type out. */
    check(
        FILE_OF("", "null", ONLY_BYTES, "null", "{'vocab':{'a':0,'b':1,'ab':2},'merges':['a b']}"),
        NULL, "ab", 0, "ab");
    /* A token with a NUL cannot be kept; the others can. */
    check(FILE_OF("", "null", ONLY_BYTES, "null",
                  "{'type':'BPE','vocab':{'a':0,'\\u0000':1,'b':2},'merges':['\\u0000 a']}"),
          NULL, "ab", 0, "a|b");
}

/* ---- files that are wrong ---- */

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
     "Metaspace behind"},
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
    for (size_t i = 0; i < COUNT(wrong); i++) refuse(wrong[i].json, NULL, wrong[i].part);
    qkv_error err = {0};
    struct gguf_context *meta = gguf_init_empty();
    assert_true(qkv_tokenizer_json_read(meta, scratch_path("nowhere"), &err) != QKV_OK);
    assert_non_null(strstr(err.message, "tokenizer.json"));
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
            int status = read_json(&vocab, copy, NULL, &err);
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
        cmocka_unit_test(test_normalizers), cmocka_unit_test(test_words),
        cmocka_unit_test(test_metaspace),   cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_unigram),     cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_ends),        cmocka_unit_test(test_options),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
