/*
 * Every kind of model x every site x every operation: the library against the scalar reference, on
 * everything that can be captured, with the counts of what each edit selected and changed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/ref_cases.h"
#include "reference/ref_forward.h"
#include "support/compare.h"
#include "support/dice.h"
#include "support/engine.h"
#include "support/judge.h"
#include "support/scratch.h"
#include "support/tiny_model.h"

enum { T = JUDGE_TOKENS, TEXT_SIZE = REF_TEXT_SIZE };

/* X(name, options...) */
/* clang-format off */
#define MODEL_LIST(X)                                                                              \
    X(llama_mha, .family = "llama")                                                                \
    X(llama_gqa_biases, "llama", .n_kv_head = 2, .qkv_bias = 1, .out_bias = 1)                     \
    X(llama_mqa_untied, "llama", .n_kv_head = 1, .untied = 1)                                      \
    X(llama_window, "llama", .n_kv_head = 2, .window = 4)                                          \
    X(llama_linear, "llama", .n_kv_head = 2, .rope = TINY_ROPE_LINEAR)                             \
    X(llama_yarn, "llama", .rope = TINY_ROPE_YARN)                                                 \
    X(llama_llama3, "llama", .n_kv_head = 2, .rope = TINY_ROPE_LLAMA3)                             \
    X(llama_wide_heads, "llama", .n_kv_head = 2, .head_dim = 12, .qkv_bias = 1)                    \
    X(llama_ffn_biases, "llama", .ffn_bias = 1, .window = 1)                                       \
    X(phi3_longrope, "phi3", .n_kv_head = 2, .window = 4, .rope = TINY_ROPE_LONG)                  \
    X(phi3_beyond, "phi3", .n_kv_head = 2, .rope = TINY_ROPE_LONG, .rope_context = T - 1)          \
    X(gpt2, .family = "gpt2")                                                                      \
    X(gpt2_wide, "gpt2", .n_embd = 48, .n_head = 3, .n_kv_head = 3, .head_dim = 16, .n_layer = 2)
/* clang-format on */

static void open_tiny(judge *j, const tiny_options *options, int n_threads) {
    judge_open(j, tiny_model(options, "conformance.gguf"), n_threads);
}

static void check_variant(const judge *j, const qkv_result *result, size_t variant,
                          const ref_edit *edits, size_t n, const char *text) {
    ref_run *expected = ref_forward(j->ref, j->tokens, T, edits, n, j->source);
    judge_variant(j, result, variant, expected, edits, n, text);
    ref_run_free(expected);
}

/* ---- every site x every operation x four selectors ---- */

static void check_model(const tiny_options *options) {
    judge f;
    open_tiny(&f, options, 1);
    ref_cases *list = ref_make_cases(f.ref, T);
    qkv_result *result = judge_run(&f, list->variants, judge_everything(&f));
    judge_tensors(&f, result, 0, f.baseline, "baseline");
    for (size_t i = 0; i < list->n; i++)
        check_variant(&f, result, i + 1, &list->edits[i], 1, list->text[i]);
    qkv_result_free(result);
    judge_groups(&f, list);
    free(list);
    judge_close(&f);
}

#define MODEL_TEST(name, ...)                                                                      \
    static void conformance_of_##name(void **state) {                                              \
        (void)state;                                                                               \
        check_model(&(tiny_options){__VA_ARGS__});                                                 \
    }
MODEL_LIST(MODEL_TEST)
#undef MODEL_TEST

/* ---- identity ---- */

static void check_identity(const tiny_options *options) {
    judge f;
    open_tiny(&f, options, 1);
    judge_identity(&f);
    judge_close(&f);
}

static void identity_is_exact(void **state) {
    (void)state;
    check_identity(&(tiny_options){"llama", .n_kv_head = 2});
    check_identity(&(tiny_options){.family = "gpt2"});
}

/* ---- several edits ---- */

