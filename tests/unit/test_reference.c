/*
 * The scalar reference against another implementation's results, so that it can be trusted where
 * it is the only judge. Edits are given as structs: the reference reads no text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/ref_forward.h"
#include "run/run.h"
#include "support/compare.h"
#include "support/expectations.h"
#include "support/scratch.h"

/* clang-format off */
#define Q QKV_SITE_Q
#define K QKV_SITE_K
#define V QKV_SITE_V
static const struct {
    const char *key;
    size_t n;
    ref_edit edits[2];
} known[] = {
    {"", 0, {{0}}},
    {"q@1.h2=scale:0.5", 1, {{Q, 1 << 1, 'h', 1 << 2, .op = REF_SCALE, .a = 0.5}}},
    {"q@1.h2=scale:1e-10", 1, {{Q, 1 << 1, 'h', 1 << 2, .op = REF_SCALE, .a = 1e-10}}},
    {"k@1.h1=scale:1e-3", 1, {{K, 1 << 1, 'h', 1 << 1, .op = REF_SCALE, .a = 1e-3}}},
    {"k@1.g0=scale:0.5", 1, {{K, 1 << 1, 'g', 1 << 0, .op = REF_SCALE, .a = 0.5}}},
    {"v@1.h0=scale:0.5", 1, {{V, 1 << 1, 'h', 1 << 0, .op = REF_SCALE, .a = 0.5}}},
    {"v@0.g0=scale:1e-3", 1, {{V, 1 << 0, 'g', 1 << 0, .op = REF_SCALE, .a = 1e-3}}},
    {"q@1.h2=mean:head", 1, {{Q, 1 << 1, 'h', 1 << 2, .op = REF_MEAN_HEAD}}},
    {"k@1.g0=mean:head", 1, {{K, 1 << 1, 'g', 1 << 0, .op = REF_MEAN_HEAD}}},
    {"v@1.g0=mean:head", 1, {{V, 1 << 1, 'g', 1 << 0, .op = REF_MEAN_HEAD}}},
    {"q@2=mean:token", 1, {{Q, 1 << 2, .op = REF_MEAN_TOKEN}}},
    {"k@0.g0=mean:dim", 1, {{K, 1 << 0, 'g', 1 << 0, .op = REF_MEAN_DIM}}},
    {"z@1.h3=scale:0", 1, {{QKV_SITE_Z, 1 << 1, 'h', 1 << 3, .op = REF_SCALE}}},
    {"q@1.h0[0]=set:0.25", 1, {{Q, 1 << 1, 'h', 1 << 0, {0, 1}, .op = REF_SET, .a = 0.25}}},
    {"q@1.h0[5]=set:0.25", 1, {{Q, 1 << 1, 'h', 1 << 0, {5, 6}, .op = REF_SET, .a = 0.25}}},
    {"k@1.g0[0]=set:0.25", 1, {{K, 1 << 1, 'g', 1 << 0, {0, 1}, .op = REF_SET, .a = 0.25}}},
    {"q@0.h1=scale:0.5 + v@2.g0=scale:0", 2,
     {{Q, 1 << 0, 'h', 1 << 1, .op = REF_SCALE, .a = 0.5},
      {V, 1 << 2, 'g', 1 << 0, .op = REF_SCALE}}},
    {"q@3=mean:token", 1, {{Q, 1 << 3, .op = REF_MEAN_TOKEN}}},
    {"q@0.h1=scale:0.5 + v@3.g0=scale:0", 2,
     {{Q, 1 << 0, 'h', 1 << 1, .op = REF_SCALE, .a = 0.5},
      {V, 1 << 3, 'g', 1 << 0, .op = REF_SCALE}}},
    /* where layer 1 is not the one to edit */
    {"q@0.h2=scale:0.5", 1, {{Q, 1 << 0, 'h', 1 << 2, .op = REF_SCALE, .a = 0.5}}},
    {"q@0.h2=scale:1e-10", 1, {{Q, 1 << 0, 'h', 1 << 2, .op = REF_SCALE, .a = 1e-10}}},
    {"k@0.h1=scale:1e-3", 1, {{K, 1 << 0, 'h', 1 << 1, .op = REF_SCALE, .a = 1e-3}}},
    {"k@0.g0=scale:0.5", 1, {{K, 1 << 0, 'g', 1 << 0, .op = REF_SCALE, .a = 0.5}}},
    {"v@0.h0=scale:0.5", 1, {{V, 1 << 0, 'h', 1 << 0, .op = REF_SCALE, .a = 0.5}}},
    {"v@1.g0=scale:1e-3", 1, {{V, 1 << 1, 'g', 1 << 0, .op = REF_SCALE, .a = 1e-3}}},
    {"q@0.h2=mean:head", 1, {{Q, 1 << 0, 'h', 1 << 2, .op = REF_MEAN_HEAD}}},
    {"k@0.g0=mean:head", 1, {{K, 1 << 0, 'g', 1 << 0, .op = REF_MEAN_HEAD}}},
    {"v@0.g0=mean:head", 1, {{V, 1 << 0, 'g', 1 << 0, .op = REF_MEAN_HEAD}}},
    {"k@1.g0=mean:dim", 1, {{K, 1 << 1, 'g', 1 << 0, .op = REF_MEAN_DIM}}},
    {"z@0.h3=scale:0", 1, {{QKV_SITE_Z, 1 << 0, 'h', 1 << 3, .op = REF_SCALE}}},
    {"q@0.h0[0]=set:0.25", 1, {{Q, 1 << 0, 'h', 1 << 0, {0, 1}, .op = REF_SET, .a = 0.25}}},
    {"q@0.h0[5]=set:0.25", 1, {{Q, 1 << 0, 'h', 1 << 0, {5, 6}, .op = REF_SET, .a = 0.25}}},
    {"k@0.g0[0]=set:0.25", 1, {{K, 1 << 0, 'g', 1 << 0, {0, 1}, .op = REF_SET, .a = 0.25}}},
    {"q@1.h1=scale:0.5 + v@2.g0=scale:0", 2,
     {{Q, 1 << 1, 'h', 1 << 1, .op = REF_SCALE, .a = 0.5},
      {V, 1 << 2, 'g', 1 << 0, .op = REF_SCALE}}},
};
/* clang-format on */

