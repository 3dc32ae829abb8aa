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

/* Python rounds the number that is stored, not the one that was written: 42.55 is a little less than that. */
value round_number(const func_args &args) {
    const value v = args.get_pos(0), given = args.get_kwarg_or_pos("method", 2);
    if (!v->is_numeric()) fail("round of " + v->type());
    const value digits = args.get_kwarg_or_pos("precision", 1);
    const int64_t n = is_given(digits) ? integer_of(digits, "precision") : 0;
    const std::string method = is_given(given) ? text_of(given).text : "common";
    if (method != "common" && method != "ceil" && method != "floor")
        fail("round: the method is common, ceil or floor, not " + method);
    if (n < -15 || n > 15) fail("round: the precision is from -15 to 15");
    const double scale = std::pow(10.0, static_cast<double>(n < 0 ? -n : n));
    if (method != "common") {
        const double scaled = n < 0 ? v->val_flt / scale : v->val_flt * scale;
        const double whole = method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
        return mk_val<jinja::value_float>(n < 0 ? whole * scale : whole / scale);
    }
    const bool is_float = is_val<jinja::value_float>(v);
    if (!is_float && n >= 0) return mk_val<jinja::value_int>(static_cast<int64_t>(v->val_flt));
    double rounded = std::nearbyint(v->val_flt / scale) * scale;
    if (n >= 0 && std::isfinite(v->val_flt)) {
        char text[400];
        snprintf(text, sizeof text, "%.*f", static_cast<int>(n), v->val_flt);
        rounded = std::strtod(text, nullptr);
    }
    if (is_float) return mk_val<jinja::value_float>(rounded);
    return mk_val<jinja::value_int>(static_cast<int64_t>(rounded));
}

/* ---- texts to numbers ---- */

/* Without spaces around it. */
std::string stripped(const value &v) {
    const std::string text = text_of(v).text;
    const char *const blank = " \t\n\v\f\r";
    const size_t first = text.find_first_not_of(blank);
    if (first == std::string::npos) return "";
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

/* float() of Python. */
bool read_float(const std::string &text, double &number) {
    char *end = nullptr;
    if (text.empty() || text.find_first_of("xX(") != std::string::npos) return false;
    number = std::strtod(text.c_str(), &end);
    return !*end;
}

/* int(text, base) of Python. */
bool read_integer(std::string text, int64_t base, int64_t &number) {
    const bool is_minus = !text.empty() && text[0] == '-';
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.erase(0, 1);
    const std::string prefix = text.substr(0, 2);
    const bool has_prefix = (base == 16 && (prefix == "0x" || prefix == "0X")) ||
                            (base == 8 && (prefix == "0o" || prefix == "0O")) ||
                            (base == 2 && (prefix == "0b" || prefix == "0B"));
    if (has_prefix) text.erase(0, 2);
    if (text.empty()) return false;
    number = 0;
    for (const char c : text) {
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'z' ? c - 'a' + 10
                          : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                                 : 99;
        if (digit >= base) return false;
        number = number * base + digit;
        if (number > 9000000000000000) fail("int: a number is too large");
    }
    if (is_minus) number = -number;
    return true;
}

value to_int(const func_args &args) {
    const value v = args.get_pos(0), instead = args.get_kwarg_or_pos("default", 1);
    const value base = args.get_kwarg_or_pos("base", 2);
    const value otherwise = is_given(instead) ? instead : mk_val<jinja::value_int>(0);
    double number = v->val_flt;
    if (is_val<jinja::value_string>(v)) {
        int64_t whole = 0;
        const int64_t in_base = is_given(base) ? integer_of(base, "base") : 10;
        if (in_base < 2 || in_base > 36) fail("int: the base is from 2 to 36");
        if (read_integer(stripped(v), in_base, whole)) return mk_val<jinja::value_int>(whole);
        if (!read_float(stripped(v), number)) return otherwise;
    } else if (!v->is_numeric()) {
        return otherwise;
    }
    return std::fabs(number) < 9e15 ? mk_val<jinja::value_int>(static_cast<int64_t>(number))
                                    : otherwise;
}

/* ---- others ---- */

/* Attributes of Python's objects, and not the keys of a dictionary: data has none. */
value attribute(const func_args &args) {
    const std::string name = text_argument(args, 1).text;
    const value v = args.get_pos(0);
    if (const auto *group = dynamic_cast<const group_t *>(v.get())) return group->part(name);
    const bool is_method = (is_val<jinja::value_string>(v) && find_string_method(name)) ||
                           (is_val<jinja::value_array>(v) && find_list_method(name));
    if (is_method) fail("attr: no methods here");
    return mk_val<jinja::value_undefined>(name);
}

/* With the keys of dictionaries in order. */
value sorted(const value &v) {
    std::vector<value> items;
    if (is_val<jinja::value_array>(v)) {
        for (const auto &item : v->val_arr) items.push_back(sorted(item));
        if (v->is_immutable()) return mk_val<jinja::value_tuple>(std::move(items));
        return list_of(std::move(items));
    }
    if (!is_val<jinja::value_object>(v)) return v;
    auto pairs = v->val_obj;
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const auto &a, const auto &b) { return order_of(a.first, b.first) < 0; });
    auto out = mk_val<jinja::value_object>();
    for (const auto &pair : pairs) out->insert(pair.first, sorted(pair.second));
    return out;
}