/* clang-format off */
static const struct {
    size_t n;
    ref_edit edits[3];
} combined[] = {
    /* the mean is taken over the unedited heads, whatever else is edited */
    {3, {{QKV_SITE_Q, 1 << 1, 'h', 1 << 0, .op = REF_MEAN_HEAD},
         {QKV_SITE_Q, 1 << 1, 'h', 1 << 1, .op = REF_ZERO},
         {QKV_SITE_Q, 1 << 1, 'h', 1 << 3, .op = REF_SCALE, .a = 5}}},
    {2, {{QKV_SITE_K, 1 << 1, 'g', 1 << 0, .op = REF_MEAN_HEAD},
         {QKV_SITE_K, 1 << 1, 'h', 1 << 3, .op = REF_SCALE, .a = -2}}},
    {2, {{QKV_SITE_K, 1 << 1, 'h', 1 << 0, .op = REF_MEAN_OTHERS},
         {QKV_SITE_K, 1 << 1, 'h', 1 << 3, .op = REF_SCALE, .a = -2}}},
    {2, {{QKV_SITE_V, 1 << 1, 'h', 1 << 0, .op = REF_MEAN_HEAD},
         {QKV_SITE_V, 1 << 1, 'h', 1 << 1, .op = REF_SET, .a = 1}}},
    {2, {{QKV_SITE_Q, 0, 0, 0, {0, 4}, .op = REF_MEAN_TOKEN},
         {QKV_SITE_Q, 0, 0, 0, {4, T}, .op = REF_ADD, .a = 1}}},
    {2, {{QKV_SITE_PATTERN, 1 << 0, 'h', 1 << 2, {0, 0}, {0, 1}, .op = REF_ZERO},
         {QKV_SITE_PATTERN, 1 << 0, 'h', 1 << 2, {0, 0}, {1, 2}, .op = REF_MEAN_TOKEN}}},
    {3, {{QKV_SITE_K, 1 << 0, 'h', 1 << 1, .op = REF_SCALE, .a = 0.5},
         {QKV_SITE_K_ROT, 1 << 0, 'h', 1 << 2, .op = REF_ADD, .a = 0.5},
         {QKV_SITE_SCORES, 1 << 0, 'h', 1 << 1, {5, 6}, .op = REF_ZERO}}},
    {3, {{QKV_SITE_RESID_POST, 1 << 0, .op = REF_SCALE, .a = 0.9},
         {QKV_SITE_RESID_PRE, 1 << 1, .op = REF_ADD, .a = 0.1},
         {QKV_SITE_LOGITS, 0, 0, 0, {3, 4}, .op = REF_ZERO}}},
    /* masks beside other edits of the same rows; what is left is made to sum to 1 */
    {2, {{QKV_SITE_SCORES, 1 << 1, 'h', 1 << 2, {3, 7}, {0, 1}, .op = REF_MASK},
         {QKV_SITE_SCORES, 1 << 1, 'h', 1 << 2, {3, 7}, {1, 4}, .op = REF_ADD, .a = 2}}},
    {3, {{QKV_SITE_SCORES, 0, 'h', 1 << 0, .op = REF_MASK_BAND, .a = 1},
         {QKV_SITE_SCORES, 0, 'h', 1 << 1, .op = REF_MASK_RULE, .a = 0, .b = 4},
         {QKV_SITE_PATTERN, 1 << 2, 'h', 1 << 1, .op = REF_SCALE, .a = 2}}},
    /* channels apart do not overlap, and means are those of all channels */
    {3, {{QKV_SITE_Q, 1 << 1, 'h', 1 << 1, .channels = {0, 3}, .op = REF_MEAN_DIM},
         {QKV_SITE_Q, 1 << 1, 'h', 1 << 1, .channels = {3, 5}, .op = REF_ZERO},
         {QKV_SITE_K, 1 << 1, 'h', 1 << 3, .channels = {7, 8}, .op = REF_SCALE, .a = 3}}},
    /* what single heads read, and what they make of it; of groups that are split */
    {3, {{QKV_SITE_Q_IN, 1 << 1, 'h', 1 << 3, .op = REF_PATCH},
         {QKV_SITE_Q_IN, 1 << 1, 'h', 1 << 0 | 1 << 2, {2, 5}, .op = REF_NOISE, .a = 0.5},
         {QKV_SITE_Q, 1 << 1, 'h', 1 << 3, .op = REF_SCALE, .a = 2}}},
    {3, {{QKV_SITE_K_IN, 1 << 1, 'g', 1 << 0, {0, 3}, .op = REF_ZERO},
         {QKV_SITE_K_IN, 1 << 1, 'h', 1 << 1, {3, 6}, .op = REF_MEAN_TOKEN},
         {QKV_SITE_K, 1 << 1, 'h', 1 << 3, .op = REF_ADD, .a = 1}}},
    {3, {{QKV_SITE_V_IN, 0, 'h', 1 << 2, .op = REF_SCALE, .a = -1},
         {QKV_SITE_RESID_PRE, 1 << 1, 0, 0, {1, 4}, .op = REF_PATCH},
         {QKV_SITE_Q_IN, 1 << 2, 'h', 1 << 2, .op = REF_SET, .a = 0.3}}},
    {2, {{QKV_SITE_Z, 1 << 0, 'h', 1 << 0, .op = REF_PATCH},
         {QKV_SITE_MLP_OUT, 1 << 1, 0, 0, {2, 3}, .op = REF_PATCH}}},
};
/* clang-format on */

