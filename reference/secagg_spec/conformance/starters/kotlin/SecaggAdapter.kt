/*
 * SecaggAdapter.kt: an adapter for secagg-spec, without its operations. Copy it unchanged; Adapter.kt is yours.
 *
 * Adapter protocol 1.0 (spec/adapter.md of secagg-spec; clause ids in brackets). Kotlin 1.3 on Java 8, or newer; no
 * dependencies.
 *
 * A handler receives the members of params by name, in the Kotlin types of their forms, and the sampled values as
 * p.of("rand"), an Obj. It returns the members of the result: a LongArray is a vector of elements, a DoubleArray or
 * FloatArray a vector of real numbers, and a ByteArray bytes. It throws Reject for a deliberate refusal, or
 * Unsupported; any other exception is answered as a failure. Printed text goes to standard error.
 *
 * Part of secagg-spec. SPDX-License-Identifier: Apache-2.0
 */

import java.io.ByteArrayOutputStream
import java.io.FileDescriptor
import java.io.FileInputStream
import java.io.FileOutputStream
import java.io.InputStream
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.util.regex.Pattern

const val MAX_LINE = 67_108_864 // bytes, including the line feed [ADP-02]
const val DEEPEST = 100 // nesting of lists and objects

private val CODES = setOf(
    "malformed", "bad_param", "out_of_range", "noncanonical", "length_mismatch", "duplicate_id", "unknown_peer",
    "wrong_phase", "replay", "inconsistent_sets", "bad_share", "below_threshold", "bad_signature", "bad_ciphertext",
    "weak_key", "other", "inexpressible"
)

/** A deliberate refusal, with a code of section 5. `blamed` are the parties that the refusal of a step blames. */
class Reject(val code: String, message: String, val blamed: List<Any> = emptyList()) : RuntimeException(message) {
    init {
        require(code in CODES) { "$code is no reject code: they are ${CODES.joinToString()}" } // [ADP-09]
    }
}

/** The adapter does not support these parameters. */
class Unsupported : RuntimeException()

/** A JSON object. */
class Obj : LinkedHashMap<String, Any?>() {
    /** Returns a member, cast to the requested type. */
    @Suppress("UNCHECKED_CAST")
    fun <T> of(name: String): T {
        require(name in this) { "there is no member $name: there are ${keys.joinToString()}" }
        return get(name) as T
    }
}

// Forms (section 3)

/** Converts a JSON value to a Kotlin value, or refuses it. */
typealias Form = (Any?) -> Any?

val TEXT: Form = { typed<String>(it, "a string") }
val FLAG: Form = { typed<Boolean>(it, "true or false") }
val OBJECT: Form = { typed<Obj>(it, "an object") }
val INTEGER: Form = { if (isInteger(it)) long(it.toString()) else malformed("not a JSON integer") } // [ADP-12]
val DECIMAL: Form = {
    if (it is String && DIGITS.matcher(it).matches()) long(it) else malformed("not a decimal string") // [ADP-14]
}
val BYTES: Form = { unhex(it, 1).array() }
val VECTOR: Form = { value ->
    val bytes = unhex(value, 4)
    LongArray(bytes.capacity() / 4) { bytes.getInt(4 * it).toLong() and 0xffffffffL }
}
val REALS: Form = { value ->
    val bytes = unhex(value, 8)
    DoubleArray(bytes.capacity() / 8) { bytes.getDouble(8 * it) }
}
val SEED: Form = { if (typed<String>(it, "a string").length == 64) BYTES(it) else malformed("not 64 hex digits") }

/** Any value: null, Boolean, Long, String, List or Obj. */
val JSON: Form = { it.also(::refuseFractions) }

/** A List of any length or, with several forms, of exactly one entry for each form. */
fun list(vararg forms: Form): Form = { value ->
    val list = typed<List<*>>(value, "a list")
    if (forms.size > 1 && forms.size != list.size) malformed("not a list of ${forms.size}")
    list.mapIndexed { i, entry -> forms[i % forms.size](entry) }
}

/** An Obj with exactly these members. */
fun record(vararg members: Pair<String, Form>): Form = { value ->
    val forms = members.toMap()
    val given = typed<Obj>(value, "an object")
    given.keys.find { it !in forms }?.let { malformed("there is no member $it") } // [ADP-05]
    forms.keys.find { it !in given }?.let { malformed("the member $it is missing") }
    given.replaceAll { name, entry -> within(name, forms.getValue(name), entry) }
    given
}

