/* Values as str() and repr() of Python write them. */
#include <cmath>

#include "chat/jinja_functions.h"

namespace qkv_chat {

namespace {

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

} // namespace

jinja::string python_repr(const value &v) {
    marked out;
    spend_tree(v);
    put_repr(out, v, true);
    return out.pieces();
}

jinja::string python_str(const value &v) {
    if (is_val<jinja::value_string>(v)) return v->val_str;
    marked out;
    spend_tree(v);
    put_repr(out, v, false);
    return out.pieces();
}

} // namespace qkv_chat
