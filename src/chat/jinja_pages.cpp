/* Filters that lay text out, and those for web pages. Marks of every byte are kept. */
#include <cmath>
#include <map>

#include "chat/jinja_functions.h"

namespace qkv_chat {

namespace {

size_t characters_in(const std::string &text) {
    return boundaries(text).size() - 1;
}

int64_t integer_or(const value &v, int64_t otherwise, const char *what) {
    return is_given(v) ? integer_of(v, what) : otherwise;
}

/* The first n characters. */
marked beginning(const marked &text, size_t n) {
    const auto starts = boundaries(text.text);
    return text.part(0, starts[std::min(n, starts.size() - 1)]);
}

std::string blanks(int64_t n) {
    const size_t size = n > 0 ? static_cast<size_t>(n) : 0;
    spend_bytes(size);
    return std::string(size, ' ');
}

} // namespace

value center(const func_args &args) {
    const marked text = text_of(args.get_pos(0));
    const int64_t width = integer_or(args.get_kwarg_or_pos("width", 1), 80, "width");
    const int64_t room = width - static_cast<int64_t>(characters_in(text.text));
    if (room <= 0) return text.value();
    const int64_t left = room / 2 + (room & width & 1); /* as str.center of Python */
    marked out;
    out.put(blanks(left), false);
    out.put(text);
    out.put(blanks(room - left), false);
    return out.value();
}

value truncate(const func_args &args) {
    const marked text = text_of(args.get_pos(0));
    const int64_t length = integer_or(args.get_kwarg_or_pos("length", 1), 255, "length");
    const bool within_words = args.get_kwarg_or_pos("killwords", 2)->as_bool();
    const value given = args.get_kwarg_or_pos("end", 3);
    const int64_t leeway = integer_or(args.get_kwarg_or_pos("leeway", 4), 5, "leeway");
    marked end;
    if (given->is_undefined())
        end.put("...", false);
    else
        end = text_of(given);
    const int64_t kept = length - static_cast<int64_t>(characters_in(end.text));
    if (kept < 0) fail("truncate: the length is less than that of the end");
    if (leeway < 0) fail("truncate: the leeway is negative");
    if (static_cast<int64_t>(characters_in(text.text)) <= length + leeway) return text.value();
    marked out = beginning(text, static_cast<size_t>(kept));
    if (!within_words) {
        const size_t blank = out.text.rfind(' ');
        if (blank != std::string::npos) out = out.part(0, blank);
    }
    out.put(end);
    return out.value();
}

/* ---- wordwrap: Python's textwrap.wrap ---- */

namespace {

struct wrapper {
    size_t width;
    bool breaks_words, breaks_hyphens;

    std::vector<marked> lines_of(const marked &text) const {
        std::vector<marked> left = chunks_of(text), lines;
        std::reverse(left.begin(), left.end()); /* the next one is the last */
        while (!left.empty()) {
            std::vector<marked> line;
            size_t n = 0;
            step();
            if (!lines.empty() && is_space(left.back())) left.pop_back();
            while (!left.empty() && n + characters_in(left.back().text) <= width) {
                n += characters_in(left.back().text);
                line.push_back(left.back());
                left.pop_back();
            }
            if (!left.empty() && characters_in(left.back().text) > width) put_long(line, left, n);
            if (!line.empty() && is_space(line.back())) line.pop_back();
            if (line.empty()) continue;
            marked whole;
            for (const marked &chunk : line) whole.put(chunk);
            lines.push_back(whole);
        }
        return lines;
    }

  private:
    static bool is_blank_at(const std::string &text, size_t at) {
        return at < text.size() && std::string(" \t\n\v\f\r").find(text[at]) != std::string::npos;
    }
    static bool is_space(const marked &chunk) {
        return chunk.size() > 0 && is_blank_at(chunk.text, 0);
    }
    /* Letters, but not digits and underscores; what is not ASCII is taken for a letter. */
    static bool is_letter_at(const std::string &text, size_t at) {
        if (at >= text.size()) return false;
        const unsigned char c = static_cast<unsigned char>(text[at]);
        return c >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    }

