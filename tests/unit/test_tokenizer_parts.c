/*
 * Every part of tokenizer.json by itself, in small files: normalisers, pre-tokenisers,
 * post-processors, options, added tokens. Files that are wrong are in test_tokenizer_refusals.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "support/small_tokenizer.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- normalisers: over characters, each a token ---- */

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
        check_tokens(json, NULL, normalizers[i].text, 0, normalizers[i].expected);
    }
}

/* ---- pre-tokenisers: merges show where words end ---- */

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
        check_tokens(json, NULL, words[i].text, 0, words[i].expected);
    }
}

static void test_metaspace(void **state) {
    (void)state;
    const char *always = FILE_OF(TAG, "null", METASPACE("always", "false"), "null", SPM);
    const char *first = FILE_OF(TAG, "null", METASPACE("first", "false"), "null", SPM);
    const char *never = FILE_OF(TAG, "null", METASPACE("never", "false"), "null", SPM);
    const char *split = FILE_OF(TAG, "null", METASPACE("never", "true"), "null", SPM);
    const char *old =
        FILE_OF(TAG, "null", "{'type':'Metaspace','replacement':'\\u2581','add_prefix_space':true}",
                "null", SPM);
    check_tokens(always, NULL, "a", 0, " a");
    check_tokens(always, NULL, " a", 0, " a"); /* one space is enough */
    check_tokens(always, NULL, "a<t>a", PARSE, " a|<t>| a");
    check_tokens(old, NULL, "a<t>a", PARSE, " a|<t>| a");
    check_tokens(first, NULL, "a<t>a", PARSE, " a|<t>|a");
    check_tokens(first, NULL, "<t>a", PARSE, "<t>|a");
    check_tokens(never, NULL, "a", 0, "a");
    check_tokens(never, NULL, "b a", 0, "b |a"); /* in the order of the merges */
    check_tokens(split, NULL, "b a", 0, "b| a");
    check_tokens(never, NULL, "é", 0, "\xc3|\xa9");
    check_tokens(never, NULL, "xx", 0, "<unk>"); /* fused */
    check_tokens(never, NULL, "xax", 0, "<unk>|a|<unk>");
}

/* ---- WordPiece and Unigram ---- */

static void test_wordpiece(void **state) {
    (void)state;
    const char *json = FILE_OF(BERT_ADDED, "{'type':'BertNormalizer'}",
                               "{'type':'BertPreTokenizer'}", BERT_ENDS, PIECES);
    check_tokens(json, NULL, "abc", 0, " ab|c");
    check_tokens(json, NULL, "ABB", 0, " ab|b");
    check_tokens(json, NULL, "aab!", 0, " a|ab| !");
    check_tokens(json, NULL, "ad", 0, "[UNK]");
    check_tokens(json, NULL, "ab", ADD, "[CLS]| ab|[SEP]");
    check_tokens(json, NULL, "", ADD, "[CLS]|[SEP]");
    check_tokens(json, NULL, "abbbbb", 0, " ab|b|b|b|b");
    check_tokens(json, NULL, "abbbbbb", 0, "[UNK]"); /* too long */
    check_tokens(json, NULL, "[SEP]", PARSE, "[SEP]");
    check_tokens(json, NULL, "ab\u2581ab", 0,
                 "[UNK]"); /* the mark of a start is none in the text */
    check_tokens(json, NULL, "\u2581", 0, "[UNK]");
    /* Nothing is added without a post-processor; words end at spaces only. */
    check_tokens(FILE_OF(BERT_ADDED, "null", "{'type':'WhitespaceSplit'}", "null", PIECES), NULL,
                 "ab a!", ADD, " ab|[UNK]");
    check_tokens(FILE_OF(BERT_ADDED, "null", "null", "null", PIECES), NULL, "ab a", 0, "[UNK]");
}

