#include "chat/jinja_text.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "chat/jinja_marked.h"

namespace qkv_chat {

using jinja::func_args;
using jinja::is_val;
using jinja::mk_val;
using jinja::value;

namespace {

/* ---- what arguments are ---- */

marked text_of(const value &v) {
    return marked(python_str(v));
}

marked text_argument(const func_args &args, size_t position) {
    const value v = args.get_pos(position);
    if (!is_val<jinja::value_string>(v)) fail(args.func_name + " wants a string, not " + v->type());
    return marked(v->val_str);
}

bool is_given(const value &v) {
    return !v->is_undefined() && !v->is_none();
}

int64_t integer_of(const value &v, const char *what) {
    if (!is_val<jinja::value_int>(v)) fail(std::string(what) + " is an integer, not " + v->type());
    return v->as_int();
}

value list_of(std::vector<value> items) {
    spend_items(items.size());
    return mk_val<jinja::value_array>(std::move(items));
}

/* ---- str() and repr() ---- */

/* As repr() of Python has it: the shortest that reads back the same. */
std::string float_text(double number) {
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
    char buffer[40];
    int digits = 1;
    do snprintf(buffer, sizeof buffer, "%.*e", digits - 1, number);
    while (std::strtod(buffer, nullptr) != number && ++digits <= 17);
    const int exponent = std::atoi(std::strchr(buffer, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        std::string text = buffer;
        return text; /* 1e+16 as in Python */
    }
    snprintf(buffer, sizeof buffer, "%.*f", std::max(digits - 1 - exponent, 1), number);
    return buffer;
}

void put_quoted(marked &out, const marked &from) {
    const bool has_single = from.text.find('\'') != std::string::npos;
    const char quote = has_single && from.text.find('"') == std::string::npos ? '"' : '\'';
    out.put(std::string(1, quote), false);
    for (size_t i = 0; i < from.size(); i++) {
        const char c = from.text[i];
        std::string piece(1, c);
        if (c == '\n')
            piece = "\\n";
        else if (c == '\r')
            piece = "\\r";
        else if (c == '\t')
            piece = "\\t";
        else if (c == '\\' || c == quote)
            piece = std::string("\\") + c;
        out.put(piece, from.marks[i] != 0);
    }
    out.put(std::string(1, quote), false);
}

void put_repr(marked &out, const value &v, bool quoted) {
    const char *separator = "";
    if (is_val<jinja::value_string>(v)) {
        if (quoted)
            put_quoted(out, marked(v->val_str));
        else
            out.put(marked(v->val_str));
    } else if (is_val<jinja::value_float>(v)) {
        out.put(float_text(v->as_float()), false);
    } else if (is_val<jinja::value_array>(v)) {
        const bool is_tuple = v->is_immutable();
        out.put(is_tuple ? "(" : "[", false);
        for (const auto &item : v->val_arr) {
            out.put(separator, false);
            put_repr(out, item, true);
            separator = ", ";
        }
        out.put(is_tuple ? v->val_arr.size() == 1 ? ",)" : ")" : "]", false);
    } else if (is_val<jinja::value_object>(v)) {
        out.put("{", false);
        for (const auto &item : v->val_obj) {
            out.put(separator, false);
            put_repr(out, item.first, true);
            out.put(": ", false);
            put_repr(out, item.second, true);
            separator = ", ";
        }
        out.put("}", false);
    } else if (v->is_none()) {
        out.put("None", false);
    } else if (is_val<jinja::value_func>(v)) {
        out.put("<function>", false);
    } else if (!v->is_undefined()) {
        out.put(v->as_string().str(), false);
    }
}

/* ---- JSON, as json.dumps(ensure_ascii=False) of transformers ---- */

struct json_style {
    bool ascii = false, sorted = false;
    int64_t indent = -1;
    std::string item = ", ", key = ": ";
};

void put_escape(marked &out, unsigned code, bool mark) {
    char buffer[8];
    snprintf(buffer, sizeof buffer, "\\u%04x", code);
    out.put(buffer, mark);
}

void put_ascii(marked &out, const marked &from, size_t at, size_t n) {
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    unsigned code = static_cast<unsigned char>(from.text[at]) & masks[n];
    for (size_t i = 1; i < n; i++) code = code << 6 | (from.text[at + i] & 0x3f);
    const bool mark = from.marks[at] != 0;
    if (code < 0x10000) {
        put_escape(out, n == 1 ? 0xfffd : code, mark);
        return;
    }
    put_escape(out, 0xd800 + ((code - 0x10000) >> 10 & 0x3ff), mark);
    put_escape(out, 0xdc00 + (code & 0x3ff), mark);
}

void put_json_text(marked &out, const marked &from, bool ascii) {
    static const char letters[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    out.put("\"", false);
    for (size_t i = 0, n; i < from.size(); i += n) {
        const unsigned char c = static_cast<unsigned char>(from.text[i]);
        const char *found = c ? std::strchr(letters, c) : nullptr;
        n = character_at(from.text, i);
        if (found)
            out.put(std::string("\\") + names[found - letters], from.marks[i] != 0);
        else if (c < 0x20)
            put_escape(out, c, from.marks[i] != 0);
        else if (c >= 0x80 && ascii)
            put_ascii(out, from, i, n);
        else
            out.put(from, i, i + n);
    }
    out.put("\"", false);
}

void put_json(marked &out, const value &v, const json_style &style, size_t level);

void put_break(marked &out, const json_style &style, size_t level) {
    if (style.indent < 0) return;
    spend_bytes(static_cast<size_t>(style.indent) * level);
    out.put("\n" + std::string(static_cast<size_t>(style.indent) * level, ' '), false);
}

void put_json_items(marked &out, const value &v, const json_style &style, size_t level) {
    auto pairs = v->val_obj;
    const bool is_list = is_val<jinja::value_array>(v);
    if (is_list)
        for (const auto &item : v->val_arr) pairs.push_back({nullptr, item});
    if (style.sorted && !is_list)
        std::stable_sort(pairs.begin(), pairs.end(), [](const auto &a, const auto &b) {
            return python_str(a.first).str() < python_str(b.first).str();
        });
    out.put(is_list ? "[" : "{", false);
    for (size_t i = 0; i < pairs.size(); i++) {
        if (i) out.put(style.item, false);
        put_break(out, style, level + 1);
        if (!is_list) {
            put_json_text(out, text_of(pairs[i].first), style.ascii);
            out.put(style.key, false);
        }
        put_json(out, pairs[i].second, style, level + 1);
    }
    if (!pairs.empty()) put_break(out, style, level);
    out.put(is_list ? "]" : "}", false);
}

void put_json(marked &out, const value &v, const json_style &style, size_t level) {
    spend_bytes(style.item.size() + style.key.size());
    if (is_val<jinja::value_string>(v))
        put_json_text(out, marked(v->val_str), style.ascii);
    else if (is_val<jinja::value_bool>(v))
        out.put(v->as_bool() ? "true" : "false", false);
    else if (v->is_none())
        out.put("null", false);
    else if (is_val<jinja::value_array>(v) || is_val<jinja::value_object>(v))
        put_json_items(out, v, style, level);
    else if (v->is_numeric())
        put_repr(out, v, false);
    else
        fail("tojson cannot write " + v->type());
}

value to_json(const func_args &args) {
    json_style style;
    const value indent = args.get_kwarg_or_pos("indent", 2);
    const value separators = args.get_kwarg_or_pos("separators", 3);
    style.ascii = args.get_kwarg_or_pos("ensure_ascii", 1)->as_bool();
    style.sorted = args.get_kwarg_or_pos("sort_keys", 4)->as_bool();
    if (is_given(indent)) {
        style.indent = std::max<int64_t>(integer_of(indent, "indent"), 0);
        style.item = ",";
    }
    spend_bytes(style.indent > 0 ? static_cast<size_t>(style.indent) : 0);
    if (is_val<jinja::value_array>(separators) && separators->val_arr.size() == 2) {
        style.item = text_of(separators->val_arr[0]).text;
        style.key = text_of(separators->val_arr[1]).text;
    }
    spend_tree(args.get_pos(0));
    marked out;
    put_json(out, args.get_pos(0), style, 0);
    return out.value();
}

/* ---- blanks ---- */

/* What str.isspace() of Python says, of the character of n bytes at `at`. */
bool is_blank(const std::string &text, size_t at, size_t n) {
    static const char *const wide[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80",
                                       "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf",
                                       "\xe2\x81\x9f", "\xe3\x80\x80"};
    const unsigned char c = static_cast<unsigned char>(text[at]);
    if (n == 1) return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31);
    if (n == 3 && text.compare(at, 2, "\xe2\x80") == 0 &&
        static_cast<unsigned char>(text[at + 2]) <= 0x8a)
        return true; /* U+2000 to U+200A */
    return std::any_of(std::begin(wide), std::end(wide),
                       [&](const char *blank) { return text.compare(at, n, blank) == 0; });
}

value strip(const func_args &args, bool left, bool right) {
    const marked text = text_argument(args, 0);
    const value given = args.get_kwarg_or_pos("chars", 1);
    const std::string chars = is_given(given) ? text_of(given).text : "";
    const auto starts = boundaries(text.text);
    size_t first = 0, last = starts.size() - 1;
    auto goes = [&](size_t i) {
        const size_t n = starts[i + 1] - starts[i];
        return is_given(given) ? chars.find(text.text.substr(starts[i], n)) != std::string::npos
                               : is_blank(text.text, starts[i], n);
    };
    spend_bytes(chars.size());
    while (left && first < last && goes(first)) first++, step(chars.size() / 64);
    while (right && last > first && goes(last - 1)) last--, step(chars.size() / 64);
    return text.part(starts[first], starts[last]).value();
}

/* ---- splitting ---- */

value split_blanks(const marked &text, int64_t most) {
    std::vector<value> items;
    const auto starts = boundaries(text.text);
    size_t i = 0;
    const size_t n = starts.size() - 1;
    auto blank = [&](size_t k) {
        return is_blank(text.text, starts[k], starts[k + 1] - starts[k]);
    };
    while (true) {
        while (i < n && blank(i)) i++;
        if (i == n) break;
        size_t end = i;
        if (most == 0) {
            end = n;
            while (end > i && blank(end - 1)) end--;
        } else {
            while (end < n && !blank(end)) end++;
        }
        items.push_back(text.part(starts[i], starts[end]).value());
        if (most == 0) break;
        most--;
        i = end;
    }
    return list_of(std::move(items));
}

value split(const func_args &args, bool from_right) {
    const marked text = text_argument(args, 0);
    const value separator = args.get_kwarg_or_pos("sep", 1);
    const value count = args.get_kwarg_or_pos("maxsplit", 2);
    int64_t most = is_given(count) ? integer_of(count, "maxsplit") : -1;
    if (!is_given(separator)) {
        if (from_right && most >= 0) fail("rsplit with maxsplit wants a separator");
        return split_blanks(text, most);
    }
    const std::string by = text_of(separator).text;
    if (by.empty()) fail("empty separator");
    std::vector<value> items;
    if (from_right) {
        size_t end = text.size();
        for (size_t at; most != 0 && end >= by.size() &&
                        (at = text.text.rfind(by, end - by.size())) != std::string::npos;
             most--, end = at)
            items.push_back(text.part(at + by.size(), end).value());
        items.push_back(text.part(0, end).value());
        std::reverse(items.begin(), items.end());
    } else {
        size_t begin = 0;
        for (size_t at; most != 0 && (at = text.text.find(by, begin)) != std::string::npos;
             most--, begin = at + by.size())
            items.push_back(text.part(begin, at).value());
        items.push_back(text.part(begin, text.size()).value());
    }
    return list_of(std::move(items));
}

value split_lines(const func_args &args) {
    const marked text = text_argument(args, 0);
    const bool keep = args.get_kwarg_or_pos("keepends", 1)->as_bool();
    std::vector<value> items;
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.text.find_first_of("\n\r", at), text.size()), next = end;
        if (next < text.size()) next += text.text.compare(next, 2, "\r\n") == 0 ? 2 : 1;
        items.push_back(text.part(at, keep ? next : end).value());
        at = next;
    }
    return list_of(std::move(items));
}

value partition(const func_args &args, bool from_right) {
    const marked text = text_argument(args, 0), by = text_argument(args, 1);
    if (by.size() == 0) fail("empty separator");
    const size_t at = from_right ? text.text.rfind(by.text) : text.text.find(by.text);
    std::vector<value> items;
    if (at == std::string::npos) {
        items = {marked().value(), marked().value()};
        items.insert(from_right ? items.end() : items.begin(), text.value());
    } else {
        const size_t end = at + by.size();
        items = {text.part(0, at).value(), text.part(at, end).value(),
                 text.part(end, text.size()).value()};
    }
    return mk_val<jinja::value_tuple>(std::move(items));
}

/* ---- other methods ---- */

value replace(const func_args &args) {
    const marked text = text_of(args.get_pos(0)), from = text_of(args.get_pos(1)),
                 to = text_of(args.get_pos(2));
    const value count = args.get_kwarg_or_pos("count", 3);
    int64_t most = is_given(count) ? integer_of(count, "count") : -1;
    marked out;
    size_t at = 0;
    while (most != 0) {
        size_t found = text.text.find(from.text, at);
        if (found == std::string::npos) break;
        const size_t next = from.size() ? found + from.size() : found;
        spend_bytes(to.size());
        out.put(text, at, found);
        out.put(to);
        at = next;
        most--;
        if (from.size()) continue;
        if (at == text.size()) break;
        const size_t n = character_at(text.text, at);
        out.put(text, at, at + n);
        at += n;
    }
    out.put(text, at, text.size());
    return out.value();
}

bool has_affix(const std::string &text, const std::string &affix, bool at_end) {
    return affix.size() <= text.size() &&
           text.compare(at_end ? text.size() - affix.size() : 0, affix.size(), affix) == 0;
}

value test_affix(const func_args &args, bool at_end) {
    const marked text = text_argument(args, 0);
    const value wanted = args.get_pos(1);
    bool found = false;
    if (is_val<jinja::value_array>(wanted))
        for (const auto &one : wanted->val_arr)
            found = found || has_affix(text.text, text_of(one).text, at_end);
    else
        found = has_affix(text.text, text_argument(args, 1).text, at_end);
    return mk_val<jinja::value_bool>(found);
}

value remove_affix(const func_args &args, bool at_end) {
    const marked text = text_argument(args, 0), affix = text_argument(args, 1);
    if (!has_affix(text.text, affix.text, at_end)) return args.get_pos(0);
    return text.part(at_end ? 0 : affix.size(), text.size() - (at_end ? affix.size() : 0)).value();
}

/* Cases of ASCII letters; others stay as they are. */
enum class letters { upper, lower, title, capital };

value change_case(const func_args &args, letters to) {
    marked text = text_of(args.get_pos(0));
    bool begins = true;
    for (char &c : text.text) {
        const bool is_lower = c >= 'a' && c <= 'z', is_upper = c >= 'A' && c <= 'Z';
        const bool raise = to == letters::upper || (to != letters::lower && begins);
        if (is_lower && raise) c = static_cast<char>(c - 'a' + 'A');
        if (is_upper && !raise) c = static_cast<char>(c - 'A' + 'a');
        begins = to == letters::title && !is_lower && !is_upper && !(c & 0x80);
    }
    return text.value();
}

value find_text(const func_args &args, bool from_right) {
    const marked text = text_argument(args, 0), wanted = text_argument(args, 1);
    const size_t at = from_right ? text.text.rfind(wanted.text) : text.text.find(wanted.text);
    if (at == std::string::npos) return mk_val<jinja::value_int>(-1);
    const auto starts = boundaries(text.text.substr(0, at));
    return mk_val<jinja::value_int>(static_cast<int64_t>(starts.size() - 1));
}

value count_text(const func_args &args) {
    const marked text = text_argument(args, 0), wanted = text_argument(args, 1);
    if (wanted.size() == 0) fail("count of an empty text");
    int64_t n = 0;
    for (size_t at = 0; (at = text.text.find(wanted.text, at)) != std::string::npos; n++)
        at += wanted.size();
    return mk_val<jinja::value_int>(n);
}

value is_made_of(const func_args &args, bool letters_too, bool digits_too) {
    const marked text = text_argument(args, 0);
    bool all = text.size() > 0;
    for (char c : text.text) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80);
        all = all && ((letters_too && letter) || (digits_too && c >= '0' && c <= '9'));
    }
    return mk_val<jinja::value_bool>(all);
}

