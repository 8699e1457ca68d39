// secagg_adapter.hpp: an adapter for secagg-spec, without its operations. Copy it unchanged; adapter.cpp is yours.
//
// Adapter protocol 1.0 (spec/adapter.md of secagg-spec; clause ids in brackets). C++17 on POSIX systems, no libraries.
//
// A handler receives the members of `params` by name, as in p["update"].vector(), in the types that their forms name,
// and the sampled values as p["rand"]["noise"].vector(). It returns the members of the result, or throws: `Reject` for
// a deliberate refusal, `Unsupported`, or any other exception for a failure. Printed text goes to standard error.
//
// Part of secagg-spec. SPDX-License-Identifier: Apache-2.0

#ifndef SECAGG_ADAPTER_HPP
#define SECAGG_ADAPTER_HPP

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace secagg {

inline constexpr std::size_t max_line = 67108864;  // bytes, including the line feed [ADP-02]
inline constexpr int deepest = 1000;               // nesting of lists and objects

class Value;
using List = std::vector<Value>;
using Object = std::map<std::string, Value>;
using Bytes = std::vector<std::uint8_t>;
using Vector = std::vector<std::uint32_t>;
using Reals = std::vector<double>;

namespace detail {

inline int hex_digit(char sign) {
    if (sign >= '0' && sign <= '9') return sign - '0';
    return sign >= 'a' && sign <= 'f' ? sign - 'a' + 10 : -1;
}

// Entries as hex digits, each little-endian.
template <class T>
std::string hex(const std::vector<T>& entries) {
    std::string text;
    text.reserve(2 * sizeof(T) * entries.size());
    for (const T& entry : entries) {
        std::uint64_t bits = 0;
        if constexpr (std::is_integral_v<T>) bits = entry;
        else std::memcpy(&bits, &entry, sizeof bits);
        for (std::size_t byte = 0; byte < sizeof(T); byte++, bits >>= 8)
            (text += "0123456789abcdef"[bits >> 4 & 15]) += "0123456789abcdef"[bits & 15];
    }
    return text;
}

// A number that is not a 64-bit integer, as written.
struct Number {
    std::string written;
};

// The most digits of an integer that a handler can read.
inline constexpr std::size_t longest = 40;

// Whether a handler has read an integer of more than 64 bits as the nearest one of 64; it gives no result then.
inline bool beyond = false;

}  // namespace detail

// A JSON value. Bytes, a Vector and Reals become strings of hex digits.
class Value {
public:
    Value() = default;  // null
    Value(const char* text) : content_(std::string(text)) {}
    Value(std::string text) : content_(std::move(text)) {}
    Value(detail::Number number) : content_(std::move(number)) {}
    Value(List list) : content_(std::move(list)) {}
    Value(Object object) : content_(std::make_shared<const Object>(std::move(object))) {}
    Value(const Bytes& bytes) : content_(detail::hex(bytes)) {}
    Value(const Vector& vector) : content_(detail::hex(vector)) {}
    Value(const Reals& reals) : content_(detail::hex(reals)) {}

    template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
    Value(T number) {
        if constexpr (std::is_same_v<T, bool>) content_ = number;
        else content_ = static_cast<std::int64_t>(number);
    }

    // What it holds: a member has the form that is declared for it. Vectors are decoded anew by each call.
    bool flag() const { return need<bool>(); }
    const std::string& text() const { return need<std::string>(); }
    const List& list() const { return need<List>(); }
    const Object& object() const { return *need<std::shared_ptr<const Object>>(); }
    Bytes bytes() const { return unhex<std::uint8_t>(); }
    Vector vector() const { return unhex<std::uint32_t>(); }
    Reals reals() const { return unhex<double>(); }
    std::int64_t integer() const;  // or a decimal string

    // A member of an object.
    const Value& operator[](const std::string& name) const {
        const auto found = object().find(name);
        if (found == object().end()) throw std::logic_error("there is no member " + name);
        return found->second;
    }

    // What it holds, or nullptr if that is of another type.
    template <class T>
    const T* get() const { return std::get_if<T>(&content_); }

private:
    static void demand(bool good) {
        if (!good) throw std::logic_error("a member is read in another form than the one that is declared");
    }

    template <class T>
    const T& need() const {
        demand(get<T>() != nullptr);
        return *get<T>();
    }

    template <class T>
    std::vector<T> unhex() const {
        const std::string& digits = text();
        std::vector<T> entries(digits.size() / (2 * sizeof(T)));
        demand(digits.size() % (2 * sizeof(T)) == 0);
        for (std::size_t i = 0; i < entries.size(); i++) {
            std::uint64_t bits = 0;
            for (std::size_t byte = sizeof(T); byte-- > 0;) {
                const std::size_t at = 2 * (i * sizeof(T) + byte);
                const int high = detail::hex_digit(digits[at]), low = detail::hex_digit(digits[at + 1]);
                demand(high >= 0 && low >= 0);
                bits = bits << 8 | static_cast<std::uint64_t>(16 * high + low);
            }
            if constexpr (std::is_integral_v<T>) entries[i] = static_cast<T>(bits);
            else std::memcpy(&entries[i], &bits, sizeof bits);
        }
        return entries;
    }

    std::variant<std::monostate, bool, std::int64_t, detail::Number, std::string, List, std::shared_ptr<const Object>>
        content_;
};

// A deliberate refusal, with a code of section 5. `blamed` are the parties that the refusal of a step blames.
struct Reject : std::runtime_error {
    std::string code;
    List blamed;

    Reject(const std::string& of_code, const std::string& message, List blaming = {})
        : std::runtime_error(message), code(of_code), blamed(std::move(blaming)) {
        static const std::string codes =
            " malformed bad_param out_of_range noncanonical length_mismatch duplicate_id unknown_peer wrong_phase"
            " replay inconsistent_sets bad_share below_threshold bad_signature bad_ciphertext weak_key other inexpressible ";
        if (codes.find(" " + code + " ") == codes.npos) throw std::logic_error(code + " is no code");  // [ADP-09]
    }
};

// These parameters are outside the adapter's declaration.
struct Unsupported : std::exception {};

// The forms of members (section 3). `json` is any value without fractions. list({form}) has any length, and
// list({form, form}) exactly one entry for each; record({...}) has exactly these members.
struct Form {
    using Check = std::function<bool(const Value& value)>;
    using Members = std::vector<std::pair<std::string, Check>>;

    static bool flag(const Value& value) { return value.get<bool>(); }
    static bool text(const Value& value) { return value.get<std::string>(); }
    static bool object(const Value& value) { return value.get<std::shared_ptr<const Object>>(); }
    static bool bytes(const Value& value) { return is_hex(value, 2); }
    static bool vector(const Value& value) { return is_hex(value, 8); }
    static bool reals(const Value& value) { return is_hex(value, 16); }
    static bool seed(const Value& value) { return is_hex(value, 64) && value.text().size() == 64; }

    static bool integer(const Value& value) {  // [ADP-12]
        const auto* number = value.get<detail::Number>();
        return value.get<std::int64_t>() || (number && number->written.find_first_of(".eE") == std::string::npos);
    }

    static bool decimal(const Value& value) {  // [ADP-14]
        if (!text(value)) return false;
        const std::string digits = value.text().substr(value.text().rfind('-', 0) == 0);
        const bool all = !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
        return all && (digits == "0" || digits[0] != '0');
    }

    static bool json(const Value& value) {
        const auto member = [](const auto& named) { return json(named.second); };
        if (value.get<List>()) return std::all_of(value.list().begin(), value.list().end(), json);
        if (object(value)) return std::all_of(value.object().begin(), value.object().end(), member);
        return !value.get<detail::Number>() || integer(value);
    }

    static Check list(std::vector<Check> forms) {
        return [forms](const Value& value) {
            const auto* list = value.get<List>();
            if (!list || (forms.size() != 1 && forms.size() != list->size())) return false;
            for (std::size_t i = 0; i < list->size(); i++)
                if (!forms[i % forms.size()]((*list)[i])) return false;
            return true;
        };
    }

    static Check record(Members members) {
        return [members](const Value& value) { return object(value) && fault(members, value.object()).empty(); };
    }

    // What is wrong with the members of an object, or nothing [ADP-05].
    static std::string fault(const Members& members, const Object& object) {
        for (const auto& [name, form] : members) {
            if (object.count(name) == 0) return name + " is missing";
            if (!form(object.at(name))) return name + " does not have its form";
        }
        return object.size() == members.size() ? "" : "there is a member that is not known";
    }

private:
    static bool is_hex(const Value& value, std::size_t digits) {  // [ADP-13]
        return text(value) && value.text().size() % digits == 0 &&
               value.text().find_first_not_of("0123456789abcdef") == std::string::npos;
    }
};

using Members = Form::Members;

namespace detail {

inline bool is_utf8(const std::string& text) {
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const end = at + text.size();
    while (at < end) {
        const unsigned char lead = *at++;
        if (lead < 0x80) continue;
        const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
        if (lead < 0xc2 || lead > 0xf4 || end - at < more) return false;
        const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
        const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
        if (at[0] < low || at[0] > high) return false;
        for (int i = 1; i < more; i++)
            if (at[i] < 0x80 || at[i] > 0xbf) return false;
        at += more;
    }
    return true;
}

// If a text is not UTF-8, such as a message in another encoding, its bytes above 127 become question marks.
inline void write_text(const std::string& text, std::string& out) {
    const bool good = is_utf8(text);
    out += '"';
    for (const char sign : text) {
        const auto code = static_cast<unsigned char>(sign);
        if (code < 0x20) (out += code < 0x10 ? "\\u000" : "\\u001") += "0123456789abcdef"[code & 15];
        else if (sign == '"' || sign == '\\') (out += '\\') += sign;
        else out += code < 0x80 || good ? sign : '?';
    }
    out += '"';
}

inline void write(const Value& value, std::string& out) {
    const char* before = "";
    if (const auto* flag = value.get<bool>()) out += *flag ? "true" : "false";
    else if (const auto* integer = value.get<std::int64_t>()) out += std::to_string(*integer);
    else if (const auto* number = value.get<Number>()) out += number->written;
    else if (const auto* text = value.get<std::string>()) write_text(*text, out);
    else if (const auto* list = value.get<List>()) {
        out += '[';
        for (const Value& entry : *list) write(entry, out += std::exchange(before, ","));
        out += ']';
    } else if (Form::object(value)) {
        out += '{';
        for (const auto& [name, member] : value.object()) {
            write_text(name, out += std::exchange(before, ","));
            write(member, out += ':');
        }
        out += '}';
    } else {
        out += "null";
    }
}

inline Value to_number(const std::string& written) {
    std::int64_t integer = 0;
    const char* const end = written.data() + written.size();
    const auto [at, error] = std::from_chars(written.data(), end, integer);
    return at == end && error == std::errc() ? Value(integer) : Value(Number{written});
}

// Reads JSON; throws std::logic_error if a text is not JSON, or is nested too deep.
class Reader {
public:
    explicit Reader(const std::string& text) : text_(text) {}

    Value whole() {
        demand(is_utf8(text_));
        Value read = value(0);
        peek();
        demand(at_ == text_.size());
        return read;
    }

private:
    const std::string& text_;
    std::size_t at_ = 0;

    static void demand(bool good) {
        if (!good) throw std::logic_error("not JSON");
    }

    // The next byte; a zero, which begins nothing, at the end.
    char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }

    char peek() {
        while (skip(" \t\r\n")) {}
        return here();
    }

    bool skip(const char* any) {
        const bool found = here() != '\0' && std::strchr(any, here()) != nullptr;
        at_ += found;
        return found;
    }

    Value take(const char* word, Value meant) {
        demand(text_.compare(at_, std::strlen(word), word) == 0);
        at_ += std::strlen(word);
        return meant;
    }

    Value value(int depth) {
        List list;
        Object object;
        switch (peek()) {
            case '"': return string();
            case 'n': return take("null", {});
            case 't': return take("true", true);
            case 'f': return take("false", false);
            case '[': entries(depth, ']', [&] { list.push_back(value(depth + 1)); }); return list;
            case '{':
                entries(depth, '}', [&] {
                    peek();
                    const std::string name = string();
                    peek();
                    take(":", {});
                    object.insert_or_assign(name, value(depth + 1));  // of two members with one name the last counts
                });
                return object;
            default: return number();
        }
    }

    template <class Entry>
    void entries(int depth, char close, Entry entry) {
        demand(depth < deepest);
        at_++;
        if (peek() != close) {
            do entry();
            while (peek() == ',' && skip(","));
            demand(here() == close);
        }
        at_++;
    }

    std::string string() {
        std::string decoded;
        take("\"", {});
        for (;;) {
            const std::size_t start = at_;
            while (static_cast<unsigned char>(here()) >= 0x20 && here() != '"' && here() != '\\') at_++;
            decoded.append(text_, start, at_ - start);
            if (skip("\"")) return decoded;
            take("\\", {});
            escape(decoded);
        }
    }

    void escape(std::string& decoded) {
        static const char signs[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
        const char sign = here();
        if (skip(signs)) {
            decoded += meant[std::strchr(signs, sign) - signs];
            return;
        }
        std::uint32_t code = unit();
        demand(code < 0xdc00 || code > 0xdfff);  // half a pair of surrogates is no character
        if (code >= 0xd800 && code < 0xdc00) {
            take("\\", {});
            const std::uint32_t low = unit();
            demand(low >= 0xdc00 && low <= 0xdfff);
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        const std::uint32_t more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        static const std::uint32_t leads[] = {0, 0xc0, 0xe0, 0xf0};
        decoded += static_cast<char>(leads[more] | (code >> (6 * more)));
        for (std::uint32_t i = more; i-- > 0;) decoded += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3f));
    }

    // The number in an escape, after its backslash.
    std::uint32_t unit() {
        std::uint32_t value = 0;
        take("u", {});
        for (const std::size_t end = at_ + 4; at_ < end; at_++) {
            const char sign = here();
            const int digit = hex_digit(sign >= 'A' && sign <= 'F' ? static_cast<char>(sign - 'A' + 'a') : sign);
            demand(digit >= 0);
            value = value * 16 + static_cast<std::uint32_t>(digit);
        }
        return value;
    }

    std::size_t digits() {
        const std::size_t start = at_;
        while (skip("0123456789")) {}
        demand(at_ > start);
        return at_ - start;
    }

    Value number() {
        const std::size_t start = at_;
        skip("-");
        const bool zero = here() == '0';
        demand(digits() == 1 || !zero);
        if (skip(".")) digits();
        if (skip("eE")) {
            skip("+-");
            digits();
        }
        return to_number(text_.substr(start, at_ - start));
    }
};

}  // namespace detail