private fun within(name: String, form: Form, value: Any?): Any? = try {
    form(value)
} catch (refusal: Reject) {
    throw Reject(refusal.code, "$name: ${refusal.message}")
}

private fun malformed(message: String): Nothing = throw Reject("malformed", message)

private inline fun <reified T> typed(value: Any?, what: String): T = value as? T ?: malformed("not $what") // [ADP-12]

private val DIGITS = Pattern.compile("-?(0|[1-9][0-9]*)")

private fun isInteger(value: Any?) = value is Long || value is Other && DIGITS.matcher(value.written).matches()

/** The most digits of an integer that reaches a handler. */
private const val LONGEST = 40

/** Whether the request holds an integer of more than 64 bits: its handler reads the nearest Long, and gives no result. */
private var beyond = false

private fun long(digits: String): Long {
    if (digits.length > LONGEST) throw Reject("bad_param", "an integer of more than $LONGEST digits")
    digits.toLongOrNull()?.let { return it }
    beyond = true
    return if (digits.startsWith("-")) Long.MIN_VALUE else Long.MAX_VALUE
}

private fun unhex(value: Any?, width: Int): ByteBuffer {
    val text = typed<String>(value, "a string")
    if (text.length % (2 * width) != 0 || text.any { it !in HEX }) {
        malformed("not lowercase hex digits, ${2 * width} for each entry") // [ADP-13]
    }
    val bytes = ByteArray(text.length / 2) { (16 * HEX.indexOf(text[2 * it]) + HEX.indexOf(text[2 * it + 1])).toByte() }
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
}

private fun refuseFractions(value: Any?) {
    when (value) {
        is Other -> if (!isInteger(value)) malformed("a number with a fraction or an exponent")
        is List<*> -> value.forEach(::refuseFractions)
        is Obj -> value.values.forEach(::refuseFractions)
    }
}

// The adapter

/** A declared operation. */
class Operation internal constructor(internal val params: Form, internal val handler: (Obj) -> Map<String, Any?>) {
    internal val declared = Obj()
    internal var rand: Form? = null

    /** Declares that it draws, and the form of rand in the grade "explicit": JSON if names depend on params. */
    fun samples(rand: Form): Operation = apply { this.rand = rand }

    /** Adds "ranges", "parameter_sets", "composed" and so on to the operation's entry in hello. */
    fun declare(name: String, value: Any?): Operation = apply { declared[name] = value }
}

class SecaggAdapter(name: String, version: String) {
    private val operations = LinkedHashMap<String, Operation>()

    /**
     * The adapter's declaration (section 2). If random draws cannot be supplied, set "randomness" to "seeded" or
     * "none"; add "policy" and "reject_map" as needed.
     */
    val hello = mutableMapOf<String, Any?>(
        "protocol" to listOf(1, 0),
        "implementation" to mapOf("name" to name, "version" to version, "language" to "kotlin"),
        "randomness" to "explicit"
    )

    /** Declares an operation with the members of its params, and returns it for further declarations. */
    fun operation(name: String, vararg members: Pair<String, Form>, handler: (Obj) -> Map<String, Any?>): Operation =
        Operation(record(*members), handler).also { operations[name] = it }

    /** Answers requests until the end of input. */
    fun run() {
        System.setOut(System.err)
        val lines = Lines(FileInputStream(FileDescriptor.`in`))
        FileOutputStream(FileDescriptor.out).use { out ->
            generateSequence { lines.next() }.forEach { out.write(answer(it)) }
        }
    }

    private fun answer(line: ByteArray): ByteArray {
        var id: Any? = null
        return try {
            val request = Json.parse(line)
            if (request !is Obj || !isInteger(request["id"])) { // [ADP-10]
                malformed("a request is one JSON object in UTF-8, with an integer id, in at most 64 MiB")
            }
            id = request["id"]
            written(id, "result", result(request))
        } catch (unsupported: Unsupported) {
            written(id, "unsupported", true)
        } catch (refusal: Reject) {
            val blamed = if (refusal.blamed.isEmpty()) emptyMap() else mapOf("blamed" to refusal.blamed)
            written(id, "reject", mapOf("code" to refusal.code, "message" to refusal.message) + blamed)
        } catch (failure: Throwable) {
            val trace = failure.stackTrace.joinToString()
            written(id, "error", mapOf("message" to failure.toString(), "trace" to trace))
        }
    }

