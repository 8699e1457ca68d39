// Operations of all forms of members: what comes back has the right form, and nothing else about it is right.

val two = longArrayOf(1, 4294967290)
val numbers = arrayOf("q" to DECIMAL, "N" to INTEGER, "U" to INTEGER, "T" to INTEGER)
val users = list(INTEGER)
val rounding = record("rounding" to REALS)

fun value(p: Obj): Map<String, Any?> {
    if (p.of<DoubleArray>("x").any { it.isNaN() }) throw Reject("out_of_range", "no number \"\\\n\u0001\u20ac")
    return mapOf("value" to two)
}

fun main() {
    val adapter = SecaggAdapter("forms \"1\"", "1")
    adapter.hello["policy"] = mapOf("mds.code" to "other")
    adapter.hello["reject_map"] = mapOf("no" to "other")

    adapter.operation("echo", "data" to JSON) { p ->
        println("this goes to standard error")
        mapOf("data" to p["data"])
    }
    adapter.operation("mds.encode", *numbers, "mask" to VECTOR) { p ->
        mapOf("shares" to listOf(p.of<Obj>("rand")["noise"], two))
    }.samples(record("noise" to VECTOR))
    adapter.operation("mds.decode", *numbers, "d" to INTEGER, "users" to users, "shares" to list(VECTOR)) { p ->
        mapOf("mask" to (p.of<List<LongArray>>("shares").firstOrNull() ?: two))
    }.declare("composed", true)
    adapter.operation(
        "quantizer.quantize", "q" to DECIMAL, "level" to DECIMAL, "weight" to INTEGER, "x" to REALS, handler = ::value
    ).samples(rounding).declare("ranges", mapOf("weight" to mapOf("max" to 9)))
    adapter.operation(
        "quantizer.dequantize", "q" to DECIMAL, "level" to DECIMAL, "format" to TEXT, "value" to VECTOR
    ) { p -> mapOf("x" to if (p.of<String>("format").isEmpty()) doubleArrayOf() else doubleArrayOf(1.5, -0.0)) }
    adapter.operation("key.agree", "private" to BYTES, "public" to BYTES) { mapOf("secret" to byteArrayOf(0, -1)) }
    adapter.operation("shamir.share", "t" to INTEGER, "n" to INTEGER, "secret" to BYTES) { p ->
        mapOf("shares" to List(p.of<Long>("n").toInt()) { p.of<Obj>("rand").of<ByteArray>("seed") })
    }.samples(record("coefficients" to BYTES)).declare("randomness", "seeded")
    adapter.operation(
        "staleness.weight", "kind" to TEXT, "numerator" to INTEGER, "denominator" to INTEGER, "start" to DECIMAL,
        "level" to DECIMAL, "tau" to DECIMAL
    ) { p -> mapOf("weight" to p.of<Long>("level").toString()) }.samples(rounding)
    adapter.operation("quantize.levels", "levels" to DECIMAL, "range" to REALS, "clip" to FLAG, "x" to REALS) { p ->
        if (p.of("clip")) value(p) else mapOf("value" to two)
    }.samples(rounding)
    adapter.operation(
        "lightsecagg.aggregate_shares", "q" to DECIMAL, "N" to INTEGER, "T" to INTEGER, "surviving" to users,
        "held" to list(list(INTEGER, VECTOR))
    ) { p -> mapOf("share" to (p.of<List<List<Any>>>("held").lastOrNull()?.get(1) ?: two)) }
    adapter.operation(
        "lightsecagg.round", *numbers, "D" to INTEGER, "d" to INTEGER, "updates" to list(VECTOR),
        "drop" to record("share" to users, "upload" to users, "recover" to users)
    ) { mapOf("aggregate" to two, "contributors" to listOf(0, 1)) }
        .samples(record("masks" to list(VECTOR), "noises" to list(VECTOR)))
    adapter.run()
}
