/*
 * Models by name: what a name leads to in caches as Hugging Face's tools leave them, whole, half
 * downloaded or made to mislead; and which GGUF file is meant.
 */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "hub/gguf_choice.h"
#include "qkv/hub.h"
#include "support/engine.h"
#include "support/fake_cache.h"
#include "support/tiny_model.h"
#include "support/tree.h"

/* ---- places ---- */

static void places(void **state) {
    (void)state;
    static const struct {
        const char *variable, *value, *folder;
    } cases[] = {
        {"HOME", "home", "home/.cache/huggingface/hub"},
        {"XDG_CACHE_HOME", "xdg", "xdg/huggingface/hub"},
        {"HF_HOME", "hf", "hf/hub"},
        {"HUGGINGFACE_HUB_CACHE", "old", "old"},
        {"HF_HUB_CACHE", "new", "new"},
    };
    char file[512], home[512];
    snprintf(home, sizeof home, "%s", getenv("HOME") ? getenv("HOME") : "/");
    unsetenv("HF_HUB_CACHE");
    unsetenv("QKV_CACHE");
    unsetenv("HOME");
    REFUSED("mill/river", "No such file", "qkv pull mill/river");
    REFUSED("minilm", "No such file", "qkv pull minilm");
    /* Each goes before all that came earlier, where their models still are. */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv(cases[i].variable, cases[i].value, 1);
        REFUSED("mill/river", "qkv pull mill/river");
        const char *below = "/models--mill--river/";
        snprintf(file, sizeof file, "%s%srefs/main", cases[i].folder, below);
        tree_write(file, ONE);
        snprintf(file, sizeof file, "%s%ssnapshots/" ONE "/a.gguf", cases[i].folder, below);
        tree_write(file, "a");
        cache_expect_found("mill/river", file);
    }
    setenv("HF_HUB_CACHE", "", 1); /* as good as not set */
    cache_expect_found("mill/river", "old/models--mill--river/snapshots/" ONE "/a.gguf");
    setenv("HF_HUB_CACHE", "~/.cache/huggingface/hub", 1);
    cache_expect_found("mill/river",
                       "home/.cache/huggingface/hub/models--mill--river/snapshots/" ONE "/a.gguf");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) unsetenv(cases[i].variable);
    setenv("HOME", "home", 1);
    tree_write("home/.cache/qkv/models/tiny/tiny.gguf", "a");
    cache_expect_found("tiny", "home/.cache/qkv/models/tiny/tiny.gguf");
    setenv("HOME", home, 1);
    setenv("HF_HUB_CACHE", "hub", 1);
    setenv("QKV_CACHE", "own", 1);
}

/* ---- revisions ---- */

static void revisions(void **state) {
    (void)state;
    const char *r = "models--mill--river";
    cache_add_directory(r, ONE);
    cache_add_directory(r, TWO);
    cache_add_directory(r, "local");
    /* Hugging Face's tools find nothing either where no refs/main says what main is. */
    REFUSED("mill/river", "no revision main", "111111111111", "qkv pull mill/river");
    cache_add_ref(r, "main", TWO "\n");
    cache_add_ref(r, "v1.0", ONE);
    cache_add_ref(r, "refs/pr/1", ONE);
    cache_expect_found("mill/river", "hub/models--mill--river/snapshots/" TWO);
    cache_expect_found("mill/river@main", "hub/models--mill--river/snapshots/" TWO);
    cache_expect_found("mill/river@v1.0", "hub/models--mill--river/snapshots/" ONE);
    cache_expect_found("mill/river@refs/pr/1", "hub/models--mill--river/snapshots/" ONE);
    cache_expect_found("mill/river@" ONE, "hub/models--mill--river/snapshots/" ONE);
    cache_expect_found("mill/river@1111111", "hub/models--mill--river/snapshots/" ONE);
    cache_expect_found("mill/river@local", "hub/models--mill--river/snapshots/local");
    REFUSED("mill/river@111111", "no revision 111111", "qkv pull mill/river@111111");
    REFUSED("mill/river@3333333", "no revision 3333333", "main, refs/pr/1, v1.0");
    REFUSED("mill/river@loc", "no revision loc");
    cache_add_directory(r, TWIN);
    REFUSED("mill/river@1111111", "2 commits", "begin with 1111111");
    cache_expect_found("mill/river@11111111", "hub/models--mill--river/snapshots/" ONE);
    /* Where it came from. */
    qkv_model_place *place = NULL;
    qkv_error err = {0};
    expect_ok(qkv_model_find(&place, "mill/river@v1.0", &err), &err, "v1.0");
    const qkv_model_place_info *info = qkv_model_place_get_info(place);
    assert_string_equal(info->repository, "mill/river");
    assert_string_equal(info->revision, "v1.0");
    assert_string_equal(info->commit, ONE);
    qkv_model_place_free(place);
}

