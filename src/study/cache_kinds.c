/*
 * The studies of small caches: StreamingLLM (arXiv 2309.17453), H2O (2306.14048), SnapKV (2404.14469) and
 * KIVI (2402.02750). Each says how its edit is written; docs/studies.md says what differs from the papers'
 * own code.
 */
#include "study/cache_study.h"

#include <string.h>

enum { MOST = 1 << 24, MOST_LIST = 4096 };

/* Options that all of them have. */
typedef struct cache_options {
    int64_t length; /* tokens of each prompt */
    int64_t alone;  /* the setting of heads alone */
    int32_t only_all;
} cache_options;

#define CACHE_FIELD(type, member, kind, most, value, help)                                         \
    {                                                                                              \
#member, FIELD_##kind, offsetof(type, common) + offsetof(cache_options, member), NULL, 0,  \
            most, value, help, NULL, NULL                                                          \
    }
#define CACHE_FIELDS(type)                                                                         \
    CACHE_FIELD(type, length, COUNT, MOST, "N", "tokens of each prompt that count (default all)"), \
        CACHE_FIELD(type, alone, COUNT, MOST, "N",                                                 \
                    "the setting with which each head alone is tried (default: the first)"),       \
        CACHE_FIELD(type, only_all, FLAG, 0, NULL,                                                 \
                    "all layers at once only: neither layers nor heads alone")
#define COUNT_FIELD(type, member, help) FIELD(type, member, COUNT, "N", 0, MOST, help)
/* Not `prompt`: that is a text, and its option -p. */
#define PROMPT_FIELD(type, help)                                                                   \
    {                                                                                              \
        "prompt_tokens", FIELD_COUNT, offsetof(type, prompt), NULL, 0, MOST, "N", help, NULL,      \
            "prompt"                                                                               \
    }
#define LIST_FIELD(type, member, help) FIELD(type, member, TEXT, "LIST", 0, MOST_LIST, help)

