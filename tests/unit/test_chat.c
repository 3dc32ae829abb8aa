/* Chat templates: texts as transformers makes them, published templates, marks, limits. */
#include <dirent.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/text.h"
#include "chat/jinja_face.h"
#include "qkv/chat.h"
#include "qkv/model.h"
#include "support/real_vocabs.h"

typedef struct output {
    qkv_text text, marks; /* a letter for every byte: t of the template, m of a message */
} output;

static int take(void *user, const char *text, size_t length, int from_outside) {
    output *out = user;
    qkv_text_append(&out->text, text, length);
    for (size_t i = 0; i < length; i++) qkv_text_append(&out->marks, from_outside ? "m" : "t", 1);
    return !out->text.failed;
}

static char message[QKV_JINJA_MESSAGE];

static enum qkv_jinja_status render(output *out, const char *source, const json_t *messages,
                                    int reply, const qkv_jinja_name *names, size_t n_names) {
    qkv_jinja_message list[16];
    *out = (output){0};
    qkv_text_puts(&out->text, "");
    assert_true(json_array_size(messages) <= 16);
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *m = json_array_get(messages, i);
        list[i] = (qkv_jinja_message){json_string_value(json_object_get(m, "role")),
                                      json_string_value(json_object_get(m, "content"))};
    }
    const qkv_jinja_input input = {.source = source,
                                   .length = strlen(source),
                                   .messages = list,
                                   .n_messages = json_array_size(messages),
                                   .names = names,
                                   .n_names = n_names,
                                   .add_generation_prompt = reply,
                                   .date = {.tm_year = 126, .tm_mon = 0, .tm_mday = 31}};
    return qkv_jinja_render(&input, take, out, message);
}

static void release(output *out) {
    qkv_text_release(&out->text);
    qkv_text_release(&out->marks);
}

/* What transformers made of published templates: see tests/chat/README.md. */
static void test_cases(void **state) {
    (void)state;
    static const struct {
        const char *tokenizer;
        qkv_jinja_name names[2];
    } known[] = {{"llama3_1", {{"bos_token", "<|begin_of_text|>"}, {"eos_token", "<|eot_id|>"}}},
                 {"qwen3", {{"eos_token", "<|im_end|>"}}},
                 {"gemma3", {{"bos_token", "<bos>"}, {"eos_token", "<eos>"}}},
                 {"gpt4", {{"bos_token", "<|endoftext|>"}, {"eos_token", "<|endoftext|>"}}}};
    json_t *all = json_load_file(QKV_TEST_SOURCE_DIR "/chat/cases.json", 0, NULL);
    size_t n = 0;
    assert_int_equal(json_object_size(all), sizeof known / sizeof *known);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const json_t *entry = json_object_get(all, known[i].tokenizer);
        const char *source = json_string_value(json_object_get(entry, "template")), *name;
        json_t *one;
        json_object_foreach(json_object_get(entry, "cases"), name, one) {
            output out;
            const int reply = json_is_true(json_object_get(one, "add_generation_prompt"));
            const size_t n_names = known[i].names[1].name ? 2 : 1;
            const enum qkv_jinja_status status = render(
                &out, source, json_object_get(one, "messages"), reply, known[i].names, n_names);
            if (status) fail_msg("%s, %s: %s", known[i].tokenizer, name, message);
            assert_string_equal(out.text.data, json_string_value(json_object_get(one, "text")));
            release(&out);
            n++;
        }
    }
    assert_true(n >= 20);
    json_decref(all);
}

