/*
 * The adapter of my-library: `secagg-spec conform -- java -cp build Adapter` asks it, and it calls the library.
 *
 * An adapter only translates. If the text demands a refusal, the library must refuse; the adapter reports the code.
 * A check that exists only here would turn the report green without fixing the library.
 */

import java.util.List;
import java.util.Map;

public final class Adapter extends SecaggAdapter {
    private static final long Q = 4294967291L; // a modulus that the library supports; list all of them in `ranges`

    private Adapter() {
        super("my-library", "0.1.0");

        operation("echo", Map.of("data", JSON), p -> object("data", p.of("data")));

        operation("lightsecagg.mask", Map.of("q", DECIMAL, "update", VECTOR, "mask", VECTOR),
                p -> object("masked", maskUpdate(p.of("q"), p.of("update"), p.of("mask"))))
            .declare("ranges", object("q", object("values", List.of(Q))));

        // Further operations are in spec/adapter.md, section 4; undeclared operations get the answer `unsupported`.
    }

    /**
     * Returns a user's masked update: update plus mask, element by element, modulo q [LSA-02]. An element is a long
     * from 0 to 2^32 - 1. To refuse, throw an exception such as
     * `new Reject("bad_param", "q is not prime")`:
     *
     *   length_mismatch   an update and a mask of different lengths [LSA-03]
     *   bad_param         an update and a mask without elements [LSA-01]
     *   noncanonical      an element of the update or of the mask that is not below q [LSA-03]
     *   bad_param         a q that the library does not support, or that is not a prime from 2 to 2^32 [MOD-01, MOD-02]
     *
     * Members of the wrong form (type, hex digits, decimal digits) have already been refused.
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
