/* The adapter of my-library: `secagg-spec conform -- ./adapter` asks it, and it calls the library.
 *
 * An adapter only translates. If the text demands a refusal, the library must refuse; the adapter reports the code.
 * A check that exists only here would turn the report green without fixing the library.
 */

#include "secagg_adapter.h"

#define Q 4294967291 /* a modulus that the library supports; list all of them in .ranges below */

static sa_outcome echo(sa_call *call) {
    sa_put_json(call, "data", sa_get(call, "data"));
    return SA_DONE;
}

/* A user's masked update: update plus mask, element by element, modulo q. The elements of both are at[0], at[1], ...
 * Put the vector "masked" [LSA-02]; the sum of two elements does not fit into 32 bits. To refuse:
 *   return sa_reject(call, "bad_param", "...")         a q that the library does not support [MOD-01, MOD-02]
 *   return sa_reject(call, "length_mismatch", "...")   an update and a mask of different lengths [LSA-03]
 *   return sa_reject(call, "bad_param", "...")         an update and a mask without elements [LSA-01]
 *   return sa_reject(call, "noncanonical", "...")      an element of either that is not below q [LSA-03]
 * Members of the wrong form (type, hex digits, decimal digits) have already been refused. */
static sa_outcome mask_update(sa_call *call) {
    const int64_t q = sa_decimal(call, "q");
    const sa_vector update = sa_vector_of(call, "update"), mask = sa_vector_of(call, "mask");
    /* --- write this */
    (void)q, (void)update, (void)mask;
    return sa_error(call, "write me: lightsecagg.mask in adapter.c");
    /* --- until here */
}

/* Further operations are in spec/adapter.md, section 4; undeclared operations get the answer `unsupported`. */
static const sa_operation operations[] = {
    {.name = "echo", .params = {{"data", SA_JSON}}, .run = echo},
    {.name = "lightsecagg.mask",
     .params = {{"q", SA_DECIMAL}, {"update", SA_VECTOR}, {"mask", SA_VECTOR}},
     .ranges = "{\"q\": {\"values\": [\"4294967291\"]}}",
     .run = mask_update},
    {.name = NULL},
};

int main(void) {
    return sa_run(&(sa_adapter){.name = "my-library", .version = "0.1.0", .operations = operations});
}