enum { COMBINED = sizeof combined / sizeof *combined, JOINED_SIZE = 4 * TEXT_SIZE };

static void join(const ref_edit *edits, size_t n, int backwards, char out[JOINED_SIZE]) {
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        char text[TEXT_SIZE];
        ref_edit_text(&edits[backwards ? n - 1 - i : i], text, sizeof text);
        if (i) strcat(out, " + ");
        strcat(out, text);
    }
}

static void check_same_tensors(const qkv_result *a, size_t va, const qkv_result *b, size_t vb,
                               double allowed, const char *text) {
    size_t variant = 0;
    qkv_site site = QKV_SITE_Q;
    int32_t layer = 0;
    qkv_tensor t = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(a, i, &variant, &site, &layer, &t); i++) {
        if (variant != va) continue;
        const qkv_tensor u = engine_tensor(b, vb, site, layer);
        assert_int_equal(tensor_count(&t), tensor_count(&u));
        const difference d = compare_floats(t.data, u.data, tensor_count(&t));
        if (d.max > allowed * fmax(d.scale, 1))
            fail_msg("'%s': %s of layer %d differs by %g", text, qkv_site_name(site), (int)layer,
                     d.max);
    }
}

static void several_edits_at_once(void **state) {
    (void)state;
    judge f;
    char text[2 * COMBINED][JOINED_SIZE];
    const char *variants[2 * COMBINED + 1] = {NULL};
    open_tiny(&f, &(tiny_options){"llama", .n_kv_head = 2}, 2);
    for (size_t i = 0; i < 2 * COMBINED; i++) {
        join(combined[i / 2].edits, combined[i / 2].n, (int)(i % 2), text[i]);
        variants[i] = text[i];
    }
    qkv_result *result = judge_run(&f, variants, judge_everything(&f));
    for (size_t i = 0; i < COMBINED; i++) {
        check_variant(&f, result, 2 * i + 1, combined[i].edits, combined[i].n, text[2 * i]);
        check_same_tensors(result, 2 * i + 1, result, 2 * i + 2, 0, text[2 * i + 1]);
        for (size_t k = 0; k < combined[i].n; k++) {
            char edit[TEXT_SIZE];
            ref_edit_text(&combined[i].edits[k], edit, sizeof edit);
            assert_string_equal(qkv_result_edit_text(result, 2 * i + 1, k), edit);
        }
    }
    qkv_result_free(result);
    judge_close(&f);
}

/* ---- random edits ---- */

enum { RANDOM_VARIANTS = 300 };

static uint64_t random_set(dice *d, int n) {
    return dice_below(d, 3) == 0 ? 0 : 1 + dice_below(d, ((uint64_t)1 << n) - 1);
}

static ref_range random_range(dice *d) {
    const int begin = (int)dice_below(d, T);
    const ref_range some = {begin, begin + 1 + (int)dice_below(d, (uint64_t)(T - begin))};
    return dice_below(d, 2) ? some : (ref_range){0, 0};
}

