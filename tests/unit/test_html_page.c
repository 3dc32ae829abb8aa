/*
 * What pages of figures are told: scores before the cap, factors, maps as bytes, and the bounds of a
 * page. What the page makes of it is tested in tests/browser.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "model/model.h"
#include "page/page_bundle.h"
#include "study/figure.h"
#include "study/html_page.h"
#include "support/figure_maker.h"
#include "support/scratch.h"

static qkv_error err;

/* ---- bytes ---- */

static void test_base64(void **state) {
    (void)state;
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"\xff\xfe", "//4="},
                                           {"fooba", "Zm9vYmE="}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        qkv_text text = {0};
        qkv_text_puts(&text, "");
        qkv_base64_append(&text, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(text.data, pairs[i][1]);
        qkv_text_release(&text);
    }
}

static void test_half(void **state) {
    (void)state;
    static const struct {
        float value;
        unsigned bits;
    } cases[] = {
        {0, 0},
        {1, 0x3c00},
        {-2, 0xc000},
        {0.5f, 0x3800},
        {65504, 0x7bff},
        {65520, 0x7c00},
        {0x1p-14f, 0x0400},
        {0x1p-24f, 0x0001},
        {0x1p-25f, 0x0000},         /* half of the smallest: to even */
        {0x1.8p-24f, 0x0002},       /* between 1 and 2: to even */
        {1 + 0x1p-11f, 0x3c00},     /* a tie: to even */
        {1 + 3 * 0x1p-11f, 0x3c02}, /* a tie: to even */
        {1 + 0x1.8p-11f, 0x3c01},
        {0x1.ff8p-15f, 0x03ff},
        {0x1.fffp-15f, 0x0400}, /* up into the normal ones */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(qkv_half_of(cases[i].value), cases[i].bits);
    }
    assert_int_equal(qkv_half_of(NAN) & 0x7e00, 0x7e00);
}

/* ---- maps ---- */

static void test_masked_maps(void **state) {
    (void)state;
    const float values[16] = {1, 0, 0, 0, 1, 2, 0, 0, 0, 3, 4, 0, 0, 0, 5, 6};
    html_map map = {.values = values, .rows = 4, .cols = 4, .step = 1, .causal = 1, .window = 2};
    assert_true(qkv_html_map_is_masked(&map));
    assert_int_equal(qkv_html_map_count(&map), 16);
    map.is_masked = 1;
    assert_int_equal(qkv_html_map_count(&map), 7);
    map.window = -2; /* chunks: rows 0 and 2 see one key, 1 and 3 see two */
    assert_int_equal(qkv_html_map_count(&map), 6);
    assert_false(qkv_html_map_is_masked(&map)); /* 3 is in another chunk than its query */
    map.window = 1;
    assert_false(qkv_html_map_is_masked(&map));
    map.window = 0;
    assert_int_equal(qkv_html_map_count(&map), 10);
    map.causal = 0;
    assert_false(qkv_html_map_is_masked(&map)); /* no mask at all */
    map.is_masked = 0;
    map.window = 2;
    assert_true(qkv_html_map_is_masked(&map)); /* both sides of the diagonal */
    map.is_masked = 1;
    assert_int_equal(qkv_html_map_count(&map), 10);
}

static void test_pooled_maps(void **state) {
    (void)state;
    float values[25] = {0};
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k <= i; k++)
            values[i * 5 + k] = (float)(i * 5 + k) * (k == 1 ? -1.0f : 1.0f);
    }
    const html_map map = {
        .values = values, .rows = 5, .cols = 5, .step = 1, .causal = 1, .is_masked = 1};
    html_map pooled;
    assert_int_equal(qkv_html_map_pool(&map, 2, &pooled, &err), QKV_OK);
    assert_int_equal(pooled.rows, 3);
    assert_int_equal(pooled.step, 2);
    assert_true(pooled.is_masked && qkv_html_map_is_masked(&pooled));
    const float wanted[9] = {-6, 0, 0, -16, 18, 0, -21, 23, 24};
    assert_memory_equal(pooled.values, wanted, sizeof wanted);
    free((float *)pooled.values);
}

