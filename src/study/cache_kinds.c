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

#define CACHE_FIELDS(type)                                                                         \
    {"length", FIELD_COUNT, offsetof(type, common.length), NULL, 0, MOST},                         \
        {"alone", FIELD_COUNT, offsetof(type, common.alone), NULL, 0, MOST}, {                     \
        "only_all", FIELD_FLAG, offsetof(type, common.only_all), NULL, 0, 0                        \
    }

#define KIND(id, kind, what, options)                                                              \
    const study_kind qkv_study_##id = {.name = (kind),                                             \
                                       .title = (what),                                            \
                                       .fields = id##_fields,                                      \
                                       .n_fields = sizeof id##_fields / sizeof *id##_fields,       \
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
    STUDY_FIELD(streaming_options, sinks, TEXT, 0, MOST_LIST),
    STUDY_FIELD(streaming_options, recent, COUNT, 0, MOST),
    STUDY_FIELD(streaming_options, mean_map, FLAG, 0, 0),
    STUDY_FIELD(streaming_options, maps, TEXT, 0, MOST_LIST),
    STUDY_FIELD(streaming_options, map_length, COUNT, 0, 1024),
    STUDY_WORDS(streaming_options, positions, "paper|text|cache")};

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
    int status = qkv_cache_study(study, in, &q, err);
    if (status == QKV_OK && (o->mean_map || o->maps))
        status = qkv_mean_maps(study, in, o->maps, o->map_length ? o->map_length : 16, err);
    return status;
}

KIND(streaming, "streaming-llm",
     "StreamingLLM: perplexity with the first keys and the most recent ones (Xiao et al.)",
     streaming_options);

/* ---- H2O ---- */

typedef struct h2o_options {
    cache_options common;
    const char *budgets; /* NULL: 8,16,32,48 */
    int64_t recent;      /* 0: half of the budget */
    int64_t prompt;
    int rule;
} h2o_options;

static const field h2o_fields[] = {CACHE_FIELDS(h2o_options),
                                   STUDY_FIELD(h2o_options, budgets, TEXT, 0, MOST_LIST),
                                   STUDY_FIELD(h2o_options, recent, COUNT, 0, MOST),
                                   STUDY_FIELD(h2o_options, prompt, COUNT, 0, MOST),
                                   STUDY_WORDS(h2o_options, rule, "paper|lm_eval")};

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

KIND(h2o, "h2o", "H2O: perplexity against the budget of keys, per layer and head (Zhang et al.)",
     h2o_options);

/* ---- SnapKV ---- */

typedef struct snapkv_options {
    cache_options common;
    const char *budgets; /* NULL: 12,16,24,32 */
    int64_t window;      /* 0: 8 */
    int64_t kernel;      /* 0: 5, as in the code */
    int pool;
    int64_t prompt; /* 0: 48 */
} snapkv_options;

static const field snapkv_fields[] = {CACHE_FIELDS(snapkv_options),
                                      STUDY_FIELD(snapkv_options, budgets, TEXT, 0, MOST_LIST),
                                      STUDY_FIELD(snapkv_options, window, COUNT, 0, MOST),
                                      STUDY_FIELD(snapkv_options, kernel, COUNT, 0, MOST),
                                      STUDY_WORDS(snapkv_options, pool, "avg|max"),
                                      STUDY_FIELD(snapkv_options, prompt, COUNT, 0, MOST)};

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
    q.from = snapkv_prompt(o) + 1; /* the first token that a query behind the prompt predicts */
    return qkv_cache_study(study, in, &q, err);
}

KIND(snapkv, "snapkv",
     "SnapKV: perplexity behind a compressed prompt, per layer and head (Li et al.)",
     snapkv_options);

/* ---- KIVI ---- */

typedef struct kivi_options {
    cache_options common;
    const char *bits;    /* NULL: 1,2,3,4,8 */
    int64_t group, keep; /* 0: 16 */
    int per;             /* PER_… */
    int64_t prompt;      /* of PER_QUERY */
} kivi_options;

enum { PER_QUERY, PER_TEXT };

static const field kivi_fields[] = {CACHE_FIELDS(kivi_options),
                                    STUDY_FIELD(kivi_options, bits, TEXT, 0, MOST_LIST),
                                    STUDY_FIELD(kivi_options, group, COUNT, 0, MOST),
                                    STUDY_FIELD(kivi_options, keep, COUNT, 0, MOST),
                                    STUDY_WORDS(kivi_options, per, "query|text"),
                                    STUDY_FIELD(kivi_options, prompt, COUNT, 0, MOST)};

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

KIND(kivi, "kivi",
     "KIVI: perplexity against the bits of the cache, per layer and head (Liu et al.)",
     kivi_options);