    /* May a line end after the hyphen? "well-|known", "x-y-|ray"; two letters on both sides. */
    static bool splits_after(const std::string &text, size_t begin, size_t at) {
        auto letter = [&](size_t back) {
            return at >= begin + back && is_letter_at(text, at - back);
        };
        const bool before = (letter(1) && letter(2)) ||
                            (letter(1) && at >= begin + 3 && text[at - 2] == '-' && letter(3));
        const size_t next = at + 1;
        const bool after =
            is_letter_at(text, next) &&
            (is_letter_at(text, next + 1) ||
             (next + 2 < text.size() && text[next + 1] == '-' && is_letter_at(text, next + 2)));
        return before && after;
    }

    std::vector<marked> chunks_of(const marked &text) const {
        std::vector<marked> chunks;
        for (size_t at = 0, end; at < text.size(); at = end) {
            const bool blank = is_blank_at(text.text, at);
            for (end = at + 1; end < text.size() && is_blank_at(text.text, end) == blank; end++) {
                if (!blank && breaks_hyphens && text.text[end] == '-' &&
                    splits_after(text.text, at, end)) {
                    end++;
                    break;
                }
            }
            if (!blank && breaks_hyphens &&
                text.text.substr(at, end - at).find("--") != std::string::npos)
                fail("wordwrap of a word with two hyphens");
            chunks.push_back(text.part(at, end));
            spend_items(1);
        }
        return chunks;
    }

    /* A word that is longer than a line. */
    void put_long(std::vector<marked> &line, std::vector<marked> &left, size_t n) const {
        const size_t room = width - n;
        marked &chunk = left.back();
        if (breaks_words) {
            const auto starts = boundaries(chunk.text);
            size_t end = starts[room];
            if (breaks_hyphens) {
                const size_t hyphen = chunk.text.substr(0, end).rfind('-');
                if (hyphen != std::string::npos && hyphen > 0 &&
                    chunk.text.find_first_not_of('-') < hyphen)
                    end = hyphen + 1;
            }
            line.push_back(chunk.part(0, end));
            chunk = chunk.part(end, chunk.size());
        } else if (line.empty()) {
            line.push_back(chunk);
            left.pop_back();
        }
    }
};

bool true_unless_given(const value &v) {
    return v->is_undefined() || v->as_bool();
}

} // namespace

value wrap_words(const func_args &args) {
    const marked text = text_of(args.get_pos(0));
    const int64_t width = integer_or(args.get_kwarg_or_pos("width", 1), 79, "width");
    const value between = args.get_kwarg_or_pos("wrapstring", 3);
    if (width < 1) fail("wordwrap wants a width of one at least");
    const wrapper wrap{static_cast<size_t>(width),
                       true_unless_given(args.get_kwarg_or_pos("break_long_words", 2)),
                       true_unless_given(args.get_kwarg_or_pos("break_on_hyphens", 4))};
    marked separator, out;
    if (is_given(between))
        separator = text_of(between);
    else
        separator.put("\n", false);
    bool first = true;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.text.find('\n', at), text.size());
        std::vector<marked> lines = wrap.lines_of(text.part(at, end));
        if (lines.empty()) lines.emplace_back();
        for (const marked &line : lines) {
            if (!first) out.put(separator);
            spend_bytes(separator.size());
            out.put(line);
            first = false;
        }
        at = end + 1;
    }
    return out.value();
}

/* ---- format: the operator % of Python's strings ---- */