static void test_unigram(void **state) {
    (void)state;
    const char *json = FILE_OF("", "null", METASPACE("always", "true"), "null", UNIGRAM(""));
    check_tokens(json, NULL, "ab", 0, " |ab"); /* -7, against -7.5 */
    check_tokens(json, NULL, "aba", 0, " |ab|a");
    check_tokens(json, NULL, "a", 0, " a");
    check_tokens(json, NULL, "xxa", 0, " |<unk>|a");
    check_tokens(json, NULL, "é", 0, " |<unk>");
    const char *by_word = FILE_OF("", "null",
                                  "{'type':'Sequence','pretokenizers':[{'type':'WhitespaceSplit'},"
                                  "{'type':'Metaspace','replacement':'\\u2581'}]}",
                                  "null", UNIGRAM(""));
    check_tokens(by_word, NULL, " a\n\tab ", 0, " a| |ab");
    check_tokens(by_word, NULL, "a \u2581a", 0, " a| a");
    check_tokens(
        FILE_OF("", "null", METASPACE("always", "true"), "null", UNIGRAM("'byte_fallback':true,")),
        NULL, "é", 0, " |\xc3|\xa9");
}

/* ---- added tokens ---- */

static void test_added_tokens(void **state) {
    (void)state;
    const char *plain =
        FILE_OF("{'id':22,'content':'<x>','special':false}", "null", "null", "null", CHARACTERS);
    check_tokens(plain, NULL, "a<x>b", 0, "a|<x>|b");
    const char *special =
        FILE_OF("{'id':22,'content':'<x>','special':true}", "null", "null", "null", CHARACTERS);
    check_tokens(special, NULL, "a<x>b", 0, "a|<|x|>|b");
    check_tokens(special, NULL, "a<x>b", PARSE, "a|<x>|b");
    const char *strips = FILE_OF("{'id':22,'content':'<x>','lstrip':true},"
                                 "{'id':23,'content':'<f>','rstrip':true}",
                                 "null", "null", "null", CHARACTERS);
    check_tokens(strips, NULL, "a <x> b", 0, "a|<x>| |b");
    check_tokens(strips, NULL, "a <f> b", 0, "a| |<f>|b");
    const char *single =
        FILE_OF("{'id':22,'content':'ab','single_word':true}", "null", "null", "null", CHARACTERS);
    check_tokens(single, NULL, "ab", 0, "ab");
    check_tokens(single, NULL, "ab-ab!", 0, "ab|-|ab|!");
    check_tokens(single, NULL, "aab abc éab", 0, "a|a|b| |a|b|c| |é|a|b");
    /* Looked for in the normalised text, or before that. */
    const char *late = FILE_OF("{'id':22,'content':'ab','normalized':true}", "{'type':'Lowercase'}",
                               "null", "null", CHARACTERS);
    const char *early = FILE_OF("{'id':22,'content':'ab','normalized':false}",
                                "{'type':'Lowercase'}", "null", "null", CHARACTERS);
    check_tokens(late, NULL, "ABcab", 0, "ab|c|ab");
    check_tokens(early, NULL, "ABcab", 0, "a|b|c|ab");
    /* As what the normaliser makes of it: a mark before the text becomes one of the token's. */
    check_tokens(FILE_OF("{'id':22,'content':'AB','normalized':true}", "{'type':'Lowercase'}",
                         "null", "null", CHARACTERS),
                 NULL, "ABcab", 0, "AB|c|AB");
    const char *marked =
        FILE_OF("{'id':22,'content':'ab','normalized':true}",
                "{'type':'Sequence','normalizers':[{'type':'Prepend','prepend':'\\u2581'},"
                "{'type':'Replace','pattern':{'String':' '},'content':'\\u2581'}]}",
                "null", "null", CHARACTERS);
    check_tokens(marked, NULL, "ab", 0, "ab");
    check_tokens(marked, NULL, "cab ab", 0, " |c|a|b|ab");
    /* Ids may have gaps. */
    check_tokens(FILE_OF("{'id':30,'content':'<x>'}", "null", "null", "null", CHARACTERS), NULL,
                 "<x>", 0, "<x>");
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
    check_tokens(none, NULL, "a", ADD, "a");
    check_tokens(both, NULL, "a", ADD, "x|a|!");
    check_tokens(both, NULL, "a", 0, "a");
    check_tokens(nested, NULL, "a", ADD, "x|a");
    check_tokens(FILE_OF("", "null", "null",
                         "{'type':'RobertaProcessing','sep':['!',15],'cls':['x',11]}", CHARACTERS),
                 NULL, "a", ADD, "x|a|!");
    /* The configuration beside it. */
    check_tokens(none, "{'bos_token':'x','eos_token':'!','add_bos_token':true}", "a", ADD, "x|a");
    check_tokens(none, "{'bos_token':'x','eos_token':{'content':'!'},'add_eos_token':true}", "a",
                 ADD, "a|!");
    check_tokens(none, "{'bos_token':'x','eos_token':'!'}", "a", ADD, "a");
    check_tokens(none, "{'bos_token':null}", "a", ADD, "a");
    check_tokens(both, "{'bos_token':'x','add_bos_token':false}", "a", ADD, "a|!");
    check_tokens(both, "{'bos_token':'b','add_bos_token':false}", "a", ADD,
                 "x|a|!"); /* another token */
    refuse_tokenizer(
        FILE_OF("", "null", "null", TEMPLATE(TOKEN("x") "," TOKEN("!") ",", ""), CHARACTERS), NULL,
        "several tokens at one end");
    refuse_tokenizer(FILE_OF("", "null", "null",
                             "{'type':'TemplateProcessing','single':[" TOKEN("x") "]}", CHARACTERS),
                     NULL, "not one token");
    refuse_tokenizer(FILE_OF("", "null", "null",
                             "{'type':'BertProcessing','sep':['!',99],'cls':['x',11]}", CHARACTERS),
                     NULL, "adds id 99");
    refuse_tokenizer(FILE_OF("", "null", "null", "{'type':'BertProcessing'}", CHARACTERS), NULL,
                     "has no cls");
    refuse_tokenizer(FILE_OF("", "null", "null", "{'type':'Postal'}", CHARACTERS), NULL,
                     "'Postal'");
    refuse_tokenizer(none, "{'bos_token':'x','add_bos_token':1}", "add_bos_token");
    refuse_tokenizer(none, "[1]", "tokenizer_config.json");
    refuse_tokenizer(none, "{", "tokenizer_config.json");
}

