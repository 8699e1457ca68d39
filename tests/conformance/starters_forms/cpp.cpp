// Operations of all forms of members: what comes back has the right form, and nothing else about it is right.

#include "secagg_adapter.hpp"

using namespace secagg;

static const Vector two = {1, 4294967290};

static Object echo(const Value& p) {
    std::printf("this goes to standard error\n");
    std::fflush(stdout);
    std::cout << "this too" << std::endl;
    return {{"data", p["data"]}};
}

static Object vectors(const Value& p) { return {{"shares", List{p["rand"]["noise"].vector(), two}}}; }

static Object value(const Value& p) {
    const Reals& x = p["x"].reals();
    if (!x.empty() && x[0] != x[0]) throw Reject("out_of_range", "no number \"\\\n\x01\xff");
    return {{"value", two}};
}

static Object numbers(const Value& p) {
    return {{"x", p["format"].text().empty() ? Reals{} : Reals{1.5, -0.0}}};
}

static Object secret(const Value&) { return {{"secret", Bytes{0, 255}}}; }

static Object seeded(const Value& p) {
    List shares;
    for (std::int64_t i = 0; i < p["n"].integer(); i++) shares.push_back(p["rand"]["seed"].bytes());
    return {{"shares", shares}};
}

static Object weight(const Value& p) { return {{"weight", std::to_string(p["level"].integer())}}; }

static Object share(const Value& p) {
    Vector last = two;
    for (const Value& entry : p["held"].list()) last = entry.list()[1].vector();
    return {{"share", last}};
}

static Object decoded(const Value& p) {
    const List& shares = p["shares"].list();
    return {{"mask", shares.empty() ? two : shares[0].vector()}};
}

static Object levels(const Value& p) {
    if (p["clip"].flag()) return value(p);
    return value(p);
}

int main() {
    Adapter adapter("forms \"1\"", "1");
    adapter.hello["policy"] = Object{{"mds.code", "other"}};
    adapter.hello["reject_map"] = Object{{"no", "other"}};
    const Form::Check q = Form::decimal, integer = Form::integer, vector = Form::vector, reals = Form::reals;

    adapter.operation("echo", {{"data", Form::json}}, echo);
    adapter.operation("mds.encode", {{"q", q}, {"N", integer}, {"U", integer}, {"T", integer}, {"mask", vector}},
                      vectors)
        .samples = Form::record({{"noise", vector}});
    adapter.operation("mds.decode", {{"q", q}, {"N", integer}, {"U", integer}, {"T", integer}, {"d", integer},
                                     {"users", Form::list({integer})}, {"shares", Form::list({vector})}}, decoded)
        .declared["composed"] = true;
    auto& quantize = adapter.operation(
        "quantizer.quantize", {{"q", q}, {"level", Form::decimal}, {"weight", integer}, {"x", reals}}, value);
    quantize.samples = Form::record({{"rounding", reals}});
    quantize.declared["ranges"] = Object{{"weight", Object{{"max", 9}}}};
    adapter.operation("quantizer.dequantize",
                      {{"q", q}, {"level", Form::decimal}, {"format", Form::text}, {"value", vector}}, numbers);
    adapter.operation("key.agree", {{"private", Form::bytes}, {"public", Form::bytes}}, secret);
    auto& shamir = adapter.operation("shamir.share", {{"t", integer}, {"n", integer}, {"secret", Form::bytes}}, seeded);
    shamir.samples = Form::record({{"coefficients", Form::bytes}});
    shamir.declared["randomness"] = "seeded";
    adapter.operation("staleness.weight",
                      {{"kind", Form::text}, {"numerator", integer}, {"denominator", integer}, {"start", Form::decimal},
                       {"level", Form::decimal}, {"tau", Form::decimal}}, weight)
        .samples = Form::record({{"rounding", reals}});
    adapter.operation("quantize.levels",
                      {{"levels", Form::decimal}, {"range", reals}, {"clip", Form::flag}, {"x", reals}}, levels)
        .samples = Form::record({{"rounding", reals}});
    adapter.operation("lightsecagg.aggregate_shares",
                      {{"q", q}, {"N", integer}, {"T", integer}, {"surviving", Form::list({integer})},
                       {"held", Form::list({Form::list({integer, vector})})}}, share);
    return adapter.run();
}