namespace {

struct conversion {
    std::string flags;
    int64_t width = 0, precision = -1;
    char kind = 's';
    bool has(char flag) const {
        return flags.find(flag) != std::string::npos;
    }
};

/* A number as the C library writes it; both agree on these. */
std::string number_text(const conversion &c, const value &v) {
    if (!v->is_numeric()) fail(std::string("%") + c.kind + " wants a number, not " + v->type());
    if (c.width > 1000 || c.precision > 300) fail("format: a field is too wide");
    const bool is_whole = std::string("diuxXo").find(c.kind) != std::string::npos;
    if (is_whole && (c.kind != 'd' && c.kind != 'i' && c.kind != 'u') &&
        is_val<jinja::value_float>(v))
        fail(std::string("%") + c.kind + " wants an integer, not Float");
    if (!(std::fabs(v->val_flt) < 9e15)) fail("format: a number is too large");
    int64_t whole = static_cast<int64_t>(v->val_flt);
    /* Python has a sign where C has two's complement. */
    const bool is_minus =
        is_whole && whole < 0 && std::string("xXo").find(c.kind) != std::string::npos;
    if (is_minus || (c.has('#') && is_whole))
        fail(std::string("format: no %") + c.kind + " of this here");
    const std::string spec = "%" + c.flags + "*.*" + (is_whole ? "ll" : "") +
                             (c.kind == 'i' || c.kind == 'u' ? 'd' : c.kind);
    char buffer[1400];
    const int width = static_cast<int>(c.width), precision = static_cast<int>(c.precision);
    if (is_whole)
        snprintf(buffer, sizeof buffer, spec.c_str(), width, precision,
                 static_cast<long long>(whole));
    else
        snprintf(buffer, sizeof buffer, spec.c_str(), width, precision, v->val_flt);
    return buffer;
}

void put_padded(marked &out, const marked &text, const conversion &c) {
    const std::string room = blanks(c.width - static_cast<int64_t>(characters_in(text.text)));
    if (!c.has('-')) out.put(room, false);
    out.put(text);
    if (c.has('-')) out.put(room, false);
}

marked character_of(const value &v) {
    if (is_val<jinja::value_int>(v)) fail("format: no %c of a number here");
    const marked text = text_of(v);
    if (!is_val<jinja::value_string>(v) || characters_in(text.text) != 1)
        fail("%c wants one character");
    return text;
}

void put_conversion(marked &out, const conversion &c, const value &v) {
    spend_tree(v);
    if (c.kind == 's' || c.kind == 'r' || c.kind == 'c') {
        marked text = c.kind == 'c'   ? character_of(v)
                      : c.kind == 'r' ? marked(python_repr(v))
                                      : text_of(v);
        if (c.precision >= 0) text = beginning(text, static_cast<size_t>(c.precision));
        put_padded(out, text, c);
    } else if (std::string("diuxXoeEfFgG").find(c.kind) != std::string::npos) {
        out.put(number_text(c, v), false);
    } else {
        fail(std::string("format: there is no %") + c.kind);
    }
}

struct percent_reader {
    const func_args &args;
    const marked &text;
    size_t at = 0, next = 1;

    int64_t number() {
        if (peek() == '*') fail("format: no * here");
        int64_t n = 0;
        while (peek() >= '0' && peek() <= '9' && n < 100000) n = 10 * n + (text.text[at++] - '0');
        return n;
    }
    char peek() const {
        return at < text.size() ? text.text[at] : '\0';
    }
    value named() {
        const size_t end = text.text.find(')', at);
        if (end == std::string::npos) fail("format: incomplete format key");
        const std::string name = text.text.substr(at + 1, end - at - 1);
        at = end + 1;
        const value found = args.get_kwarg(name, mk_val<jinja::value_undefined>());
        if (found->is_undefined()) fail("format: there is no value '" + name + "'");
        return found;
    }
    value following() {
        if (next >= args.count() || is_val<jinja::value_kwarg>(args.get_args()[next]))
            fail("not enough arguments for format string");
        return args.get_args()[next++];
    }
    void read(marked &out) {
        value v = peek() == '(' ? named() : nullptr;
        conversion c;
        while (peek() && std::string("#0- +").find(peek()) != std::string::npos)
            c.flags += text.text[at++];
        c.width = number();
        if (peek() == '.') at++, c.precision = number();
        if (!peek()) fail("incomplete format");
        c.kind = text.text[at++];
        if (c.kind == '%')
            out.put("%", false);
        else
            put_conversion(out, c, v ? v : following());
    }
};

} // namespace

value format_percent(const func_args &args) {
    const marked text = text_of(args.get_pos(0));
    marked out;
    percent_reader reader{args, text};
    while (reader.at < text.size()) {
        const size_t end = std::min(text.text.find('%', reader.at), text.size());
        out.put(text, reader.at, end);
        reader.at = end + 1;
        if (end < text.size()) reader.read(out);
    }
    const bool by_name = args.count() > 1 && is_val<jinja::value_kwarg>(args.get_args()[1]);
    if (!by_name && reader.next < args.count())
        fail("not all arguments converted during string formatting");
    return out.value();
}

/* ---- web pages ---- */

