//! The adapter of my-library: `secagg-spec conform -- target/release/adapter` asks it, and it calls the library.
//!
//! An adapter only translates. If the text demands a refusal, the library must refuse; the adapter reports the code.
//! A check that exists only here would turn the report green without fixing the library.

#[rustfmt::skip]
mod secagg_adapter;
use secagg_adapter::{object, refuse, Adapter, Failure, Form, Value};

const Q: i64 = 4294967291; // a modulus that the library supports; list all of them in `moduli`

fn main() -> std::io::Result<()> {
    let mut adapter = Adapter::new("my-library", "0.1.0");

    adapter.operation("echo", [("data", Form::Json)], |p| Ok(object([("data", p["data"].clone())])));

    let members = [("q", Form::Decimal), ("update", Form::Vector), ("mask", Form::Vector)];
    let mask = adapter.operation("lightsecagg.mask", members, |p| {
        let masked = mask_update(*p["q"].integer(), p["update"].vector(), p["mask"].vector())?;
        Ok(object([("masked", masked.into())]))
    });
    let moduli = object([("values", vec![Value::Integer(Q)].into())]);
    mask.declare("ranges", object([("q", moduli.into())]));

    // Further operations are in spec/adapter.md, section 4; undeclared operations get the answer `unsupported`.
    adapter.run()
}

/// Returns a user's masked update: update plus mask, element by element, modulo q [LSA-02]. The sum of two elements
/// does not fit into 32 bits. To refuse, use for example `return Err(refuse("bad_param", "q is not prime"))`:
///
///     length_mismatch   an update and a mask of different lengths [LSA-03]
///     bad_param         an update and a mask without elements [LSA-01]
///     noncanonical      an element of the update or of the mask that is not below q [LSA-03]
///     bad_param         a q that the library does not support, or that is not a prime from 2 to 2^32 [MOD-01, MOD-02]
///
/// Members of the wrong form (type, hex digits, decimal digits) have already been refused.
fn mask_update(q: i64, update: &[u32], mask: &[u32]) -> Result<Vec<u32>, Failure> {
    // --- write this
    let _ = (q, update, mask, refuse as fn(_, _) -> _);
    Err(Failure::Broken("write me: lightsecagg.mask in adapter.rs".to_string()))
    // --- until here
}
