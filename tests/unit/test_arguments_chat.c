/* Bad arguments to qkv/chat.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/chat.h"

static qkv_error err;

#define REFUSED(call) assert_int_equal((call), QKV_ERR_ARGUMENT)

static void test_render(void **state) {
    (void)state;
    const qkv_chat_message good = {"user", "Hello"};
    const qkv_chat_message bad[] = {
        {NULL, "a"}, {"user", NULL}, {"", "a"}, {"a<b", "a"}, {"user", "\xff"}};
    qkv_chat *chat = NULL;
    qkv_chat_options options = QKV_CHAT_OPTIONS_INIT;
    REFUSED(qkv_chat_render(&chat, NULL, &options, &err));
    options.messages = &good;
    options.n_messages = 1;
    REFUSED(qkv_chat_render(&chat, NULL, &options, &err));
    options.template_text = "{{ messages[0].content }}";
    REFUSED(qkv_chat_render(NULL, NULL, &options, &err));
    REFUSED(qkv_chat_render(&chat, NULL, NULL, &err));
    REFUSED(qkv_chat_render(&chat, NULL, &(qkv_chat_options){0}, &err));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        options.messages = &bad[i];
        REFUSED(qkv_chat_render(&chat, NULL, &options, &err));
    }
    options.messages = &good;
    options.date = "yesterday";
    REFUSED(qkv_chat_render(&chat, NULL, &options, &err));
    assert_null(chat);
    assert_null(qkv_model_chat_template(NULL));
}

static void test_chat(void **state) {
    (void)state;
    const qkv_chat_message good = {"user", "Hello"};
    qkv_chat *chat = NULL;
    int32_t *tokens = NULL;
    size_t n = 0;
    qkv_chat_options options = QKV_CHAT_OPTIONS_INIT;
    options.messages = &good;
    options.n_messages = 1;
    options.template_text = "{{ messages[0].content }}";
    assert_int_equal(qkv_chat_render(&chat, NULL, &options, &err), QKV_OK);
    assert_null(qkv_chat_text(NULL, &n));
    assert_false(qkv_chat_part(NULL, 0, NULL, NULL, NULL));
    assert_false(qkv_chat_part(chat, 1, NULL, NULL, NULL));
    assert_true(qkv_chat_part(chat, 0, NULL, NULL, NULL));
    REFUSED(qkv_chat_tokenize(chat, NULL, &tokens, &n, &err));
    REFUSED(qkv_chat_tokenize(NULL, NULL, &tokens, &n, &err));
    REFUSED(qkv_chat_tokenize(chat, NULL, NULL, &n, &err));
    REFUSED(qkv_chat_tokenize(chat, NULL, &tokens, NULL, &err));
    qkv_chat_free(chat);
    qkv_chat_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_render), cmocka_unit_test(test_chat)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