namespace {

void drop_between(marked &text, const char *open, const char *close) {
    const std::string begin = open, end = close;
    marked out;
    size_t at = 0;
    while (true) {
        const size_t from = text.text.find(begin, at);
        const size_t to = from == std::string::npos ? from : text.text.find(end, from);
        if (to == std::string::npos) break;
        out.put(text, at, from);
        at = to + end.size();
    }
    out.put(text, at, text.size());
    text = out;
}

/* The few entities that escape() makes, and the usual others. */
marked without_entities(const marked &text) {
    static const std::map<std::string, const char *> known = {
        {"amp", "&"},  {"lt", "<"},  {"gt", ">"},   {"quot", "\""},
        {"#34", "\""}, {"#39", "'"}, {"apos", "'"}, {"nbsp", "\xc2\xa0"}};
    marked out;
    for (size_t at = 0; at < text.size();) {
        const size_t end = text.text[at] == '&' ? text.text.find(';', at) : std::string::npos;
        const std::string name =
            end == std::string::npos ? "" : text.text.substr(at + 1, end - at - 1);
        const auto found = known.find(name);
        const bool is_name = !name.empty() && name.size() < 32 &&
                             name.find_first_of(" &<>\n\t") == std::string::npos;
        if (found != known.end())
            out.put(found->second, text.marks[at] != 0);
        else if (is_name)
            fail("striptags: the entity &" + name + "; is not known here");
        else
            out.put(text, at, at + 1);
        at = found != known.end() ? end + 1 : at + 1;
    }
    return out;
}

std::string quoted_byte(char c, bool in_query) {
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~";
    char code[4];
    if (std::string(safe).find(c) != std::string::npos || (c == '/' && !in_query))
        return std::string(1, c);
    if (c == ' ' && in_query) return "+";
    snprintf(code, sizeof code, "%%%02X", static_cast<unsigned char>(c));
    return code;
}

void put_url(marked &out, const value &v, bool in_query) {
    const marked text = text_of(v);
    for (size_t i = 0; i < text.size(); i++)
        out.put(quoted_byte(text.text[i], in_query), text.marks[i] != 0);
}

} // namespace

value strip_tags(const func_args &args) {
    marked text = text_of(args.get_pos(0)), out;
    drop_between(text, "<!--", "-->");
    drop_between(text, "<", ">");
    const value words = split_blanks(text, -1);
    for (const value &word : words->val_arr) {
        if (out.size()) out.put(" ", false);
        out.put(text_of(word));
    }
    return without_entities(out).value();
}

value url_encode(const func_args &args) {
    const value v = args.get_pos(0);
    const bool is_object = is_val<jinja::value_object>(v);
    marked out;
    if (!is_object && (!is_val<jinja::value_array>(v))) {
        put_url(out, v, false);
        return out.value();
    }
    for (const value &pair : items_of(is_object ? pairs_of(args) : v)) {
        const auto parts = items_of(pair);
        if (parts.size() != 2) fail("urlencode wants pairs");
        if (out.size()) out.put("&", false);
        put_url(out, parts[0], true);
        out.put("=", false);
        put_url(out, parts[1], true);
    }
    return out.value();
}

value xml_attributes(const func_args &args) {
    marked out;
    const bool spaced = true_unless_given(args.get_kwarg_or_pos("autospace", 1));
    const value pairs = pairs_of(args);
    for (const value &pair : pairs->val_arr) {
        const marked key = text_of(pair->val_arr[0]);
        if (!is_given(pair->val_arr[1])) continue;
        if (key.text.find_first_of(" \t\n\v\f\r/>=") != std::string::npos)
            fail("xmlattr: an attribute is called '" + key.text + "'");
        if (spaced || out.size()) out.put(" ", false);
        out.put(escaped(key));
        out.put("=\"", false);
        out.put(escaped(text_of(pair->val_arr[1])));
        out.put("\"", false);
    }
    return out.value();
}

value file_size(const func_args &args) {
    static const char *const decimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
    static const char *const binary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
    const double bytes = to_float(args)->as_float();
    const bool by_1024 = args.get_kwarg_or_pos("binary", 1)->as_bool();
    const double base = by_1024 ? 1024 : 1000;
    char text[64];
    double unit = base * base;
    size_t i = 0;
    if (bytes == 1) return mk_val<jinja::value_string>("1 Byte");
    if (bytes < base) {
        snprintf(text, sizeof text, "%.0f Bytes", std::trunc(bytes));
    } else {
        for (; i < 7 && bytes >= unit; i++) unit *= base;
        snprintf(text, sizeof text, "%.1f %s", base * bytes / unit,
                 by_1024 ? binary[i] : decimal[i]);
    }
    return mk_val<jinja::value_string>(std::string(text));
}

} // namespace qkv_chat
