/*
 * Models that were found by name: those whose files are links open like any other, and are listed.
 */
#define _XOPEN_SOURCE 700
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hub/gguf_choice.h"
#include "qkv/hub.h"
#include "support/engine.h"
#include "support/fake_cache.h"
#include "support/scratch.h"
#include "support/tiny_model.h"
#include "support/tree.h"

#define VECTORS QKV_TEST_SOURCE_DIR "/vectors/"

/* ---- opening what is found ---- */

static void link_vector(const char *folder, const char *name, const char *file) {
    char path[512], target[512];
    snprintf(path, sizeof path, "hub/%s/snapshots/" ONE "/%s", folder, name);
    snprintf(target, sizeof target, VECTORS "%s", file);
    tree_link(path, target);
}

/* The same model, hash and all, and its name and path. */
static void expect_opens(const char *name, const char *original, const char *called,
                         const char *base) {
    qkv_error err = {0};
    char hash[2][33], *path = cache_find_path(name, &err);
    if (!path) fail_msg("%s", err.message);
    qkv_model *model = NULL;
    const char *const paths[] = {original, path};
    for (size_t i = 0; i < 2; i++) {
        expect_ok(qkv_model_open(&model, paths[i], &err), &err, paths[i]);
        expect_ok(qkv_model_hash(model, hash[i], &err), &err, "hash");
        if (i == 0) qkv_model_free(model);
    }
    assert_string_equal(hash[0], hash[1]);
    const qkv_model_info *info = qkv_model_get_info(model);
    if (called) assert_string_equal(info->name, called);
    assert_string_equal(strrchr(info->path, '/') + 1, base);
    qkv_model_free(model);
    free(path);
}

static void links_open(void **state) {
    (void)state;
    static const char *const sharded[] = {"config.json",
                                          "model-00001-of-00002.safetensors",
                                          "model-00002-of-00002.safetensors",
                                          "model.safetensors.index.json",
                                          "tokenizer.json",
                                          "tokenizer_config.json"};
    cache_add_ref("models--mill--river", "main", ONE);
    for (size_t i = 0; i < sizeof sharded / sizeof *sharded; i++) {
        char blob[256], target[512], link[256];
        snprintf(blob, sizeof blob, "hub/models--mill--river/blobs/%zu", i);
        snprintf(target, sizeof target, VECTORS "llama_gqa/hf-sharded/%s", sharded[i]);
        tree_link(blob, target);
        snprintf(link, sizeof link, "hub/models--mill--river/snapshots/" ONE "/%s", sharded[i]);
        snprintf(target, sizeof target, "../../blobs/%zu", i);
        tree_link(link, target);
    }
    expect_opens("mill/river", VECTORS "llama_gqa/hf-sharded", "river", ONE);
    cache_add_ref("models--gpt2", "main", ONE);
    link_vector("models--gpt2", "config.json", "gpt2/hf/config.json");
    link_vector("models--gpt2", "model.safetensors", "gpt2/hf/model.safetensors");
    link_vector("models--gpt2", "tokenizer.json", "gpt2/hf/tokenizer.json");
    link_vector("models--gpt2", "tokenizer_config.json", "gpt2/hf/tokenizer_config.json");
    expect_opens("gpt2", VECTORS "gpt2/hf", "gpt2", ONE);
    cache_add_ref("models--mill--river-GGUF", "main", ONE);
    link_vector("models--mill--river-GGUF", "river-F32.gguf", "llama_gqa/model.gguf");
    expect_opens("mill/river-GGUF:F32", VECTORS "llama_gqa/model.gguf", NULL, "river-F32.gguf");
}

/* The parts of a split model are found beside the link, where their names are, and not beside the
 * bytes. */
