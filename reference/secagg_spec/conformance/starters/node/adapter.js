// The adapter of my-library: `secagg-spec conform -- node adapter.js` asks it, and it calls the library.
//
// An adapter only translates. If the text demands a refusal, the library must refuse; the adapter reports the code.
// A check that exists only here would turn the report green without fixing the library.

'use strict';

const { Adapter, Reject, json, decimal, vector } = require('./secagg_adapter');

const Q = 4294967291n; // a modulus that the library supports; list all of them in `ranges` below
const adapter = new Adapter('my-library', '0.1.0');

adapter.operation('echo', { data: json }, ({ data }) => ({ data }));

// A user's masked update: update plus mask, element by element, modulo q. `update` and `mask` are Uint32Arrays, q is a
// BigInt. Return { masked }, a Uint32Array [LSA-02]; the sum of two elements does not fit into 32 bits. To refuse:
//   throw new Reject('bad_param', '…')         a q that the library does not support [MOD-01, MOD-02]
//   throw new Reject('length_mismatch', '…')   an update and a mask of different lengths [LSA-03]
//   throw new Reject('bad_param', '…')         an update and a mask without elements [LSA-01]
//   throw new Reject('noncanonical', '…')      an element of either that is not below q [LSA-03]
// Members of the wrong form (type, hex digits, decimal digits) have already been refused.
adapter.operation('lightsecagg.mask', { q: decimal, update: vector, mask: vector }, ({ q, update, mask }) => {
  // --- write this
  throw new Error(`write me: lightsecagg.mask in adapter.js (q = ${q}, d = ${update.length} and ${mask.length})`);
  // --- until here
}, { ranges: { q: { values: [String(Q)] } } });

// Further operations are in spec/adapter.md, section 4; undeclared operations get the answer `unsupported`.
adapter.run();
