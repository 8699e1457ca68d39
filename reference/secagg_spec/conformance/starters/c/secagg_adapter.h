/* SPDX-License-Identifier: Apache-2.0
 *
 * The helper for adapters in C: the adapter protocol (spec/adapter.md) in one header, for C11 on POSIX systems.
 *
 *     #include "secagg_adapter.h"
 *
 *     static sa_outcome add(sa_call *call) {
 *         int64_t q = sa_decimal(call, "q");
 *         sa_vector a = sa_vector_of(call, "a"), b = sa_vector_of(call, "b");
 *         if (a.length != b.length) return sa_reject(call, "length_mismatch", "a and b differ in length");
 *         uint32_t *sum = sa_alloc(call, a.length, sizeof *sum);
 *         for (size_t i = 0; i < a.length; i++) sum[i] = (uint32_t)(((uint64_t)a.at[i] + b.at[i]) % (uint64_t)q);
 *         sa_put_vector(call, "value", sum, a.length);
 *         return SA_DONE;
 *     }
 *
 *     static const sa_operation operations[] = {
 *         {.name = "field.add", .params = {{"q", SA_DECIMAL}, {"a", SA_VECTOR}, {"b", SA_VECTOR}}, .run = add},
 *         {.name = NULL},
 *     };
 *
 *     int main(void) {
 *         return sa_run(&(sa_adapter){.name = "my-library", .version = "1.2.3", .operations = operations});
 *     }
 *
 * A handler reads the members of `params` and `rand` by name and writes those of the result with sa_put_.... It returns
 * SA_DONE, or the value of sa_reject, sa_unsupported or sa_error. Members of the wrong form have already been refused.
 * Memory from sa_alloc and the readers lives until the handler returns. The library's output goes to standard error.
 */

#ifndef SECAGG_ADAPTER_H
#define SECAGG_ADAPTER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SA_MAX_LINE = 67108864,
    SA_MOST_MEMBERS = 32,
    SA_DEEPEST = 1000, /* the most levels of nesting */
    SA_DIGITS = 40,    /* of the longest number that reaches a handler */
};

/* The forms of members. Any other list is SA_LIST: read its entries, and check them with sa_has_form. */
typedef enum {
    SA_JSON = 1, /* any value whose numbers are integers */
    SA_INTEGER,
    SA_FLAG, /* true or false */
    SA_TEXT,
    SA_DECIMAL, /* a decimal string */
    SA_BYTES,   /* lowercase hex digits */
    SA_VECTOR,  /* hex digits: elements of 4 bytes */
    SA_REALS,   /* hex digits: binary64 numbers of 8 bytes */
    SA_INTEGERS,
    SA_BYTES_LIST,
    SA_VECTORS,
    SA_REALS_LIST,
    SA_LIST,
    SA_OBJECT,
} sa_form;

typedef enum { SA_DONE, SA_REJECTED, SA_UNSUPPORTED, SA_ERROR } sa_outcome;

typedef struct {
    const char *at; /* UTF-8, not zero-terminated */
    size_t length;
} sa_text;

typedef struct {
    const uint8_t *at;
    size_t length;
} sa_bytes;

typedef struct {
    const uint32_t *at;
    size_t length;
} sa_vector;

typedef struct {
    const double *at;
    size_t length;
} sa_reals;

/* A JSON value. The entries of a list or an object form a linked list: `first`, then `next` of each entry. */
typedef struct sa_json {
    char type;      /* '"', '[', '{', '0' for a number, 't', 'f', 'n' */
    sa_text name;   /* of a member of an object */
    sa_text text;   /* of a string; lone surrogate escapes become U+FFFD */
    sa_text source; /* as written */
    struct sa_json *first, *next;
} sa_json;

typedef struct sa_call sa_call;

typedef struct {
    const char *name;
    sa_form form;
} sa_member;

typedef struct {
    const char *name;                   /* NULL ends the list of operations */
    sa_member params[SA_MOST_MEMBERS];  /* the members of `params` */
    sa_member rand[SA_MOST_MEMBERS];    /* the sampled values */
    bool any_rand;                      /* the handler checks them itself, as for session.new */
    const char *ranges;                 /* JSON, as in hello; also the next two */
    const char *parameter_sets;
    const char *parties;
    const char *randomness;             /* the grade, if it is not the adapter's */
    bool composed;
    sa_outcome (*run)(sa_call *call);
} sa_operation;