/* "{}" and "{0}"; what else Python knows there is refused. */
value format_text(const func_args &args) {
    const marked text = text_argument(args, 0);
    marked out;
    size_t next = 1;
    for (size_t at = 0; at < text.size(); at++) {
        const char c = text.text[at], after = at + 1 < text.size() ? text.text[at + 1] : '\0';
        if ((c == '{' || c == '}') && after == c) {
            out.put(text, at, at + 1);
            at++;
        } else if (c == '{') {
            const size_t end = text.text.find('}', at);
            const std::string field =
                end == std::string::npos ? "?" : text.text.substr(at + 1, end - at - 1);
            const bool is_number = field.size() == 1 && field[0] >= '0' && field[0] <= '9';
            if (!field.empty() && !is_number)
                fail("format() knows {} and {0}, not {" + field + "}");
            spend_tree(args.get_pos(is_number ? size_t(field[0] - '0') + 1 : next));
            out.put(text_of(args.get_pos(is_number ? size_t(field[0] - '0') + 1 : next++)));
            at = end;
        } else {
            out.put(text, at, at + 1);
        }
    }
    return out.value();
}

/* ---- lists ---- */

std::vector<value> items_of(const value &v) {
    if (is_val<jinja::value_string>(v)) return characters(v)->val_arr;
    if (v->is_undefined()) return {};
    std::vector<value> keys;
    if (is_val<jinja::value_object>(v)) {
        spend_items(v->val_obj.size());
        for (const auto &item : v->val_obj) keys.push_back(item.first);
        return keys;
    }
    if (!is_val<jinja::value_array>(v)) fail(v->type() + " is no list");
    spend_items(v->val_arr.size());
    return v->val_arr;
}

