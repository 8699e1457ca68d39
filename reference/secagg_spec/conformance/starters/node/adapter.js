// The adapter of my-library: `secagg-spec conform -- node adapter.js` asks it, and it asks the library.
//
// An adapter translates, and mends nothing: what the text refuses, the library is to refuse, and the adapter says with
// which code. A check that stands here alone would turn the report green, and the library would stay as it is.

'use strict';

const { Adapter, Reject, json, decimal, vector } = require('./secagg_adapter');

const Q = 4294967291n; // the modulus that the library is made for; list all of them in `ranges` below
const adapter = new Adapter('my-library', '0.1.0');

adapter.operation('echo', { data: json }, ({ data }) => ({ data }));

// A user's masked update: update plus mask, element by element, modulo q. `update` and `mask` are Uint32Arrays, q is a
// BigInt. Return { masked }, a Uint32Array [LSA-02]; the sum of two elements does not fit into 32 bits. Refuse
//   throw new Reject('bad_param', '…')         a q that the library does not have [MOD-01, MOD-02]
//   throw new Reject('length_mismatch', '…')   an update and a mask of different lengths [LSA-03]
//   throw new Reject('bad_param', '…')         an update and a mask without elements [LSA-01]
//   throw new Reject('noncanonical', '…')      an element of either that is not below q [LSA-03]
// A member of another form (type, hex digits, decimal digits) was refused before it came here.
adapter.operation('lightsecagg.mask', { q: decimal, update: vector, mask: vector }, ({ q, update, mask }) => {
  // --- write this
  throw new Error(`write me: lightsecagg.mask in adapter.js (q = ${q}, d = ${update.length} and ${mask.length})`);
  // --- until here
}, { ranges: { q: { values: [String(Q)] } } });

// Further operations are in spec/adapter.md, section 4; what is not declared here is answered by `unsupported`.
adapter.run();