/* A file in refs/ leads to a folder beside it or nowhere. */
static void hostile_refs(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",   ".",    "..",  ("../snapshots/" ONE), "../../../elsewhere", "/etc", "a/b",
        "\n", "a\nb", "a\\b"};
    const char *r = "models--mill--river";
    cache_add_directory(r, ONE);
    cache_add_directory("../elsewhere", ONE);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cache_add_ref(r, "main", bad[i]);
        REFUSED("mill/river", "refs/main does not hold a commit", "qkv pull mill/river");
    }
    char *long_text = calloc(1, 100001);
    memset(long_text, '1', 100000);
    cache_add_ref(r, "main", long_text);
    free(long_text);
    REFUSED("mill/river", "refs/main does not hold a commit", "qkv pull mill/river");
    unlink("hub/models--mill--river/refs/main");
    assert_int_equal(mkfifo("hub/models--mill--river/refs/main", 0600), 0);
    REFUSED("mill/river", "refs/main does not hold a commit", "qkv pull mill/river");
    unlink("hub/models--mill--river/refs/main");
    tree_link("hub/models--mill--river/refs/main", "main");
    REFUSED("mill/river", "refs/main does not hold a commit", "qkv pull mill/river");
    unlink("hub/models--mill--river/refs/main");
    tree_link("hub/models--mill--river/refs/main", "..");
    REFUSED("mill/river", "no revision main");
    unlink("hub/models--mill--river/refs/main");
    cache_add_ref(r, "main", TWO);
    REFUSED("mill/river", "revision main (commit 222222222222)", "qkv pull mill/river");
    /* Names that would lead out of the cache are not names. */
    static const char *const names[] = {"mill/a--b",    "mill--a/b",   "mill/a.git",
                                        "../elsewhere", "mill/..",     "mill/river@../x",
                                        "a/b/c",        "mill/-river", "mill/river@",
                                        "mill/river:",  "/mill/river", "mill/river:../../x.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_false(qkv_model_is_name(names[i]));
        if (access(names[i], F_OK) != 0)
            cache_expect_found(names[i], names[i]); /* for open to refuse */
    }
}

/* ---- which GGUF file ---- */

