/*
 * The pre-tokenisers that are known: names, patterns, flags. Data only.
 *
 * Patterns are PCRE2's, in Unicode mode. They are those of the models' own tokenizer files, with
 * two changes that leave their meaning alone: white space is written as the property White_Space
 * (PCRE2's \s also takes U+180E), and a pattern that would be tried at every space of a long run
 * starts only where the run does.
 */
#ifndef QKV_TOKENIZER_PRETOKENIZER_LIST_H
#define QKV_TOKENIZER_PRETOKENIZER_LIST_H

#define SP "\\p{White_Space}"
#define NOT_SP "\\P{White_Space}"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TRAILING_SP SP "+(?!" NOT_SP ")"
#define LINES_AND_SP SP "*[\\r\\n]+|" TRAILING_SP "|" SP "+"

#define GPT2_WORDS                                                                                 \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SP "\\p{L}\\p{N}]+|" TRAILING_SP

/* Words of letters with one leading sign, numbers of up to so many digits, signs, line ends. */
#define MODERN_WORDS(digits)                                                                       \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits "| ?[^" SP                                \
                "\\p{L}\\p{N}]+[\\r\\n]*|" LINES_AND_SP

#define QWEN35_WORDS                                                                               \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" SP                            \
                "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES_AND_SP

/* Words end where a capital follows a small letter. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_WORDS(ending, digits)                                                                \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ending "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER  \
    "*" ending "|" digits "| ?[^" SP "\\p{L}\\p{N}]+[\\r\\n/]*|" LINES_AND_SP

/* Letters with case, as a list rather than a property. */
#define DEEPSEEK_LETTERS                                                                           \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-"        \
    "\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}"          \
    "\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}"         \
    "\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-"           \
    "\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}"        \
    "\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-"       \
    "\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-"         \
    "\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-"        \
    "\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}"        \
    "\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}"          \
    "\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-"        \
    "\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-"         \
    "\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"         \
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-"       \
    "\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-"              \
    "\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-"         \
    "\\x{118DF}\\x{1E900}-\\x{1E943}"
#define DEEPSEEK_SIGNS                                                                             \
    "!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}"
#define DEEPSEEK_CJK "\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}"
#define DEEPSEEK3_CJK "\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}"
#define DEEPSEEK3_WORDS                                                                            \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"                                        \
    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES_AND_SP

#define BLOOM_WORDS                                                                                \
    " ?[^(" SP "|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"

/* Taken whole when a token as a whole; BOS by default. */
#define WHOLE 1
#define BOS 2

