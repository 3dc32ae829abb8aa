/*
 * Every family of tests/vectors x every site x every operation, against the scalar reference and
 * against runs of one variant each: that taps fire, that edits which change nothing change nothing,
 * that known edits do what they say at every later place, and that what the planner leaves out and
 * shares does not show.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model.h"
#include "run/run.h"
#include "support/compare.h"
#include "support/expectations.h"
#include "support/judge.h"
#include "support/scratch.h"
#include "support/stretched.h"
#include "support/without_tensors.h"

/* LONG: two blocks of queries, the second not full. */
enum { T = JUDGE_TOKENS, LONG = 300 };

/* A family with its cases: what the reference makes of each, and the library in a session that ran
 * nothing else. */
typedef struct family {
    judge j;
    ref_cases *list;
    ref_run *expected[REF_MAX_CASES];
    qkv_result *alone[REF_MAX_CASES];
} family;

/* In a session that has computed nothing yet. */
static qkv_result *run_alone(judge *j, const char *edit, const char *const *captures) {
    engine_renew(&j->eng,
                 &(qkv_session_options){.size = sizeof(qkv_session_options), .n_threads = 1});
    return judge_run(j, (const char *const[]){edit, NULL}, captures);
}

static void family_open(family *f, const char *path, int turn) {
    memset(f, 0, sizeof *f);
    judge_open(&f->j, path, 1);
    f->list = ref_make_cases_once(f->j.ref, T, turn);
    for (size_t i = 0; i < f->list->n; i++) {
        f->expected[i] = ref_forward(f->j.ref, f->j.tokens, T, &f->list->edits[i], 1, f->j.source);
        f->alone[i] = run_alone(&f->j, f->list->text[i], judge_everything(&f->j));
    }
    engine_renew(&f->j.eng,
                 &(qkv_session_options){.size = sizeof(qkv_session_options), .n_threads = 1});
}

static void family_close(family *f) {
    for (size_t i = 0; i < f->list->n; i++) {
        ref_run_free(f->expected[i]);
        qkv_result_free(f->alone[i]);
    }
    free(f->list);
    judge_close(&f->j);
}

/* ---- against the reference ---- */

static void check_conformance(family *f) {
    const ref_cases *list = f->list;
    judge_tensors(&f->j, f->alone[0], 0, f->j.baseline, "baseline");
    for (size_t i = 0; i < list->n; i++)
        judge_variant(&f->j, f->alone[i], 1, f->expected[i], &list->edits[i], 1, list->text[i]);
    judge_groups(&f->j, list);
}

/* ---- the planner ---- */

/* A case as `result` has it, against the run of its own. */
static void check_same(const family *f, size_t i, const qkv_result *result, size_t variant,
                       const observed *o) {
    const qkv_tensor t = engine_tensor(result, variant, o->site, o->layer);
    const qkv_tensor u = engine_tensor(f->alone[i], 1, o->site, o->layer);
    assert_int_equal(tensor_count(&t), tensor_count(&u));
    if (!same_bits(t.data, u.data, tensor_count(&t)))
        fail_msg("'%s' seen at %s is not what it is alone", f->list->text[i], o->text);
}

/* All cases in one plan that captures one tensor only. */
static void check_place(family *f, qkv_site site, int layer) {
    const observed o = judge_observe(site, layer);
    qkv_result *result = judge_run(&f->j, f->list->variants, (const char *const[]){o.text, NULL});
    judge_observed(result, f->list, f->expected, &o);
    for (size_t i = 0; i < f->list->n; i++) check_same(f, i, result, i + 1, &o);
    qkv_result_free(result);
}

static void check_every_place(family *f) {
    for (int site = 0; site < QKV_SITE_COUNT; site++)
        for (int layer = 0; layer < f->j.ref->n_layer; layer++) {
            if (!ref_layer_has_site(f->j.ref, (qkv_site)site, layer)) continue;
            if (!ref_has_layer((qkv_site)site) && layer > 0) continue;
            check_place(f, (qkv_site)site, layer);
        }
}

/* The pattern of the first layer that a case edits, and nothing else: then the heads concerned are
 * all that is computed. */