static void test_map_json(void **state) {
    (void)state;
    const float values[4] = {1, 0, 0.5f, 0.5f};
    const html_map map = {
        .values = values, .rows = 2, .cols = 2, .step = 1, .causal = 1, .is_masked = 1};
    json_t *exact = qkv_html_map_json(&map, HTML_F32), *half = qkv_html_map_json(&map, HTML_F16);
    assert_string_equal(json_string_value(json_object_get(exact, "data")), "AACAPwAAAD8AAAA/");
    assert_string_equal(json_string_value(json_object_get(half, "data")), "ADwAOAA4");
    assert_true(json_is_true(json_object_get(exact, "masked")));
    json_decref(exact);
    json_decref(half);
}

/* ---- scripts ---- */

/* A template string that spans lines would lose the spaces in front of them. */
static void check_template_strings(const char *script) {
    for (const char *line = script; *line; line += strcspn(line, "\n") + 1) {
        size_t n = 0;
        for (const char *at = line; *at && *at != '\n'; at++) n += *at == '`';
        if (n % 2) fail_msg("a template string spans lines: %.60s", line);
    }
}

static void test_bundle(void **state) {
    (void)state;
    qkv_text text = {0}, hash = {0};
    assert_int_equal(qkv_page_bundle("offline.js", &text, &err), QKV_OK);
    assert_null(strstr(text.data, "\nimport "));
    assert_null(strstr(text.data, "\nexport "));
    assert_null(strstr(text.data, "</script"));
    assert_null(strstr(text.data, "<!--"));
    assert_null(strstr(text.data, "\n//"));
    check_template_strings(text.data);
    /* What is imported comes first, and once. */
    const char *first = strstr(text.data, "class ScoredHead");
    assert_non_null(first);
    assert_null(strstr(first + 1, "class ScoredHead"));
    assert_true(first < strstr(text.data, "new ScoredHead"));
    qkv_text_release(&text);
    assert_int_equal(qkv_page_bundle("nothing.js", &text, &err), QKV_ERR_FORMAT);
    qkv_text_release(&text);
    assert_int_equal(qkv_page_policy_hash("abc", 3, &hash, &err), QKV_OK);
    assert_string_equal(hash.data, "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
    qkv_text_release(&hash);
}

/* The first script exports what the second imports, and every module is in one of them. */
static void test_bundle_pair(void **state) {
    (void)state;
    qkv_text first = {0}, rest = {0};
    assert_int_equal(qkv_page_bundle_pair("early.js", &first, "first.js", "main.js", &rest, &err),
                     QKV_OK);
    assert_int_equal(strncmp(rest.data, "import { ", 9), 0);
    assert_non_null(strstr(rest.data, ", Channel"));
    assert_non_null(strstr(rest.data, " } from './first.js';\n"));
    assert_null(strstr(strchr(rest.data, '\n'), "\nimport "));
    assert_null(strstr(rest.data, "\nexport "));
    assert_non_null(strstr(first.data, "export class Channel {"));
    assert_null(strstr(first.data, "import "));
    assert_null(strstr(rest.data, "class Channel {"));
    assert_non_null(strstr(rest.data, "class Explorer "));
    assert_null(strstr(first.data, "class Overview "));
    qkv_text_release(&first);
    qkv_text_release(&rest);
}

/* ---- factors and scores ---- */

static qkv_figure *make_page_figure(engine *e, const qkv_prompt *prompt,
                                    const qkv_figure_side *cols, size_t n_cols, int32_t layer,
                                    int32_t head) {
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    qkv_figure *figure = NULL;
    options.prompts = prompt;
    options.n_prompts = 1;
    options.cols = cols;
    options.n_cols = n_cols;
    options.layer = layer;
    options.head = head;
    options.page = 1;
    expect_ok(qkv_figure_make(&figure, e->session, QKV_FIGURE_GRID, &options, &err), &err,
              "figure");
    return figure;
}

static void test_factors(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    const qkv_figure_side cols[] = {
        figure_side("q", "q@3.h1=scale:0.1"),
        figure_side("group", "k@3.g*=scale:0.5 + v@3=zero"),
        figure_side("tokens", "q@3.h1[1:3]=scale:2 + k_rot@3.h1[0]=zero"),
        figure_side("lower", "q@2=scale:0.5"),
        figure_side("other head", "q@3.h0=scale:0.5"),
        figure_side("later", "q@4.h1=scale:0.5"),
        figure_side("mean", "q@3.h1=mean:head"),
        figure_side("scores", "scores@3.h1=scale:0.5"),
        figure_side("all layers", "q@*=scale:0.5"),
    };
    static const struct {
        size_t n;
        int complete;
    } wanted[] = {{1, 1}, {2, 1}, {2, 1}, {0, 0}, {0, 1}, {0, 1}, {0, 0}, {0, 0}, {0, 0}};
    qkv_figure *figure =
        make_page_figure(&figure_engine, &prompt, cols, 9, FIGURE_LAYER, FIGURE_HEAD);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(figure->cells[i].factors.n, wanted[i].n);
        assert_int_equal(figure->cells[i].factors.complete, wanted[i].complete);
    }
    const edit_factor *first = &figure->cells[0].factors.items[0];
    assert_string_equal(first->target, "q@3.h1");
    assert_true(first->eps == 0.1); /* as it was written, not as F32 */
    assert_int_equal(first->axis, FACTOR_QUERY);
    assert_null(first->tokens);
    assert_int_equal(figure->cells[1].factors.items[0].axis, FACTOR_KEY);
    assert_int_equal(figure->cells[1].factors.items[1].axis, FACTOR_NOTHING);
    const uint8_t rows[FIGURE_N_TOKENS] = {0, 1, 1, 0, 0};
    assert_memory_equal(figure->cells[2].factors.items[0].tokens, rows, sizeof rows);
    assert_true(figure->cells[2].factors.items[1].eps == 0);
    assert_non_null(figure->scores->maps[0]);
    qkv_figure_free(figure);
}