/* What Python breaks into lines is refused. */
value pretty(const func_args &args) {
    spend_tree(args.get_pos(0));
    const marked text(python_repr(sorted(args.get_pos(0))));
    if (boundaries(text.text).size() - 1 > 80) fail("pprint of more than 80 characters");
    return text.value();
}

value escape(const func_args &args) {
    return std::make_shared<markup_t>(escaped_once(args.get_pos(0)));
}

value escape_again(const func_args &args) {
    return std::make_shared<markup_t>(escaped(text_of(args.get_pos(0))));
}

value take_as_escaped(const func_args &args) {
    spend_tree(args.get_pos(0));
    return std::make_shared<markup_t>(text_of(args.get_pos(0)));
}

/* ---- tables ---- */

const std::map<std::string, jinja::func_handler> &filters() {
    static const std::map<std::string, jinja::func_handler> table = {
        {"abs", absolute},
        {"attr", attribute},
        {"batch", batch},
        {"capitalize", [](const func_args &a) { return change_case(a, letters::capital); }},
        {"center", center},
        {"count", length_of},
        {"d", default_of},
        {"default", default_of},
        {"dictsort", sort_keys},
        {"e", escape},
        {"escape", escape},
        {"filesizeformat", file_size},
        {"first", [](const func_args &a) { return end_of(a, false); }},
        {"float", to_float},
        {"forceescape", escape_again},
        {"format", format_percent},
        {"groupby", group_by},
        {"indent", indent},
        {"int", to_int},
        {"items", pairs_of},
        {"join", join_filter},
        {"last", [](const func_args &a) { return end_of(a, true); }},
        {"length", length_of},
        {"list", [](const func_args &a) { return list_of(items_of(a.get_pos(0))); }},
        {"lower", [](const func_args &a) { return change_case(a, letters::lower); }},
        {"map", map},
        {"max", [](const func_args &a) { return extreme(a, true); }},
        {"min", [](const func_args &a) { return extreme(a, false); }},
        {"pprint", pretty},
        {"reject", [](const func_args &a) { return choose(a, false, false); }},
        {"rejectattr", [](const func_args &a) { return choose(a, true, false); }},
        {"replace", replace},
        {"reverse", reverse},
        {"round", round_number},
        {"safe", take_as_escaped},
        {"select", [](const func_args &a) { return choose(a, false, true); }},
        {"selectattr", [](const func_args &a) { return choose(a, true, true); }},
        {"slice", columns},
        {"sort", sort},
        {"string", string_filter},
        {"striptags", strip_tags},
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
        {"truncate", truncate},
        {"unique", unique},
        {"upper", [](const func_args &a) { return change_case(a, letters::upper); }},
        {"urlencode", url_encode},
        {"wordcount",
         [](const func_args &a) {
             return mk_val<jinja::value_int>(count_words(text_of(a.get_pos(0))));
         }},
        {"wordwrap", wrap_words},
        {"xmlattr", xml_attributes},
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

marked escaped(const marked &text) {
    static const std::map<char, const char *> names = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&#34;"}, {'\'', "&#39;"}};
    marked out;
    for (size_t i = 0; i < text.size(); i++) {
        const auto found = names.find(text.text[i]);
        out.put(found == names.end() ? std::string(1, text.text[i]) : found->second,
                text.marks[i] != 0);
    }
    return out;
}

value to_float(const func_args &args) {
    const value v = args.get_pos(0), instead = args.get_kwarg_or_pos("default", 1);
    double number = 0;
    if (v->is_numeric()) return mk_val<jinja::value_float>(v->val_flt);
    if (is_val<jinja::value_string>(v) && read_float(stripped(v), number))
        return mk_val<jinja::value_float>(number);
    return is_given(instead) ? instead : value(mk_val<jinja::value_float>(0.0));
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