inline std::int64_t Value::integer() const {
    const Value value = Form::decimal(*this) ? detail::to_number(text()) : *this;
    if (const auto* number = value.get<detail::Number>()) {
        if (number->written.size() > detail::longest) throw Reject("bad_param", "an integer of more than 40 digits");
        detail::beyond = true;
        using limits = std::numeric_limits<std::int64_t>;
        return number->written[0] == '-' ? limits::min() : limits::max();
    }
    return value.need<std::int64_t>();
}

// The adapter

using Handler = std::function<Object(const Value& p)>;

// An operation. `samples` is the form of its rand in the grade "explicit": none if it does not draw, Form::json if the
// names depend on params. `declared` is its entry in hello: "ranges", "randomness", "parties" and so on.
struct Operation {
    Members params;
    Handler handler;
    Form::Check samples = nullptr;
    Object declared = {};
};

// One implementation. `hello` is its declaration (section 2). If its random draws cannot be supplied, set "randomness"
// to "seeded" or "none"; add "policy" and "reject_map" as needed.
class Adapter {
public:
    Object hello;

    Adapter(const std::string& name, const std::string& version)
        : hello{{"protocol", List{1, 0}},
                {"implementation", Object{{"name", name}, {"version", version}, {"language", "c++"}}},
                {"randomness", "explicit"}} {}