static void quantisations(void **state) {
    (void)state;
    static const struct {
        const char *name, *quant;
        int has;
    } cases[] = {
        {"tiny-Q4_K_M.gguf", "Q4_K_M", 1},
        {"tiny.q4_k_m.gguf", "Q4_K_M", 1},
        {"tiny_Q4_K_M.GGUF", "q4_k_m", 1},
        {"Q4_K_M.gguf", "Q4_K_M", 1},
        {"Q4_K_M/tiny-00001-of-00003.gguf", "Q4_K_M", 1},
        {"tiny-Q4_K_M-00001-of-00003.gguf", "Q4_K_M", 1},
        {"tiny-UD-Q4_K_XL.gguf", "Q4_K_XL", 1},
        {"tiny-UD-Q4_K_XL.gguf", "UD-Q4_K_XL", 1},
        {"tiny-Q4_K_M.gguf", "Q4_K", 0},
        {"tiny-IQ4_XS.gguf", "Q4_XS", 0},
        {"tiny-bf16.gguf", "F16", 0},
        {"tiny-Q4_K_M.gguf", "K_M", 0},
        {"tiny-Q4_K_M.gguf", "", 0},
        {"tiny-Q4_K_M.gguf", "Q4_K_M.gguf", 0},
        {"tiny.gguf", "00001", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (qkv_gguf_has_quant(cases[i].name, cases[i].quant) != cases[i].has)
            fail_msg("%s, %s", cases[i].name, cases[i].quant);
    }
    static const char *const names[] = {"BF16/tiny-BF16-00001-of-00002.gguf",
                                        "tiny-IQ2_XXS.gguf",
                                        "tiny-MXFP4_MOE.gguf",
                                        "tiny-Q4_K_M.gguf",
                                        "tiny-UD-Q2_K_XL.gguf",
                                        "tiny.q8_0.gguf",
                                        "tiny-TQ1_0.gguf",
                                        "other.gguf",
                                        "a-F16.gguf",
                                        "b-F16.gguf"};
    static const char *const choices[] = {"BF16",       "IQ2_XXS",   "MXFP4_MOE", "Q4_K_M",
                                          "UD-Q2_K_XL", "q8_0",      "TQ1_0",     "other.gguf",
                                          "a-F16.gguf", "b-F16.gguf"};
    const size_t n = sizeof names / sizeof *names;
    for (size_t i = 0; i < n; i++) {
        qkv_text text = {0};
        size_t index;
        qkv_gguf_append_choice(&text, names, n, i);
        assert_string_equal(text.data, choices[i]);
        assert_int_equal(qkv_gguf_choose(&index, names, n, text.data, "m", NULL), QKV_OK);
        assert_int_equal(index, i);
        qkv_text_release(&text);
    }
    assert_true(qkv_gguf_is_choice("a/b-00001-of-00002.gguf"));
    assert_false(qkv_gguf_is_choice("a/b-00002-of-00002.gguf"));
    assert_false(qkv_gguf_is_choice("mmproj-F16.gguf"));
    assert_false(qkv_gguf_is_choice("tiny-mmproj-F16.gguf"));
    assert_false(qkv_gguf_is_choice("imatrix.gguf"));
    assert_false(qkv_gguf_is_choice("gguf"));
    assert_false(qkv_gguf_is_choice("tiny.gguf.txt"));
}

static void gguf_files(void **state) {
    (void)state;
    const char *r = "models--mill--river-GGUF", *s = "hub/models--mill--river-GGUF/snapshots/" ONE;
    char wanted[512];
    cache_add_ref(r, "main", ONE);
    cache_add_file(r, ONE, "README.md", "");
    REFUSED("mill/river-GGUF:Q8_0", "no GGUF file Q8_0", "qkv pull mill/river-GGUF:Q8_0");
    cache_add_file(r, ONE, "river-Q4_K_M.gguf", "a");
    cache_add_file(r, ONE, "mmproj-F16.gguf", "a");
    cache_add_file(r, ONE, "config.json", "{}"); /* often there, and says nothing */
    snprintf(wanted, sizeof wanted, "%s/river-Q4_K_M.gguf", s);
    cache_expect_found("mill/river-GGUF", wanted);
    cache_expect_found("mill/river-GGUF:q4_k_m", wanted);
    cache_expect_found("mill/river-GGUF@main:river-Q4_K_M.gguf", wanted);
    REFUSED("mill/river-GGUF:F16", "no GGUF file F16; it has Q4_K_M",
            "qkv pull mill/river-GGUF:F16");
    snprintf(wanted, sizeof wanted, "%s/mmproj-F16.gguf", s);
    cache_expect_found("mill/river-GGUF:mmproj-F16.gguf", wanted); /* asked for by name */
    cache_add_file(r, ONE, "Q8_0/river-Q8_0-00001-of-00002.gguf", "a");
    REFUSED("mill/river-GGUF", "2 GGUF files: Q8_0, Q4_K_M", "mill/river-GGUF:Q8_0");
    REFUSED("mill/river-GGUF:Q8_0", "Q8_0/river-Q8_0-00002-of-00002.gguf is missing", "qkv pull");
    cache_add_file(r, ONE, "Q8_0/river-Q8_0-00002-of-00002.gguf", NULL);
    REFUSED("mill/river-GGUF:Q8_0", "Q8_0/river-Q8_0-00002-of-00002.gguf is missing", "qkv pull");
    cache_add_file(r, ONE, "Q8_0/river-Q8_0-00002-of-00002.gguf", "a");
    snprintf(wanted, sizeof wanted, "%s/Q8_0/river-Q8_0-00001-of-00002.gguf", s);
    cache_expect_found("mill/river-GGUF:Q8_0", wanted);
    cache_expect_found("mill/river-GGUF:Q8_0/river-Q8_0-00001-of-00002.gguf", wanted);
    cache_expect_found("mill/river-GGUF:river-Q8_0-00001-of-00002.gguf", wanted);
    cache_add_file(r, ONE, "lake-Q4_K_M.gguf", "a");
    REFUSED("mill/river-GGUF:Q4_K_M", "lake-Q4_K_M.gguf, river-Q4_K_M.gguf", ":FILE");
    REFUSED("mill/river-GGUF:mill.gguf", "no GGUF file mill.gguf", "qkv pull");
    cache_add_file(r, ONE, "gone-Q2_K.gguf", NULL);
    REFUSED("mill/river-GGUF:Q2_K", "gone-Q2_K.gguf is missing", "qkv pull mill/river-GGUF:Q2_K");
    /* With weights beside it a config.json counts. */
    cache_add_file(r, ONE, "model.safetensors", "a");
    cache_expect_found("mill/river-GGUF", s);
}

/* Too many to list, and folders that lead round in circles. */
static void many_files(void **state) {
    (void)state;
    const char *r = "models--mill--many";
    char name[64];
    cache_add_ref(r, "main", ONE);
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "river-%030d.gguf", i);
        cache_add_file(r, ONE, name, "a");
    }
    tree_link("hub/models--mill--many/snapshots/" ONE "/round", ".");
    REFUSED("mill/many", "400 GGUF files", "river-000000000000000000000000000000.gguf");
    cache_add_file(r, ONE, "a/b/c/d/e/f/deep-Q8_0.gguf", "a");
    REFUSED("mill/many:Q8_0", "no GGUF file Q8_0", "qkv pull mill/many:Q8_0");
}