value attribute_of(const value &v, const value &name) {
    value missing = mk_val<jinja::value_undefined>();
    if (is_val<jinja::value_object>(v) && name->is_hashable()) return v->at(name, missing);
    if (is_val<jinja::value_array>(v) && is_val<jinja::value_int>(name))
        return v->at(name->as_int(), missing);
    return missing;
}

value join_items(const value &list, const marked &by, const value &attribute) {
    marked out;
    bool first = true;
    for (value item : items_of(list)) {
        if (is_given(attribute)) item = attribute_of(item, attribute);
        spend_bytes(by.size());
        spend_tree(item);
        if (!first) out.put(by);
        out.put(text_of(item));
        first = false;
    }
    return out.value();
}

value join_filter(const func_args &args) {
    const value by = args.get_kwarg_or_pos("d", 1);
    return join_items(args.get_pos(0), is_given(by) ? text_of(by) : marked(),
                      args.get_kwarg_or_pos("attribute", 2));
}

value join_method(const func_args &args) {
    return join_items(args.get_pos(1), text_argument(args, 0), mk_val<jinja::value_none>());
}

value length_of(const func_args &args) {
    const value v = args.get_pos(0);
    if (is_val<jinja::value_string>(v)) {
        size_t n = 0;
        const std::string text = v->val_str.str();
        spend_bytes(text.size());
        for (size_t at = 0; at < text.size(); at += character_at(text, at)) n++;
        return mk_val<jinja::value_int>(static_cast<int64_t>(n));
    }
    if (!v->is_undefined() && !is_val<jinja::value_array>(v) && !is_val<jinja::value_object>(v))
        fail(v->type() + " has no length");
    return mk_val<jinja::value_int>(static_cast<int64_t>(v->val_arr.size() + v->val_obj.size()));
}

