/*
 * Choosing a head and drawing it takes one forward pass per prompt, up to the last layer that has to
 * be looked at, and no map of a layer that is not drawn. Held against the numbers of products that
 * the shape of the model says, and against whole maps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/measure.h"
#include "run/session.h"
#include "support/compare.h"
#include "support/figure_maker.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "support/values.h"

/* Beyond 256 tokens attention goes in blocks, unless whole maps are captured. */
enum { LAYERS = 6, SHORT = 9, LONG = 300, PROMPTS = 3 };

/* Products with weights of one layer, and of these for its heads and for its pattern. */
typedef struct family {
    tiny_options options;
    uint64_t per_layer, heads, pattern;
} family;

static const family families[] = {
    {{"llama", .n_kv_head = 2, .n_layer = LAYERS, .n_ctx = LONG}, 7, 3, 2},
    {{"gpt2", .n_layer = LAYERS, .n_ctx = LONG}, 4, 1, 1},
};

static void renew(size_t memory_budget) {
    engine_renew(&figure_engine, &(qkv_session_options){.size = sizeof(qkv_session_options),
                                                        .n_threads = 1,
                                                        .memory_budget = memory_budget});
}

static void for_each_family(void (*check)(const family *f)) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        engine_open(&figure_engine, tiny_model(&families[i].options, "choice.gguf"), 1);
        check(&families[i]);
        engine_close(&figure_engine);
    }
}

static qkv_prompt prompt(int which, size_t n_tokens) {
    static int32_t tokens[PROMPTS][LONG];
    for (int t = 0; t < LONG; t++) tokens[which][t] = 3 + t * (7 + which) % (TINY_VOCAB - 3);
    qkv_prompt made = QKV_PROMPT_INIT;
    made.tokens = tokens[which];
    made.n_tokens = n_tokens;
    return made;
}

static qkv_figure_options options_for(const qkv_prompt *prompts, size_t n, int32_t layer,
                                      int32_t head) {
    qkv_figure_options options = figure_options_for(prompts);
    options.n_prompts = n;
    options.layer = layer;
    options.head = head;
    return options;
}

/* Makes the figure in a new session, which then says what it took. Returns the layer shown. */
static int32_t draw(qkv_figure_kind kind, const qkv_figure_options *options) {
    renew(0);
    qkv_figure *figure = make_figure(kind, options);
    const int32_t layer = figure_info(figure).layer;
    qkv_figure_free(figure);
    return layer;
}

static uint64_t products(void) {
    return session_stats(figure_engine.session).n_matmul;
}

/* To the heads of a layer. */
static uint64_t to_heads(const family *f, int32_t layer) {
    return (uint64_t)layer * f->per_layer + f->heads;
}

/* From the heads of a layer to the logits. */
static uint64_t to_output(const family *f, int32_t layer) {
    return (uint64_t)(LAYERS - layer) * f->per_layer - f->heads + 1;
}

/* ---- passes ---- */

static void check_modify(const family *f) {
    static const size_t lengths[] = {SHORT, LONG};
    for (int i = 0; i < 2; i++) {
        const qkv_prompt input = prompt(0, lengths[i]);
        qkv_figure_options options = options_for(&input, 1, QKV_AUTO, QKV_AUTO);
        draw(QKV_FIGURE_MODIFY, &options);
        assert_int_equal(products(), to_heads(f, LAYERS - 1));
        /* Scores and values of every layer, scores alone of the last; of the head chosen its own map,
         * and the six that edits of q and k change in one batch. */
        const qkv_run_stats stats = session_stats(figure_engine.session);
        assert_int_equal(stats.n_attention, 2 * (LAYERS - 1) + 1 + 2);
        assert_int_equal(stats.n_passes, 3);
        options.head = 2;
        draw(QKV_FIGURE_MODIFY, &options);
        assert_int_equal(products(), to_heads(f, LAYERS - 1));
        options = options_for(&input, 1, 2, QKV_AUTO);
        draw(QKV_FIGURE_MODIFY, &options);
        assert_int_equal(products(), to_heads(f, 2));
        options = options_for(&input, 1, 2, 1);
        draw(QKV_FIGURE_MODIFY, &options);
        assert_int_equal(products(), to_heads(f, 2));
    }
}

static void one_pass_chooses_and_draws(void **state) {
    (void)state;
    for_each_family(check_modify);
}

static void check_prompts(const family *f) {
    const qkv_prompt inputs[PROMPTS] = {prompt(0, SHORT), prompt(1, SHORT - 1), prompt(2, SHORT)};
    qkv_figure_options options = options_for(inputs, PROMPTS, QKV_AUTO, QKV_AUTO);
    const int32_t layer = draw(QKV_FIGURE_MEAN, &options);
    const uint64_t all = to_heads(f, LAYERS - 1) + 2 * to_heads(f, layer);
    assert_int_equal(products(), all);
    /* A report asks for the output: of the first prompt the last layer's heads are there. */
    options.report = 1;
    draw(QKV_FIGURE_MEAN, &options);
    assert_int_equal(products(), all + to_output(f, LAYERS - 1) + to_output(f, layer) +
                                     2 * (to_output(f, layer) + to_output(f, layer)));
}