/* Where no slider would move anything, no scores are kept. */
static void test_no_scores(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    const qkv_figure_side cols[] = {figure_side("mean", "q@3.h1=mean:head"),
                                    figure_side("v", "v@3=scale:0.5")};
    qkv_figure *figure =
        make_page_figure(&figure_engine, &prompt, cols, 2, FIGURE_LAYER, FIGURE_HEAD);
    assert_null(figure->scores->maps[0]);
    qkv_figure_free(figure);
}

/* The kept scores, capped, are the engine's captured ones; and they do go beyond the cap. */
static void check_scores(const char *family, int32_t layer, int32_t head, int capped) {
    const int32_t tokens[] = {5, 9, 40, 77, 12, 3, 60, 61};
    enum { N = 8 };
    char path[512];
    engine e;
    qkv_prompt prompt = QKV_PROMPT_INIT;
    prompt.tokens = tokens;
    prompt.n_tokens = N;
    snprintf(path, sizeof path, QKV_TEST_SOURCE_DIR "/vectors/%s/model.gguf", family);
    engine_open(&e, path, 1);
    char edit[64], capture[64];
    snprintf(edit, sizeof edit, "q@%d.h%d=scale:30", (int)layer, (int)head);
    snprintf(capture, sizeof capture, "scores@%d.h%d", (int)layer, (int)head);
    const qkv_figure_side col = figure_side("q", edit);
    qkv_figure *figure = make_page_figure(&e, &prompt, &col, 1, layer, head);
    const float *kept = figure->scores->maps[0];
    const double cap = figure->scores->softcap;
    assert_non_null(kept);
    assert_int_equal(cap > 0, capped);
    const char *const edits[] = {edit, NULL}, *const captures[] = {capture, NULL};
    const engine_run run = {tokens, N, edits, captures, NULL};
    qkv_result *result = engine_execute(&e, &run);
    double largest = 0;
    for (size_t i = 0; i < N * N; i++) largest = fmax(largest, 30 * fabs((double)kept[i]));
    for (size_t variant = 0; variant < 2; variant++) {
        const qkv_tensor found = engine_tensor(result, variant, QKV_SITE_SCORES, layer);
        for (size_t i = 0; i < N * N; i++) {
            const double s = (double)kept[i] * (variant ? 30 : 1);
            const double wanted = cap > 0 ? cap * tanh(s / cap) : s;
            /* Sums that cancel are off by last bits of what they are made of. */
            if (fabs((double)found.data[i] - wanted) > 1e-6 * largest) {
                fail_msg("%s: %.9g in place of %.9g", family, (double)found.data[i], wanted);
            }
        }
    }
    if (capped) assert_true(largest > cap);
    qkv_result_free(result);
    qkv_figure_free(figure);
    engine_close(&e);
}