/* X(name, flags, patterns...) */
#define QKV_PRETOKENIZER_LIST(X)                                                                   \
    X("default", 0, "[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2_WORDS, "\\p{N}+", "[0-9][0-9][0-9]")         \
    X("gpt-2", 0, GPT2_WORDS)                                                                      \
    X("phi-2", 0, GPT2_WORDS)                                                                      \
    X("mpt", 0, GPT2_WORDS)                                                                        \
    X("olmo", 0, GPT2_WORDS)                                                                       \
    X("jais", 0, GPT2_WORDS)                                                                       \
    X("exaone4", 0, GPT2_WORDS)                                                                    \
    X("trillion", 0, GPT2_WORDS)                                                                   \
    X("granite-docling", 0, GPT2_WORDS)                                                            \
    X("modern-bert", 0, GPT2_WORDS)                                                                \
    X("roberta-bpe", 0, GPT2_WORDS)                                                                \
    X("jina-v1-en", 0, GPT2_WORDS)                                                                 \
    X("jina-v2-es", 0, GPT2_WORDS)                                                                 \
    X("jina-v2-de", 0, GPT2_WORDS)                                                                 \
    X("jina-v2-code", 0, GPT2_WORDS)                                                               \
    X("smollm", 0, "\\p{N}", GPT2_WORDS)                                                           \
    X("starcoder", 0, "\\p{N}", GPT2_WORDS)                                                        \
    X("refact", 0, "\\p{N}", GPT2_WORDS)                                                           \
    X("command-r", 0, "\\p{N}", GPT2_WORDS)                                                        \
    X("codeshell", 0, "\\p{N}", GPT2_WORDS)                                                        \
    X("exaone", 0, "\\p{N}", GPT2_WORDS)                                                           \
    X("minerva-7b", 0, "\\p{N}", GPT2_WORDS)                                                       \
    X("falcon", 0, "[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2_WORDS, "[0-9][0-9][0-9]")                    \
    X("llama-bpe", WHOLE | BOS, MODERN_WORDS("\\p{N}{1,3}"))                                       \
    X("llama3", WHOLE | BOS, MODERN_WORDS("\\p{N}{1,3}"))                                          \
    X("llama-v3", WHOLE | BOS, MODERN_WORDS("\\p{N}{1,3}"))                                        \
    X("falcon3", WHOLE | BOS, MODERN_WORDS("\\p{N}{1,3}"))                                         \
    X("falcon-h1", WHOLE | BOS, MODERN_WORDS("\\p{N}{1,3}"))                                       \
    X("pixtral", WHOLE | BOS, MODERN_WORDS("\\p{N}{1,3}"))                                         \
    X("midm-2.0", WHOLE | BOS, MODERN_WORDS("\\p{N}{1,3}"))                                        \
    X("lfm2", WHOLE | BOS, MODERN_WORDS("\\p{N}{1,3}"))                                            \
    X("dbrx", 0, MODERN_WORDS("\\p{N}{1,3}"))                                                      \
    X("smaug-bpe", 0, MODERN_WORDS("\\p{N}{1,3}"))                                                 \
    X("glm4", 0, MODERN_WORDS("\\p{N}{1,3}"))                                                      \
    X("chatglm-bpe", 0, MODERN_WORDS("\\p{N}{1,3}"))                                               \
    X("qwen2", 0, MODERN_WORDS("\\p{N}"))                                                          \
    X("deepseek-r1-qwen", 0, MODERN_WORDS("\\p{N}"))                                               \
    X("stablelm2", 0, MODERN_WORDS("\\p{N}"))                                                      \
    X("megrez", 0, MODERN_WORDS("\\p{N}"))                                                         \
    X("hunyuan", 0, MODERN_WORDS("\\p{N}"))                                                        \
    X("grok-2", 0, MODERN_WORDS("\\p{N}"))                                                         \
    X("qwen35", 0, QWEN35_WORDS)                                                                   \
    X("tekken", WHOLE | BOS, CASED_WORDS("", "\\p{N}"))                                            \
    X("gpt-4o", 0, CASED_WORDS(CONTRACTION "?", "\\p{N}{1,3}"))                                    \
    X("llama4", 0, CASED_WORDS(CONTRACTION "?", "\\p{N}{1,3}"))                                    \
    X("deepseek-coder", 0, "[\\r\\n]", SP "?\\p{L}+", SP "?\\p{P}+", "[" DEEPSEEK_CJK "]+",        \
      "\\p{N}")                                                                                    \
    X("deepseek-llm", 0, "[\\r\\n]", SP "?[" DEEPSEEK_LETTERS "]+", SP "?[" DEEPSEEK_SIGNS "]+",   \
      "(?<!" SP ")" SP "++$", "[" DEEPSEEK_CJK "]+", "\\p{N}+")                                    \
    X("deepseek-v3", 0, "\\p{N}{1,3}", "[" DEEPSEEK3_CJK "]+", DEEPSEEK3_WORDS)                    \
    X("bloom", 0, BLOOM_WORDS)                                                                     \
    X("poro-chat", 0, BLOOM_WORDS)                                                                 \
    X("gpt3-finnish", 0, BLOOM_WORDS)                                                              \
    X("viking", 0, BLOOM_WORDS, "\\p{N}")

#endif