value end_of(const func_args &args, bool last) {
    const auto items = items_of(args.get_pos(0));
    if (items.empty()) return mk_val<jinja::value_undefined>();
    return last ? items.back() : items.front();
}

value reverse(const func_args &args) {
    auto items = items_of(args.get_pos(0));
    std::reverse(items.begin(), items.end());
    if (!is_val<jinja::value_string>(args.get_pos(0))) return list_of(std::move(items));
    return join_items(list_of(std::move(items)), marked(), mk_val<jinja::value_none>());
}

/* Numbers by size, texts by their letters: anything else, or both, has no order in Python. */
bool comes_before(const value &a, const value &b, bool exact) {
    if (a->is_numeric() && b->is_numeric()) return a->val_flt < b->val_flt;
    if (!is_val<jinja::value_string>(a) || !is_val<jinja::value_string>(b))
        fail("cannot put " + a->type() + " and " + b->type() + " in order");
    std::string left = a->val_str.str(), right = b->val_str.str();
    spend_bytes(left.size() + right.size());
    auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    if (!exact) {
        std::transform(left.begin(), left.end(), left.begin(), lower);
        std::transform(right.begin(), right.end(), right.begin(), lower);
    }
    return left < right;
}

value sort(const func_args &args) {
    auto items = items_of(args.get_pos(0));
    const bool backwards = args.get_kwarg_or_pos("reverse", 1)->as_bool();
    const bool exact = args.get_kwarg_or_pos("case_sensitive", 2)->as_bool();
    const value attribute = args.get_kwarg_or_pos("attribute", 3);
    std::stable_sort(items.begin(), items.end(), [&](const value &a, const value &b) {
        const value x = is_given(attribute) ? attribute_of(a, attribute) : a;
        const value y = is_given(attribute) ? attribute_of(b, attribute) : b;
        return backwards ? comes_before(y, x, exact) : comes_before(x, y, exact);
    });
    return list_of(std::move(items));
}