static void test_scores_are_not_capped(void **state) {
    (void)state;
    check_scores("gemma2", 1, 2, 1);
    check_scores("gpt2", 1, 1, 0);
    check_scores("llama_gqa", 2, 3, 0);
}

static void test_sinks(void **state) {
    (void)state;
    engine e;
    double sink = NAN;
    engine_open(&e, QKV_TEST_SOURCE_DIR "/vectors/gpt_oss/model.gguf", 1);
    expect_ok(qkv_model_sink(e.model, 0, 1, &sink, &err), &err, "sink");
    assert_true(isfinite(sink));
    engine_close(&e);
    assert_int_equal(qkv_model_sink(figure_engine.model, 0, 0, &sink, &err), QKV_ERR_UNSUPPORTED);
}

/* ---- pages ---- */

static json_t *figure_data(const qkv_figure *figure) {
    json_t *data = NULL;
    expect_ok(qkv_html_figure_part(figure, &data, &err), &err, "data");
    return data;
}

static json_int_t storage(const json_t *data, const char *key) {
    return json_integer_value(json_object_get(json_object_get(data, "storage"), key));
}

/* A prompt of n tokens of a model that takes 2048. */
static qkv_figure *long_figure(engine *e, int32_t *tokens, size_t n, const qkv_figure_side *cols,
                               size_t n_cols) {
    qkv_prompt prompt = QKV_PROMPT_INIT;
    for (size_t i = 0; i < n; i++) tokens[i] = (int32_t)(5 + i * 7 % 120);
    prompt.tokens = tokens;
    prompt.n_tokens = n;
    engine_open(e, QKV_TEST_SOURCE_DIR "/vectors/falcon/model.gguf", 2);
    return make_page_figure(e, &prompt, cols, n_cols, 1, 1);
}

/* 700 tokens, 10 maps: more than 4 MiB in F32. Those that scores give are left out. */
static void test_maps_are_left_to_the_page(void **state) {
    (void)state;
    engine e;
    int32_t tokens[700];
    qkv_figure_side cols[5];
    char edits[5][32];
    for (int i = 0; i < 5; i++) {
        snprintf(edits[i], sizeof edits[i], "q@1.h1=scale:%d", i + 2);
        cols[i] = figure_side("q", edits[i]);
    }
    qkv_figure *figure = long_figure(&e, tokens, 700, cols, 5);
    json_t *data = figure_data(figure);
    assert_true(
        json_is_null(json_object_get(json_array_get(json_object_get(data, "panels"), 0), "map")));
    assert_int_equal(json_array_size(json_object_get(data, "maps")), 1); /* the scores */
    assert_int_equal(storage(data, "bytes"), 700 * 701 / 2 * 4);
    assert_int_equal(storage(data, "pooled"), 0);
    json_decref(data);
    qkv_figure_free(figure);
    engine_close(&e);
}