    // Declares an operation with the members of its params, and returns it for further declarations.
    Operation& operation(const std::string& name, Members params, Handler handler) {
        return operations_[name] = Operation{std::move(params), std::move(handler)};
    }

    // Answers requests until the end of input, and returns an exit code. Only answers go to standard output.
    int run() const {
        std::FILE* const answers = fdopen(dup(1), "wb");
        bool good = answers != nullptr && dup2(2, 1) >= 0;
        std::ios::sync_with_stdio(false);
        for (std::string line; good && std::getline(std::cin, line);) {
            const std::string said = answer(line.size() < max_line ? line : "");
            good = std::fwrite(said.data(), 1, said.size(), answers) == said.size() && std::fflush(answers) == 0;
        }
        return good ? 0 : 70;
    }

private:
    std::map<std::string, Operation> operations_;

    std::string answer(const std::string& line) const {
        Object said{{"id", Value()}};
        std::string out;
        try {
            const Object asked = request(line);
            said["id"] = asked.at("id");
            Object made = result(asked);
            said["result"] = std::move(made);
        } catch (const Reject& reject) {
            Object refusal{{"code", reject.code}, {"message", reject.what()}};
            if (!reject.blamed.empty()) refusal["blamed"] = reject.blamed;
            said["reject"] = std::move(refusal);
        } catch (const Unsupported&) {
            said["unsupported"] = true;
        } catch (const std::exception& error) {
            said["error"] = Object{{"message", error.what()}};
        } catch (...) {
            said["error"] = Object{{"message", "an exception that is no std::exception"}};
        }
        detail::write(said, out);
        if (out.size() >= max_line) detail::write(Object{{"id", said["id"]}, {"unsupported", true}}, out = "");
        return out + "\n";
    }