value sort_keys(const func_args &args) {
    const value from = args.get_pos(0);
    if (!is_val<jinja::value_object>(from)) fail("dictsort wants a dictionary");
    const bool exact = args.get_kwarg_or_pos("case_sensitive", 1)->as_bool();
    const value by = args.get_kwarg_or_pos("by", 2);
    const bool backwards = args.get_kwarg_or_pos("reverse", 3)->as_bool();
    const bool by_value = is_given(by) && text_of(by).text == "value";
    auto pairs = from->val_obj;
    std::stable_sort(pairs.begin(), pairs.end(), [&](const auto &a, const auto &b) {
        const value &x = by_value ? a.second : a.first, &y = by_value ? b.second : b.first;
        return backwards ? comes_before(y, x, exact) : comes_before(x, y, exact);
    });
    std::vector<value> items;
    for (const auto &pair : pairs) items.push_back(mk_val<jinja::value_tuple>(pair));
    return list_of(std::move(items));
}

value unique(const func_args &args) {
    std::vector<value> items;
    for (const value &item : items_of(args.get_pos(0))) {
        spend_tree(item);
        step(1 + items.size() / 16);
        const bool known = std::any_of(items.begin(), items.end(),
                                       [&](const value &other) { return *other == *item; });
        if (!known) items.push_back(item);
    }
    return list_of(std::move(items));
}