static void check_heads_concerned(family *f) {
    for (size_t i = 0; i < f->list->n; i++) {
        const ref_edit *e = &f->list->edits[i];
        const observed o = judge_observe(QKV_SITE_PATTERN, ref_has(e->layers, 0) ? 0 : 1);
        if (!e->head_kind || !ref_reaches(f->j.ref, e, o.site, o.layer)) continue;
        qkv_result *result =
            run_alone(&f->j, f->list->text[i], (const char *const[]){o.text, NULL});
        check_same(f, i, result, 1, &o);
        qkv_result_free(result);
    }
}

/* ---- freezing ---- */

/* What a head of the first layer changes, with each site of the second one held in turn; the
 * first layer's frozen site is either above the change or of no use. */
static void check_freezes(family *f, int turn) {
    enum { SIZE = 3 * REF_TEXT_SIZE };
    static char text[QKV_SITE_COUNT][SIZE];
    const char *variants[QKV_SITE_COUNT + 1] = {NULL};
    ref_edit edits[QKV_SITE_COUNT][2];
    size_t n = 0;
    for (int s = 0; s < QKV_SITE_COUNT; s++) {
        const qkv_site site = (qkv_site)s;
        if (!ref_has_site(f->j.ref, site)) continue;
        edits[n][0] = (ref_edit){QKV_SITE_Z, 1 << 0, 'h', 1 << 1, .op = REF_PATCH};
        edits[n][1] = (ref_edit){site, .layers = 3, .op = REF_FREEZE};
        if (site == QKV_SITE_Z || (s + turn) % 2) edits[n][1].layers = 1 << 1;
        if (ref_has_heads(site) && (s + turn) % 3 == 0) {
            edits[n][1].head_kind = 'h';
            edits[n][1].heads = 5;
        }
        if (ref_refuses(f->j.ref, &edits[n][1])) edits[n][1].head_kind = 0;
        if ((s + turn) % 4 == 1) edits[n][1].rows = (ref_range){2, T};
        if ((s + turn) % 4 == 2 && !ref_is_map(site)) edits[n][1].channels = (ref_range){0, 3};
        if (ref_refuses(f->j.ref, &edits[n][1])) edits[n][1].channels = (ref_range){0, 0};
        for (int i = 0; i < 2; i++) {
            char one[REF_TEXT_SIZE];
            ref_edit_text(&edits[n][i], one, sizeof one);
            snprintf(text[n] + strlen(i ? text[n] : ""), SIZE - strlen(i ? text[n] : ""), "%s%s",
                     i ? " + " : "", one);
        }
        variants[n] = text[n];
        n++;
    }
    qkv_result *result = judge_run(&f->j, variants, judge_everything(&f->j));
    for (size_t i = 0; i < n; i++) {
        ref_run *expected =
            ref_forward_frozen(f->j.ref, f->j.tokens, T, edits[i], 2, f->j.source, f->j.baseline);
        judge_variant(&f->j, result, i + 1, expected, edits[i], 2, text[i]);
        ref_run_free(expected);
    }
    qkv_result_free(result);
}

static void check_family(const char *path, int turn) {
    family f;
    family_open(&f, path, turn);
    check_conformance(&f);
    judge_identity(&f.j);
    check_every_place(&f);
    check_heads_concerned(&f);
    check_freezes(&f, turn);
    family_close(&f);
}

/* ---- long prompts ---- */

static void expect_blocks(judge *j, const engine_run *run) {
    qkv_error err = {0};
    char *text = NULL;
    qkv_plan *plan = engine_plan(&j->eng, run);
    expect_ok(qkv_session_explain(j->eng.session, &text, plan, &err), &err, "explain");
    assert_non_null(strstr(text, "blocks of"));
    qkv_text_free(text);
    qkv_plan_free(plan);
}

