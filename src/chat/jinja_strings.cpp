/*
 * Methods of Python's strings. They count characters and not bytes, and every byte keeps its mark.
 */
#include "chat/jinja_functions.h"

namespace qkv_chat {

namespace {

bool has_affix(const std::string &text, const std::string &affix, bool at_end) {
    return affix.size() <= text.size() &&
           text.compare(at_end ? text.size() - affix.size() : 0, affix.size(), affix) == 0;
}

} // namespace

/* ---- spaces ---- */

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

/* ---- characters ---- */

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

} // namespace qkv_chat