/* Every test and filter of Jinja's manual: what Python's jinja2 gives, tests/chat/make_functions.py. */
static void test_functions(void **state) {
    (void)state;
    json_t *all = json_load_file(QKV_TEST_SOURCE_DIR "/chat/functions.json", 0, NULL), *wanted;
    const char *set = json_string_value(json_object_get(all, "set")), *expression;
    size_t n_wrong = 0;
    assert_non_null(set);
    assert_true(json_object_size(json_object_get(all, "cases")) > 350);
    json_object_foreach(json_object_get(all, "cases"), expression, wanted) {
        qkv_text source = {0};
        output out;
        qkv_text_printf(&source, "%s{{ %s }}", set, expression);
        const enum qkv_jinja_status status =
            render(&out, source.data, json_object_get(all, "messages"), 0, NULL, 0);
        const char *text = json_string_value(wanted);
        const int same = text ? !status && strcmp(out.text.data, text) == 0 : status != 0;
        if (!same) {
            n_wrong++;
            print_error("%s: %s and not %s\n", expression, status ? message : out.text.data,
                        text ? text : "an error");
        }
        release(&out);
        qkv_text_release(&source);
    }
    json_decref(all);
    assert_int_equal(n_wrong, 0);
}

/* The ids of these texts, with vocabularies that llama.cpp has: Llama 3's and Qwen2's have all tokens
 * of the conversations where their successors have them. tests/real asks the tokenisers themselves. */
static void test_ids(void **state) {
    (void)state;
    static const char *const known[][2] = {{"llama3_1", "llama-bpe"}, {"qwen3", "qwen2"}};
    json_t *all = json_load_file(QKV_TEST_SOURCE_DIR "/chat/cases.json", 0, NULL), *one;
    for (size_t i = 0; i < 2; i++) {
        const json_t *cases = json_object_get(json_object_get(all, known[i][0]), "cases");
        const char *name;
        assert_true(json_object_size(cases) >= 6);
        json_object_foreach((json_t *)cases, name, one) {
            const char *text = json_string_value(json_object_get(one, "text"));
            const json_t *wanted = json_object_get(one, "ids");
            int32_t *ids = NULL;
            const size_t n = vocab_ids(get_vocab(known[i][1]), &ids, text, strlen(text),
                                       QKV_TOKENIZE_PARSE_SPECIAL);
            assert_int_equal(n, json_array_size(wanted));
            for (size_t k = 0; k < n; k++)
                assert_int_equal(ids[k], json_integer_value(json_array_get(wanted, k)));
            free(ids);
        }
    }
    json_decref(all);
}

static json_t *conversation(void) {
    return json_pack("[{s:s,s:s},{s:s,s:s},{s:s,s:s}]", "role", "user", "content", "Hello <s>",
                     "role", "assistant", "content", "Hello! How can I help?", "role", "user",
                     "content", "What is a mill?");
}

/* All that come with llama.cpp. */
static void test_published(void **state) {
    (void)state;
    const qkv_jinja_name names[] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    json_t *messages = conversation();
    DIR *dir = opendir(QKV_TEST_VOCABS "/templates");
    struct dirent *entry;
    int n = 0;
    assert_non_null(dir);
    while ((entry = readdir(dir))) {
        const char *suffix = strrchr(entry->d_name, '.');
        qkv_text path = {0};
        char *source = NULL;
        size_t size;
        output out;
        if (!suffix || strcmp(suffix, ".jinja") != 0) continue;
        qkv_text_printf(&path, "%s/%s", QKV_TEST_VOCABS "/templates", entry->d_name);
        assert_int_equal(qkv_read_file(&source, &size, path.data, 1 << 20, NULL), QKV_OK);
        if (render(&out, source, messages, 1, names, 2)) fail_msg("%s: %s", entry->d_name, message);
        assert_non_null(strstr(out.text.data, "What is a mill?"));
        const char *hidden = strstr(out.text.data, "Hello <s>");
        if (hidden) assert_memory_equal(out.marks.data + (hidden - out.text.data), "mmmmmmmmm", 9);
        release(&out);
        free(source);
        qkv_text_release(&path);
        n++;
    }
    closedir(dir);
    json_decref(messages);
    assert_true(n >= 70);
}

static void expect(const char *source, const char *text, const char *marks) {
    json_t *messages = json_pack("[{s:s,s:s}]", "role", "user", "content", " a-\xc3\xa4-b ");
    output out;
    if (render(&out, source, messages, 0, NULL, 0)) fail_msg("%s: %s", source, message);
    assert_string_equal(out.text.data, text);
    if (marks) assert_string_equal(out.marks.data, marks);
    release(&out);
    json_decref(messages);
}