/* Attention in blocks of queries, which no whole map is asked of. */
static void check_long_prompt(const char *name) {
    static const ref_edit edit = {QKV_SITE_Q, 1 << 1, 'h', 1 << 2, .op = REF_SCALE, .a = 0.5};
    static const char *const variants[] = {"q@1.h2=scale:0.5", NULL};
    int32_t tokens[LONG];
    char last[32];
    judge j;
    judge_open(&j, stretched_model(vector_model(name), LONG), 1);
    for (int t = 0; t < LONG; t++) tokens[t] = 3 + (t * t + 5 * t) % (j.ref->V - 3);
    snprintf(last, sizeof last, "resid_post@%d", j.ref->n_layer - 1);
    const char *const captures[] = {"z@1", last, NULL};
    const engine_run run = {tokens, LONG, variants, captures, NULL};
    expect_blocks(&j, &run);
    qkv_result *result = engine_execute(&j.eng, &run);
    ref_run *expected = ref_forward(j.ref, tokens, LONG, &edit, 1, NULL);
    for (int i = 0; i < 2; i++) {
        const qkv_site site = i ? QKV_SITE_RESID_POST : QKV_SITE_Z;
        const int layer = i ? j.ref->n_layer - 1 : 1;
        const qkv_tensor t = engine_tensor(result, 1, site, layer);
        const difference d =
            compare_to_doubles(t.data, expected->site[site][layer], tensor_count(&t));
        if (d.max > judge_bound * fmax(d.scale, 1))
            fail_msg("%s of layer %d is off by %g", qkv_site_name(site), layer, d.max);
    }
    qkv_result_free(result);
    ref_run_free(expected);
    judge_close(&j);
}

/* ---- scaled RoPE ---- */

/* OLMo 3 scales RoPE in layers without a window alone. */
static void windows_turn_unscaled(void **state) {
    (void)state;
    judge j;
    judge_open(&j, yarn_model(vector_model("olmo3")), 1);
    qkv_result *result = judge_run(&j, (const char *const[]){NULL}, judge_everything(&j));
    judge_tensors(&j, result, 0, j.baseline, "baseline");
    qkv_result_free(result);
    judge_close(&j);
}

/* ---- clamped heads ---- */

/* No folder sets clip_qkv. A limit that most heads reach, with one norm for all heads and without. */
static void heads_within_a_limit(void **state) {
    (void)state;
    static const model_key limit = {"attention.clamp_kqv", MODEL_KEY_FLOAT, 0.3};
    check_family(keyed_model(vector_model("olmo"), &limit, 1), 1);
    check_family(keyed_model(vector_model("olmoe"), &limit, 1), 2);
}

/* ---- other shapes ---- */

/* ALiBi. Numbers of heads that are not a power of two, slopes that end elsewhere; heads within a limit. */
static void biases_by_distance(void **state) {
    (void)state;
    static const int heads[] = {6, 3, 12};
    const model_key limit = {"attention.clamp_kqv", MODEL_KEY_FLOAT, 1.1};
    for (int i = 0; i < 3; i++) {
        const model_key keys[] = {{"attention.head_count", MODEL_KEY_INT, heads[i]},
                                  {"attention.head_count_kv", MODEL_KEY_INT, heads[i]},
                                  {"attention.max_alibi_bias", MODEL_KEY_FLOAT, 16}};
        check_family(keyed_model(vector_model("bloom"), keys, 2), 3 + i);
        check_family(keyed_model(vector_model("mpt"), keys, 3), 4 + i);
    }
    check_family(keyed_model(vector_model("mpt"), &limit, 1), 6);
}

/* What a family has and a file may do without. */
static void parts_that_are_absent(void **state) {
    (void)state;
    check_family(model_without(vector_model("opt"), "*.bias", "*norm*", "linear_biases"), 1);
    check_family(model_without(vector_model("opt"), "*norm.*", NULL, "norm_weights"), 2);
    check_family(
        model_without(vector_model("persimmon"), "*attn_[qk]_norm.*", NULL, "attention.head_norms"),
        3);
}

/* ---- experts ---- */

/* What no folder sets: experts in groups, shares that are not brought to a sum of 1. */
static void other_routers(void **state) {
    (void)state;
    static const model_key groups[] = {{"expert_group_count", MODEL_KEY_INT, 2},
                                       {"expert_group_used_count", MODEL_KEY_INT, 1}};
    static const model_key shares = {"expert_weights_norm", MODEL_KEY_FLAG, 0};
    check_family(keyed_model(vector_model("glm4_moe"), groups, 2), 0);
    check_family(keyed_model(vector_model("glm4_moe"), &shares, 1), 1);
}

