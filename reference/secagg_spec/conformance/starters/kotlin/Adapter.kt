/*
 * The adapter of my-library: `secagg-spec conform -- java -cp adapter.jar AdapterKt` asks it, and it calls the library.
 *
 * An adapter only translates. If the text demands a refusal, the library must refuse; the adapter reports the code.
 * A check that exists only here would turn the report green without fixing the library.
 */

const val Q = 4294967291L // a modulus that the library supports; list all of them in `ranges`

fun main() {
    val adapter = SecaggAdapter("my-library", "0.1.0")

    adapter.operation("echo", "data" to JSON) { p -> mapOf("data" to p["data"]) }

    adapter.operation("lightsecagg.mask", "q" to DECIMAL, "update" to VECTOR, "mask" to VECTOR) { p ->
        mapOf("masked" to maskUpdate(p.of("q"), p.of("update"), p.of("mask")))
    }.declare("ranges", mapOf("q" to mapOf("values" to listOf(Q))))

    // Further operations are in spec/adapter.md, section 4; undeclared operations get the answer `unsupported`.
    adapter.run()
}

/**
 * Returns a user's masked update: update plus mask, element by element, modulo q [LSA-02]. An element is a Long from 0
 * to 2^32 - 1. To refuse, throw an exception such as `Reject("bad_param", "q is not prime")`:
 *
 *   length_mismatch   an update and a mask of different lengths [LSA-03]
 *   bad_param         an update and a mask without elements [LSA-01]
 *   noncanonical      an element of the update or of the mask that is not below q [LSA-03]
 *   bad_param         a q that the library does not support, or that is not a prime from 2 to 2^32 [MOD-01, MOD-02]
 *
 * Members of the wrong form (type, hex digits, decimal digits) have already been refused.
 */
fun maskUpdate(q: Long, update: LongArray, mask: LongArray): LongArray {
    // --- write this
    throw UnsupportedOperationException("write me: lightsecagg.mask in Adapter.kt")
    // --- until here
}
