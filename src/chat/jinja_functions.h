/*
 * What filters and methods are made of: how they take arguments, and those that the tables in
 * jinja_filters.cpp name. All are bounded by the budget (jinja_budget.h).
 */
#ifndef QKV_CHAT_JINJA_FUNCTIONS_H
#define QKV_CHAT_JINJA_FUNCTIONS_H

#include "chat/jinja_marked.h"
#include "chat/jinja_text.h"

namespace qkv_chat {

using jinja::func_args;
using jinja::is_val;
using jinja::mk_val;
using jinja::value;

/* ---- arguments ---- */

inline marked text_of(const value &v) {
    return marked(python_str(v));
}

inline marked text_argument(const func_args &args, size_t position) {
    const value v = args.get_pos(position);
    if (!is_val<jinja::value_string>(v)) fail(args.func_name + " wants a string, not " + v->type());
    return marked(v->val_str);
}

inline bool is_given(const value &v) {
    return !v->is_undefined() && !v->is_none();
}

inline int64_t integer_of(const value &v, const char *what) {
    if (!is_val<jinja::value_int>(v)) fail(std::string(what) + " is an integer, not " + v->type());
    return v->as_int();
}

inline value list_of(std::vector<value> items) {
    spend_items(items.size());
    return mk_val<jinja::value_array>(std::move(items));
}

/* ---- strings: jinja_strings.cpp ---- */

value strip(const func_args &args, bool left, bool right);
/* At spaces, at most so many times; -1: at all. */
value split_blanks(const marked &text, int64_t most);
value split(const func_args &args, bool from_right);
/* What str.isspace() of Python says, of the character of n bytes at `at`. */
bool is_blank(const std::string &text, size_t at, size_t n);
value split_lines(const func_args &args);
value partition(const func_args &args, bool from_right);
value replace(const func_args &args);
value test_affix(const func_args &args, bool at_end);
value remove_affix(const func_args &args, bool at_end);
value find_text(const func_args &args, bool from_right);
value count_text(const func_args &args);
value format_text(const func_args &args);

/* ---- letters: jinja_letters.cpp ---- */

/* title is the method of strings; words is the filter of that name, which knows other words. */
enum class letters { upper, lower, title, words, capital };
value change_case(const func_args &args, letters to);
marked lower_case(const marked &text);
/* How many words of letters, digits and underscores. */
int64_t count_words(const marked &text);
value is_made_of(const func_args &args, bool letters_too, bool digits_too);

/* ---- lists: jinja_lists.cpp ---- */

/* What a loop would go through. */
std::vector<value> items_of(const value &list);
/* The attribute of that name, also of several steps ('home.city'), or item of that number. Where there is none,
 * `instead`, or undefined if that is NULL. */
value attribute_of(const value &v, const value &path, const value &instead);

/* What groupby gives: a tuple with names. */
struct group_t : jinja::value_tuple_t {
    group_t(const value &grouper, const value &list)
        : value_tuple_t(std::vector<value>{grouper, list}) {
    }
    value part(const std::string &name) const {
        if (name == "grouper") return val_arr[0];
        return name == "list" ? val_arr[1] : value(mk_val<jinja::value_undefined>());
    }
};

value join_filter(const func_args &args);
value join_method(const func_args &args);
value length_of(const func_args &args);
value end_of(const func_args &args, bool last);
value reverse(const func_args &args);
value sort(const func_args &args);
value sort_keys(const func_args &args);
value unique(const func_args &args);
value sum(const func_args &args);
value map(const func_args &args);
value append(const func_args &args);
value pairs_of(const func_args &args);
value extreme(const func_args &args, bool largest);
value group_by(const func_args &args);
value batch(const func_args &args);
value columns(const func_args &args);

/* ---- tests: jinja_tests.cpp ---- */

/* Python's ==, and whether the first is smaller (-1), the same (0) or larger (1). What has no order fails. */
bool equals(const value &a, const value &b);
int order_of(const value &a, const value &b);
/* Does the first argument pass? */
bool apply_test(const std::string &name, const func_args &args);
value choose(const func_args &args, bool by_attribute, bool wanted);

/* ---- pages: jinja_pages.cpp ---- */

value center(const func_args &args);
value truncate(const func_args &args);
value wrap_words(const func_args &args);
/* "%s and %d" % (...) of Python. */
value format_percent(const func_args &args);
value strip_tags(const func_args &args);
value url_encode(const func_args &args);
value xml_attributes(const func_args &args);
value file_size(const func_args &args);

/* ---- others: jinja_filters.cpp, jinja_repr.cpp ---- */

marked escaped(const marked &text);
/* A text that counts as escaped already (Python's Markup), by `safe` or `escape`. */
struct markup_t : jinja::value_string_t {
    explicit markup_t(const marked &text) : value_string_t(text.pieces()) {
    }
};
inline bool is_markup(const value &v) {
    return dynamic_cast<const markup_t *>(v.get()) != nullptr;
}
/* With what is not escaped yet escaped. */
inline marked escaped_once(const value &v) {
    return is_markup(v) ? text_of(v) : escaped(text_of(v));
}
value to_float(const func_args &args);
/* What repr() of Python gives. */
jinja::string python_repr(const value &v);

/* ---- JSON: jinja_json.cpp ---- */

value to_json(const func_args &args);

} // namespace qkv_chat

#endif
