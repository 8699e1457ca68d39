// The adapter of my-library: `secagg-spec conform -- ./adapter` asks it, and it calls the library.
//
// An adapter only translates. If the text demands a refusal, the library must refuse; the adapter reports the code.
// A check that exists only here would turn the report green without fixing the library.

#include "secagg_adapter.hpp"

using namespace secagg;

static const std::int64_t Q = 4294967291;  // a modulus that the library supports; list all of them in "ranges"

// Returns a user's masked update: update plus mask, element by element, modulo q [LSA-02]. The sum of two elements
// does not fit into 32 bits. To refuse, use for example `throw Reject("bad_param", "q is not prime");`
//
//     length_mismatch   an update and a mask of different lengths [LSA-03]
//     bad_param         an update and a mask without elements [LSA-01]
//     noncanonical      an element of the update or of the mask that is not below q [LSA-03]
//     bad_param         a q that the library does not support, or that is not a prime from 2 to 2^32 [MOD-01, MOD-02]
//
// Members of the wrong form (type, hex digits, decimal digits) have already been refused.
static Vector mask_update(std::int64_t q, const Vector& update, const Vector& mask) {
    // --- write this
    (void)q, (void)update, (void)mask;
    throw std::runtime_error("write me: lightsecagg.mask in adapter.cpp");
    // --- until here
}

int main() {
    Adapter adapter("my-library", "0.1.0");

    adapter.operation("echo", {{"data", Form::json}}, [](const Value& p) { return Object{{"data", p["data"]}}; });

    auto& mask = adapter.operation(
        "lightsecagg.mask", {{"q", Form::decimal}, {"update", Form::vector}, {"mask", Form::vector}},
        [](const Value& p) {
            return Object{{"masked", mask_update(p["q"].integer(), p["update"].vector(), p["mask"].vector())}};
        });
    mask.declared["ranges"] = Object{{"q", Object{{"values", List{Q}}}}};

    // Further operations are in spec/adapter.md, section 4; undeclared operations get the answer `unsupported`.
    return adapter.run();
}
