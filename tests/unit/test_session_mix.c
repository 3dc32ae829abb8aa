/*
 * Sessions side by side: whatever their numbers of threads and their models, each gives the bits
 * that it gives alone, and that any other number of threads gives. Products are large enough to be
 * shared out.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <omp.h>

#include "model/synthetic.h"
#include "qkv/measure.h"
#include "support/compare.h"
#include "support/engine.h"
#include "support/scratch.h"

void openblas_set_num_threads(int n_threads);
int openblas_get_num_threads(void);

enum { T = 200, MODELS = 2, ACTORS = 6, ROUNDS = 4, VOCABULARY = 300 };

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* One session that runs again and again beside others. */
typedef struct actor {
    engine e;
    qkv_plan *plan;
    qkv_result *alone;
    int n_threads, n_runs, n_failed, n_different;
    int threads_of_openmp; /* what it found afterwards */
} actor;

static qkv_model *models[MODELS];

static int is_same(const qkv_result *a, const qkv_result *b) {
    size_t variant;
    qkv_site site;
    int32_t layer;
    qkv_tensor x = QKV_TENSOR_INIT, y = QKV_TENSOR_INIT;
    for (size_t i = 0; qkv_result_item(a, i, &variant, &site, &layer, &x); i++) {
        if (!qkv_result_get(b, variant, site, layer, &y)) return 0;
        if (!same_bits(x.data, y.data, tensor_count(&x))) return 0;
    }
    return 1;
}

static void act(actor *a) {
    qkv_result *result = NULL;
    a->n_runs++;
    if (qkv_session_run(a->e.session, &result, a->plan, NULL) != QKV_OK)
        a->n_failed++;
    else
        a->n_different += !is_same(a->alone, result);
    qkv_result_free(result);
}

static void *act_repeatedly(void *data) {
    actor *a = data;
    omp_set_num_threads(5); /* of this thread only */
    for (int i = 0; i < ROUNDS; i++) {
        /* A new session has no trunk: all of it is computed again. */
        const qkv_session_options options = {.size = sizeof(qkv_session_options),
                                             .n_threads = a->n_threads};
        qkv_session_free(a->e.session);
        a->e.session = NULL;
        if (qkv_session_new(&a->e.session, a->e.model, &options, NULL) == QKV_OK)
            act(a);
        else
            a->n_failed++;
    }
    a->threads_of_openmp = omp_get_max_threads();
    return NULL;
}

static void prepare(actor *a, int model, int n_threads) {
    int32_t tokens[T];
    for (int t = 0; t < T; t++) tokens[t] = 1 + t * 7 % (VOCABULARY - 1);
    *a = (actor){.e = {.model = models[model]}, .n_threads = n_threads};
    engine_renew(
        &a->e, &(qkv_session_options){.size = sizeof(qkv_session_options), .n_threads = n_threads});
    const engine_run run = {tokens, T, LIST("q@0=scale:0.5", "v@1[100:]=zero"),
                            LIST("pattern", "resid_post"), NULL};
    a->plan = engine_plan(&a->e, &run);
    a->alone = engine_execute(&a->e, &run);
}

static void prepare_all(actor *actors) {
    for (int i = 0; i < ACTORS; i++) prepare(&actors[i], i % MODELS, 1 + i % 3);
}

static void release_all(actor *actors) {
    for (int i = 0; i < ACTORS; i++) {
        actor *a = &actors[i];
        qkv_result_free(a->alone);
        qkv_plan_free(a->plan);
        qkv_session_free(a->e.session);
    }
}

static void expect_all_exact(const actor *actors) {
    for (int i = 0; i < ACTORS; i++) {
        assert_int_equal(actors[i].n_failed, 0);
        if (actors[i].n_different)
            fail_msg("%d of %d runs with %d threads differ", actors[i].n_different,
                     actors[i].n_runs, actors[i].n_threads);
    }
}