static ref_edit random_edit(const judge *f, dice *d, qkv_site site) {
    ref_edit e = {.site = site, .op = (ref_op)dice_below(d, REF_OP_COUNT)};
    if (e.op == REF_MEAN_HEAD && (!ref_has_heads(site) || site == QKV_SITE_K_ROT)) e.op = REF_PATCH;
    if (e.op == REF_MEAN_OTHERS && (!ref_has_other_heads(f->ref, site) || site == QKV_SITE_K_ROT))
        e.op = REF_PATCH;
    /* channels of a row cancel in their mean, and a norm makes the rounding that is left large */
    if (e.op == REF_MEAN_DIM &&
        (site == QKV_SITE_RESID_PRE || site == QKV_SITE_RESID_POST || ref_is_input(site)))
        e.op = REF_PATCH;
    if (!ref_allows(site, e.op) || e.op == REF_MASK) e.op = REF_PATCH;
    e.layers = random_set(d, f->ref->n_layer);
    if (ref_has_heads(site) && dice_below(d, 4)) {
        e.head_kind = ref_is_shared(site) && dice_below(d, 2) ? 'g' : 'h';
        e.heads = random_set(d, e.head_kind == 'g' ? f->ref->G : f->ref->H);
    }
    e.rows = random_range(d);
    if (ref_is_map(site))
        e.cols = random_range(d);
    else if (dice_below(d, 2) && e.op != REF_REMOVE_VECTOR)
        e.channels = (ref_range){(int)dice_below(d, 4), 4 + (int)dice_below(d, 4)};
    /* Selected cells that are all masked are refused; those of the diagonal are not masked. */
    if (ref_is_compression(e.op)) e.cols = (ref_range){0, 0};
    const int apart = e.cols.end <= e.rows.begin || e.rows.end <= e.cols.begin;
    if (e.cols.end && e.rows.end && apart) e.cols = e.rows;
    if (e.op == REF_MASK_CACHE && !ref_can_move(f->ref, &e)) e.op = REF_PATCH;
    ref_choose_arguments(&e);
    ref_choose_vector(f->ref, T, &e, (int)dice_below(d, 3));
    return e;
}

/* A mean over heads of a group that was split before is the library's own. */
static void avoid_split_means(ref_edit *edits, size_t n, uint64_t used) {
    for (size_t i = 0; i < n; i++) {
        const uint64_t before = edits[i].site == QKV_SITE_K   ? QKV_SITE_K_IN
                                : edits[i].site == QKV_SITE_V ? QKV_SITE_V_IN
                                                              : QKV_SITE_COUNT;
        if ((edits[i].op == REF_MEAN_HEAD || edits[i].op == REF_MEAN_OTHERS) && used >> before & 1)
            edits[i].op = REF_PATCH;
    }
}

/* One to four edits at different sites, so that they cannot overlap. */
static size_t random_variant(const judge *f, dice *d, ref_edit edits[4]) {
    const size_t n = 1 + (size_t)dice_below(d, 4);
    uint64_t used = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t site = dice_below(d, QKV_SITE_COUNT);
        while (used >> site & 1 || !ref_has_site(f->ref, (qkv_site)site))
            site = dice_below(d, QKV_SITE_COUNT);
        used |= (uint64_t)1 << site;
        edits[i] = random_edit(f, d, (qkv_site)site);
    }
    avoid_split_means(edits, n, used);
    return n;
}

static void check_random_edits(const tiny_options *options, uint64_t seed) {
    static char text[RANDOM_VARIANTS][JOINED_SIZE];
    static ref_edit edits[RANDOM_VARIANTS][4];
    size_t n[RANDOM_VARIANTS];
    const char *variants[RANDOM_VARIANTS + 1] = {NULL};
    judge f;
    dice d = {seed};
    open_tiny(&f, options, 1);
    for (size_t i = 0; i < RANDOM_VARIANTS; i++) {
        n[i] = random_variant(&f, &d, edits[i]);
        join(edits[i], n[i], 0, text[i]);
        variants[i] = text[i];
    }
    qkv_result *result = judge_run(&f, variants, judge_everything(&f));
    for (size_t i = 0; i < RANDOM_VARIANTS; i++)
        check_variant(&f, result, i + 1, edits[i], n[i], text[i]);
    qkv_result_free(result);
    judge_close(&f);
}