/* ---- options of BPE ---- */

static void test_options(void **state) {
    (void)state;
#define MERGED(options)                                                                            \
    FILE_OF("", "null", ONLY_BYTES, "null",                                                        \
            "{'type':'BPE'," options                                                               \
            "'vocab':{'a':0,'b':1,'c':2,'ab':3,'abc':4},'merges':['a b']}")
    check_tokens(MERGED(""), NULL, "abc", 0, "ab|c");
    check_tokens(MERGED("'ignore_merges':true,"), NULL, "abc", 0, "abc");
    check_tokens(MERGED("'dropout':null,'continuing_subword_prefix':null,'end_of_word_suffix':'',"),
                 NULL, "ab", 0, "ab");
    check_tokens(MERGED("'dropout':0.0,"), NULL, "ab", 0, "ab");
    refuse_tokenizer(MERGED("'dropout':0.1,"), NULL, "dropout");
    refuse_tokenizer(MERGED("'end_of_word_suffix':'</w>',"), NULL, "end_of_word_suffix '</w>'");
    refuse_tokenizer(MERGED("'continuing_subword_prefix':'##',"), NULL,
                     "continuing_subword_prefix '##'");
    refuse_tokenizer(MERGED("'byte_fallback':3,"), NULL, "byte_fallback");
    refuse_tokenizer(MERGED("'unk_token':'?',"), NULL, "unk_token '?'");
    /* Files of old leave the type out. */
    check_tokens(
        FILE_OF("", "null", ONLY_BYTES, "null", "{'vocab':{'a':0,'b':1,'ab':2},'merges':['a b']}"),
        NULL, "ab", 0, "ab");
    /* A token with a NUL cannot be kept; the others can. */
    check_tokens(FILE_OF("", "null", ONLY_BYTES, "null",
                         "{'type':'BPE','vocab':{'a':0,'\\u0000':1,'b':2},'merges':['\\u0000 a']}"),
                 NULL, "ab", 0, "a|b");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normalizers), cmocka_unit_test(test_words),
        cmocka_unit_test(test_metaspace),   cmocka_unit_test(test_wordpiece),
        cmocka_unit_test(test_unigram),     cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_ends),        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
