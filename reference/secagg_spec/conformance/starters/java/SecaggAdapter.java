/*
 * SecaggAdapter.java: an adapter for secagg-spec, without its operations. Copy it unchanged; Adapter.java is yours.
 *
 * Adapter protocol 1.0 (spec/adapter.md of secagg-spec; clause ids in brackets). Java 17, no dependencies.
 *
 * A handler receives the members of params by name, in the Java types of their forms, and the sampled values as
 * p.of("rand"), an Obj. It returns the members of the result: a long[] is a vector of elements, a double[] or float[] a
 * vector of real numbers, and a byte[] bytes. It throws Reject for a deliberate refusal, or Unsupported; any other
 * exception is answered as a failure. Text printed to System.out goes to standard error.
 *
 * Part of secagg-spec. SPDX-License-Identifier: Apache-2.0
 */

import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class SecaggAdapter {
    public static final int MAX_LINE = 67_108_864; // bytes, including the line feed [ADP-02]
    private static final int DIGITS = 40; // the most of an integer that reaches a handler

    /** Whether the request holds an integer of more than 64 bits: its handler reads the nearest, and gives no result. */
    private static boolean beyond;
    public static final int DEEPEST = 100; // nesting of lists and objects

    private static final Set<String> CODES = Set.of(
        "malformed", "bad_param", "out_of_range", "noncanonical", "length_mismatch", "duplicate_id", "unknown_peer",
        "wrong_phase", "replay", "inconsistent_sets", "bad_share", "below_threshold", "bad_signature",
        "bad_ciphertext", "weak_key", "other", "inexpressible");

    /** A deliberate refusal, with a code of section 5. */
    @SuppressWarnings("serial")
    public static final class Reject extends RuntimeException {
        private final String code;
        private final List<?> blamed;

        public Reject(String code, String message) {
            this(code, message, List.of());
        }

        /** `blamed` are the parties that the refusal of a step blames. */
        public Reject(String code, String message, List<?> blamed) {
            super(message);
            if (!CODES.contains(code)) {
                throw new IllegalArgumentException(code + " is no reject code"); // [ADP-09]
            }
            this.code = code;
            this.blamed = blamed;
        }
    }

    /** The adapter does not support these parameters. */
    @SuppressWarnings("serial")
    public static final class Unsupported extends RuntimeException {}

    /** A JSON object. */
    @SuppressWarnings("serial")
    public static final class Obj extends LinkedHashMap<String, Object> {
        /** Returns a member, cast to the requested type. */
        @SuppressWarnings("unchecked")
        public <T> T of(String name) {
            return (T) get(name);
        }
    }

    /** Returns an object from alternating names and values. */
    public static Obj object(Object... namesAndValues) {
        Obj made = new Obj();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            made.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return made;
    }

    // Forms (section 3)

    /** Converts a JSON value to a Java value, or refuses it. */
    public interface Form {
        Object read(Object value);
    }

    public static final Form TEXT = value -> typed(String.class, value, "a string");
    public static final Form FLAG = value -> typed(Boolean.class, value, "true or false");
    public static final Form OBJECT = value -> typed(Obj.class, value, "an object");
    public static final Form INTEGER = value -> inRange(isInteger(value), String.valueOf(value), "a JSON integer");
    public static final Form DECIMAL = value ->
        inRange(value instanceof String text && Json.INTEGER.matcher(text).matches(), value, "a decimal string");
    public static final Form BYTES = value -> unhex(value, 1).array();
    public static final Form VECTOR = value -> {
        ByteBuffer bytes = unhex(value, 4);
        long[] vector = new long[bytes.capacity() / 4];
        Arrays.setAll(vector, i -> Integer.toUnsignedLong(bytes.getInt(4 * i)));
        return vector;
    };
    public static final Form REALS = value -> {
        ByteBuffer bytes = unhex(value, 8);
        double[] reals = new double[bytes.capacity() / 8];
        Arrays.setAll(reals, i -> bytes.getDouble(8 * i));
        return reals;
    };
    public static final Form SEED = value -> {
        if (typed(String.class, value, "a string").length() != 64) {
            throw malformed("not 64 hex digits");
        }
        return unhex(value, 1).array();
    };
    /** Any value: null, Boolean, Long, String, List or Obj. */
    public static final Form JSON = SecaggAdapter::withoutFractions;

    /** A List of any length or, with several forms, of exactly one entry for each form. */
    public static Form listOf(Form... forms) {
        return value -> {
            List<?> list = typed(List.class, value, "a list");
            if (forms.length > 1 && forms.length != list.size()) {
                throw malformed("not a list of " + forms.length);
            }
            List<Object> read = new ArrayList<>(list.size());
            for (Object entry : list) {
                read.add(forms[read.size() % forms.length].read(entry));
            }
            return read;
        };
    }

    /** An Obj with exactly these members. */
    public static Form record(Map<String, Form> members) {
        return value -> {
            Obj given = typed(Obj.class, value, "an object");
            for (String name : given.keySet()) {
                if (!members.containsKey(name)) {
                    throw malformed("there is no member " + name); // [ADP-05]
                }
            }
            for (String name : members.keySet()) {
                if (!given.containsKey(name)) {
                    throw malformed("the member " + name + " is missing");
                }
            }
            given.replaceAll((name, entry) -> within(name, members.get(name), entry));
            return given;
        };
    }

    private static Object within(String name, Form form, Object value) {
        try {
            return form.read(value);
        } catch (Reject reject) {
            throw new Reject(reject.code, name + ": " + reject.getMessage());
        }
    }

    private static Reject malformed(String message) {
        return new Reject("malformed", message);
    }

    private static <T> T typed(Class<T> type, Object value, String what) {
        if (!type.isInstance(value)) {
            throw malformed("not " + what); // [ADP-12]
        }
        return type.cast(value);
    }

    private static boolean isInteger(Object value) {
        return value instanceof Long || value instanceof Json.Other number && number.isInteger();
    }

    private static Object inRange(boolean hasForm, Object digits, String what) {
        if (!hasForm) {
            throw malformed("not " + what); // [ADP-12], [ADP-14]
        }
        String written = (String) digits;
        if (written.length() > DIGITS) {
            throw new Reject("bad_param", "an integer of more than " + DIGITS + " digits");
        }
        try {
            return Long.valueOf(written);
        } catch (NumberFormatException tooLong) {
            beyond = true;
            return written.startsWith("-") ? Long.MIN_VALUE : Long.MAX_VALUE;
        }
    }

    private static ByteBuffer unhex(Object value, int width) {
        String text = typed(String.class, value, "a string");
        byte[] bytes = new byte[text.length() / 2];
        boolean digits = text.length() % (2 * width) == 0;
        for (int i = 0; digits && i < bytes.length; i++) {
            int high = "0123456789abcdef".indexOf(text.charAt(2 * i));
            int low = "0123456789abcdef".indexOf(text.charAt(2 * i + 1));
            bytes[i] = (byte) (16 * high + low);
            digits = high >= 0 && low >= 0;
        }
        if (!digits) {
            throw malformed("not lowercase hex digits, " + 2 * width + " for each entry"); // [ADP-13]
        }
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static Object withoutFractions(Object value) {
        if (value instanceof Json.Other number && !number.isInteger()) {
            throw malformed("a number with a fraction or an exponent");
        } else if (value instanceof List<?> list) {
            list.forEach(SecaggAdapter::withoutFractions);
        } else if (value instanceof Obj object) {
            object.values().forEach(SecaggAdapter::withoutFractions);
        }
        return value;
    }

    // The adapter

    /** Returns the members of the result. */
    public interface Handler {
        Obj answer(Obj p) throws Exception;
    }

    /** A declared operation. */
    public static final class Operation {
        private final Form params;
        private final Handler handler;
        private final Obj declared = new Obj();
        private Form rand;

        private Operation(Map<String, Form> members, Handler handler) {
            this.params = record(members);
            this.handler = handler;
        }

        /** Declares that it draws, and the form of rand in the grade "explicit": JSON if names depend on params. */
        public Operation samples(Form rand) {
            this.rand = rand;
            return this;
        }

        /** Adds "ranges", "parameter_sets", "composed" and so on to the operation's entry in hello. */
        public Operation declare(String name, Object value) {
            declared.put(name, value);
            return this;
        }
    }

    /**
     * The adapter's declaration (section 2). If random draws cannot be supplied, set "randomness" to "seeded" or
     * "none"; add "policy" and "reject_map" as needed.
     */
    protected final Obj hello;
    private final Map<String, Operation> operations = new LinkedHashMap<>();

    protected SecaggAdapter(String name, String version) {
        hello = object(
            "protocol", List.of(1, 0),
            "implementation", object("name", name, "version", version, "language", "java"),
            "randomness", "explicit",
            "operations", new Obj());
    }

    /** Declares an operation with the members of its params, and returns it for further declarations. */
    protected final Operation operation(String name, Map<String, Form> members, Handler handler) {
        Operation operation = new Operation(members, handler);
        operations.put(name, operation);
        hello.<Obj>of("operations").put(name, operation.declared);
        return operation;
    }

    /** Answers requests until the end of input. */
    protected final void run() throws IOException {
        System.setOut(System.err);
        Lines lines = new Lines(new FileInputStream(FileDescriptor.in));
        try (OutputStream out = new FileOutputStream(FileDescriptor.out)) {
            for (byte[] line = lines.next(); line != null; line = lines.next()) {
                out.write(answer(line));
            }
        }
    }

    private byte[] answer(byte[] line) {
        Object id = null;
        try {
            if (!(Json.parse(line) instanceof Obj request) || !isInteger(request.get("id"))) { // [ADP-10]
                throw malformed("a request is one JSON object in UTF-8, with an integer id, in at most 64 MiB");
            }
            id = request.get("id");
            return written(id, "result", result(request));
        } catch (Unsupported unsupported) {
            return written(id, "unsupported", true);
        } catch (Reject reject) {
            Obj refusal = object("code", reject.code, "message", reject.getMessage());
            if (!reject.blamed.isEmpty()) {
                refusal.put("blamed", reject.blamed);
            }
            return written(id, "reject", refusal);
        } catch (Throwable failure) {
            String trace = List.of(failure.getStackTrace()).toString();
            return written(id, "error", object("message", failure.toString(), "trace", trace));
        }
    }

    private Obj result(Obj request) throws Exception {
        boolean known = Set.of("id", "op", "params", "rand").containsAll(request.keySet());
        Object rand = request.getOrDefault("rand", new Obj());
        if (!known || !(request.get("op") instanceof String op && request.get("params") instanceof Obj params)
                || !(rand instanceof Obj)) {
            throw malformed("a request has op, a string, params, an object, and perhaps rand, an object"); // [ADP-11]
        }
        if (op.equals("hello")) {
            return hello; // [ADP-07]
        }
        Operation operation = operations.get(op);
        if (operation == null) {
            throw new Unsupported(); // [ADP-04]
        }
        beyond = false;
        Obj p = (Obj) operation.params.read(params);
        p.put("rand", within("rand", sampled(operation), rand));
        Obj result = operation.handler.answer(p);
        if (beyond) {
            throw new Reject("bad_param", "an integer of more than 64 bits");
        }
        return Objects.requireNonNull(result, "the handler returned null");
    }

    private Form sampled(Operation operation) {
        Object grade = operation.declared.getOrDefault("randomness", hello.get("randomness"));
        if (operation.rand != null && grade.equals("explicit")) {
            return operation.rand;
        }
        return record(operation.rand != null && grade.equals("seeded") ? Map.of("seed", SEED) : Map.of());
    }

    private static byte[] written(Object id, String member, Object content) {
        StringBuilder out = new StringBuilder();
        Json.write(object("id", id, member, content), out);
        byte[] line = out.append('\n').toString().getBytes(StandardCharsets.UTF_8);
        if (line.length > MAX_LINE) {
            throw new Unsupported();
        }
        return line;
    }

    // Lines (section 1)

    private static final class Lines {
        private final InputStream in;
        private final byte[] chunk = new byte[1 << 16];
        private int from;
        private int to;

        Lines(InputStream in) {
            this.in = in;
        }

        /** Returns the next line, or null. A line that is too long becomes empty, since an empty line is no request. */
        byte[] next() throws IOException {
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            boolean tooLong = false;
            while (from < to || fill()) {
                int end = from;
                while (end < to && chunk[end] != '\n') {
                    end++;
                }
                tooLong |= line.size() + end - from >= MAX_LINE;
                if (tooLong) {
                    line.reset();
                } else {
                    line.write(chunk, from, end - from);
                }
                from = end + 1;
                if (end < to) {
                    return line.toByteArray();
                }
            }
            return line.size() > 0 ? line.toByteArray() : null;
        }

        private boolean fill() throws IOException {
            from = 0;
            to = in.read(chunk);
            return to > 0;
        }
    }

    // JSON

    /** Reads and writes JSON; invalid JSON, or JSON nested too deep, is an IllegalArgumentException. */
    private static final class Json {
        /** A number that is not a 64-bit integer, as written. */
        record Other(String written) {
            boolean isInteger() {
                return INTEGER.matcher(written).matches();
            }

            @Override
            public String toString() {
                return written;
            }
        }

        static final Pattern INTEGER = Pattern.compile("-?(0|[1-9][0-9]*)");
        private static final Pattern NUMBER = Pattern.compile(INTEGER + "(\\.[0-9]+)?([eE][+-]?[0-9]+)?");
        private static final String ESCAPES = "\"\\/bfnrt";
        private static final String ESCAPED = "\"\\/\b\f\n\r\t";

        private final String text;
        private final Matcher number;
        private int at;

        private Json(String text) {
            this.text = text;
            this.number = NUMBER.matcher(text);
        }

        /** Returns the JSON value of a line, or null if the line is not a single value in UTF-8. */
        static Object parse(byte[] line) {
            try {
                Json reader = new Json(new String(line, StandardCharsets.UTF_8));
                boolean isUtf8 = Arrays.equals(line, reader.text.getBytes(StandardCharsets.UTF_8));
                Object value = reader.value(0);
                return isUtf8 && reader.peek() == '\0' && reader.at == reader.text.length() ? value : null;
            } catch (IllegalArgumentException | IndexOutOfBoundsException notJson) {
                return null;
            }
        }

        private Object value(int depth) {
            return switch (peek()) {
                case '{' -> {
                    Obj object = new Obj();
                    entries(depth, '}', () -> {
                        peek();
                        String name = string();
                        peek();
                        expect(":");
                        object.put(name, value(depth + 1));
                    });
                    yield object;
                }
                case '[' -> {
                    List<Object> list = new ArrayList<>();
                    entries(depth, ']', () -> list.add(value(depth + 1)));
                    yield list;
                }
                case '"' -> string();
                case 'n' -> word("null", null);
                case 't' -> word("true", true);
                case 'f' -> word("false", false);
                default -> number();
            };
        }

        private void entries(int depth, char close, Runnable entry) {
            require(depth < DEEPEST);
            at++;
            if (peek() != close) {
                entry.run();
            }
            while (peek() == ',') {
                at++;
                entry.run();
            }
            expect(String.valueOf(close));
        }

        private String string() {
            expect("\"");
            StringBuilder escaped = null;
            int start = at;
            for (;; at++) {
                char c = text.charAt(at);
                require(c >= ' ');
                if (c == '"' && escaped == null) {
                    return text.substring(start, at++);
                } else if (c == '"') {
                    return escaped.append(text, start, at++).toString();
                } else if (c == '\\') {
                    escaped = escaped == null ? new StringBuilder() : escaped;
                    escaped.append(text, start, at++);
                    escape(escaped);
                    start = at + 1;
                }
            }
        }

        /** Reads an escape after its backslash, up to its last character. A lone surrogate is refused. */
        private void escape(StringBuilder out) {
            if (text.charAt(at) != 'u') {
                out.append(ESCAPED.charAt(ESCAPES.indexOf(text.charAt(at))));
                return;
            }
            char unit = unit();
            out.append(unit);
            if (Character.isHighSurrogate(unit)) {
                at++;
                expect("\\");
                char low = unit();
                require(Character.isLowSurrogate(low));
                out.append(low);
            } else {
                require(!Character.isLowSurrogate(unit));
            }
        }

        private char unit() {
            require(text.charAt(at) == 'u');
            at += 4;
            return (char) HexFormat.fromHexDigits(text, at - 3, at + 1);
        }

        private Object number() {
            require(number.region(at, text.length()).lookingAt());
            at = number.end();
            String written = number.group();
            try {
                return Long.valueOf(written);
            } catch (NumberFormatException noLong) {
                return new Other(written);
            }
        }

        private Object word(String word, Object value) {
            expect(word);
            return value;
        }

        private void expect(String word) {
            require(text.startsWith(word, at));
            at += word.length();
        }

        private static void require(boolean holds) {
            if (!holds) {
                throw new IllegalArgumentException("not JSON");
            }
        }

        /** Skips spaces, and returns the next character, or NUL at the end. */
        private char peek() {
            while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            return at < text.length() ? text.charAt(at) : '\0';
        }

        static void write(Object value, StringBuilder out) {
            if (value instanceof String text) {
                quote(text, out);
            } else if (value instanceof Map<?, ?> object) {
                String comma = "{";
                for (Map.Entry<?, ?> member : object.entrySet()) {
                    quote((String) member.getKey(), out.append(comma));
                    write(member.getValue(), out.append(':'));
                    comma = ",";
                }
                out.append(object.isEmpty() ? "{}" : "}");
            } else if (value instanceof List<?> list) {
                String comma = "[";
                for (Object entry : list) {
                    write(entry, out.append(comma));
                    comma = ",";
                }
                out.append(list.isEmpty() ? "[]" : "]");
            } else if (value == null || value instanceof Boolean || value instanceof Integer || isInteger(value)) {
                out.append(value);
            } else {
                out.append('"').append(HexFormat.of().formatHex(bytes(value))).append('"');
            }
        }

        private static byte[] bytes(Object value) {
            if (value instanceof byte[] bytes) {
                return bytes;
            }
            int length = java.lang.reflect.Array.getLength(value);
            ByteBuffer bytes = ByteBuffer.allocate(8 * length).order(ByteOrder.LITTLE_ENDIAN);
            if (value instanceof long[] vector) {
                Arrays.stream(vector).forEach(element -> bytes.putInt(element(element)));
            } else if (value instanceof double[] reals) {
                Arrays.stream(reals).forEach(bytes::putDouble);
            } else if (value instanceof float[] reals) {
                for (float real : reals) {
                    bytes.putFloat(real);
                }
            } else {
                throw new IllegalArgumentException(value.getClass() + " has no form in a result");
            }
            return Arrays.copyOf(bytes.array(), bytes.position());
        }

        private static int element(long value) {
            if (value < 0 || value > 0xffffffffL) {
                throw new IllegalArgumentException("an element of a result is " + value + ", not from 0 to 2^32 - 1");
            }
            return (int) value;
        }

        private static void quote(String text, StringBuilder out) {
            out.append('"');
            for (int i = 0; i < text.length(); i++) {
                char c = text.charAt(i);
                if (c < ' ') {
                    out.append("\\u00").append(HexFormat.of().toHexDigits((byte) c));
                } else {
                    out.append(c == '"' || c == '\\' ? "\\" : "").append(c);
                }
            }
            out.append('"');
        }
    }
}
