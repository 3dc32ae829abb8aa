/* The tests of Jinja's manual (`is odd`), and the filters that choose by them. */
#include <cmath>
#include <map>

#include "chat/jinja_functions.h"

namespace qkv_chat {

bool equals(const value &a, const value &b) {
    step();
    if (is_val<jinja::value_array>(a) && is_val<jinja::value_array>(b))
        return a->is_immutable() == b->is_immutable() &&
               std::equal(a->val_arr.begin(), a->val_arr.end(), b->val_arr.begin(),
                          b->val_arr.end(), equals);
    if (is_val<jinja::value_object>(a) && is_val<jinja::value_object>(b)) {
        value missing = mk_val<jinja::value_undefined>();
        return a->val_obj.size() == b->val_obj.size() &&
               std::all_of(a->val_obj.begin(), a->val_obj.end(), [&](const auto &pair) {
                   return b->has_key(pair.first) && equals(pair.second, b->at(pair.first, missing));
               });
    }
    if (is_val<jinja::value_string>(a) && is_val<jinja::value_string>(b))
        return a->val_str.str() == b->val_str.str();
    return *a == *b;
}

int order_of(const value &a, const value &b) {
    step();
    if (a->is_numeric() && b->is_numeric())
        return a->val_flt < b->val_flt ? -1 : a->val_flt > b->val_flt;
    if (is_val<jinja::value_string>(a) && is_val<jinja::value_string>(b)) {
        const int order = a->val_str.str().compare(b->val_str.str());
        return order < 0 ? -1 : order > 0;
    }
    if (!is_val<jinja::value_array>(a) || !is_val<jinja::value_array>(b) ||
        a->is_immutable() != b->is_immutable())
        fail("cannot put " + a->type() + " and " + b->type() + " in order");
    const size_t n = std::min(a->val_arr.size(), b->val_arr.size());
    for (size_t i = 0; i < n; i++) {
        if (!equals(a->val_arr[i], b->val_arr[i])) return order_of(a->val_arr[i], b->val_arr[i]);
    }
    return a->val_arr.size() < b->val_arr.size() ? -1 : a->val_arr.size() > b->val_arr.size();
}

namespace {

using test = bool (*)(const func_args &);

template <class... Types> bool is_any(const func_args &args) {
    return (is_val<Types>(args.get_pos(0)) || ...);
}

bool is_whole(const func_args &args) {
    return is_val<jinja::value_int>(args.get_pos(0));
}

/* A list, a text, a dictionary; what is undefined counts as an empty list. */
bool is_iterable(const func_args &args) {
    return is_any<jinja::value_array, jinja::value_string, jinja::value_object,
                  jinja::value_undefined>(args);
}

template <bool Wanted> bool is_truth(const func_args &args) {
    const value v = args.get_pos(0);
    return is_val<jinja::value_bool>(v) && v->as_bool() == Wanted;
}

/* The remainder has the sign of the divisor. */
double remainder_of(const value &v, double by, const char *what) {
    if (!v->is_numeric()) fail(std::string(what) + " wants a number, not " + v->type());
    const double rest = std::fmod(v->val_flt, by);
    return rest != 0 && (rest < 0) != (by < 0) ? rest + by : rest;
}

bool is_divisible(const func_args &args) {
    const value by = args.get_pos(1);
    if (!by->is_numeric() || by->val_flt == 0) fail("divisibleby wants a number other than 0");
    return remainder_of(args.get_pos(0), by->val_flt, "divisibleby") == 0;
}

bool is_in(const func_args &args) {
    const value v = args.get_pos(0), list = args.get_pos(1);
    if (is_val<jinja::value_string>(list)) {
        const marked text(list->val_str), wanted = text_argument(args, 0);
        return text.text.find(wanted.text) != std::string::npos;
    }
    if (is_val<jinja::value_object>(list)) return v->is_hashable() && list->has_key(v);
    const auto items = items_of(list);
    return std::any_of(items.begin(), items.end(),
                       [&](const value &item) { return equals(v, item); });
}

/* Python's `is`. Whether two equal texts or numbers are one object is the interpreter's affair. */
bool is_same(const func_args &args) {
    const value a = args.get_pos(0), b = args.get_pos(1);
    if (a == b || (a->is_none() && b->is_none())) return true;
    if (is_val<jinja::value_bool>(a) && is_val<jinja::value_bool>(b)) return equals(a, b);
    const auto &first = *a, &second = *b;
    if (typeid(first) != typeid(second) || !equals(a, b)) return false;
    if (is_whole(args) && a->as_int() >= -5 && a->as_int() <= 256) return true;
    if (is_val<jinja::value_array>(a) || is_val<jinja::value_object>(a)) return false;
    fail("sameas of equal values depends on the memory of Python; use =="); /* numbers, texts */
}

bool is_case(const func_args &args, letters wanted) {
    const std::string text = text_of(args.get_pos(0)).text;
    const bool is_lower = change_case(args, letters::lower)->val_str.str() == text;
    const bool is_upper = change_case(args, letters::upper)->val_str.str() == text;
    return is_lower != is_upper && is_lower == (wanted == letters::lower);
}

template <int Low, int High> bool is_ordered(const func_args &args) {
    const int order = order_of(args.get_pos(0), args.get_pos(1));
    return order >= Low && order <= High;
}

bool is_equal(const func_args &args) {
    return equals(args.get_pos(0), args.get_pos(1));
}

bool is_name_of_test(const func_args &args);

const std::map<std::string, test> &tests() {
    static const std::map<std::string, test> table = {
        {"!=", [](const func_args &a) { return !is_equal(a); }},
        {"<", is_ordered<-1, -1>},
        {"<=", is_ordered<-1, 0>},
        {"==", is_equal},
        {">", is_ordered<1, 1>},
        {">=", is_ordered<0, 1>},
        {"boolean", is_any<jinja::value_bool>},
        {"callable", is_any<jinja::value_func>},
        {"defined", [](const func_args &a) { return !a.get_pos(0)->is_undefined(); }},
        {"divisibleby", is_divisible},
        {"eq", is_equal},
        {"equalto", is_equal},
        {"escaped", [](const func_args &a) { return is_markup(a.get_pos(0)); }},
        {"even", [](const func_args &a) { return remainder_of(a.get_pos(0), 2, "even") == 0; }},
        {"false", is_truth<false>},
        {"filter",
         [](const func_args &a) { return find_filter(text_argument(a, 0).text) != nullptr; }},
        {"float", is_any<jinja::value_float>},
        {"ge", is_ordered<0, 1>},
        {"greaterthan", is_ordered<1, 1>},
        {"gt", is_ordered<1, 1>},
        {"in", is_in},
        {"integer", is_whole},
        {"iterable", is_iterable},
        {"le", is_ordered<-1, 0>},
        {"lessthan", is_ordered<-1, -1>},
        {"lower", [](const func_args &a) { return is_case(a, letters::lower); }},
        {"lt", is_ordered<-1, -1>},
        {"mapping", is_any<jinja::value_object>},
        {"ne", [](const func_args &a) { return !is_equal(a); }},
        {"none", [](const func_args &a) { return a.get_pos(0)->is_none(); }},
        {"number", [](const func_args &a) { return a.get_pos(0)->is_numeric(); }},
        {"odd", [](const func_args &a) { return remainder_of(a.get_pos(0), 2, "odd") == 1; }},
        {"sameas", is_same},
        {"sequence", is_iterable},
        {"string", is_any<jinja::value_string>},
        {"test", is_name_of_test},
        {"true", is_truth<true>},
        {"undefined", [](const func_args &a) { return a.get_pos(0)->is_undefined(); }},
        {"upper", [](const func_args &a) { return is_case(a, letters::upper); }},
    };
    return table;
}

bool is_name_of_test(const func_args &args) {
    return tests().count(text_argument(args, 0).text) != 0;
}

} // namespace

bool apply_test(const std::string &name, const func_args &args) {
    const auto found = tests().find(name);
    if (found == tests().end()) fail("there is no test '" + name + "'");
    for (const auto &argument : args.get_args())
        if (!is_val<jinja::value_kwarg>(argument)) spend_tree(argument);
    return found->second(args);
}

/* select('odd'), selectattr('role', 'equalto', 'user'); without a test, what counts as true. */
value choose(const func_args &args, bool by_attribute, bool wanted) {
    const size_t test_at = by_attribute ? 2 : 1;
    const value attribute = by_attribute ? args.get_pos(1) : mk_val<jinja::value_none>();
    const std::string name = args.count() > test_at ? text_argument(args, test_at).text : "";
    if (args.count() > test_at && !tests().count(name)) fail("there is no test '" + name + "'");
    std::vector<value> items;
    /* `tools` is none here, and templates ask which of them there are: as with loops. */
    if (args.get_pos(0)->is_none()) return list_of(std::move(items));
    for (const value &item : items_of(args.get_pos(0))) {
        step();
        const value looked_at = by_attribute ? attribute_of(item, attribute, nullptr) : item;
        func_args inner(args.ctx);
        inner.func_name = name;
        inner.push_back(looked_at);
        for (size_t i = test_at + 1; i < args.count(); i++) inner.push_back(args.get_args()[i]);
        const bool holds = name.empty() ? looked_at->as_bool() : apply_test(name, inner);
        if (holds == wanted) items.push_back(item);
    }
    return list_of(std::move(items));
}

} // namespace qkv_chat