static void random_edits(void **state) {
    (void)state;
    check_random_edits(&(tiny_options){"llama", .n_kv_head = 2, .qkv_bias = 1}, 41);
    check_random_edits(&(tiny_options){"llama", .n_kv_head = 1, .window = 3}, 42);
    check_random_edits(&(tiny_options){.family = "gpt2"}, 43);
}

/* ---- other lengths of the prompt ---- */

static void check_length(engine *e, const ref_model *ref, int n_tokens) {
    static const char *const captures[] = {"pattern", "logits", NULL};
    int32_t tokens[64] = {1};
    dice d = {(uint64_t)n_tokens};
    for (int t = 1; t < n_tokens; t++) tokens[t] = (int32_t)dice_below(&d, TINY_VOCAB);
    ref_run *expected = ref_forward(ref, tokens, n_tokens, NULL, 0, NULL);
    qkv_result *result = engine_execute(
        e, &(engine_run){.tokens = tokens, .n_tokens = (size_t)n_tokens, .captures = captures});
    for (int il = 0; il <= ref->n_layer; il++) {
        const qkv_site site = il == ref->n_layer ? QKV_SITE_LOGITS : QKV_SITE_PATTERN;
        const int layer = site == QKV_SITE_LOGITS ? 0 : il;
        const qkv_tensor t = engine_tensor(result, 0, site, layer);
        const difference diff =
            compare_to_doubles(t.data, expected->site[site][layer], tensor_count(&t));
        if (diff.max > judge_bound * fmax(diff.scale, 1))
            fail_msg("%d tokens: %s is off by %g", n_tokens, qkv_site_name(site), diff.max);
    }
    qkv_result_free(result);
    ref_run_free(expected);
}

static void prompts_of_other_lengths(void **state) {
    (void)state;
    static const tiny_options models[] = {{.family = "gpt2"},
                                          {"llama", .n_kv_head = 2, .window = 7},
                                          {"llama", .rope = TINY_ROPE_YARN},
                                          {"phi3", .n_kv_head = 2, .rope = TINY_ROPE_LONG}};
    /* 16 is the original context of the last two */
    static const int lengths[] = {1, 2, 3, 16, 17, 33, 64};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        engine e;
        const char *path = tiny_model(&models[m], "lengths.gguf");
        ref_model *ref = ref_model_load(path);
        engine_open(&e, path, 1);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            check_length(&e, ref, lengths[i]);
        engine_close(&e);
        ref_model_free(ref);
    }
}

static void alone_as_in_company(void **state) {
    (void)state;
    judge f;
    char text[COMBINED][JOINED_SIZE];
    const char *variants[COMBINED + 1] = {NULL};
    open_tiny(&f, &(tiny_options){"llama", .n_kv_head = 2, .window = 4}, 1);
    for (size_t i = 0; i < COMBINED; i++) {
        join(combined[i].edits, combined[i].n, 0, text[i]);
        variants[i] = text[i];
    }
    qkv_result *together = judge_run(&f, variants, judge_everything(&f));
    for (size_t i = 0; i < COMBINED; i++) {
        qkv_result *alone =
            judge_run(&f, (const char *const[]){text[i], NULL}, judge_everything(&f));
        check_same_tensors(alone, 0, together, 0, 1e-5, "baseline");
        check_same_tensors(alone, 1, together, i + 1, 1e-5, text[i]);
        qkv_result_free(alone);
    }
    qkv_result_free(together);
    judge_close(&f);
}

int main(void) {
#define MODEL_ENTRY(name, ...) cmocka_unit_test(conformance_of_##name),
    const struct CMUnitTest tests[] = {
        MODEL_LIST(MODEL_ENTRY) cmocka_unit_test(identity_is_exact),
        cmocka_unit_test(several_edits_at_once),
        cmocka_unit_test(alone_as_in_company),
        cmocka_unit_test(random_edits),
        cmocka_unit_test(prompts_of_other_lengths),
    };
#undef MODEL_ENTRY
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
