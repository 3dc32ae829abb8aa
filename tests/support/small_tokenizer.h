/*
 * Small tokenizer.json files, written in the test as texts: the parts to make them of, what a text
 * becomes with them, and what is refused.
 *
 *     check_tokens(NORMALIZED("{'type':'Lowercase'}"), NULL, "aBc", 0, "a|b|c");
 *
 * Single quotes stand for double ones. `config` is tokenizer_config.json, or NULL for none.
 */
#ifndef QKV_TESTS_SMALL_TOKENIZER_H
#define QKV_TESTS_SMALL_TOKENIZER_H

#include "qkv/model.h"
#include "tokenizer/vocab.h"

#define ADD QKV_TOKENIZE_ADD_SPECIAL
#define PARSE QKV_TOKENIZE_PARSE_SPECIAL

struct gguf_context;

/* The metadata as a converter would write them and a model would read them: what is understood must
 * be the same from a file. Frees `meta`. */
struct gguf_context *written_and_read(struct gguf_context *meta);

/* The vocabulary is the caller's to free; NULL when the file is refused. */
int read_tokenizer(qkv_vocab **vocab, const char *json, const char *config, qkv_error *err);
/* The text must become these tokens, with bars between them. */
void check_tokens(const char *json, const char *config, const char *text, unsigned flags,
                  const char *expected);
/* The file must be refused with one line that has this part. */
void refuse_tokenizer(const char *json, const char *config, const char *part);

/* ---- whole files ---- */

#define FILE_OF(added, normalizer, pre, post, model)                                               \
    "{'version':'1.0','added_tokens':[" added "],'normalizer':" normalizer ",'pre_tokenizer':" pre \
    ",'post_processor':" post ",'decoder':null,'model':" model "}"

/* ---- BPE ---- */

/* Characters that are tokens become themselves, all others <unk>. */
#define LETTERS                                                                                    \
    "'<unk>':0,'a':1,'b':2,'c':3,'A':4,'B':5,'\\u00e9':6,'e':7,'\\u0301':8,' ':9,'\\u2581':10,"    \
    "'x':11,'f':12,'i':13,'1':14,'!':15,'<':16,'>':17,'-':18,'\\n':19,'\\u4e2d':20,'E':21"
#define CHARACTERS "{'type':'BPE','unk_token':'<unk>','vocab':{" LETTERS "},'merges':[]}"
#define NORMALIZED(normalizer) FILE_OF("", normalizer, "null", "null", CHARACTERS)

/* Runs of any of the characters merge, unless they are cut apart. */
#define BYTES                                                                                      \
    "{'type':'BPE','vocab':{'a':0,'b':1,'1':2,'2':3,'!':4,'?':5,'\\u0120':6,'-':7,'ab':8,'12':9,"  \
    "'!?':10,'\\u0120a':11,'a-':12,'-a':13,'b1':14,'a!':15,'\\u0120\\u0120':16,'\\u010a':17,"      \
    "'--':18,'ba':19},'merges':['a b','1 2','! ?','\\u0120 a','a -','- a','b 1','a !',"            \
    "'\\u0120 \\u0120','- -','b a']}"
#define ONLY_BYTES "{'type':'ByteLevel','add_prefix_space':false,'use_regex':false}"

/* As of SentencePiece: merges with the space's stand-in, and bytes. */
#define METASPACE(scheme, split)                                                                   \
    "{'type':'Metaspace','replacement':'\\u2581','prepend_scheme':'" scheme "','split':" split "}"
#define SPM                                                                                        \
    "{'type':'BPE','unk_token':'<unk>','byte_fallback':true,'fuse_unk':true,'vocab':{'<unk>':0,"   \
    "'\\u2581':1,'a':2,'b':3,'\\u2581a':4,'b\\u2581':5,'<0xC3>':6,'<0xA9>':7},'merges':"           \
    "[['b','\\u2581'],['\\u2581','a']]}"
#define TAG "{'id':8,'content':'<t>','special':true,'normalized':false}"

/* ---- WordPiece and Unigram ---- */

#define PIECES                                                                                     \
    "{'type':'WordPiece','unk_token':'[UNK]','continuing_subword_prefix':'##',"                    \
    "'max_input_chars_per_word':6,'vocab':{'[UNK]':0,'[CLS]':1,'[SEP]':2,'a':3,'##b':4,'ab':5,"    \
    "'##c':6,'!':7,'##ab':8}}"
#define BERT_ADDED                                                                                 \
    "{'id':1,'content':'[CLS]','special':true},{'id':2,'content':'[SEP]','special':true}"
#define BERT_ENDS "{'type':'BertProcessing','sep':['[SEP]',2],'cls':['[CLS]',1]}"

#define UNIGRAM(options)                                                                           \
    "{'type':'Unigram','unk_id':0," options "'vocab':[['<unk>',0],['\\u2581',-2],['a',-3],"        \
    "['b',-3.5],['ab',-5],['\\u2581a',-4],['<0xC3>',-9],['<0xA9>',-9]]}"

#endif
