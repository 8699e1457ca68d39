/*
 * The adapter of my-library: `secagg-spec conform -- java -cp build Adapter` asks it, and it asks the library.
 *
 * An adapter translates, and mends nothing: what the text refuses, the library is to refuse, and the adapter says with
 * which code. A check that stands here alone would turn the report green, and the library would stay as it is.
 */

import java.util.List;
import java.util.Map;

public final class Adapter extends SecaggAdapter {
    private static final long Q = 4294967291L; // the modulus that the library is made for; list all of them in `ranges`

    private Adapter() {
        super("my-library", "0.1.0");

        operation("echo", Map.of("data", JSON), p -> object("data", p.of("data")));

        operation("lightsecagg.mask", Map.of("q", DECIMAL, "update", VECTOR, "mask", VECTOR),
                p -> object("masked", maskUpdate(p.of("q"), p.of("update"), p.of("mask"))))
            .declare("ranges", object("q", object("values", List.of(Q))));

        // Further operations are in spec/adapter.md, section 4; what is not declared is answered by `unsupported`.
    }

    /**
     * Returns a user's masked update: update plus mask, element by element, modulo q [LSA-02]. An element is a long
     * from 0 to 2^32 - 1. Refuse, as by `throw new Reject("bad_param", "q is not prime")`:
     *
     *   length_mismatch   an update and a mask of different lengths [LSA-03]
     *   bad_param         an update and a mask without elements [LSA-01]
     *   noncanonical      an element of the update or of the mask that is not below q [LSA-03]
     *   bad_param         a q that the library is not made for, or that is no prime from 2 to 2^32 [MOD-01, MOD-02]
     *
     * A member of another form (type, hex digits, decimal digits) was refused before it came here.
     */
    private static long[] maskUpdate(long q, long[] update, long[] mask) {
        // --- write this
        throw new UnsupportedOperationException("write me: lightsecagg.mask in Adapter.java");
        // --- until here
    }

    public static void main(String[] arguments) throws java.io.IOException {
        new Adapter().run();
    }
}