/* ---- what a download left ---- */

static void incomplete(void **state) {
    (void)state;
    const char *r = "models--mill--half", *s = "hub/models--mill--half/snapshots/" ONE;
    char path[512];
    REFUSED("mill/half", "No such file or directory", "qkv pull mill/half");
    cache_add_ref(r, "main", ONE);
    REFUSED("mill/half", "the files of revision main", "qkv pull mill/half");
    snprintf(path, sizeof path, "%s/README.md", s);
    tree_write(path, "");
    REFUSED("mill/half", "config.json is missing", "qkv pull mill/half");
    cache_add_file(r, ONE, "config.json", "{}");
    REFUSED("mill/half", "weights is missing", "qkv pull mill/half");
    cache_add_file(r, ONE, "model-00001-of-00002.safetensors", "a");
    REFUSED("mill/half", "model.safetensors.index.json is missing", "qkv pull mill/half");
    cache_add_file(r, ONE, "model.safetensors.index.json",
                   "{\"weight_map\": {\"a\": \"model-00001-of-00002.safetensors\", \"b\": "
                   "\"model-00002-of-00002.safetensors\"}}");
    REFUSED("mill/half", "model-00002-of-00002.safetensors is missing", "qkv pull mill/half");
    cache_add_file(r, ONE, "model-00002-of-00002.safetensors", NULL);
    REFUSED("mill/half", "model-00002-of-00002.safetensors is missing", "qkv pull mill/half");
    cache_add_file(r, ONE, "model-00002-of-00002.safetensors", "a");
    cache_expect_found("mill/half", s);
    cache_add_file(r, ONE, "tokenizer.json", NULL);
    REFUSED("mill/half", "tokenizer.json is missing", "qkv pull mill/half");
    cache_add_file(r, ONE, "tokenizer.json", "{}");
    cache_add_file(r, ONE, "config.json", NULL);
    REFUSED("mill/half", "config.json is missing", "qkv pull mill/half");
    cache_add_file(r, ONE, "config.json", "{}");
    /* An index that cannot be understood is for opening to complain about. */
    static const char *const strange[] = {"[", "[]", "{\"weight_map\": 3}",
                                          "{\"weight_map\": {\"a\": 3, \"b\": \"../../x\"}}",
                                          "{\"metadata\": 1e400}"};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        cache_add_file(r, ONE, "model.safetensors.index.json", strange[i]);
        cache_expect_found("mill/half", s);
    }
    /* Pickles are refused when they are opened, with the reason. */
    tree_remove("hub");
    cache_add_ref(r, "main", ONE);
    cache_add_file(r, ONE, "config.json", "{}");
    cache_add_file(r, ONE, "pytorch_model.bin", "a");
    cache_expect_found("mill/half", s);
}

/* ---- names without an organisation ---- */