typedef struct {
    const char *name, *version;
    const char *randomness; /* explicit, seeded or none; NULL means explicit */
    const char *policy, *reject_map; /* JSON objects, or NULL */
    const sa_operation *operations;
} sa_adapter;

typedef struct {
    char *at;
    size_t length, room;
} sa_buffer;

typedef struct sa_block {
    struct sa_block *before;
    max_align_t data[];
} sa_block;

/* The request that is being answered. */
struct sa_call {
    sa_block *blocks; /* the memory allocated for it */
    const sa_json *params, *rand;
    sa_buffer result;
    bool follows; /* whether the next member or entry needs a comma */
    bool beyond;  /* whether it holds a number of more than 64 bits: the nearest one is read, and no result is given */
    const char *code;
    char message[1024];
};

/* ------------------------------------------------------------------------------------------------------- memory */

/* An error in the adapter itself, or out of memory: there is no answer. */
static inline _Noreturn void sa_stop(const char *what, const char *which) {
    fprintf(stderr, "secagg_adapter: %s %s\n", what, which);
    exit(70);
}

/* Zeroed memory for `count` objects, which lives until the handler returns. */
static inline void *sa_alloc(sa_call *call, size_t count, size_t size) {
    if (size != 0 && count > (SIZE_MAX - sizeof(sa_block)) / size) sa_stop("no memory for", "a request");
    sa_block *block = calloc(1, sizeof *block + count * size);
    if (block == NULL) sa_stop("no memory for", "a request");
    block->before = call->blocks;
    call->blocks = block;
    return block->data;
}

static inline void sa_release(sa_call *call) {
    while (call->blocks != NULL) {
        sa_block *before = call->blocks->before;
        free(call->blocks);
        call->blocks = before;
    }
}

/* Make room for this many more bytes at the end of a buffer. */
static inline char *sa_extend(sa_buffer *buffer, size_t more) {
    if (more > SIZE_MAX / 4 - buffer->length) sa_stop("no memory for", "an answer");
    if (buffer->length + more > buffer->room) {
        const size_t room = 2 * (buffer->length + more) + 64;
        char *at = realloc(buffer->at, room);
        if (at == NULL) sa_stop("no memory for", "an answer");
        buffer->at = at;
        buffer->room = room;
    }
    buffer->length += more;
    return buffer->at + buffer->length - more;
}

static inline void sa_append(sa_buffer *buffer, const char *at, size_t length) {
    if (length != 0) memcpy(sa_extend(buffer, length), at, length);
}

static inline void sa_append_text(sa_buffer *buffer, const char *text) {
    sa_append(buffer, text, strlen(text));
}

/* ---------------------------------------------------------------------------------------------------------- JSON */

typedef struct {
    sa_call *call;
    const char *at, *end;
} sa_parser;

