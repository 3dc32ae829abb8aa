/*
 * A host program may have set any locale: everything that is read and written stays the same, byte
 * by byte. The locales are compiled here, from the sources of Debian's package "locales": one with
 * a comma, one whose decimal sign takes two bytes, one whose letters go beyond ASCII.
 */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "base/text.h"
#include "draw/draw.h"
#include "qkv/chart.h"
#include "qkv/reproduce.h"
#include "qkv/store.h"
#include "qkv/sweep.h"
#include "study/figure.h"
#include "support/engine.h"
#include "support/figures.h"
#include "support/scratch.h"
#include "support/sweep_maker.h"
#include "sweep/sweep.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

typedef struct host {
    const char *source, *charmap, *name;
} host;

static const host hosts[] = {{"de_DE", "UTF-8", "comma"},
                             {"ps_AF", "UTF-8", "two-bytes"},
                             {"tr_TR", "ISO-8859-9", "letters"}};

static char locales[256];

static int make_locales(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(locales, sizeof locales, "%s/qkv-locales-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(locales)) return -1;
    for (size_t i = 0; i < COUNT(hosts); i++) {
        char command[512];
        snprintf(command, sizeof command,
                 "localedef --no-archive -i %s -f %s %s/%s >/dev/null 2>&1", hosts[i].source,
                 hosts[i].charmap, locales, hosts[i].name);
        if (system(command) != 0) {
            print_message("localedef cannot make %s: is the package locales there?\n",
                          hosts[i].source);
        }
    }
    return setenv("LOCPATH", locales, 1);
}

static int remove_locales(void **state) {
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", locales);
    return system(command) != 0 || scratch_clean(state) != 0;
}

/* Becomes such a host; a test that cannot is skipped, and says so. */
static void become(const host *who) {
    if (!setlocale(LC_ALL, who->name)) skip();
    assert_string_not_equal(localeconv()->decimal_point, ".");
}

static int be_plain(void **state) {
    (void)state;
    return setlocale(LC_ALL, "C") ? 0 : -1;
}

/* ---- everything that holds numbers, as one text ---- */

static void add_file(qkv_text *all, const char *path) {
    size_t size;
    char *bytes = slurp(path, &size);
    assert_non_null(bytes);
    qkv_text_printf(all, "\n---- %zu bytes\n", size);
    qkv_text_append(all, bytes, size);
    free(bytes);
}

static void add_sweep(qkv_text *all, const qkv_model *model) {
    static const char spec[] = "{\"prompts\": \"one two\", \"ops\": \"scale,clamp:-1.5,1\","
                               " \"epsilon\": [0.5, 0.001], \"metrics\": \"sink,tv\"}";
    static const char texts[] = "{\"prompts\": \"one two\", \"ops\": \"scale\","
                                " \"epsilon\": \"logspace:1e-3,0.5,5\", \"metrics\": \"tv\"}";
    const char *const specs[] = {spec, texts};
    for (size_t i = 0; i < COUNT(specs); i++) {
        qkv_sweep *sweep;
        qkv_error err = {0};
        expect_ok(qkv_sweep_new(&sweep, model, specs[i], &err), &err, specs[i]);
        qkv_text_printf(all, "%s %s\n", qkv_sweep_hash(sweep), qkv_sweep_spec(sweep));
        qkv_sweep_free(sweep);
    }
}

static void add_exports(qkv_text *all) {
    const char *results = scratch_path("s.sqlite");
    static const char *const names[] = {"s.csv", "s.json"};
    for (size_t i = 0; i < COUNT(names); i++) {
        qkv_sweep_summary summary = QKV_SWEEP_SUMMARY_INIT;
        qkv_error err = {0};
        const char *out = scratch_path(names[i]);
        expect_ok(qkv_sweep_export(results, out, &summary, &err), &err, out);
        add_file(all, out);
    }
}

static void add_charts(qkv_text *all) {
    static const qkv_bar bars[] = {{sizeof(qkv_bar), "a", 0.9, 0.7, 1.0, 0},
                                   {sizeof(qkv_bar), "b", -0.25, -0.5, 0.1, 0}};
    const qkv_bars chart = {sizeof chart, bars, 2, {.label = "change"}, NULL, 0};
    static const char *const names[] = {"c.svg", "c.pdf", "c.png", "C.PNG"};
    qkv_chart_style style = QKV_CHART_STYLE_INIT;
    for (size_t i = 0; i < COUNT(names); i++) {
        qkv_error err = {0};
        const char *path = scratch_path(names[i]);
        expect_ok(qkv_bars_write(&chart, &style, path, &err), &err, path);
        add_file(all, path);
    }
}

static void add_run(qkv_text *all, engine *e) {
    static const int32_t tokens[] = {3, 4, 5};
    static const char *const variants[] = {"q@0=scale:0.5 + v@1.h0=add:-1.5e-2", NULL};
    static const char *const captures[] = {"pattern@1", NULL};
    const engine_run run = {tokens, 3, variants, captures, NULL};
    qkv_error err = {0};
    qkv_plan *plan = engine_plan(e, &run);
    qkv_result *result = engine_execute(e, &run);
    const char *path = scratch_path("r.json");
    expect_ok(qkv_store_write(result, plan, e->model, path, &err), &err, path);
    add_file(all, path);
    assert_int_not_equal(qkv_plan_add_variant(plan, "q@0=scale:0,5", NULL, &err), QKV_OK);
    qkv_text_printf(all, "%s\n", err.message);
    assert_int_not_equal(qkv_plan_add_variant(plan,
                                              "q@0=scale:\xa0"
                                              "0.5",
                                              NULL, &err),
                         QKV_OK);
    qkv_text_printf(all, "%s\n", err.message);
    qkv_result_free(result);
    qkv_plan_free(plan);
}

/* The numbers in a figure's file and the figure's own. */
static void add_comparison(qkv_text *all, const char *bytes, size_t n, const qkv_figure *figure) {
    qkv_error err = {0};
    qkv_reproduction *r = NULL;
    qkv_reproduction_difference difference = QKV_REPRODUCTION_DIFFERENCE_INIT;
    expect_ok(qkv_reproduction_read(&r, bytes, n, "figure.svg", &err), &err, "recipe");
    expect_ok(qkv_reproduction_compare(r, figure->recipe, &difference, &err), &err, "comparison");
    qkv_text_printf(all, "same numbers: %d\n", difference.same_bits);
    qkv_reproduction_free(r);
}

static void add_figure(qkv_text *all, qkv_session *session) {
    static const int32_t tokens[] = {3, 4, 5};
    qkv_error err = {0};
    qkv_figure *figure = NULL;
    qkv_prompt prompt = QKV_PROMPT_INIT;
    qkv_figure_options options = QKV_FIGURE_OPTIONS_INIT;
    prompt.tokens = tokens;
    prompt.n_tokens = COUNT(tokens);
    options.prompts = &prompt;
    options.n_prompts = 1;
    options.report = 1;
    expect_ok(qkv_figure_make(&figure, session, QKV_FIGURE_MODIFY, &options, &err), &err, "figure");
    const char *format;
    for (size_t i = 0; (format = qkv_figure_format(i)); i++) {
        char *bytes = NULL;
        size_t n_bytes = 0;
        expect_ok(qkv_figure_render(figure, format, &bytes, &n_bytes, &err), &err, format);
        qkv_text_append(all, bytes, n_bytes);
        if (strcmp(format, "svg") == 0) add_comparison(all, bytes, n_bytes, figure);
        qkv_bytes_free(bytes);
    }
    qkv_figure_free(figure);
}

static qkv_text everything(void) {
    qkv_text all = {0};
    engine e;
    engine_open(&e, QKV_TEST_SOURCE_DIR "/vectors/llama/hf", 1);
    add_run(&all, &e);
    add_figure(&all, e.session);
    add_sweep(&all, e.model);
    engine_close(&e);
    add_exports(&all);
    add_charts(&all);
    assert_false(all.failed);
    return all;
}

static void check_host(const host *who) {
    const sweep_shape shape = {2, 2, 1, "q,k", "scale", "1e-4,0.5", "sink", -1};
    assert_true(make_sweep(scratch_path("s.sqlite"), &shape));
    qkv_text plain = everything();
    become(who);
    qkv_text strange = everything();
    assert_int_equal(plain.length, strange.length);
    assert_memory_equal(plain.data, strange.data, plain.length);
    /* The host's own locale is as it was. */
    assert_string_not_equal(localeconv()->decimal_point, ".");
    qkv_text_release(&plain);
    qkv_text_release(&strange);
    remove(scratch_path("s.sqlite"));
}

static void a_comma_changes_nothing(void **state) {
    (void)state;
    check_host(&hosts[0]);
}

static void a_sign_of_two_bytes_changes_nothing(void **state) {
    (void)state;
    check_host(&hosts[1]);
}

static void letters_beyond_ascii_change_nothing(void **state) {
    (void)state;
    check_host(&hosts[2]);
}

static void numbers_are_read_and_printed_alike(void **state) {
    (void)state;
    char text[32];
    double value = 0;
    become(&hosts[0]);
    qkv_format(text, sizeof text, "%.3f %g", 1234.5, 1e-4);
    assert_string_equal(text, "1234.500 0.0001");
    assert_true(qkv_parse_double("0.5", 3, &value));
    assert_true(value == 0.5);
    assert_false(qkv_parse_double("0,5", 3, &value));
    assert_true(qkv_round_digits(0.30000000000000004, 12) == 0.3);
}

/* ---- the sources ---- */

static int is_name(char c) {
    return qkv_is_letter(c) || c == '_' || (c >= '0' && c <= '9');
}

/* The next call of a function of that very name, or NULL. */
static const char *find_call(const char *text, const char *name) {
    const size_t length = strlen(name);
    for (; (text = strstr(text, name)); text++) {
        if (!is_name(text[-1]) && text[length] == '(') return text;
    }
    return NULL;
}

/* Whether a text between quotes holds a conversion of a fraction: %g, %.3f, %*.*e. */
static int prints_fraction(const char *text, const char *end) {
    for (int quoted = 0; text < end; text++) {
        if (*text == '\\')
            text++;
        else if (*text == '"')
            quoted = !quoted;
        else if (*text == '%' && quoted) {
            text += 1 + strspn(text + 1, "-+ #0123456789.*lL");
            if (strchr("aefgAEFG", *text)) return 1;
        }
    }
    return 0;
}

static void check_source(const char *path, const char *name) {
    static const char *const forbidden[] = {
        "strtod",      "strtof",    "strtold", "atof",      "sprintf", "vsnprintf",
        "vfprintf",    "vprintf",   "isspace", "isalpha",   "isalnum", "isprint",
        "ispunct",     "tolower",   "toupper", "localtime", "strcoll", "strcasecmp",
        "strncasecmp", "setlocale", "umask",   "mkstemp"};
    static const char *const printing[] = {"snprintf", "fprintf", "printf", "sscanf", "fscanf"};
    size_t size;
    char *source = slurp(path, &size);
    for (size_t i = 0; i < COUNT(forbidden); i++) {
        if (find_call(source, forbidden[i])) fail_msg("%s calls %s", name, forbidden[i]);
    }
    for (size_t i = 0; i < COUNT(printing); i++) {
        for (const char *at = source; (at = find_call(at, printing[i])); at++) {
            const char *end = strstr(at, ");");
            if (prints_fraction(at, end ? end : source + size))
                fail_msg("%s: %s of a fraction: %.60s", name, printing[i], at);
        }
    }
    free(source);
}

/* printf and its kind only where a locale cannot reach them. */
static void only_one_place_prints_fractions(void **state) {
    (void)state;
    static const char *const modules[] = {"base",  "model", "run",   "measure", "draw",
                                          "store", "sweep", "study", "cli"};
    int n_files = 0;
    for (size_t i = 0; i < COUNT(modules); i++) {
        char path[1024];
        snprintf(path, sizeof path, QKV_TEST_SOURCE_DIR "/../src/%s", modules[i]);
        DIR *directory = opendir(path);
        assert_non_null(directory);
        for (const struct dirent *entry; (entry = readdir(directory));) {
            const char *dot = strrchr(entry->d_name, '.');
            if (!dot || strcmp(dot, ".c") != 0 || strcmp(entry->d_name, "number.c") == 0) continue;
            snprintf(path, sizeof path, QKV_TEST_SOURCE_DIR "/../src/%s/%s", modules[i],
                     entry->d_name);
            check_source(path, entry->d_name);
            n_files++;
        }
        closedir(directory);
    }
    assert_true(n_files > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_comma_changes_nothing, be_plain, be_plain),
        cmocka_unit_test_setup_teardown(a_sign_of_two_bytes_changes_nothing, be_plain, be_plain),
        cmocka_unit_test_setup_teardown(letters_beyond_ascii_change_nothing, be_plain, be_plain),
        cmocka_unit_test_setup_teardown(numbers_are_read_and_printed_alike, be_plain, be_plain),
        cmocka_unit_test(only_one_place_prints_fractions),
    };
    return cmocka_run_group_tests(tests, make_locales, remove_locales);
}