    private fun result(request: Obj): Map<String, Any?> {
        val op = request["op"]
        val params = request["params"]
        val rand = request.getOrDefault("rand", Obj())
        if (request.keys.any { it !in MEMBERS } || op !is String || params !is Obj || rand !is Obj) {
            malformed("a request has op, a string, params, an object, and perhaps rand, an object") // [ADP-11]
        }
        if (op == "hello") return hello + ("operations" to operations.mapValues { it.value.declared }) // [ADP-07]
        val operation = operations[op] ?: throw Unsupported() // [ADP-04]
        beyond = false
        operation.params(params)
        params["rand"] = within("rand", sampled(operation), rand)
        val result = operation.handler(params)
        return if (beyond) throw Reject("bad_param", "an integer of more than 64 bits") else result
    }

    private fun sampled(operation: Operation): Form {
        val form = operation.rand ?: return record()
        return when (operation.declared["randomness"] ?: hello["randomness"]) {
            "explicit" -> form
            "seeded" -> record("seed" to SEED)
            else -> record()
        }
    }

    private fun written(id: Any?, member: String, content: Any?): ByteArray {
        val line = (Json.text(mapOf("id" to id, member to content)) + "\n").toByteArray()
        return if (line.size <= MAX_LINE) line else throw Unsupported()
    }
}

private val MEMBERS = setOf("id", "op", "params", "rand")

// Lines (section 1)

private class Lines(private val input: InputStream) {
    private val chunk = ByteArray(1 shl 16)
    private var from = 0
    private var to = 0

    /** Returns the next line, or null. A line that is too long becomes empty, since an empty line is no request. */
    fun next(): ByteArray? {
        val line = ByteArrayOutputStream()
        var length = 0L
        while (from < to || fill()) {
            val start = from
            while (from < to && chunk[from] != LINE_FEED) from++
            length += from - start
            if (length < MAX_LINE) line.write(chunk, start, from - start) else line.reset()
            if (from++ < to) return line.toByteArray()
        }
        return if (length > 0) line.toByteArray() else null
    }

    private fun fill(): Boolean {
        from = 0
        to = input.read(chunk)
        return to > 0
    }
}

private const val LINE_FEED: Byte = 10

// JSON

/** A number that is not a 64-bit integer, as written. */
private class Other(val written: String) {
    override fun toString() = written
}

private val NUMBER = Pattern.compile("$DIGITS(\\.[0-9]+)?([eE][+-]?[0-9]+)?")
private val UNIT = Regex("[0-9a-fA-F]{4}")
private const val HEX = "0123456789abcdef"
private const val ESCAPES = "\"\\/bfnrt"
private const val ESCAPED = "\"\\/\b\u000c\n\r\t"

/** Reads and writes JSON; what is not JSON, or nested too deep, fails as `require` or an index out of range does. */
private class Json(private val text: String) {
    private val number = NUMBER.matcher(text)
    private var at = 0

    private fun value(depth: Int): Any? = when (peek()) {
        '{' -> Obj().also { members ->
            entries(depth, '}') {
                peek()
                val name = string()
                peek()
                expect(":")
                members[name] = value(depth + 1)
            }
        }
        '[' -> ArrayList<Any?>().also { list -> entries(depth, ']') { list.add(value(depth + 1)) } }
        '"' -> string()
        'n' -> null.also { expect("null") }
        't' -> true.also { expect("true") }
        'f' -> false.also { expect("false") }
        else -> number()
    }

    private fun entries(depth: Int, close: Char, entry: () -> Unit) {
        require(depth < DEEPEST)
        at++
        if (peek() != close) entry()
        while (peek() == ',') {
            at++
            entry()
        }
        expect(close.toString())
    }

    private fun string(): String {
        expect("\"")
        val out = StringBuilder()
        while (text[at] != '"') {
            val char = text[at++]
            require(char >= ' ')
            if (char == '\\') escape(out) else out.append(char)
        }
        at++
        return out.toString()
    }