/* Queries in a small cache would have to be turned back before their norm. */
static void norms_after_rope(void **state) {
    (void)state;
    judge j;
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    judge_open(&j, vector_model("hunyuan_v1_dense"), 1);
    expect_ok(qkv_plan_new(&plan, j.eng.model, j.tokens, T, &err), &err, "plan");
    int status =
        qkv_plan_add_variant(plan, "scores@*=mask:sink=1,recent=2,positions=cache", NULL, &err);
    if (status == QKV_OK) {
        qkv_result *result = NULL;
        status = qkv_session_run(j.eng.session, &result, plan, &err);
        qkv_result_free(result);
    }
    if (!strstr(err.message, "normalises queries after RoPE")) fail_msg("'%s'", err.message);
    assert_int_equal(status, QKV_ERR_PLAN);
    qkv_plan_free(plan);
    /* and q is what q_rot is, unless it is edited in between */
    const char *const both[] = {"q@1", "q_rot@1", NULL};
    qkv_result *result = judge_run(&j, (const char *const[]){NULL}, both);
    const qkv_tensor q = engine_tensor(result, 0, QKV_SITE_Q, 1),
                     turned = engine_tensor(result, 0, QKV_SITE_Q_ROT, 1);
    assert_true(same_bits(q.data, turned.data, tensor_count(&q)));
    qkv_result_free(result);
    judge_close(&j);
}

/* Chunks and temperatures that begin within a short prompt, and within blocks of a long one; files of llama.cpp
 * cannot say so. */
static void chunks_and_temperatures(void **state) {
    (void)state;
    static const model_key keys[] = {{"attention.chunk_size", MODEL_KEY_INT, 4},
                                     {"attention.temperature_length", MODEL_KEY_INT, 2},
                                     {"attention.temperature_scale", MODEL_KEY_FLOAT, 0.5},
                                     {"interleave_moe_layer_step", MODEL_KEY_INT, 2}};
    const char *path = keyed_model(vector_model("llama4"), keys, 4);
    qkv_model *model = NULL;
    qkv_error err = {0};
    int64_t first = -1, end = -1;
    check_family(path, 2);
    expect_ok(qkv_model_open(&model, path, &err), &err, path);
    assert_int_equal(qkv_model_window(model, 0), -4);
    assert_int_equal(qkv_model_window(model, 3), 0);
    assert_int_equal(qkv_model_get_info(model)->chunk, 4);
    qkv_visible_keys(model, 1, 10, 7, &first, &end);
    assert_int_equal(first, 4);
    assert_int_equal(end, 8);
    qkv_model_free(model);
}

/* A window in EXAONE 4's file, which llama.cpp reads only in models of 64 layers. */
static void windows_of_exaone(void **state) {
    (void)state;
    static const model_key used = {"attention.sliding_window_used", MODEL_KEY_FLAG, 1};
    check_family(keyed_model(vector_model("exaone4"), &used, 1), 1);
    qkv_model *model = NULL;
    qkv_error err = {0};
    expect_ok(qkv_model_open(&model, vector_model("exaone4"), &err), &err, "exaone4");
    assert_int_equal(qkv_model_window(model, 0), 0);
    qkv_model_free(model);
    expect_ok(qkv_model_open(&model, keyed_model(vector_model("exaone4"), &used, 1), &err), &err,
              "exaone4");
    assert_int_equal(qkv_model_window(model, 0), 6);
    assert_int_equal(qkv_model_window(model, 3), 0);
    qkv_model_free(model);
}

/* More experts than the groups that are used have. */
static void groups_are_checked(void **state) {
    (void)state;
    static const model_key bad[][2] = {
        {{"expert_group_count", MODEL_KEY_INT, 4}, {"expert_group_used_count", MODEL_KEY_INT, 2}},
        {{"expert_group_count", MODEL_KEY_INT, 3}, {"expert_group_used_count", MODEL_KEY_INT, 3}}};
    for (size_t i = 0; i < 2; i++) {
        qkv_model *model = NULL;
        qkv_error err = {0};
        const char *path = keyed_model(vector_model("glm4_moe"), bad[i], 2);
        assert_int_equal(qkv_model_open(&model, path, &err), QKV_ERR_FORMAT);
        assert_non_null(strstr(err.message, "groups"));
    }
    static const model_key gating = {"expert_gating_func", MODEL_KEY_INT, 4};
    qkv_model *model = NULL;
    qkv_error err = {0};
    const char *path = keyed_model(vector_model("glm4_moe"), &gating, 1);
    assert_int_equal(qkv_model_open(&model, path, &err), QKV_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "expert_gating_func is 4"));
}