#define C "{% set c = messages[0].content %}"

static void test_python(void **state) {
    (void)state;
    expect(C "{{ c.split('-')[1] }}", "\xc3\xa4", "mm");
    expect(C "{{ 'x' + c.strip()[2:3] ~ 'y' }}", "x\xc3\xa4y", "tmmt");
    expect(C "{{ c | length }} {{ c[-2] }}", "7 b", "ttm");
    expect(C "{{ c | trim | replace('-', '<s>') }}", "a<s>\xc3\xa4<s>b", "mtttmmtttm");
    expect(C "{{ [c, 1, none, true] | tojson }}", "[\" a-\xc3\xa4-b \", 1, null, true]",
           "ttmmmmmmmmttttttttttttttttt");
    expect("{{ none }} {{ [1.5, 'a'] }} {{ {'k': (1, 2)} }}{{ missing }}",
           "None [1.5, 'a'] {'k': (1, 2)}", NULL);
    expect("{{ ' a  b '.split() }} {{ -7 % 3 }} {{ 7 / 2 }}", "['a', 'b'] 2 3.5", NULL);
    expect("{{ strftime_now('%d %B %Y') }}", "31 January 2026", NULL);
    expect("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% elif i > 4 %}{% break %}"
           "{% endif %}{{ i }}{% endfor %}",
           "0134", NULL);
    expect("{{ 'stra\xc3\x9f\x65 \xc3\xa9' | upper }} {{ '\xc3\x89' | lower }}",
           "STRASSE \xc3\x89 \xc3\xa9", NULL);
    expect("{{ 'a_b \xc3\xa9-c' | title }} {{ 'a_b \xc3\xa9-c'.title() }}",
           "A_b \xc3\x89-C A_B \xc3\x89-C", NULL);
    expect(C "{{ c | trim | upper }}", "A-\xc3\x84-B", "mmmmmm");
    expect("{{ '\xe4\xb8\xad'.isalpha() }} {{ '-'.isalpha() }} {{ '12'.isdigit() }}",
           "True False True", NULL);
    expect("a  {%- if true -%}  b  {%- endif -%}  c", "abc", NULL);
    expect("a{% if true %}b{% endif %}", "ab", NULL);
    expect("x {# a comment #} y", "x  y", NULL);
    expect("  {% if true %}b{% endif %}", "b", NULL);
    expect("{% generation %}a{% endgeneration %}", "a", NULL);
    expect("{% if tools is defined %}{{ tools is none }}{% endif %}", "True", NULL);
}

/* A hostile template must end within a second. Sanitizers make the same work several times slower:
 * their builds have a wider bound. */
#ifdef __SANITIZE_ADDRESS__
enum { MOST_SECONDS = 10 };
#else
enum { MOST_SECONDS = 1 };
#endif

static clock_t slowest_time;
static char slowest[60]; /* of the templates below */

static void refused(const char *source, const char *why) {
    json_t *messages = conversation();
    output out;
    const clock_t begin = clock();
    if (!render(&out, source, messages, 0, NULL, 0)) fail_msg("%s was taken", source);
    if (!strstr(message, why)) fail_msg("%s: %s", source, message);
    assert_null(strchr(message, '\n'));
    const clock_t took = clock() - begin;
    if (took > slowest_time) {
        slowest_time = took;
        snprintf(slowest, sizeof slowest, "%.50s", source);
    }
    if (took >= MOST_SECONDS * CLOCKS_PER_SEC)
        fail_msg("%.50s took %ld ms", source, (long)(took * 1000 / CLOCKS_PER_SEC));
    release(&out);
    json_decref(messages);
}