    // The request on a line [ADP-10].
    static Object request(const std::string& line) {
        try {
            const Value asked = detail::Reader(line).whole();
            if (Form::integer(asked["id"])) return asked.object();
        } catch (const std::logic_error&) {  // no JSON, no object, or no id
        }
        throw Reject("malformed", "a request is a JSON object in UTF-8, with an integer id, of at most 64 MiB");
    }

    Object result(Object asked) const {
        static const Members members = {{"op", Form::text}, {"params", Form::object}, {"rand", Form::object}};
        asked.erase("id");
        asked.emplace("rand", Object{});
        demand(members, asked);                               // [ADP-11]
        const std::string& op = asked["op"].text();
        if (op == "hello") return greeting();                 // [ADP-07]
        const auto found = operations_.find(op);
        if (found == operations_.end()) throw Unsupported();  // [ADP-04]
        const Operation& operation = found->second;
        Object p = asked["params"].object();
        demand(operation.params, p);
        const auto own = operation.declared.find("randomness");
        const std::string& grade = (own != operation.declared.end() ? own->second : hello.at("randomness")).text();
        Form::Check samples = Form::record({});
        if (operation.samples && grade == "explicit") samples = operation.samples;
        if (operation.samples && grade == "seeded") samples = Form::record({{"seed", Form::seed}});
        demand({{"rand", samples}}, {{"rand", asked["rand"]}});
        p["rand"] = asked["rand"];
        detail::beyond = false;
        Object made = operation.handler(p);
        if (detail::beyond) throw Reject("bad_param", "an integer of more than 64 bits");
        return made;
    }

    static void demand(const Members& members, const Object& object) {
        const std::string fault = Form::fault(members, object);
        if (!fault.empty()) throw Reject("malformed", fault);
    }

    Object greeting() const {
        Object whole = hello, operations;
        for (const auto& [name, operation] : operations_) operations[name] = operation.declared;
        whole["operations"] = operations;
        return whole;
    }
};

}  // namespace secagg

#endif
