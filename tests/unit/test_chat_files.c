/* Where the chat template of a Hugging Face directory is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gguf.h"
#include "support/scratch.h"
#include "support/small_tokenizer.h"
#include "support/tokenizer_file.h"
#include "tokenizer/tokenizer_files.h"

#define TOKENIZER                                                                                  \
    "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":null,"         \
    "\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},"    \
    "\"merges\":[]}}"

/* A directory with this tokenizer_config.json and this chat_template.jinja; NULL: none. */
static int read_directory(struct gguf_context **meta, unsigned *files, const char *config,
                          const char *own, size_t n_own, qkv_error *err) {
    const char *dir = tokenizer_dir(TOKENIZER, config);
    unlink(scratch_path("chat_template.jinja"));
    if (own) scratch_write("chat_template.jinja", own, n_own);
    *meta = gguf_init_empty();
    return qkv_tokenizer_read(*meta, dir, files, err);
}

/* The template that is found must be this one; NULL: none. */
static void check(const char *config, const char *own, const char *expected) {
    struct gguf_context *meta;
    qkv_error err = {0};
    unsigned files = 0;
    if (read_directory(&meta, &files, config, own, own ? strlen(own) : 0, &err) != QKV_OK)
        fail_msg("%s", err.message);
    meta = written_and_read(meta);
    const int64_t key = gguf_find_key(meta, "tokenizer.chat_template");
    if (expected) {
        assert_true(key >= 0);
        assert_string_equal(gguf_get_val_str(meta, key), expected);
    } else {
        assert_true(key < 0);
    }
    assert_int_equal(files >> QKV_TOKENIZER_FILE_CHAT & 1, own != NULL);
    gguf_free(meta);
}

static void finds_templates(void **state) {
    (void)state;
    check(NULL, NULL, NULL);
    check("{}", NULL, NULL);
    check("{\"chat_template\": \"[{{ messages }}]\\n\"}", NULL, "[{{ messages }}]\n");
    check("{\"chat_template\": null}", NULL, NULL);
    /* Several by name: the one called default. */
    check("{\"chat_template\": [{\"name\": \"tools\", \"template\": \"t\"},"
          "{\"name\": \"default\", \"template\": \"d\"}]}",
          NULL, "d");
    check("{\"chat_template\": [{\"name\": \"tools\", \"template\": \"t\"}]}", NULL, NULL);
    /* A file of its own goes first. */
    check("{\"chat_template\": \"config\"}", "own \xc3\xa4\n", "own \xc3\xa4\n");
    check(NULL, "own", "own");
}

static void refuses_nul(void **state) {
    (void)state;
    struct gguf_context *meta;
    qkv_error err = {0};
    unsigned files = 0;
    assert_int_equal(read_directory(&meta, &files, NULL, "a\0b", 3, &err), QKV_ERR_FORMAT);
    assert_non_null(strstr(err.message, "chat_template.jinja holds NUL"));
    gguf_free(meta);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_templates),
        cmocka_unit_test(refuses_nul),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_clean);
}
