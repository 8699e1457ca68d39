/* Operations of all forms of members: what comes back has the right form, and nothing else about it is right. */

#include "secagg_adapter.h"

static const uint32_t two[] = {1, 4294967290};

static sa_outcome echo(sa_call *call) {
    printf("this goes to standard error\n");
    fflush(stdout);
    sa_put_json(call, "data", sa_get(call, "data"));
    return SA_DONE;
}

static sa_outcome vectors(sa_call *call) {
    const sa_vector noise = sa_vector_of(call, "noise");
    sa_open(call, "shares", "[");
    sa_put_vector(call, NULL, noise.at, noise.length);
    sa_put_vector(call, NULL, two, 2);
    sa_close(call, "]");
    return SA_DONE;
}

static sa_outcome value(sa_call *call) {
    const sa_reals x = sa_reals_of(call, "x");
    if (x.length > 0 && x.at[0] != x.at[0]) return sa_reject(call, "out_of_range", "no number \"\\\n\x01\xff");
    sa_put_vector(call, "value", two, 2);
    return SA_DONE;
}

static sa_outcome flagged(sa_call *call) {
    return sa_flag(call, "clip") ? value(call) : value(call);
}

static sa_outcome numbers(sa_call *call) {
    const sa_text format = sa_text_of(call, "format");
    sa_put_reals(call, "x", (const double[]){1.5, -0.0}, format.length > 0 ? 2 : 0);
    return SA_DONE;
}

static sa_outcome secret(sa_call *call) {
    sa_put_bytes(call, "secret", (const uint8_t[]){0, 255}, 2);
    return SA_DONE;
}

static sa_outcome seeded(sa_call *call) {
    const sa_bytes seed = sa_bytes_of(call, "seed");
    sa_open(call, "shares", "[");
    for (int64_t i = 0; i < sa_integer(call, "n"); i++) sa_put_bytes(call, NULL, seed.at, seed.length);
    sa_close(call, "]");
    return SA_DONE;
}

static sa_outcome weight(sa_call *call) {
    sa_put_decimal(call, "weight", sa_decimal(call, "level"));
    return SA_DONE;
}

static sa_outcome share(sa_call *call) {
    sa_vector vector = {two, 2};
    for (const sa_json *entry = sa_get(call, "held")->first; entry != NULL; entry = entry->next) {
        const sa_json *user = entry->type == '[' ? entry->first : NULL, *held = user != NULL ? user->next : NULL;
        if (held == NULL || held->next != NULL || !sa_has_form(user, SA_INTEGER) || !sa_has_form(held, SA_VECTOR))
            return sa_reject(call, "malformed", "held is a list of a user and a vector");
        vector = sa_to_vector(call, held);
    }
    sa_put_vector(call, "share", vector.at, vector.length);
    return SA_DONE;
}

static sa_outcome decoded(sa_call *call) {
    const sa_json *shares = sa_get(call, "shares");
    const sa_vector first = shares->first != NULL ? sa_to_vector(call, shares->first) : (sa_vector){two, 2};
    sa_put_vector(call, "mask", first.at, first.length);
    return SA_DONE;
}

static const sa_operation operations[] = {
    {.name = "echo", .params = {{"data", SA_JSON}}, .run = echo},
    {.name = "mds.encode",
     .params = {{"q", SA_DECIMAL}, {"N", SA_INTEGER}, {"U", SA_INTEGER}, {"T", SA_INTEGER}, {"mask", SA_VECTOR}},
     .rand = {{"noise", SA_VECTOR}},
     .run = vectors},
    {.name = "mds.decode",
     .params = {{"q", SA_DECIMAL}, {"N", SA_INTEGER}, {"U", SA_INTEGER}, {"T", SA_INTEGER}, {"d", SA_INTEGER},
                {"users", SA_INTEGERS}, {"shares", SA_VECTORS}},
     .composed = true,
     .run = decoded},
    {.name = "quantizer.quantize",
     .params = {{"q", SA_DECIMAL}, {"level", SA_DECIMAL}, {"weight", SA_INTEGER}, {"x", SA_REALS}},
     .rand = {{"rounding", SA_REALS}},
     .ranges = "{\"weight\": {\"max\": 9}}",
     .run = value},
    {.name = "quantizer.dequantize",
     .params = {{"q", SA_DECIMAL}, {"level", SA_DECIMAL}, {"format", SA_TEXT}, {"value", SA_VECTOR}},
     .run = numbers},
    {.name = "key.agree", .params = {{"private", SA_BYTES}, {"public", SA_BYTES}}, .run = secret},
    {.name = "shamir.share",
     .params = {{"t", SA_INTEGER}, {"n", SA_INTEGER}, {"secret", SA_BYTES}},
     .rand = {{"coefficients", SA_BYTES}},
     .randomness = "seeded",
     .run = seeded},
    {.name = "staleness.weight",
     .params = {{"kind", SA_TEXT}, {"numerator", SA_INTEGER}, {"denominator", SA_INTEGER}, {"start", SA_DECIMAL},
                {"level", SA_DECIMAL}, {"tau", SA_DECIMAL}},
     .rand = {{"rounding", SA_REALS}},
     .run = weight},
    {.name = "quantize.levels",
     .params = {{"levels", SA_DECIMAL}, {"range", SA_REALS}, {"clip", SA_FLAG}, {"x", SA_REALS}},
     .rand = {{"rounding", SA_REALS}},
     .run = flagged},
    {.name = "lightsecagg.aggregate_shares",
     .params = {{"q", SA_DECIMAL}, {"N", SA_INTEGER}, {"T", SA_INTEGER}, {"surviving", SA_INTEGERS}, {"held", SA_LIST}},
     .run = share},
    {.name = NULL},
};

int main(void) {
    return sa_run(&(sa_adapter){.name = "forms \"1\"", .version = "1", .policy = "{\"mds.code\": \"other\"}",
                                .reject_map = "{\"no\": \"other\"}", .operations = operations});
}