/* The n-th layer with attention; -1: there are fewer. */
static int attention_layer(const expectations *e, int n) {
    for (int il = 0; il < e->n_layer; il++)
        if (e->layers[il].has_attention && n-- == 0) return il;
    return -1;
}

/* The table counts layers with attention: "@1" becomes the number of the second one. */
static void count_layers(const expectations *e, const char *key, char *out, size_t size) {
    size_t n = 0;
    for (const char *at = key; *at && n + 4 < size; at++) {
        out[n++] = *at;
        if (*at != '@') continue;
        n += (size_t)snprintf(out + n, size - n, "%d", attention_layer(e, at[1] - '0'));
        at++;
    }
    out[n] = '\0';
}

static ref_edit with_layers(const expectations *e, ref_edit edit) {
    for (int i = 0; i < e->n_layer; i++)
        if (edit.layers == (uint64_t)1 << i) {
            edit.layers = (uint64_t)1 << attention_layer(e, i);
            break;
        }
    return edit;
}

static size_t find_known(const expectations *e, const char *key) {
    char counted[128];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        count_layers(e, known[i].key, counted, sizeof counted);
        if (strcmp(counted, key) == 0) return i;
    }
    fail_msg("'%s' is not among the known edits", key);
    return 0;
}

static void check_run(const ref_model *m, const expectations *e, const expected_prompt *prompt,
                      const expected_run *run) {
    const size_t i = find_known(e, run->edits);
    const ref_edit edits[] = {with_layers(e, known[i].edits[0]), with_layers(e, known[i].edits[1])};
    ref_run *r = ref_forward(m, prompt->tokens, (int)prompt->n_tokens, edits, known[i].n, NULL);
    for (int il = 0; il < m->n_layer; il++) {
        const file_tensor *expected = &run->pattern[il];
        if (!expected->data) continue; /* no attention */
        const difference d =
            compare_to_doubles(expected->data, r->site[QKV_SITE_PATTERN][il], expected->count);
        /* transformers computes in single precision: rounding grows from layer to layer */
        if (d.max > (m->n_layer > 4 ? 5e-5 : 2e-5))
            fail_msg("'%s': pattern of layer %d: %g", run->edits, il, d.max);
    }
    /* an encoder gives its last hidden state */
    const double *output = m->output.w             ? r->site[QKV_SITE_LOGITS][0]
                           : m->output_norm.weight ? r->site[QKV_SITE_FINAL_NORM][0]
                                                   : r->site[QKV_SITE_RESID_POST][m->n_layer - 1];
    const difference d = compare_to_doubles(run->logits.data, output, run->logits.count);
    if (d.max > (m->n_layer > 6 ? 5e-5 : 2e-5) * d.scale)
        fail_msg("'%s': output: %g", run->edits, d.max);
    ref_run_free(r);
}

static void check_sites(const ref_model *m, const expectations *e, const expected_prompt *prompt) {
    static const char *const names[] = {"q", "k", "v", "z", "resid_pre"};
    ref_run *r = ref_forward(m, prompt->tokens, (int)prompt->n_tokens, NULL, 0, NULL);
    for (size_t s = 0; s < sizeof names / sizeof *names; s++)
        for (int il = 0; il < m->n_layer; il++) {
            const qkv_site site = qkv_site_by_name(names[s]);
            file_tensor expected;
            if (!expected_site(e, prompt, names[s], il, &expected)) continue; /* test_vectors.c */
            const ref_model own = ref_in_layer(m, il);
            const size_t n = ref_site_count(&own, site, (int)prompt->n_tokens);
            assert_int_equal(expected.count, n);
            const difference d = compare_to_doubles(expected.data, r->site[site][il], n);
            if (d.max > 2e-5 * d.scale) fail_msg("%s of layer %d: %g", names[s], il, d.max);
        }
    ref_run_free(r);
}

static void check_family(const char *name) {
    expectations e;
    assert_true(expectations_open(&e, QKV_TEST_SOURCE_DIR "/vectors", name, "model.gguf"));
    ref_model *m = ref_model_load(e.model);
    for (size_t p = 0; p < e.n_prompts; p++) {
        for (size_t r = 0; r < e.prompts[p].n_runs; r++)
            check_run(m, &e, &e.prompts[p], &e.prompts[p].runs[r]);
        if (e.prompts[p].sites) check_sites(m, &e, &e.prompts[p]);
    }
    ref_model_free(m);
    expectations_close(&e);
}

#define FAMILY_TEST(name, flags)                                                                   \
    static void reference_of_##name(void **state) {                                                \
        (void)state;                                                                               \
        check_family(#name);                                                                       \
    }
VECTOR_LIST(FAMILY_TEST)
#undef FAMILY_TEST

int main(void) {
#define FAMILY_ENTRY(name, flags) cmocka_unit_test(reference_of_##name),
    const struct CMUnitTest tests[] = {VECTOR_LIST(FAMILY_ENTRY)};
#undef FAMILY_ENTRY
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