#define KIND(id, kind, what, about, example, options)                                              \
    const study_kind qkv_study_##id = {.name = (kind),                                             \
                                       .title = (what),                                            \
                                       .description = (about),                                     \
                                       .examples = (example),                                      \
                                       .fields = FIELD_TABLE(id##_fields, QKV_FIELD_WORK),         \
                                       .options_size = sizeof(options),                            \
                                       .least_prompts = 1,                                         \
                                       .most_prompts = 100000,                                     \
                                       .make = make_##id}

static cache_question question_of(const cache_options *o) {
    return (cache_question){.length = o->length,
                            .alone = o->alone,
                            .only_all = o->only_all,
                            .from = 1,
                            .least = 1,
                            .most = MOST};
}

/* ---- StreamingLLM ---- */

typedef struct streaming_options {
    cache_options common;
    const char *sinks; /* NULL: 0,1,2,4 */
    int64_t recent;    /* 0: 16 */
    int32_t mean_map;
    const char *maps;
    int64_t map_length; /* 0: 16, as in the paper's figure */
    int positions;      /* POSITIONS_… */
} streaming_options;

enum { POSITIONS_PAPER, POSITIONS_TEXT, POSITIONS_CACHE };

static const field streaming_fields[] = {
    CACHE_FIELDS(streaming_options),
    LIST_FIELD(streaming_options, sinks, "first keys that every query sees (default 0,1,2,4)"),
    COUNT_FIELD(streaming_options, recent,
                "most recent keys that a query sees, its own included (default 16)"),
    FIELD_FLAGGED(streaming_options, mean_map,
                  "also the mean maps of scores and of weights over the first tokens"),
    FIELD(streaming_options, maps, TEXT, "HEADS", 0, MOST_LIST,
          "heads of the mean maps, as in a capture: 0-3.h2 (default: head 0 of some layers)"),
    FIELD(streaming_options, map_length, COUNT, "N", 1, 1024,
          "tokens of the mean maps (default 16)"),
    FIELD_WORDS(
        streaming_options, positions, "paper|text|cache",
        "positions of keys: within the cache where the model has RoPE (default), in the text, or within the cache")};

static void write_streaming(qkv_text *out, const void *given, int64_t sink, const char *place) {
    const streaming_options *o = given;
    qkv_text_printf(out, "scores@%s=mask:sink=%lld,recent=%lld", place, (long long)sink,
                    (long long)(o->recent ? o->recent : 16));
    if (o->positions == POSITIONS_CACHE) qkv_text_puts(out, ",positions=cache");
}

/* The paper's positions are those in the cache, where a model has any that can be counted anew. */
static int positions_of(const streaming_options *o, const study_inputs *in, qkv_study *study) {
    if (o->positions != POSITIONS_PAPER) return o->positions;
    if (strncmp(qkv_model_get_info(in->model)->position, "rope", 4) == 0) return POSITIONS_CACHE;
    qkv_study_note(study, "positions are those of the text: the model has no RoPE");
    return POSITIONS_TEXT;
}

static int make_streaming(qkv_study *study, const study_inputs *in, const void *given,
                          qkv_error *err) {
    streaming_options chosen = *(const streaming_options *)given;
    const streaming_options *o = &chosen;
    chosen.positions = positions_of(o, in, study);
    cache_question q = question_of(&o->common);
    q.name = "StreamingLLM";
    q.title = "StreamingLLM: Sinks and the Most Recent Keys";
    q.setting = "sink";
    q.axis = "First keys that stay";
    q.settings = o->sinks ? o->sinks : "0,1,2,4";
    q.least = 0;
    q.write = write_streaming;
    q.options = o;
    const int has_maps = o->mean_map || o->maps;
    int status = qkv_study_begin(in, "parts", has_maps ? 2 : 1, err);
    if (status != QKV_OK) return status;
    status = qkv_cache_study(study, in, &q, err);
    if (status == QKV_OK && has_maps)
        status = qkv_mean_maps(study, in, o->maps, o->map_length ? o->map_length : 16, err);
    return qkv_study_end(in, status);
}

KIND(
    streaming, "streaming-llm",
    "StreamingLLM: perplexity with the first keys and the most recent ones (Xiao et al.)",
    "Every query sees the first keys, `sinks` of them, and the `recent` most recent ones; all others are "
    "masked before the softmax (Xiao et al., arXiv 2309.17453). Perplexity over all tokens of the prompts: "
    "all layers at once, every layer alone and every head alone. Keys are numbered within the cache, as in "
    "the paper.\n",
    "qkv streaming-llm -f prompts.txt --length 64 -o streaming.png\n", streaming_options);

/* ---- H2O ---- */

typedef struct h2o_options {
    cache_options common;
    const char *budgets; /* NULL: 8,16,32,48 */
    int64_t recent;      /* 0: half of the budget */
    int64_t prompt;
    int rule;
} h2o_options;

static const field h2o_fields[] = {
    CACHE_FIELDS(h2o_options),
    LIST_FIELD(h2o_options, budgets, "keys that a query sees at most (default 8,16,32,48)"),
    COUNT_FIELD(h2o_options, recent, "how many of them are the most recent ones (default: half)"),
    PROMPT_FIELD(h2o_options, "tokens of the prompt, within which nothing is dropped (default 0)"),
    FIELD_WORDS(
        h2o_options, rule, "paper|lm_eval",
        "how keys are dropped: row by row as in the paper (default), or as its code for evaluation does")};

static void write_h2o(qkv_text *out, const void *given, int64_t budget, const char *place) {
    const h2o_options *o = given;
    const int64_t half = budget > 1 ? budget / 2 : 1;
    qkv_text_printf(out, "scores@%s=keep:h2o,budget=%lld,recent=%lld", place, (long long)budget,
                    (long long)(o->recent ? o->recent : half));
    if (o->prompt) qkv_text_printf(out, ",prompt=%lld", (long long)o->prompt);
    if (o->rule) qkv_text_puts(out, ",rule=lm_eval");
}

static int make_h2o(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
    const h2o_options *o = given;
    cache_question q = question_of(&o->common);
    q.name = "H2O";
    q.title = "H2O: Heavy Hitters and the Most Recent Keys";
    q.setting = "budget";
    q.axis = "Budget (keys)";
    q.settings = o->budgets ? o->budgets : "8,16,32,48";
    q.write = write_h2o;
    q.options = o;
    if (o->prompt) q.from = o->prompt + 1;
    return qkv_cache_study(study, in, &q, err);
}

KIND(
    h2o, "h2o", "H2O: perplexity against the budget of keys, per layer and head (Zhang et al.)",
    "Every query sees at most so many keys: half of them the most recent ones, the others those that got "
    "most attention so far, for each head by itself and row by row (Zhang et al., arXiv 2306.14048). "
    "Perplexity with all layers at once, every layer alone, and every head alone.\n",
    "qkv h2o -f prompts.txt --budgets 8,16 --length 64 -o h2o.png\n", h2o_options);

/* ---- SnapKV ---- */

typedef struct snapkv_options {
    cache_options common;
    const char *budgets; /* NULL: 12,16,24,32 */
    int64_t window;      /* 0: 8 */
    int64_t kernel;      /* 0: 5, as in the code */
    int pool;
    int64_t prompt; /* 0: 48 */
} snapkv_options;

static const field snapkv_fields[] = {
    CACHE_FIELDS(snapkv_options),
    LIST_FIELD(snapkv_options, budgets, "keys of the prompt that stay (default 12,16,24,32)"),
    COUNT_FIELD(snapkv_options, window, "last queries of the prompt, which vote (default 8)"),
    COUNT_FIELD(snapkv_options, kernel, "neighbours over which votes are pooled (default 5)"),
    FIELD_WORDS(snapkv_options, pool, "avg|max",
                "votes are pooled by their mean (default) or their largest"),
    PROMPT_FIELD(snapkv_options, "tokens of the prompt (default 48)")};

static int64_t snapkv_prompt(const snapkv_options *o) {
    return o->prompt ? o->prompt : 48;
}

static void write_snapkv(qkv_text *out, const void *given, int64_t budget, const char *place) {
    const snapkv_options *o = given;
    qkv_text_printf(out,
                    "scores@%s=keep:snapkv,budget=%lld,window=%lld,kernel=%lld,pool=%s,prompt=%lld",
                    place, (long long)budget, (long long)(o->window ? o->window : 8),
                    (long long)(o->kernel ? o->kernel : 5), o->pool ? "max" : "avg",
                    (long long)snapkv_prompt(o));
}

static int make_snapkv(qkv_study *study, const study_inputs *in, const void *given,
                       qkv_error *err) {
    const snapkv_options *o = given;
    cache_question q = question_of(&o->common);
    q.name = "SnapKV";
    q.title = "SnapKV: The Keys That the End of the Prompt Looks At";
    q.setting = "budget";
    q.axis = "Budget (keys of the prompt)";
    q.settings = o->budgets ? o->budgets : "12,16,24,32";
    q.write = write_snapkv;
    q.options = o;
    q.from = snapkv_prompt(o) + 1; /* the first token that a query after the prompt predicts */
    return qkv_cache_study(study, in, &q, err);
}

KIND(
    snapkv, "snapkv",
    "SnapKV: perplexity after a compressed prompt, per layer and head (Li et al.)",
    "The last queries of the prompt vote which of its keys the queries after it still see (Li et al., "
    "arXiv 2404.14469). Perplexity of the tokens that those queries predict: all layers at once, every "
    "layer alone, and every head alone.\n",
    "qkv snapkv -f prompts.txt --prompt-tokens 48 --length 64 -o snapkv.png\n", snapkv_options);

/* ---- KIVI ---- */

typedef struct kivi_options {
    cache_options common;
    const char *bits;    /* NULL: 1,2,3,4,8 */
    int64_t group, keep; /* 0: 16 */
    int per;             /* PER_… */
    int64_t prompt;      /* of PER_QUERY */
} kivi_options;

enum { PER_QUERY, PER_TEXT };

static const field kivi_fields[] = {
    CACHE_FIELDS(kivi_options),
    LIST_FIELD(kivi_options, bits, "bits of a number (default 1,2,3,4,8)"),
    COUNT_FIELD(kivi_options, group, "tokens or channels of a group (default 16)"),
    COUNT_FIELD(kivi_options, keep, "most recent tokens that stay as they are (default 16)"),
    FIELD_WORDS(
        kivi_options, per, "query|text",
        "a query sees what a cache has quantised by then (default), or all tokens quantised"),
    PROMPT_FIELD(kivi_options, "tokens of the prompt, which are quantised at once (default 0)")};

static void write_kivi(qkv_text *out, const void *given, int64_t bits, const char *place) {
    const kivi_options *o = given;
    const long long group = o->group ? o->group : 16, keep = o->keep ? o->keep : 16;
    for (int is_v = 0; is_v < 2; is_v++) {
        qkv_text_printf(out, "%s@%s=quant:bits=%lld,axis=%s,group=%lld,keep=%lld",
                        is_v ? " + v" : "k_rot", place, (long long)bits, is_v ? "token" : "channel",
                        group, keep);
        if (o->per == PER_QUERY) qkv_text_puts(out, ",per=query");
        if (o->prompt) qkv_text_printf(out, ",prompt=%lld", (long long)o->prompt);
    }
}

static int make_kivi(qkv_study *study, const study_inputs *in, const void *given, qkv_error *err) {
    const kivi_options *o = given;
    cache_question q = question_of(&o->common);
    q.name = "KIVI";
    q.title = "KIVI: Keys by Channel, Values by Token";
    q.setting = "bits";
    q.axis = "Bits";
    q.settings = o->bits ? o->bits : "1,2,3,4,8";
    q.most = 8;
    q.per_group = 1;
    q.write = write_kivi;
    q.options = o;
    if (o->prompt && o->per == PER_TEXT)
        return qkv_fail(err, QKV_ERR_ARGUMENT, "`prompt` goes with `per` query");
    if (o->prompt) q.from = o->prompt + 1;
    return qkv_cache_study(study, in, &q, err);
}

KIND(
    kivi, "kivi", "KIVI: perplexity against the bits of the cache, per layer and head (Liu et al.)",
    "Keys after RoPE are rounded in groups of tokens per channel, values in groups of channels per token; a "
    "query sees the most recent tokens as they are (Liu et al., arXiv 2402.02750). Perplexity with all "
    "layers at once, every layer alone, and every key/value head alone.\n",
    "qkv kivi -f prompts.txt --bits 2,4 --length 64 -o kivi.png\n", kivi_options);