    /** Reads an escape after its backslash. A lone surrogate is refused. */
    private fun escape(out: StringBuilder) {
        val char = text[at++]
        if (char != 'u') {
            out.append(ESCAPED[ESCAPES.indexOf(char)])
            return
        }
        val unit = unit()
        require(!unit.isLowSurrogate())
        out.append(unit)
        if (unit.isHighSurrogate()) {
            expect("\\u")
            out.append(unit().also { require(it.isLowSurrogate()) })
        }
    }

    private fun unit(): Char {
        at += 4
        val digits = text.substring(at - 4, at)
        require(UNIT.matches(digits))
        return digits.toInt(16).toChar()
    }

    private fun number(): Any {
        require(number.region(at, text.length).lookingAt())
        at = number.end()
        return number.group().toLongOrNull() ?: Other(number.group())
    }

    private fun expect(word: String) {
        require(text.startsWith(word, at))
        at += word.length
    }

    /** Skips spaces, and returns the next character, or NUL at the end. */
    private fun peek(): Char {
        while (at < text.length && text[at] in " \t\r\n") at++
        return if (at < text.length) text[at] else '\u0000'
    }

    companion object {
        /** Returns the JSON value of a line, or null if the line is not a single value in UTF-8. */
        fun parse(line: ByteArray): Any? = try {
            val reader = Json(String(line, Charsets.UTF_8))
            require(reader.text.toByteArray().contentEquals(line))
            reader.value(0).also { require(reader.peek() == '\u0000' && reader.at == reader.text.length) }
        } catch (notJson: IllegalArgumentException) {
            null
        } catch (notJson: IndexOutOfBoundsException) {
            null
        }

        fun text(value: Any?): String = StringBuilder().also { write(value, it) }.toString()

        private fun write(value: Any?, out: StringBuilder) {
            when {
                value is String -> quote(value, out)
                value is Map<*, *> -> joined(value.entries, "{}", out) { (name, member) ->
                    quote(name as String, out)
                    write(member, out.append(':'))
                }
                value is List<*> -> joined(value, "[]", out) { write(it, out) }
                value == null || value is Boolean || value is Int || isInteger(value) -> out.append(value)
                else -> quote(hex(bytes(value)), out)
            }
        }

        private fun <T> joined(entries: Iterable<T>, brackets: String, out: StringBuilder, entry: (T) -> Unit) {
            out.append(brackets[0])
            entries.forEachIndexed { i, it ->
                if (i > 0) out.append(',')
                entry(it)
            }
            out.append(brackets[1])
        }

        private fun quote(text: String, out: StringBuilder) {
            out.append('"')
            for (char in text) {
                when {
                    char < ' ' -> out.append("\\u%04x".format(char - '\u0000'))
                    char == '"' || char == '\\' -> out.append('\\').append(char)
                    else -> out.append(char)
                }
            }
            out.append('"')
        }

        private fun hex(bytes: ByteArray): String = StringBuilder(2 * bytes.size).also { out ->
            for (byte in bytes) out.append(HEX[byte.toInt() shr 4 and 15]).append(HEX[byte.toInt() and 15])
        }.toString()

        private fun bytes(value: Any): ByteArray = when (value) {
            is ByteArray -> value
            is LongArray -> packed(value.size, 4) { putInt(element(value[it])) }
            is DoubleArray -> packed(value.size, 8) { putDouble(value[it]) }
            is FloatArray -> packed(value.size, 4) { putFloat(value[it]) }
            else -> throw IllegalArgumentException(
                "a result holds LongArray, DoubleArray, FloatArray, ByteArray, String, Long, Int, Boolean, List and " +
                    "Map, not ${value.javaClass.simpleName}"
            )
        }

        private fun packed(size: Int, width: Int, append: ByteBuffer.(Int) -> Unit): ByteArray {
            val bytes = ByteBuffer.allocate(size * width).order(ByteOrder.LITTLE_ENDIAN)
            for (i in 0 until size) bytes.append(i)
            return bytes.array()
        }

        private fun element(value: Long): Int {
            require(value in 0..0xffffffffL) { "an element of a result is $value, not from 0 to 2^32 - 1" }
            return value.toInt()
        }
    }
}