/* Maps that nothing gives: in half precision, and then pooled. */
static void test_long_maps(void **state) {
    (void)state;
    static const struct {
        size_t n_tokens, n_cols;
        const char *type;
        json_int_t pooled;
    } cases[] = {{900, 5, "F16", 0}, {1500, 8, "F16", 3}};
    for (size_t c = 0; c < 2; c++) {
        engine e;
        int32_t tokens[1500];
        qkv_figure_side cols[8];
        char edits[8][48];
        for (size_t i = 0; i < cases[c].n_cols; i++) {
            snprintf(edits[i], sizeof edits[i], "q@1.h1=noise:0.5,seed=%zu", i);
            cols[i] = figure_side("noise", edits[i]);
        }
        qkv_figure *figure = long_figure(&e, tokens, cases[c].n_tokens, cols, cases[c].n_cols);
        json_t *data = figure_data(figure);
        assert_string_equal(
            json_string_value(json_object_get(json_object_get(data, "storage"), "type")),
            cases[c].type);
        assert_int_equal(storage(data, "pooled"), cases[c].pooled);
        assert_true(storage(data, "bytes") <= 8 << 20);
        json_decref(data);
        qkv_figure_free(figure);
        engine_close(&e);
    }
}

static char *render_page(qkv_figure *figure, size_t *n) {
    char *bytes = NULL;
    expect_ok(qkv_figure_render(figure, "html", &bytes, n, &err), &err, "html");
    return bytes;
}

/* Every kind, twice: the same bytes, and nothing that could be fetched. */
static void test_pages(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    const qkv_figure_side col = figure_side("</script><script>alert(1)</script>", "q@3.h1=scale:2");
    for (int kind = 0; kind < QKV_FIGURE_KINDS; kind++) {
        qkv_figure_options options = figure_options_for(&prompt);
        options.page = 1;
        if (kind == QKV_FIGURE_GRID) {
            options.cols = &col;
            options.n_cols = 1;
        }
        if (kind == QKV_FIGURE_HEADS) options.head = QKV_AUTO;
        char *pages[2];
        size_t sizes[2];
        for (int i = 0; i < 2; i++) {
            qkv_figure *figure = make_figure((qkv_figure_kind)kind, &options);
            pages[i] = render_page(figure, &sizes[i]);
            qkv_figure_free(figure);
        }
        assert_int_equal(sizes[0], sizes[1]);
        assert_memory_equal(pages[0], pages[1], sizes[0]);
        assert_null(strstr(pages[0], "alert(1)</script>"));
        assert_null(strstr(pages[0], " src="));
        assert_null(strstr(pages[0], "@import"));
        assert_non_null(strstr(pages[0], "Content-Security-Policy"));
        assert_true(sizes[0] < 300000);
        qkv_bytes_free(pages[0]);
        qkv_bytes_free(pages[1]);
    }
}

/* What a page needs changes nothing of the figure, and is not in the recipe. */
static void test_recipe_stays(void **state) {
    (void)state;
    const qkv_prompt prompt = figure_ids();
    qkv_figure_options options = figure_options_for(&prompt);
    qkv_figure *plain = make_figure(QKV_FIGURE_MODIFY, &options);
    options.page = 1;
    qkv_figure *with_page = make_figure(QKV_FIGURE_MODIFY, &options);
    assert_string_equal(figure_info(plain).recipe, figure_info(with_page).recipe);
    assert_null(figure_panel(with_page, 0, 0).map); /* `report` asks for these */
    qkv_figure_free(plain);
    qkv_figure_free(with_page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64),       cmocka_unit_test(test_half),
        cmocka_unit_test(test_masked_maps),  cmocka_unit_test(test_pooled_maps),
        cmocka_unit_test(test_map_json),     cmocka_unit_test(test_bundle),
        cmocka_unit_test(test_bundle_pair),  cmocka_unit_test(test_factors),
        cmocka_unit_test(test_no_scores),    cmocka_unit_test(test_scores_are_not_capped),
        cmocka_unit_test(test_sinks),        cmocka_unit_test(test_maps_are_left_to_the_page),
        cmocka_unit_test(test_long_maps),    cmocka_unit_test(test_pages),
        cmocka_unit_test(test_recipe_stays),
    };
    return cmocka_run_group_tests(tests, figure_open, figure_close);
}