static void experts_have_no_neurons(void **state) {
    (void)state;
    static const char *const names[] = {"mixtral", "qwen3_moe", "gpt_oss", "qwen2_moe", "glm4_moe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        judge j;
        qkv_error err = {0};
        qkv_plan *plan = NULL;
        judge_open(&j, vector_model(names[i]), 1);
        expect_ok(qkv_plan_new(&plan, j.eng.model, j.tokens, T, &err), &err, "plan");
        assert_int_equal(qkv_plan_add_capture(plan, "mlp_act@0", &err), QKV_ERR_PLAN);
        assert_non_null(strstr(err.message, "experts"));
        assert_int_equal(qkv_plan_add_variant(plan, "mlp_act@0{3}=zero", NULL, &err), QKV_ERR_PLAN);
        assert_non_null(strstr(err.message, "experts"));
        qkv_plan_free(plan);
        judge_close(&j);
    }
}

/* ---- an encoder ---- */

static void expect_refused(int status, const qkv_error *err) {
    assert_int_equal(status, QKV_ERR_PLAN);
    assert_non_null(strstr(err->message, "resid_post@2"));
}

static void an_encoder_has_no_logits(void **state) {
    (void)state;
    judge j;
    qkv_error err = {0};
    qkv_plan *plan = NULL;
    judge_open(&j, vector_model("bert"), 1);
    expect_ok(qkv_plan_new(&plan, j.eng.model, j.tokens, T, &err), &err, "plan");
    expect_refused(qkv_plan_add_capture(plan, "logits", &err), &err);
    expect_refused(qkv_plan_add_capture(plan, "logits[-1]", &err), &err);
    expect_refused(qkv_plan_add_variant(plan, "logits=zero", NULL, &err), &err);
    assert_non_null(strstr(err.message, "has no logits"));
    expect_refused(qkv_plan_add_capture(plan, "final_norm[-1]", &err), &err);
    expect_refused(qkv_plan_add_variant(plan, "final_norm=zero", NULL, &err), &err);
    assert_non_null(strstr(err.message, "has no final_norm"));
    qkv_plan_free(plan);
    judge_close(&j);
    judge_open(&j, vector_model("modernbert"), 1);
    expect_ok(qkv_plan_new(&plan, j.eng.model, j.tokens, T, &err), &err, "plan");
    expect_ok(qkv_plan_add_capture(plan, "final_norm[-1]", &err), &err, "final_norm");
    assert_int_equal(qkv_plan_add_capture(plan, "logits", &err), QKV_ERR_PLAN);
    assert_non_null(strstr(err.message, "its output is final_norm"));
    qkv_plan_free(plan);
    judge_close(&j);
}

enum {
#define FAMILY_TURN(name, flags) TURN_##name,
    VECTOR_LIST(FAMILY_TURN)
#undef FAMILY_TURN
};

#define FAMILY_TEST(name, flags)                                                                   \
    static void family_##name(void **state) {                                                      \
        (void)state;                                                                               \
        check_family(vector_model(#name), TURN_##name);                                            \
    }                                                                                              \
    static void long_prompt_##name(void **state) {                                                 \
        (void)state;                                                                               \
        check_long_prompt(#name);                                                                  \
    }
VECTOR_LIST(FAMILY_TEST)
#undef FAMILY_TEST

int main(void) {
#define FAMILY_ENTRY(name, flags)                                                                  \
    cmocka_unit_test(family_##name), cmocka_unit_test(long_prompt_##name),
    const struct CMUnitTest tests[] = {VECTOR_LIST(FAMILY_ENTRY)
                                           cmocka_unit_test(windows_turn_unscaled),
                                       cmocka_unit_test(heads_within_a_limit),
                                       cmocka_unit_test(biases_by_distance),
                                       cmocka_unit_test(parts_that_are_absent),
                                       cmocka_unit_test(an_encoder_has_no_logits),
                                       cmocka_unit_test(experts_have_no_neurons),
                                       cmocka_unit_test(other_routers),
                                       cmocka_unit_test(groups_are_checked),
                                       cmocka_unit_test(norms_after_rope),
                                       cmocka_unit_test(windows_of_exaone),
                                       cmocka_unit_test(chunks_and_temperatures)};
#undef FAMILY_ENTRY
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