static void split_links_open(void **state) {
    (void)state;
    tiny_file file;
    char blob[256], link[256];
    tiny_build(&file, &(tiny_options){.family = "llama"});
    char *first = strdup(tiny_save_split(&file, "whole"));
    tiny_free(&file);
    cache_add_ref("models--mill--river", "main", ONE);
    for (int i = 1; i <= 2; i++) {
        snprintf(link, sizeof link, "whole-%05d-of-00002.gguf", i);
        const char *part = scratch_path(link);
        snprintf(blob, sizeof blob, "hub/models--mill--river/blobs/%d", i);
        tree_link(blob, part);
        snprintf(link, sizeof link,
                 "hub/models--mill--river/snapshots/" ONE "/Q8_0/r-%05d-of-00002.gguf", i);
        snprintf(blob, sizeof blob, "../../../blobs/%d", i);
        tree_link(link, blob);
    }
    expect_opens("mill/river:Q8_0", first, NULL, "r-00001-of-00002.gguf");
    free(first);
}

/* ---- lists ---- */

static void append_list(qkv_text *text) {
    qkv_model_list *list = NULL;
    qkv_error err = {0};
    expect_ok(qkv_model_list_new(&list, &err), &err, "list");
    for (size_t i = 0; i < qkv_model_list_count(list); i++) {
        const qkv_model_place_info *info = qkv_model_list_get(list, i);
        qkv_text_printf(text, "%s %d%s\n", info->name, (int)info->size,
                        info->problem[0] ? " -" : "");
        assert_int_equal(info->path[0] == '\0', info->problem[0] != '\0');
        /* The name leads there. */
        if (info->path[0]) cache_expect_found(info->name, info->path);
    }
    qkv_model_list_free(list);
}

static void lists(void **state) {
    (void)state;
    qkv_text text = {0};
    append_list(&text);
    assert_int_equal(text.length, 0);
    tree_write("own/models/tiny/tiny.gguf", "12345");
    tree_write("own/models/empty/README.md", "");
    tree_write("own/models/.tmp/tiny.gguf", "");
    tree_write("own/models/tiny.lock", "");
    cache_add_directory("models--mill--river", ONE); /* 2 + 7 bytes */
    cache_add_directory("models--mill--river", TWO);
    cache_add_ref("models--mill--river", "main", TWO);
    cache_add_directory("models--mill--river", TWIN);
    cache_add_ref("models--mill--river", "v1", TWIN);
    cache_add_directory("models--gpt2", ONE);
    cache_add_ref("models--gpt2", "main", ONE);
    cache_add_ref("models--mill--lost", "main", ONE);
    cache_add_ref("models--mill--bad", "main", "../x");
    const char *r = "models--mill--river-GGUF";
    cache_add_ref(r, "main", ONE);
    cache_add_file(r, ONE, "river-Q4_K_M.gguf", "1234");
    cache_add_file(r, ONE, "F16/river-F16-00001-of-00002.gguf", "1");
    cache_add_file(r, ONE, "F16/river-F16-00002-of-00002.gguf", "22");
    cache_add_file(r, ONE, "river-Q2_K.gguf", NULL);
    cache_add_file("models--mill--one", ONE, "one.gguf", "1");
    cache_add_ref("models--mill--one", "main", ONE);
    tree_write("hub/datasets--mill--river/refs/main", ONE);
    tree_write("hub/models--a--b--c/refs/main", ONE);
    tree_write("hub/models--/refs/main", ONE);
    tree_write("hub/models--a@b--c/refs/main", ONE);
    tree_write("hub/version.txt", "1");
    tree_link("hub/models--mill--loop/snapshots", "snapshots");
    append_list(&text);
    assert_string_equal(text.data, "empty 0 -\n"
                                   "tiny 5\n"
                                   "gpt2 9\n"
                                   "mill/bad 0 -\n"
                                   "mill/loop 0 -\n"
                                   "mill/lost 0 -\n"
                                   "mill/one 1\n"
                                   "mill/river 9\n"
                                   "mill/river@111111111111 9\n"
                                   "mill/river@v1 9\n"
                                   "mill/river-GGUF:F16 3\n"
                                   "mill/river-GGUF:Q2_K 0 -\n"
                                   "mill/river-GGUF:Q4_K_M 4\n");
    qkv_text_release(&text);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(links_open, cache_empty),
        cmocka_unit_test_teardown(split_links_open, cache_empty),
        cmocka_unit_test_teardown(lists, cache_empty),
    };
    return cmocka_run_group_tests(tests, cache_enter, cache_leave);
}
