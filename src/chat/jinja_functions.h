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
/* At blanks, at most so many times; -1: at all. */
value split_blanks(const marked &text, int64_t most);
value split(const func_args &args, bool from_right);
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
value is_made_of(const func_args &args, bool letters_too, bool digits_too);

/* ---- lists: jinja_lists.cpp ---- */

/* What a loop would go through. */
std::vector<value> items_of(const value &list);
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

/* ---- JSON: jinja_json.cpp ---- */

value to_json(const func_args &args);

} // namespace qkv_chat

#endif