/* A loop takes a copy of all variables for every item, before anything of it runs. */
static void refuse_many_variables(void) {
    enum { VARIABLES = 2000, MOST = 32 };
    char *source = calloc(VARIABLES + 4, MOST);
    assert_non_null(source);
    size_t n = 0;
    for (int i = 0; i < VARIABLES; i++)
        n += (size_t)snprintf(source + n, MOST, "{%% set v%d = 1 %%}", i);
    strcpy(source + n, "{% for i in range(90000) %}{% endfor %}");
    refused(source, "limit");
    free(source);
}

static void test_hostile(void **state) {
    (void)state;
    refuse_many_variables();
    refused("{% for i in range(1000000000) %}{% endfor %}", "100000 items");
    refused("{% for i in range(9999) %}{% for k in range(9999) %}x{% endfor %}{% endfor %}",
            "limit");
    refused("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", "limit");
    refused("{% set ns = namespace(a='xx') %}{% for i in range(99) %}"
            "{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
            "limit");
    refused("{{ 'x' * 1000000000 }}", "limit");
    refused("{{ ('x' * 9999).replace('', 'y' * 9999) }}", "limit");
    refused("{{ 'a' | indent(1000000000) }}", "limit");
    refused("{{ [1] | tojson(indent=1000000000) }}", "limit");
    refused("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "into itself");
    refused("{% set l = [] %}{{ l.append(l) }}", "into itself");
    refused("{{ 1 is divisibleby(0) }}", "divisibleby");
    refused("{{ raise_exception('only user messages') }}", "only user messages");
    refused("{% break %}", "loop");
    refused("{{ open('/etc/passwd') }}", "not a function");
    refused("{% include '/etc/passwd' %}", "include");
    refused("{{ ", "");
    refused("{{ [0.5, 1e16] }}", "1e16");
    refused("{{ 1 | (2) }}", "something else stands");
    refused("{{ 1 is (2) }}", "");
    qkv_text deep = {0};
    qkv_text_puts(&deep, "{{ ");
    for (int i = 0; i < 100000; i++) qkv_text_puts(&deep, "(");
    refused(deep.data, "limit");
    deep.length = 0;
    for (int i = 0; i < 50000; i++) qkv_text_puts(&deep, "{% if 1 %}");
    refused(deep.data, "limit");
    deep.length = 0;
    for (int i = 0; i < 50000; i++) qkv_text_puts(&deep, "{% set a = [a] %}");
    refused(deep.data, "limit");
    print_message("slowest: %s, %ld ms\n", slowest, (long)(slowest_time * 1000 / CLOCKS_PER_SEC));
    qkv_text_release(&deep);
}

static void test_library(void **state) {
    (void)state;
    const qkv_chat_message messages[] = {{"system", "Be brief."}, {"user", "What is a mill?"}};
    qkv_chat_options options = QKV_CHAT_OPTIONS_INIT;
    qkv_error err = {0};
    qkv_chat *chat = NULL;
    size_t start, length;
    int from_message;
    options.messages = messages;
    options.n_messages = 2;
    options.template_text = "{% for m in messages %}[{{ m.content }}]{% endfor %}"
                            "{{ strftime_now('%Y-%m-%d') }}";
    options.date = "2024-02-29";
    assert_int_equal(qkv_chat_render(&chat, NULL, &options, &err), QKV_OK);
    assert_string_equal(qkv_chat_text(chat, &length), "[Be brief.][What is a mill?]2024-02-29");
    assert_int_equal(length, 38);
    assert_true(qkv_chat_part(chat, 1, &start, &length, &from_message));
    assert_int_equal(start, 1);
    assert_int_equal(length, 9);
    assert_int_equal(from_message, 1);
    assert_false(qkv_chat_part(chat, 5, &start, &length, &from_message));
    qkv_chat_free(chat);
    options.date = "2023-02-29";
    assert_int_equal(qkv_chat_render(&chat, NULL, &options, &err), QKV_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),   cmocka_unit_test(test_functions),
        cmocka_unit_test(test_ids),     cmocka_unit_test(test_published),
        cmocka_unit_test(test_python),  cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_library),
    };
    return cmocka_run_group_tests(tests, NULL, free_real_vocabs);
}