value sum(const func_args &args) {
    const value attribute = args.get_kwarg_or_pos("attribute", 1);
    double total = 0;
    bool is_float = false;
    for (value item : items_of(args.get_pos(0))) {
        if (is_given(attribute)) item = attribute_of(item, attribute);
        if (!item->is_numeric()) fail("sum of " + item->type());
        total += item->val_flt;
        is_float = is_float || is_val<jinja::value_float>(item);
    }
    if (is_float) return mk_val<jinja::value_float>(total);
    if (std::fabs(total) > 9e15) fail("a number is too large");
    return mk_val<jinja::value_int>(static_cast<int64_t>(total));
}

/* map('upper') and map(attribute='name', default=...). */
value map(const func_args &args) {
    const value attribute = args.get_kwarg("attribute", mk_val<jinja::value_undefined>());
    const value instead = args.get_kwarg("default", mk_val<jinja::value_undefined>());
    std::vector<value> items;
    const jinja::func_handler *filter = nullptr;
    if (!is_given(attribute)) {
        const std::string name = text_argument(args, 1).text;
        filter = find_filter(name);
        if (!filter) fail("map: there is no filter " + name);
    }
    for (const value &item : items_of(args.get_pos(0))) {
        step();
        if (!filter) {
            const value found = attribute_of(item, attribute);
            items.push_back(found->is_undefined() ? instead : found);
            continue;
        }
        func_args inner(args.ctx);
        inner.func_name = "map";
        inner.push_back(item);
        for (size_t i = 2; i < args.count(); i++) inner.push_back(args.get_args()[i]);
        items.push_back((*filter)(inner));
    }
    return list_of(std::move(items));
}