static void short_names(void **state) {
    (void)state;
    REFUSED("tiny", "cannot open tiny: No such file or directory", "qkv pull fetches org/name, ");
    REFUSED("minilm", "cannot open minilm: No such file or directory", "with: qkv pull minilm");
    REFUSED("minilm:Q8_0", "cannot open minilm:Q8_0: No such file", "with: qkv pull minilm");
    REFUSED("minil", "cannot open minil: No such file", "qkv pull fetches org/name, ");
    tree_write("own/models/tiny/README.md", "");
    REFUSED("tiny", "not complete", "qkv pull fetches org/name, ");
    tree_write("own/models/tiny/tiny.gguf", "a");
    cache_expect_found("tiny", "own/models/tiny/tiny.gguf");
    /* What a model never had is not fetched either. */
    qkv_error err;
    assert_null(cache_find_path("tiny:Q2_K", &err));
    assert_string_equal(err.message, "tiny has no GGUF file Q2_K; it has tiny.gguf");
    tree_write("own/models/tiny/other-Q8_0.gguf", "a");
    REFUSED("tiny", "2 GGUF files: Q8_0, tiny.gguf");
    cache_expect_found("tiny:Q8_0", "own/models/tiny/other-Q8_0.gguf");
    tree_write("own/models/mini/config.json", "{}");
    tree_write("own/models/mini/model.safetensors", "a");
    cache_expect_found("mini", "own/models/mini");
    /* The first models of the hub have no organisation. */
    cache_add_ref("models--gpt2", "main", ONE);
    cache_add_directory("models--gpt2", ONE);
    cache_expect_found("gpt2", "hub/models--gpt2/snapshots/" ONE);
    cache_expect_found("gpt2@" ONE, "hub/models--gpt2/snapshots/" ONE);
    cache_add_ref("models--tiny", "main", ONE);
    cache_add_directory("models--tiny", ONE);
    cache_expect_found("tiny@main", "hub/models--tiny/snapshots/" ONE);
    cache_expect_found("tiny:tiny.gguf", "own/models/tiny/tiny.gguf"); /* qkv's own go first */
    cache_expect_found("file.gguf",
                       "file.gguf"); /* left to opening, which says that there is none */
    cache_expect_found("a/file.gguf", "a/file.gguf");
}

/* A path that exists is taken as a path. */
static void paths_first(void **state) {
    (void)state;
    cache_add_ref("models--mill--river", "main", ONE);
    cache_add_directory("models--mill--river", ONE);
    cache_expect_found("mill/river", "hub/models--mill--river/snapshots/" ONE);
    assert_true(qkv_model_is_name("mill/river"));
    tree_write("mill/river", "a");
    cache_expect_found("mill/river", "mill/river");
    cache_expect_found("./mill/river", "./mill/river");
    cache_expect_found("./mill/none", "./mill/none");
    assert_false(qkv_model_is_name("mill/river"));
    unlink("mill/river");
    tree_link("mill/river", "nowhere");
    cache_expect_found("mill/river", "mill/river");
    cache_expect_found("mill/river/below", "mill/river/below");
    tree_remove("mill");
}

/* Opening takes whatever finding takes. */
static void opened_by_name(void **state) {
    (void)state;
    static const tiny_options plain = {.family = "llama"};
    static const char *const names[] = {"mill/river", "mill/river@main", "mill/river:tiny.gguf",
                                        "tiny", "own/models/tiny/tiny.gguf"};
    qkv_model *model = NULL;
    qkv_error err = {0};
    const char *file = tiny_model(&plain, "named.gguf");
    const char *snapshot = "hub/models--mill--river/snapshots/" ONE;
    cache_add_ref("models--mill--river", "main", ONE);
    tree_write("own/models/tiny/README.md", "");
    assert_int_equal(qkv_model_open(&model, "tiny", &err), QKV_ERR_IO);
    assert_non_null(strstr(err.message, "not complete"));
    tree_link("own/models/tiny/tiny.gguf", file);
    tree_write("hub/models--mill--river/snapshots/" ONE "/README.md", "");
    tree_link("hub/models--mill--river/snapshots/" ONE "/tiny.gguf", file);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        expect_ok(qkv_model_open(&model, names[i], &err), &err, names[i]);
        const char *path = qkv_model_get_info(model)->path;
        assert_non_null(strstr(path, i < 3 ? snapshot : "own/models/tiny/tiny.gguf"));
        qkv_model_free(model);
    }
    assert_int_equal(qkv_model_open(&model, "mill/pond", &err), QKV_ERR_IO);
    assert_non_null(strstr(err.message, "qkv pull mill/pond"));
    assert_null(model);
    assert_int_equal(qkv_model_open(&model, "no-such-file.gguf", &err), QKV_ERR_IO);
    assert_null(strstr(err.message, "pull"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(places, cache_empty),
        cmocka_unit_test_teardown(revisions, cache_empty),
        cmocka_unit_test_teardown(hostile_refs, cache_empty),
        cmocka_unit_test(quantisations),
        cmocka_unit_test_teardown(gguf_files, cache_empty),
        cmocka_unit_test_teardown(many_files, cache_empty),
        cmocka_unit_test_teardown(incomplete, cache_empty),
        cmocka_unit_test_teardown(short_names, cache_empty),
        cmocka_unit_test_teardown(paths_first, cache_empty),
        cmocka_unit_test_teardown(opened_by_name, cache_empty),
    };
    return cmocka_run_group_tests(tests, cache_enter, cache_leave);
}
