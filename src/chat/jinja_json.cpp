/* The filter tojson: values as json.dumps(ensure_ascii=False) of transformers writes them. */
#include <cmath>

#include "chat/jinja_functions.h"

namespace qkv_chat {

namespace {

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
        out.put(text_of(v));
    else
        fail("tojson cannot write " + v->type());
}

} // namespace

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

} // namespace qkv_chat