static void one_pass_for_every_prompt(void **state) {
    (void)state;
    for_each_family(check_prompts);
}

/* An edit below the layer that is shown starts from what the choice has left there. */
static void check_grid(const family *f) {
    const qkv_prompt input = prompt(0, SHORT);
    const qkv_figure_side col = figure_side("Values off", "v@1=zero");
    qkv_figure_options options = options_for(&input, 1, 3, QKV_AUTO);
    options.cols = &col;
    options.n_cols = 1;
    draw(QKV_FIGURE_GRID, &options);
    assert_int_equal(products(),
                     to_heads(f, 3) + f->per_layer - f->heads + f->per_layer + f->pattern);
}

static void edits_below_the_layer_shown(void **state) {
    (void)state;
    for_each_family(check_grid);
}

/* Without room nothing is left for the figure, which shows the same bits. */
static void check_budget(const family *f) {
    const qkv_prompt input = prompt(0, LONG);
    const qkv_figure_options options = options_for(&input, 1, QKV_AUTO, QKV_AUTO);
    renew(0);
    qkv_figure *one = make_figure(QKV_FIGURE_MODIFY, &options);
    renew(1);
    qkv_figure *two = make_figure(QKV_FIGURE_MODIFY, &options);
    const shown_info a = figure_info(one), b = figure_info(two);
    assert_int_equal(products(),
                     to_heads(f, LAYERS - 1) - f->heads + f->pattern + to_heads(f, b.layer));
    assert_true(a.layer == b.layer && a.head == b.head && a.sink == b.sink);
    for (size_t i = 0; i < a.rows * a.cols; i++) {
        const shown_panel x = figure_panel(one, i / a.cols, i % a.cols);
        const shown_panel y = figure_panel(two, i / a.cols, i % a.cols);
        assert_true(same_bits(x.values, y.values, (size_t)(x.n_rows * x.n_cols)));
    }
    qkv_figure_free(one);
    qkv_figure_free(two);
}

static void without_room_two_passes(void **state) {
    (void)state;
    for_each_family(check_budget);
}

/* ---- the choice ---- */

/* By whole maps, as they are drawn. */
static qkv_head_choice best_of_maps(const qkv_prompt *input) {
    static const char *const captures[] = {"pattern", NULL};
    renew(0);
    qkv_result *result = engine_execute(
        &figure_engine, &(engine_run){input->tokens, input->n_tokens, NULL, captures, NULL});
    const int64_t n = (int64_t)input->n_tokens;
    qkv_head_choice best = {.sink = -1};
    for (int32_t layer = 0; layer < LAYERS; layer++) {
        const qkv_tensor map = engine_tensor(result, 0, QKV_SITE_PATTERN, layer);
        for (int32_t h = 0; h < map.n_heads; h++) {
            const double sink = qkv_measure_first_column(map.data + h * n * n, n);
            if (sink > best.sink) best = (qkv_head_choice){0, layer, h, sink};
        }
    }
    qkv_result_free(result);
    return best;
}

static qkv_head_choice chosen(const qkv_prompt *input) {
    qkv_error err = {0};
    qkv_head_choice choice = QKV_HEAD_CHOICE_INIT;
    expect_ok(qkv_choose_head(figure_engine.session, input->tokens, input->n_tokens, QKV_AUTO,
                              QKV_AUTO, &choice, &err),
              &err, "choice");
    return choice;
}

static void check_choice(const family *f) {
    (void)f;
    static const size_t lengths[] = {1, 2, SHORT, LONG};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int which = 0; which < PROMPTS; which++) {
            const qkv_prompt input = prompt(which, lengths[i]);
            const qkv_head_choice best = best_of_maps(&input);
            renew(0);
            const qkv_head_choice choice = chosen(&input);
            assert_int_equal(choice.layer, best.layer);
            assert_int_equal(choice.head, best.head);
            assert_true(choice.sink == best.sink);
        }
    }
}

static void the_head_is_that_of_whole_maps(void **state) {
    (void)state;
    for_each_family(check_choice);
}

/* Bytes that the graphs of the session were given, beside all maps of the prompt. */
static void check_memory(const family *f) {
    (void)f;
    static const size_t lengths[] = {200, LONG};
    for (int i = 0; i < 2; i++) {
        const qkv_prompt input = prompt(0, lengths[i]);
        const size_t n_head = (size_t)figure_engine.info->n_head;
        const size_t maps = LAYERS * n_head * lengths[i] * lengths[i] * sizeof(float);
        best_of_maps(&input);
        assert_true(qkv_session_buffer_size(figure_engine.session) > maps);
        renew(0);
        chosen(&input);
        const size_t bytes = qkv_session_buffer_size(figure_engine.session);
        if (bytes > maps / 2)
            fail_msg("%zu tokens: %zu bytes to choose a head, of %zu in all maps", lengths[i],
                     bytes, maps);
    }
}

static void no_map_is_kept(void **state) {
    (void)state;
    for_each_family(check_memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_pass_chooses_and_draws),
        cmocka_unit_test(one_pass_for_every_prompt),
        cmocka_unit_test(edits_below_the_layer_shown),
        cmocka_unit_test(without_room_two_passes),
        cmocka_unit_test(the_head_is_that_of_whole_maps),
        cmocka_unit_test(no_map_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