value append(const func_args &args) {
    value list = args.get_pos(0);
    auto *items = jinja::cast_val<jinja::value_array>(list);
    if (!items || list->is_immutable()) fail("append wants a list");
    check_link(list.get(), args.get_pos(1));
    spend_items(items->val_arr.size() / 16);
    items->push_back(args.get_pos(1));
    return mk_val<jinja::value_none>();
}

/* ---- other filters ---- */

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
        {"title", [](const func_args &a) { return change_case(a, letters::title); }},
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

jinja::string python_str(const value &v) {
    if (is_val<jinja::value_string>(v)) return v->val_str;
    marked out;
    spend_tree(v);
    put_repr(out, v, false);
    return out.pieces();
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

value characters(const value &v) {
    const marked text(v->val_str);
    const auto starts = boundaries(text.text);
    std::vector<value> items;
    spend_items(starts.size() - 1);
    for (size_t i = 0; i + 1 < starts.size(); i++)
        items.push_back(text.part(starts[i], starts[i + 1]).value());
    return list_of(std::move(items));
}

value string_item(const value &v, int64_t index) {
    const marked text(v->val_str);
    const auto starts = boundaries(text.text);
    const int64_t n = static_cast<int64_t>(starts.size()) - 1;
    if (index < 0 && index >= -n) index += n;
    if (index < 0 || index >= n) return mk_val<jinja::value_undefined>("index");
    const size_t i = static_cast<size_t>(index);
    return text.part(starts[i], starts[i + 1]).value();
}

/* As Python clips the bounds of a slice: PySlice_AdjustIndices. */
static int64_t clip(const value &bound, int64_t length, int64_t by, bool is_start) {
    const int64_t low = by < 0 ? -1 : 0, high = by < 0 ? length - 1 : length;
    if (!bound || !is_given(bound)) return is_start == (by > 0) ? low : high;
    int64_t at = integer_of(bound, "a slice");
    if (at < 0) at = at < -length ? low : at + length;
    return std::min(std::max(at, low), high);
}

value slice_of(const value &sequence, const value &start, const value &stop, const value &step_by) {
    const bool is_text = is_val<jinja::value_string>(sequence);
    if (!is_text && !is_val<jinja::value_array>(sequence))
        fail(sequence->type() + " has no slices");
    const int64_t by = step_by && is_given(step_by) ? integer_of(step_by, "a step") : 1;
    if (by == 0) fail("slice step cannot be zero");
    marked text;
    std::vector<size_t> starts;
    if (is_text) {
        text = marked(sequence->val_str);
        starts = boundaries(text.text);
    }
    const int64_t length =
        static_cast<int64_t>(is_text ? starts.size() - 1 : sequence->val_arr.size());
    const int64_t first = clip(start, length, by, true), end = clip(stop, length, by, false);
    marked out;
    std::vector<value> items;
    spend_items(is_text ? 0 : sequence->val_arr.size());
    for (int64_t i = first; by > 0 ? i < end : i > end;) {
        const size_t k = static_cast<size_t>(i);
        if (is_text)
            out.put(text, starts[k], starts[k + 1]);
        else
            items.push_back(sequence->val_arr[k]);
        if (by > length || by < -length) break;
        i += by;
    }
    if (is_text) return out.value();
    if (sequence->is_immutable()) return mk_val<jinja::value_tuple>(std::move(items));
    return list_of(std::move(items));
}

} // namespace qkv_chat