static inline bool sa_is_utf8(const char *text, size_t length) {
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
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

static inline bool sa_equal(sa_text text, const char *name) {
    return text.length == strlen(name) && memcmp(text.at, name, text.length) == 0;
}

static inline void sa_skip(sa_parser *parser) {
    while (parser->at < parser->end && strchr(" \t\r\n", *parser->at) != NULL && *parser->at != '\0') parser->at++;
}

static inline bool sa_passes(sa_parser *parser, char sign) {
    sa_skip(parser);
    if (parser->at == parser->end || *parser->at != sign) return false;
    parser->at++;
    return true;
}

static inline size_t sa_pass_digits(sa_parser *parser) {
    const char *start = parser->at;
    while (parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9') parser->at++;
    return (size_t)(parser->at - start);
}

static inline bool sa_pass_number(sa_parser *parser) {
    if (parser->at < parser->end && *parser->at == '-') parser->at++;
    const char *start = parser->at;
    const size_t digits = sa_pass_digits(parser);
    if (digits == 0 || (digits > 1 && *start == '0')) return false;
    if (parser->at < parser->end && *parser->at == '.') {
        parser->at++;
        if (sa_pass_digits(parser) == 0) return false;
    }
    if (parser->at < parser->end && (*parser->at == 'e' || *parser->at == 'E')) {
        parser->at++;
        if (parser->at < parser->end && (*parser->at == '+' || *parser->at == '-')) parser->at++;
        if (sa_pass_digits(parser) == 0) return false;
    }
    return true;
}

static inline bool sa_pass_word(sa_parser *parser, const char *word) {
    const size_t length = strlen(word);
    if ((size_t)(parser->end - parser->at) < length || memcmp(parser->at, word, length) != 0) return false;
    parser->at += length;
    return true;
}

static inline int sa_hex_digit(char sign) {
    if (sign >= '0' && sign <= '9') return sign - '0';
    if (sign >= 'a' && sign <= 'f') return sign - 'a' + 10;
    return -1;
}

/* The value of the four digits of a \u escape, of either case, or -1. */
static inline long sa_pass_escape(sa_parser *parser) {
    long value = 0;
    if (parser->end - parser->at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char sign = *parser->at++;
        const int digit = sa_hex_digit(sign >= 'A' && sign <= 'F' ? (char)(sign - 'A' + 'a') : sign);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

static inline char *sa_write_utf8(char *to, long code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | (code >> 6));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | (code >> 12));
        *to++ = (char)(0x80 | ((code >> 6) & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | (code >> 18));
        *to++ = (char)(0x80 | ((code >> 12) & 0x3f));
        *to++ = (char)(0x80 | ((code >> 6) & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* The code point of a \u escape, after its `\u`, or of a surrogate pair; -1 if it is invalid. */
static inline long sa_pass_code(sa_parser *parser) {
    const long code = sa_pass_escape(parser);
    if (code < 0xd800 || code > 0xdfff) return code;
    if (code > 0xdbff || parser->end - parser->at < 6 || parser->at[0] != '\\' || parser->at[1] != 'u') return 0xfffd;
    sa_parser ahead = {parser->call, parser->at + 2, parser->end};
    const long low = sa_pass_escape(&ahead);
    if (low < 0xdc00 || low > 0xdfff) return low < 0 ? -1 : 0xfffd;
    parser->at = ahead.at;
    return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* Skip a string; its opening quote is next. */
static inline bool sa_pass_string(sa_parser *parser, sa_text *text) {
    static const char signs[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *start = ++parser->at;
    while (parser->at < parser->end && *parser->at != '"' && *parser->at != '\\') {
        if ((unsigned char)*parser->at++ < 0x20) return false;
    }
    if (parser->at == parser->end) return false;
    if (*parser->at == '"') {
        *text = (sa_text){start, (size_t)(parser->at++ - start)};
        return true;
    }
    const char *end = parser->at; /* of the string, to know how much room it needs */
    while (end < parser->end && *end != '"') end += *end == '\\' && end + 1 < parser->end ? 2 : 1;
    if (end >= parser->end) return false;
    char *decoded = sa_alloc(parser->call, (size_t)(end - start), 1), *to = decoded;
    if (parser->at != start) memcpy(to, start, (size_t)(parser->at - start));
    to += parser->at - start;
    while (*parser->at != '"') {
        const char sign = *parser->at++;
        if ((unsigned char)sign < 0x20) return false;
        if (sign != '\\') {
            *to++ = sign;
        } else if (*parser->at == 'u') {
            parser->at++;
            const long code = sa_pass_code(parser);
            if (code < 0) return false;
            to = sa_write_utf8(to, code);
        } else {
            const char *found = *parser->at == '\0' ? NULL : strchr(signs, *parser->at);
            if (found == NULL) return false;
            *to++ = meant[found - signs];
            parser->at++;
        }
    }
    parser->at++;
    *text = (sa_text){decoded, (size_t)(to - decoded)};
    return true;
}

static inline sa_json *sa_parse(sa_parser *parser, int depth);

/* The entries of a list, or the members of an object, after the opening bracket. */
static inline bool sa_parse_entries(sa_parser *parser, sa_json *whole, int depth) {
    const char closing = whole->type == '[' ? ']' : '}';
    if (sa_passes(parser, closing)) return true;
    sa_json **place = &whole->first;
    do {
        sa_text name = {NULL, 0};
        if (whole->type == '{') {
            sa_skip(parser);
            if (parser->at == parser->end || *parser->at != '"' || !sa_pass_string(parser, &name)) return false;
            if (!sa_passes(parser, ':')) return false;
        }
        *place = sa_parse(parser, depth + 1);
        if (*place == NULL) return false;
        (*place)->name = name;
        place = &(*place)->next;
    } while (sa_passes(parser, ','));
    return sa_passes(parser, closing);
}

/* The next value, or NULL if there is none. */
static inline sa_json *sa_parse(sa_parser *parser, int depth) {
    sa_skip(parser);
    if (parser->at == parser->end || depth > SA_DEEPEST) return NULL;
    sa_json *value = sa_alloc(parser->call, 1, sizeof *value);
    const char *start = parser->at;
    bool good = false;
    value->type = *start == '-' || (*start >= '0' && *start <= '9') ? '0' : *start;
    switch (value->type) {
        case '"': good = sa_pass_string(parser, &value->text); break;
        case '0': good = sa_pass_number(parser); break;
        case 't': good = sa_pass_word(parser, "true"); break;
        case 'f': good = sa_pass_word(parser, "false"); break;
        case 'n': good = sa_pass_word(parser, "null"); break;
        case '[':
        case '{':
            parser->at++;
            good = sa_parse_entries(parser, value, depth);
            break;
        default: break;
    }
    value->source = (sa_text){start, (size_t)(parser->at - start)};
    return good ? value : NULL;
}

/* The JSON value of a whole text, or NULL. */
static inline sa_json *sa_parse_whole(sa_call *call, const char *text, size_t length) {
    sa_parser parser = {call, text, text + length};
    if (!sa_is_utf8(text, length)) return NULL;
    sa_json *value = sa_parse(&parser, 0);
    sa_skip(&parser);
    return parser.at == parser.end ? value : NULL;
}

/* The last member of an object with this name, or NULL. */
static inline const sa_json *sa_find(const sa_json *object, const char *name) {
    const sa_json *found = NULL;
    for (const sa_json *entry = object->first; entry != NULL; entry = entry->next)
        if (sa_equal(entry->name, name)) found = entry;
    return found;
}

/* --------------------------------------------------------------------------------------------------------- forms */

static inline bool sa_is_integer(const sa_json *value) {
    if (value->type != '0') return false;
    for (size_t i = 0; i < value->source.length; i++)
        if (strchr(".eE", value->source.at[i]) != NULL) return false;
    return true;
}

static inline bool sa_is_decimal(sa_text text) {
    if (text.length > 0 && *text.at == '-') text = (sa_text){text.at + 1, text.length - 1};
    if (text.length == 0 || (*text.at == '0' && text.length > 1)) return false;
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] < '0' || text.at[i] > '9') return false;
    return true;
}

static inline bool sa_is_hex(const sa_json *value, size_t width) {
    if (value->type != '"' || value->text.length % (2 * width) != 0) return false;
    for (size_t i = 0; i < value->text.length; i++)
        if (sa_hex_digit(value->text.at[i]) < 0) return false;
    return true;
}

static inline bool sa_has_form(const sa_json *value, sa_form form);

static inline bool sa_all_have_form(const sa_json *value, sa_form form) {
    for (const sa_json *entry = value->first; entry != NULL; entry = entry->next)
        if (!sa_has_form(entry, form)) return false;
    return true;
}

static inline bool sa_has_form(const sa_json *value, sa_form form) {
    switch (form) {
        case SA_JSON: return value->type == '0' ? sa_is_integer(value) : sa_all_have_form(value, SA_JSON);
        case SA_INTEGER: return sa_is_integer(value);
        case SA_FLAG: return value->type == 't' || value->type == 'f';
        case SA_TEXT: return value->type == '"';
        case SA_DECIMAL: return value->type == '"' && sa_is_decimal(value->text);
        case SA_BYTES: return sa_is_hex(value, 1);
        case SA_VECTOR: return sa_is_hex(value, 4);
        case SA_REALS: return sa_is_hex(value, 8);
        case SA_INTEGERS: return value->type == '[' && sa_all_have_form(value, SA_INTEGER);
        case SA_BYTES_LIST: return value->type == '[' && sa_all_have_form(value, SA_BYTES);
        case SA_VECTORS: return value->type == '[' && sa_all_have_form(value, SA_VECTOR);
        case SA_REALS_LIST: return value->type == '[' && sa_all_have_form(value, SA_REALS);
        case SA_LIST: return value->type == '[';
        case SA_OBJECT: return value->type == '{';
    }
    return false;
}

/* Read a well-formed number, or the nearest one of 64 bits; return whether it has at most 64 bits. */
static inline bool sa_read_number(sa_text text, int64_t *value) {
    const bool negative = *text.at == '-';
    *value = 0; /* below zero, where there is one more number */
    for (size_t i = negative; i < text.length; i++) {
        const int digit = text.at[i] - '0';
        if (*value < (INT64_MIN + digit) / 10) {
            *value = negative ? INT64_MIN : INT64_MAX;
            return false;
        }
        *value = *value * 10 - digit;
    }
    if (negative) return true;
    const bool fits = *value > INT64_MIN;
    *value = fits ? -*value : INT64_MAX;
    return fits;
}

static inline bool sa_is_long(sa_text text) { return text.length > SA_DIGITS; }

static inline bool sa_is_beyond(sa_text text) {
    int64_t value;
    return !sa_read_number(text, &value);
}

/* Whether a well-formed value, of which a handler reads the numbers, holds one of a kind. */
static inline bool sa_holds(const sa_json *value, sa_form form, bool (*is_kind)(sa_text text)) {
    if (form == SA_JSON) return false;
    if (form == SA_DECIMAL) return is_kind(value->text);
    if (value->type == '0') return sa_is_integer(value) && is_kind(value->source);
    for (const sa_json *entry = value->first; entry != NULL; entry = entry->next)
        if (sa_holds(entry, SA_INTEGER, is_kind)) return true;
    return false;
}

/* ------------------------------------------------------------------------------- what a handler reads and writes */

/* A declared member of `params` or, if it is not there, of `rand`. */
static inline const sa_json *sa_get(const sa_call *call, const char *name) {
    const sa_json *found = sa_find(call->params, name);
    if (found == NULL && call->rand != NULL) found = sa_find(call->rand, name);
    if (found == NULL) sa_stop("the operation does not declare a member", name);
    return found;
}

static inline void sa_demand(bool good, const char *what) {
    if (!good) sa_stop("another form was declared for what is read as", what);
}

static inline int64_t sa_number(sa_text text) {
    int64_t value;
    sa_read_number(text, &value);
    return value;
}

static inline int64_t sa_to_integer(const sa_json *value) {
    sa_demand(sa_has_form(value, SA_INTEGER), "an integer");
    return sa_number(value->source);
}

static inline int64_t sa_to_decimal(const sa_json *value) {
    sa_demand(sa_has_form(value, SA_DECIMAL) && !sa_is_beyond(value->text), "a decimal string of 64 bits");
    return sa_number(value->text);
}

static inline sa_bytes sa_to_bytes(sa_call *call, const sa_json *value) {
    sa_demand(sa_has_form(value, SA_BYTES), "bytes");
    const size_t length = value->text.length / 2;
    uint8_t *bytes = sa_alloc(call, length, 1);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(16 * sa_hex_digit(value->text.at[2 * i]) + sa_hex_digit(value->text.at[2 * i + 1]));
    return (sa_bytes){bytes, length};
}

static inline uint64_t sa_little_endian(const uint8_t *bytes, size_t width) {
    uint64_t value = 0;
    for (size_t i = width; i > 0; i--) value = value << 8 | bytes[i - 1];
    return value;
}

static inline sa_vector sa_to_vector(sa_call *call, const sa_json *value) {
    sa_demand(sa_has_form(value, SA_VECTOR), "a vector");
    const sa_bytes bytes = sa_to_bytes(call, value);
    uint32_t *vector = sa_alloc(call, bytes.length / 4, sizeof *vector);
    for (size_t i = 0; i < bytes.length / 4; i++) vector[i] = (uint32_t)sa_little_endian(bytes.at + 4 * i, 4);
    return (sa_vector){vector, bytes.length / 4};
}

static inline sa_reals sa_to_reals(sa_call *call, const sa_json *value) {
    sa_demand(sa_has_form(value, SA_REALS), "binary64 numbers");
    const sa_bytes bytes = sa_to_bytes(call, value);
    double *reals = sa_alloc(call, bytes.length / 8, sizeof *reals);
    for (size_t i = 0; i < bytes.length / 8; i++) {
        const uint64_t bits = sa_little_endian(bytes.at + 8 * i, 8);
        memcpy(&reals[i], &bits, sizeof bits);
    }
    return (sa_reals){reals, bytes.length / 8};
}

static inline int64_t sa_integer(const sa_call *call, const char *name) { return sa_to_integer(sa_get(call, name)); }
static inline int64_t sa_decimal(const sa_call *call, const char *name) {
    const sa_json *value = sa_get(call, name);
    sa_demand(sa_has_form(value, SA_DECIMAL), "a decimal string");
    return sa_number(value->text);
}
static inline bool sa_flag(const sa_call *call, const char *name) { return sa_get(call, name)->type == 't'; }
static inline sa_text sa_text_of(const sa_call *call, const char *name) { return sa_get(call, name)->text; }
static inline sa_bytes sa_bytes_of(sa_call *call, const char *name) { return sa_to_bytes(call, sa_get(call, name)); }
static inline sa_vector sa_vector_of(sa_call *call, const char *name) { return sa_to_vector(call, sa_get(call, name)); }
static inline sa_reals sa_reals_of(sa_call *call, const char *name) { return sa_to_reals(call, sa_get(call, name)); }

/* Write a string as JSON; if it is not UTF-8, such as a message in another encoding, bytes above 127 are replaced. */
static inline void sa_append_string(sa_buffer *buffer, const char *text, size_t length) {
    const bool good = sa_is_utf8(text, length);
    sa_append_text(buffer, "\"");
    for (size_t i = 0; i < length; i++) {
        const unsigned char sign = (unsigned char)text[i];
        if (sign < 0x20) {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)sign);
            sa_append_text(buffer, escape);
        } else if (sign == '"' || sign == '\\') {
            sa_append(buffer, (const char[]){'\\', (char)sign}, 2);
        } else {
            sa_append(buffer, sign < 0x80 || good ? &text[i] : "?", 1);
        }
    }
    sa_append_text(buffer, "\"");
}

static inline void sa_append_hex(sa_buffer *buffer, uint64_t value, size_t width) {
    char *to = sa_extend(buffer, 2 * width);
    for (size_t i = 0; i < width; i++, value >>= 8) {
        *to++ = "0123456789abcdef"[value >> 4 & 15];
        *to++ = "0123456789abcdef"[value & 15];
    }
}

/* Begin a member of the result, or, with the name NULL, an entry of an open list. */
static inline void sa_begin(sa_call *call, const char *name) {
    if (call->follows) sa_append_text(&call->result, ",");
    call->follows = true;
    if (name == NULL) return;
    sa_append_string(&call->result, name, strlen(name));
    sa_append_text(&call->result, ":");
}

static inline void sa_put_json(sa_call *call, const char *name, const sa_json *value) {
    sa_begin(call, name);
    sa_append(&call->result, value->source.at, value->source.length);
}

static inline void sa_put_integer(sa_call *call, const char *name, int64_t value) {
    char digits[24];
    sa_begin(call, name);
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    sa_append_text(&call->result, digits);
}

static inline void sa_put_text(sa_call *call, const char *name, const char *text) {
    sa_begin(call, name);
    sa_append_string(&call->result, text, strlen(text));
}

static inline void sa_put_decimal(sa_call *call, const char *name, int64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    sa_put_text(call, name, digits);
}

static inline void sa_put_bytes(sa_call *call, const char *name, const uint8_t *bytes, size_t length) {
    sa_begin(call, name);
    sa_append_text(&call->result, "\"");
    for (size_t i = 0; i < length; i++) sa_append_hex(&call->result, bytes[i], 1);
    sa_append_text(&call->result, "\"");
}

static inline void sa_put_vector(sa_call *call, const char *name, const uint32_t *elements, size_t length) {
    sa_begin(call, name);
    sa_append_text(&call->result, "\"");
    for (size_t i = 0; i < length; i++) sa_append_hex(&call->result, elements[i], 4);
    sa_append_text(&call->result, "\"");
}

static inline void sa_put_reals(sa_call *call, const char *name, const double *numbers, size_t length) {
    sa_begin(call, name);
    sa_append_text(&call->result, "\"");
    for (size_t i = 0; i < length; i++) {
        uint64_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        sa_append_hex(&call->result, bits, 8);
    }
    sa_append_text(&call->result, "\"");
}

/* Open a list or an object ("[" or "{"); write its entries; then close it ("]" or "}"). */
static inline void sa_open(sa_call *call, const char *name, const char *bracket) {
    sa_begin(call, name);
    sa_append_text(&call->result, bracket);
    call->follows = false;
}

static inline void sa_close(sa_call *call, const char *bracket) {
    sa_append_text(&call->result, bracket);
    call->follows = true;
}

/* The implementation refuses on purpose; `code` is a string literal, one of spec/adapter.md, section 5. */
static inline sa_outcome sa_reject(sa_call *call, const char *code, const char *message) {
    call->code = code;
    snprintf(call->message, sizeof call->message, "%s", message);
    return SA_REJECTED;
}

/* The implementation failed, and the adapter noticed. */
static inline sa_outcome sa_error(sa_call *call, const char *message) {
    snprintf(call->message, sizeof call->message, "%s", message);
    return SA_ERROR;
}

/* These parameters are outside the adapter's declaration. */
static inline sa_outcome sa_unsupported(sa_call *call) {
    (void)call;
    return SA_UNSUPPORTED;
}

/* ---------------------------------------------------------------------------------------------------- the adapter */

static inline sa_outcome sa_malformed(sa_call *call, const char *what, const char *message) {
    call->code = "malformed";
    snprintf(call->message, sizeof call->message, "%s%s", what, message);
    return SA_REJECTED;
}

/* Check that an object has exactly these members, each of the right form. */
static inline sa_outcome sa_check(sa_call *call, const sa_json *object, const sa_member *members) {
    for (const sa_json *entry = object->first; entry != NULL; entry = entry->next) {
        const sa_member *known = members;
        while (known->name != NULL && !sa_equal(entry->name, known->name)) known++;
        if (known->name == NULL) return sa_malformed(call, "there is a member that the operation does not have", "");
    }
    for (const sa_member *member = members; member->name != NULL; member++) {
        const sa_json *value = sa_find(object, member->name);
        if (value == NULL) return sa_malformed(call, member->name, " is missing");
        if (!sa_has_form(value, member->form)) return sa_malformed(call, member->name, " does not have its form");
        if (sa_holds(value, member->form, sa_is_long)) return sa_reject(call, "bad_param", "a number of too many digits");
        call->beyond = call->beyond || sa_holds(value, member->form, sa_is_beyond);
    }
    return SA_DONE;
}

static inline sa_outcome sa_check_rand(sa_call *call, const sa_operation *operation, const char *grade) {
    static const sa_member seed[] = {{"seed", SA_BYTES}, {NULL, SA_JSON}}, none[] = {{NULL, SA_JSON}};
    static const sa_json nothing = {.type = '{'};
    const sa_json *rand = call->rand != NULL ? call->rand : &nothing;
    if (operation->any_rand) return SA_DONE;
    if (strcmp(grade, "explicit") == 0) return sa_check(call, rand, operation->rand);
    const bool seeded = strcmp(grade, "seeded") == 0 && operation->rand[0].name != NULL;
    const sa_outcome outcome = sa_check(call, rand, seeded ? seed : none);
    if (outcome == SA_DONE && seeded && sa_find(rand, "seed")->text.length != 64)
        return sa_malformed(call, "seed", " is not 64 hex digits");
    return outcome;
}

static inline const char *sa_or(const char *text, const char *otherwise) { return text != NULL ? text : otherwise; }

/* Append JSON from the adapter's declaration. */
static inline void sa_append_json(sa_call *call, const char *name, const char *text) {
    const sa_json *value = sa_parse_whole(call, text, strlen(text));
    if (value == NULL) sa_stop("this is not JSON:", text);
    sa_put_json(call, name, value);
}

static inline sa_outcome sa_hello(sa_call *call, const sa_adapter *adapter) {
    sa_append_json(call, "protocol", "[1,0]");
    sa_open(call, "implementation", "{");
    sa_put_text(call, "name", adapter->name);
    sa_put_text(call, "version", adapter->version);
    sa_put_text(call, "language", "c");
    sa_close(call, "}");
    sa_put_text(call, "randomness", sa_or(adapter->randomness, "explicit"));
    sa_open(call, "operations", "{");
    for (const sa_operation *operation = adapter->operations; operation->name != NULL; operation++) {
        sa_open(call, operation->name, "{");
        if (operation->ranges != NULL) sa_append_json(call, "ranges", operation->ranges);
        if (operation->parameter_sets != NULL) sa_append_json(call, "parameter_sets", operation->parameter_sets);
        if (operation->parties != NULL) sa_append_json(call, "parties", operation->parties);
        if (operation->randomness != NULL) sa_put_text(call, "randomness", operation->randomness);
        if (operation->composed) sa_append_json(call, "composed", "true");
        sa_close(call, "}");
    }
    sa_close(call, "}");
    sa_append_json(call, "policy", sa_or(adapter->policy, "{}"));
    sa_append_json(call, "reject_map", sa_or(adapter->reject_map, "{}"));
    return SA_DONE;
}

static inline sa_outcome sa_answer_request(sa_call *call, const sa_adapter *adapter, const sa_json *request) {
    for (const sa_json *entry = request->first; entry != NULL; entry = entry->next)
        if (!sa_equal(entry->name, "id") && !sa_equal(entry->name, "op") && !sa_equal(entry->name, "params") &&
            !sa_equal(entry->name, "rand"))
            return sa_malformed(call, "a request has id, op, params and rand, and no other members", "");
    const sa_json *op = sa_find(request, "op");
    call->params = sa_find(request, "params");
    call->rand = sa_find(request, "rand");
    if (op == NULL || op->type != '"') return sa_malformed(call, "op", " is not a string");
    if (call->params == NULL || call->params->type != '{') return sa_malformed(call, "params", " is not an object");
    if (call->rand != NULL && call->rand->type != '{') return sa_malformed(call, "rand", " is not an object");
    if (sa_equal(op->text, "hello")) return sa_hello(call, adapter);
    const sa_operation *operation = adapter->operations;
    while (operation->name != NULL && !sa_equal(op->text, operation->name)) operation++;
    if (operation->name == NULL) return SA_UNSUPPORTED;
    sa_outcome outcome = sa_check(call, call->params, operation->params);
    const char *grade = sa_or(operation->randomness, sa_or(adapter->randomness, "explicit"));
    if (outcome == SA_DONE) outcome = sa_check_rand(call, operation, grade);
    if (outcome == SA_DONE) outcome = operation->run(call);
    const bool unread = outcome == SA_DONE && call->beyond;
    return unread ? sa_reject(call, "bad_param", "a number of more than 64 bits") : outcome;
}

/* Append the answer to a line, given without its line feed. */
static inline void sa_answer(const sa_adapter *adapter, const char *line, size_t length, sa_buffer *out) {
    sa_call call = {.blocks = NULL};
    const sa_json *request = sa_parse_whole(&call, line, length);
    const sa_json *id = request != NULL && request->type == '{' ? sa_find(request, "id") : NULL;
    sa_outcome outcome;
    sa_append_text(out, "{\"id\":");
    if (id == NULL || !sa_is_integer(id)) {
        sa_append_text(out, "null");
        outcome = sa_malformed(&call, "a request is a JSON object with an integer id", "");
    } else {
        sa_append(out, id->source.at, id->source.length);
        outcome = sa_answer_request(&call, adapter, request);
    }
    switch (outcome) {
        case SA_DONE:
            sa_append_text(out, ",\"result\":{");
            sa_append(out, call.result.at, call.result.length);
            sa_append_text(out, "}");
            break;
        case SA_REJECTED:
            sa_append_text(out, ",\"reject\":{\"code\":");
            sa_append_string(out, call.code, strlen(call.code));
            sa_append_text(out, ",\"message\":");
            sa_append_string(out, call.message, strlen(call.message));
            sa_append_text(out, "}");
            break;
        case SA_UNSUPPORTED: sa_append_text(out, ",\"unsupported\":true"); break;
        case SA_ERROR:
            sa_append_text(out, ",\"error\":{\"message\":");
            sa_append_string(out, call.message, strlen(call.message));
            sa_append_text(out, "}");
            break;
    }
    sa_append_text(out, "}\n");
    free(call.result.at);
    sa_release(&call);
}

static inline void sa_write_all(int file, const char *at, size_t length) {
    while (length > 0) {
        const ssize_t done = write(file, at, length);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) sa_stop("cannot write", "an answer");
        at += done;
        length -= (size_t)done;
    }
}

/* Answer the line collected so far, and begin the next one. */
static inline void sa_end_line(const sa_adapter *adapter, int answers, sa_buffer *line, bool *too_long) {
    sa_buffer out = {NULL, 0, 0};
    sa_answer(adapter, line->at != NULL ? line->at : "", *too_long ? 0 : line->length, &out);
    sa_write_all(answers, out.at, out.length);
    free(out.at);
    line->length = 0;
    *too_long = false;
}

/* Answer requests until the end of input. Only answers go to the process's standard output. */
static inline int sa_run(const sa_adapter *adapter) {
    static char chunk[1 << 16];
    sa_buffer line = {NULL, 0, 0};
    bool too_long = false;
    const int answers = dup(1);
    if (answers < 0 || dup2(2, 1) < 0) sa_stop("cannot use", "standard output");
    for (;;) {
        const ssize_t count = read(0, chunk, sizeof chunk);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        for (const char *at = chunk, *end = chunk + count; at < end;) {
            const char *feed = memchr(at, '\n', (size_t)(end - at));
            const size_t length = (size_t)((feed != NULL ? feed : end) - at);
            too_long = too_long || length >= SA_MAX_LINE - line.length;
            if (!too_long) sa_append(&line, at, length);
            at += length + (feed != NULL);
            if (feed != NULL) sa_end_line(adapter, answers, &line, &too_long);
        }
    }
    if (line.length > 0 || too_long) sa_end_line(adapter, answers, &line, &too_long);
    free(line.at);
    close(answers);
    return 0;
}

#endif
