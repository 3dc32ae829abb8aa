/*
 * Models whose layers differ, and layers that use the keys and values of others: what the library says of
 * them, what selectors may name, and how far an edit of shared keys goes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/compare.h"
#include "support/engine.h"
#include "support/expectations.h"
#include "support/scratch.h"

static qkv_layer_info layer_of(const engine *e, int32_t layer) {
    qkv_layer_info info = QKV_LAYER_INFO_INIT;
    assert_int_equal(qkv_model_get_layer(e->model, layer, &info), 1);
    return info;
}

static void shapes_are_told(void **state) {
    (void)state;
    engine e;
    engine_open(&e, vector_model("gemma4"), 1);
    assert_int_equal(e.info->head_dim, 16); /* the largest */
    assert_int_equal(e.info->n_kv_head, 2);
    const qkv_layer_info local = layer_of(&e, 0), full = layer_of(&e, 2);
    assert_int_equal(local.head_dim, 8);
    assert_int_equal(local.value_dim, 8);
    assert_int_equal(local.n_kv_head, 2);
    assert_int_equal(local.window, 6);
    assert_int_equal(full.head_dim, 16);
    assert_int_equal(full.n_kv_head, 1);
    assert_int_equal(full.window, 0);
    assert_int_equal(full.kv_layer, 2);
    engine_close(&e);
    engine_open(&e, vector_model("gemma4_e"), 1);
    assert_int_equal(layer_of(&e, 2).n_ff, 48);
    assert_int_equal(layer_of(&e, 3).n_ff, 96);
    assert_int_equal(layer_of(&e, 3).kv_layer, 1);
    assert_int_equal(layer_of(&e, 4).kv_layer, 2);
    engine_close(&e);
}

/* ---- selectors ---- */

static void check_edit(engine *e, const char *edit, const char *message) {
    static const int32_t tokens[] = {1, 5, 9, 13, 17, 21, 25, 29};
    qkv_plan *plan = NULL;
    qkv_error err = {0};
    expect_ok(qkv_plan_new(&plan, e->model, tokens, 8, &err), &err, "plan");
    const int status = qkv_plan_add_variant(plan, edit, NULL, &err);
    if (!message) expect_ok(status, &err, edit);
    if (message && (status == QKV_OK || !strstr(err.message, message)))
        fail_msg("'%s': '%s', not '%s'", edit, status == QKV_OK ? "" : err.message, message);
    qkv_plan_free(plan);
}

static void selectors_fit_every_layer(void **state) {
    (void)state;
    static const char *const edits[][2] = {
        {"k@0.g1=zero", NULL},
        {"k@2.g1=zero", "key/value head 1 is out of range; layer 2 has 1: g0 to g0"},
        {"k@0-3.g1=zero", "key/value head 1 is out of range; layer 2 has 1"},
        {"k@*.g*=zero", NULL},
        {"k@*.h*=zero", NULL},
        {"k@*.g0=zero", NULL},
        {"k@2.g-1=zero", "out of range"},
        {"q@0.h-1=zero", NULL},
        {"k@2=mean:others", "no other heads"},
        {"q@2{8:16}=zero", NULL},
        {"q@0{8:16}=zero", "channel"},
        {"q@*{0:4}=zero", "q has 8 channels in layer 0 and 16 in layer 2"},
        {"mlp_out@*{0:4}=zero", NULL},
        {"v@0=quant:bits=2,axis=token,group=16", "groups of 16 do not divide the 8 channels"},
        {"v@2=quant:bits=2,axis=token,group=16", NULL},
    };
    engine e;
    engine_open(&e, vector_model("gemma4"), 1);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        check_edit(&e, edits[i][0], edits[i][1]);
    engine_close(&e);
}

static void shared_keys_are_named(void **state) {
    (void)state;
    static const char *const sites[] = {"k", "v", "k_rot", "k_in", "v_in"};
    engine e;
    engine_open(&e, vector_model("gemma4_e"), 1);
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        char edit[64], message[64];
        snprintf(edit, sizeof edit, "%s@2-4=zero", sites[i]);
        snprintf(message, sizeof message, "layer 3 has no %s of its own: it uses", sites[i]);
        check_edit(&e, edit, message);
        snprintf(edit, sizeof edit, "%s@*=zero", sites[i]);
        check_edit(&e, edit, NULL);
    }
    engine_close(&e);
}

/* ---- how far an edit goes ---- */

/* `*` captures the layers that have keys; an edit of those of layer 2 shows in layer 4, also where nothing
 * between the two is looked at, and not in layer 3, whose keys are those of layer 1. */
static void edits_reach_those_who_share(void **state) {
    (void)state;
    static const int32_t tokens[] = {1, 5, 9, 13, 17, 21, 25, 29};
    static const char *const variants[] = {"k@2.g0=scale:0.5 + freeze:attn_out@2", NULL};
    static const char *const captures[] = {"k", "pattern", NULL};
    engine e;
    engine_open(&e, vector_model("gemma4_e"), 1);
    const engine_run run = {tokens, 8, variants, captures, NULL};
    qkv_result *result = engine_execute(&e, &run);
    qkv_tensor t = QKV_TENSOR_INIT;
    for (int32_t il = 0; il < 5; il++) {
        assert_int_equal(qkv_result_get(result, 0, QKV_SITE_K, il, &t), il < 3);
        const qkv_tensor plain = engine_tensor(result, 0, QKV_SITE_PATTERN, il);
        const qkv_tensor edited = engine_tensor(result, 1, QKV_SITE_PATTERN, il);
        const int same = same_bits(plain.data, edited.data, tensor_count(&plain));
        assert_int_equal(same, il != 2 && il != 4);
    }
    qkv_result_free(result);
    engine_close(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_told), cmocka_unit_test(selectors_fit_every_layer),
        cmocka_unit_test(shared_keys_are_named), cmocka_unit_test(edits_reach_those_who_share)};
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