static void with_any_number_of_threads(void **state) {
    (void)state;
    actor actors[ACTORS];
    prepare_all(actors);
    for (int i = MODELS; i < ACTORS; i++) {
        assert_int_not_equal(actors[i].n_threads, actors[i - MODELS].n_threads);
        assert_true(is_same(actors[i].alone, actors[i % MODELS].alone));
    }
    release_all(actors);
}

static void in_parallel(void **state) {
    (void)state;
    actor actors[ACTORS];
    pthread_t threads[ACTORS];
    prepare_all(actors);
    openblas_set_num_threads(2);
    for (int i = 0; i < ACTORS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, act_repeatedly, &actors[i]), 0);
    for (int i = 0; i < ACTORS; i++) pthread_join(threads[i], NULL);
    expect_all_exact(actors);
    for (int i = 0; i < ACTORS; i++) assert_int_equal(actors[i].threads_of_openmp, 5);
    assert_int_equal(openblas_get_num_threads(), 2);
    release_all(actors);
}

static void in_turn(void **state) {
    (void)state;
    actor actors[ACTORS];
    prepare_all(actors);
    for (int i = 0; i < 4 * ACTORS; i++) {
        actor *a = &actors[i * 5 % ACTORS];
        if (i % 2)
            engine_renew(&a->e, &(qkv_session_options){.size = sizeof(qkv_session_options),
                                                       .n_threads = a->n_threads});
        act(a);
    }
    expect_all_exact(actors);
    release_all(actors);
}

/* OpenMP gives a team inside a team one thread, unless told otherwise. */
static void inside_a_team(void **state) {
    (void)state;
    actor actors[ACTORS];
    prepare_all(actors);
#pragma omp parallel for num_threads(2) schedule(static, 1)
    for (int i = 0; i < ACTORS; i++) act_repeatedly(&actors[i]);
    expect_all_exact(actors);
    release_all(actors);
}

/* The program's own settings are as they were, whatever a session was given. */
static void host_settings(void **state) {
    (void)state;
    actor a;
    prepare(&a, 0, 1);
    for (int n = 1; n <= 4; n++) {
        openblas_set_num_threads(n);
        omp_set_num_threads(n + 1);
        act(&a);
        assert_int_equal(omp_get_max_threads(), n + 1);
        assert_int_equal(openblas_get_num_threads(), n);
    }
    qkv_result_free(a.alone);
    qkv_plan_free(a.plan);
    qkv_session_free(a.e.session);
}

/* Where OpenMP would give a team of one, the session has its threads all the same. */
static void small_teams(void **state) {
    (void)state;
    actor a;
    prepare(&a, 0, 3);
    const int levels = omp_get_max_active_levels();
    omp_set_dynamic(1);
    omp_set_max_active_levels(0);
    act(&a);
    assert_int_equal(omp_get_dynamic(), 1);
    assert_int_equal(omp_get_max_active_levels(), 0);
    omp_set_dynamic(0);
    omp_set_max_active_levels(levels);
    assert_int_equal(a.n_failed + a.n_different, 0);
    qkv_result_free(a.alone);
    qkv_plan_free(a.plan);
    qkv_session_free(a.e.session);
}

static int open_models(void **state) {
    (void)state;
    static const char *const shapes[MODELS] = {"2,4,2,512,512,300", "2,4,4,256,768,300"};
    static const char *const types[MODELS] = {"f32", "q8_0"};
    for (int i = 0; i < MODELS; i++) {
        qkv_error err = {0};
        const char *path = scratch_path(i ? "mix1.gguf" : "mix0.gguf");
        expect_ok(qkv_synthetic_write(path, shapes[i], types[i], 1, &err), &err, "writing");
        expect_ok(qkv_model_open(&models[i], path, &err), &err, "opening");
    }
    return 0;
}

static int close_models(void **state) {
    for (int i = 0; i < MODELS; i++) qkv_model_free(models[i]);
    return scratch_clean(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_any_number_of_threads),
        cmocka_unit_test(in_turn),
        cmocka_unit_test(in_parallel),
        cmocka_unit_test(inside_a_team),
        cmocka_unit_test(host_settings),
        cmocka_unit_test(small_teams),
    };
    return cmocka_run_group_tests(tests, open_models, close_models);
}
