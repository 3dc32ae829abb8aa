/* The other filters, and the tables of all filters and methods by name. */
#include <cmath>
#include <map>

#include "chat/jinja_functions.h"

namespace qkv_chat {

namespace {

value indent(const func_args &args) {
    const marked text = text_of(args.get_pos(0));
    const value width = args.get_kwarg_or_pos("width", 1);
    const bool first = args.get_kwarg_or_pos("first", 2)->as_bool();
    const bool blank = args.get_kwarg_or_pos("blank", 3)->as_bool();
    std::string by = "    ";
    if (is_val<jinja::value_string>(width)) {
        by = text_of(width).text;
    } else if (is_given(width)) {
        const int64_t n = std::max<int64_t>(integer_of(width, "width"), 0);
        spend_bytes(static_cast<size_t>(n));
        by.assign(static_cast<size_t>(n), ' ');
    }
    marked out;
    for (size_t at = 0, line = 0;; line++) {
        const size_t end = std::min(text.text.find('\n', at), text.size());
        const bool wanted = line == 0 ? first : blank || end > at;
        if (wanted) spend_bytes(by.size());
        if (wanted) out.put(by, false);
        out.put(text, at, std::min(end + 1, text.size()));
        if (end == text.size()) break;
        at = end + 1;
    }
    return out.value();
}

value escape(const func_args &args) {
    static const std::map<char, const char *> names = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&#34;"}, {'\'', "&#39;"}};
    const marked text = text_of(args.get_pos(0));
    marked out;
    for (size_t i = 0; i < text.size(); i++) {
        const auto found = names.find(text.text[i]);
        out.put(found == names.end() ? std::string(1, text.text[i]) : found->second,
                text.marks[i] != 0);
    }
    return out.value();
}

value default_of(const func_args &args) {
    const value v = args.get_pos(0);
    const value instead = args.get_kwarg_or_pos("default_value", 1);
    const bool falsy = args.get_kwarg_or_pos("boolean", 2)->as_bool();
    if (!v->is_undefined() && !(falsy && !v->as_bool())) return v;
    return args.count() < 2 ? marked().value() : instead;
}

value string_filter(const func_args &args) {
    spend_tree(args.get_pos(0));
    return text_of(args.get_pos(0)).value();
}

value absolute(const func_args &args) {
    const value v = args.get_pos(0);
    if (is_val<jinja::value_float>(v)) return mk_val<jinja::value_float>(std::fabs(v->as_float()));
    const int64_t n = integer_of(v, "abs");
    return mk_val<jinja::value_int>(n < 0 && n > INT64_MIN ? -n : n);
}

value round_number(const func_args &args) {
    const value v = args.get_pos(0);
    if (!v->is_numeric()) fail("round of " + v->type());
    const value digits = args.get_kwarg_or_pos("precision", 1);
    const int64_t n = is_given(digits) ? integer_of(digits, "precision") : 0;
    const double scale =
        std::pow(10.0, static_cast<double>(std::min<int64_t>(std::max<int64_t>(n, 0), 15)));
    return mk_val<jinja::value_float>(std::nearbyint(v->val_flt * scale) / scale);
}

value to_int(const func_args &args) {
    const value v = args.get_pos(0), instead = args.get_kwarg_or_pos("default", 1);
    const value otherwise = is_given(instead) ? instead : mk_val<jinja::value_int>(0);
    if (v->is_numeric() && !is_val<jinja::value_float>(v))
        return mk_val<jinja::value_int>(v->as_int());
    double number = v->val_flt;
    if (is_val<jinja::value_string>(v)) {
        const std::string text = text_of(v).text;
        char *end = nullptr;
        number = std::strtod(text.c_str(), &end);
        while (*end == ' ' || *end == '\n') end++;
        if (end == text.c_str() || *end) return otherwise;
    } else if (!is_val<jinja::value_float>(v)) {
        return otherwise;
    }
    return std::fabs(number) < 9e15 ? mk_val<jinja::value_int>(static_cast<int64_t>(number))
                                    : otherwise;
}

value pairs_of(const func_args &args) {
    const value from = args.get_pos(0);
    std::vector<value> items;
    if (!from->is_undefined() && !is_val<jinja::value_object>(from))
        fail("items wants a dictionary");
    spend_items(from->val_obj.size());
    for (const auto &pair : from->val_obj) items.push_back(mk_val<jinja::value_tuple>(pair));
    return list_of(std::move(items));
}

/* ---- tables ---- */

const std::map<std::string, jinja::func_handler> &filters() {
    static const std::map<std::string, jinja::func_handler> table = {
        {"abs", absolute},
        {"capitalize", [](const func_args &a) { return change_case(a, letters::capital); }},
        {"count", length_of},
        {"d", default_of},
        {"default", default_of},
        {"dictsort", sort_keys},
        {"e", escape},
        {"escape", escape},
        {"first", [](const func_args &a) { return end_of(a, false); }},
        {"indent", indent},
        {"int", to_int},
        {"items", pairs_of},
        {"join", join_filter},
        {"last", [](const func_args &a) { return end_of(a, true); }},
        {"length", length_of},
        {"list", [](const func_args &a) { return list_of(items_of(a.get_pos(0))); }},
        {"lower", [](const func_args &a) { return change_case(a, letters::lower); }},
        {"map", map},
        {"replace", replace},
        {"reverse", reverse},
        {"round", round_number},
        {"safe", string_filter},
        {"sort", sort},
        {"string", string_filter},
        {"sum", sum},
        {"title", [](const func_args &a) { return change_case(a, letters::words); }},
        {"tojson", to_json},
        {"trim",
         [](const func_args &a) {
             func_args own(a.ctx);
             own.func_name = "trim";
             own.push_back(text_of(a.get_pos(0)).value());
             for (size_t i = 1; i < a.count(); i++) own.push_back(a.get_args()[i]);
             return strip(own, true, true);
         }},
        {"unique", unique},
        {"upper", [](const func_args &a) { return change_case(a, letters::upper); }},
        {"wordcount",
         [](const func_args &a) {
             return mk_val<jinja::value_int>(
                 static_cast<int64_t>(split_blanks(text_of(a.get_pos(0)), -1)->val_arr.size()));
         }},
    };
    return table;
}

const std::map<std::string, jinja::func_handler> &string_methods() {
    static const std::map<std::string, jinja::func_handler> table = {
        {"capitalize", [](const func_args &a) { return change_case(a, letters::capital); }},
        {"count", count_text},
        {"endswith", [](const func_args &a) { return test_affix(a, true); }},
        {"find", [](const func_args &a) { return find_text(a, false); }},
        {"format", format_text},
        {"isalnum", [](const func_args &a) { return is_made_of(a, true, true); }},
        {"isalpha", [](const func_args &a) { return is_made_of(a, true, false); }},
        {"isdigit", [](const func_args &a) { return is_made_of(a, false, true); }},
        {"join", join_method},
        {"lower", [](const func_args &a) { return change_case(a, letters::lower); }},
        {"lstrip", [](const func_args &a) { return strip(a, true, false); }},
        {"partition", [](const func_args &a) { return partition(a, false); }},
        {"removeprefix", [](const func_args &a) { return remove_affix(a, false); }},
        {"removesuffix", [](const func_args &a) { return remove_affix(a, true); }},
        {"replace", replace},
        {"rfind", [](const func_args &a) { return find_text(a, true); }},
        {"rpartition", [](const func_args &a) { return partition(a, true); }},
        {"rsplit", [](const func_args &a) { return split(a, true); }},
        {"rstrip", [](const func_args &a) { return strip(a, false, true); }},
        {"split", [](const func_args &a) { return split(a, false); }},
        {"splitlines", split_lines},
        {"startswith", [](const func_args &a) { return test_affix(a, false); }},
        {"strip", [](const func_args &a) { return strip(a, true, true); }},
        {"title", [](const func_args &a) { return change_case(a, letters::title); }},
        {"upper", [](const func_args &a) { return change_case(a, letters::upper); }},
    };
    return table;
}

const jinja::func_handler *find_in(const std::map<std::string, jinja::func_handler> &table,
                                   const std::string &name) {
    const auto found = table.find(name);
    return found == table.end() ? nullptr : &found->second;
}

} // namespace

const jinja::func_handler *find_filter(const std::string &name) {
    return find_in(filters(), name);
}

const jinja::func_handler *find_string_method(const std::string &name) {
    return find_in(string_methods(), name);
}

const jinja::func_handler *find_list_method(const std::string &name) {
    static const std::map<std::string, jinja::func_handler> table = {
        {"append", append},
        {"pop", mk_val<jinja::value_array>()->get_builtins().at("pop")},
    };
    return find_in(table, name);
}

} // namespace qkv_chat
