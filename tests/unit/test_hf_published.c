/*
 * Published configurations, as tests/configs/published.json has them: each is accepted, with the
 * settings that have no effect named and the numbers that count written, or refused for the right
 * reason. Only config.json is read here; test_hf_settings.c opens whole directories.
 */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gguf.h"
#include "model/hf/hf.h"

#define PUBLISHED QKV_TEST_SOURCE_DIR "/configs/published.json"

static void check_ignored(const char *model, const json_t *wanted, const qkv_hf_config *config) {
    qkv_text names = {0};
    qkv_text_puts(&names, "");
    for (size_t i = 0; i < json_array_size(wanted); i++)
        qkv_text_printf(&names, "%s%s", i ? ", " : "",
                        json_string_value(json_array_get(wanted, i)));
    const char *got = config->ignored.data ? config->ignored.data : "";
    if (strcmp(got, names.data) != 0)
        fail_msg("%s: ignored '%s', not '%s'", model, got, names.data);
    qkv_text_release(&names);
}

static double number_of(const struct gguf_context *meta, int64_t id) {
    switch (gguf_get_kv_type(meta, id)) {
    case GGUF_TYPE_UINT32:
        return gguf_get_val_u32(meta, id);
    case GGUF_TYPE_FLOAT32:
        return (double)gguf_get_val_f32(meta, id);
    case GGUF_TYPE_BOOL:
        return gguf_get_val_bool(meta, id);
    default:
        return NAN;
    }
}

static void check_keys(const char *model, json_t *keys, const struct gguf_context *meta) {
    const char *key;
    json_t *value;
    json_object_foreach(keys, key, value) {
        const int64_t id = gguf_find_key(meta, key);
        if (id < 0) fail_msg("%s: %s is not written", model, key);
        if (json_is_string(value)) {
            assert_string_equal(gguf_get_val_str(meta, id), json_string_value(value));
        } else {
            const double wanted =
                json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
            if (number_of(meta, id) != wanted)
                fail_msg("%s: %s is %g, not %g", model, key, number_of(meta, id), wanted);
        }
    }
}

static void check_entry(const json_t *entry) {
    const char *model = json_string_value(json_object_get(entry, "model"));
    const char *refused = json_string_value(json_object_get(entry, "refused"));
    qkv_error err = {0};
    qkv_hf_config config = {.path = "config.json", .meta = gguf_init_empty()};
    const int status = qkv_hf_config_read(&config, json_object_get(entry, "config"), &err);
    if (refused && status == QKV_OK) fail_msg("%s should be refused", model);
    if (refused && !strstr(err.message, refused))
        fail_msg("%s: '%s' does not say '%s'", model, err.message, refused);
    if (!refused && status != QKV_OK) fail_msg("%s: %s", model, err.message);
    if (!refused) {
        check_ignored(model, json_object_get(entry, "ignored"), &config);
        check_keys(model, json_object_get(entry, "keys"), config.meta);
    }
    gguf_free(config.meta);
    qkv_hf_config_release(&config);
}

static void published(void **state) {
    (void)state;
    json_error_t where;
    json_t *all = json_load_file(PUBLISHED, 0, &where), *entry;
    size_t i;
    if (!all) fail_msg(PUBLISHED ", line %d: %s", where.line, where.text);
    assert_true(json_array_size(all) > 100);
    json_array_foreach(all, i, entry) check_entry(entry);
    json_decref(all);
}

/* A notice stays one readable line, whatever somebody writes into a config. */
static void hostile_names(void **state) {
    (void)state;
    json_error_t where;
    json_t *all = json_load_file(PUBLISHED, 0, &where);
    json_t *json = json_deep_copy(json_object_get(json_array_get(all, 1), "config"));
    char name[300];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "\x1b[31m\n%d%0200d", i, 0);
        json_object_set_new(json, name, json_true());
    }
    qkv_error err = {0};
    qkv_hf_config config = {.path = "config.json", .meta = gguf_init_empty()};
    assert_int_equal(qkv_hf_config_read(&config, json, &err), QKV_OK);
    assert_true(config.ignored.length < 10000);
    assert_null(strpbrk(config.ignored.data, "\x1b\n"));
    assert_non_null(strstr(config.ignored.data, " and 400 more"));
    gguf_free(config.meta);
    qkv_hf_config_release(&config);
    json_decref(json);
    json_decref(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published),
        cmocka_unit_test(hostile_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
