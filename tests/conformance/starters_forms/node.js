// Operations of all forms of members: what comes back has the right form, and nothing else about it is right.

'use strict';

const {
  Adapter, json, integer, flag, text, decimal, bytes, vector, reals, list, tuple, object,
} = require('./secagg_adapter');

const adapter = new Adapter('forms', '1', { policy: { 'mds.code': 'other' }, reject_map: { no: 'other' } });
const numbers = { q: decimal, N: integer, U: integer, T: integer };
const users = list(integer);
const two = Uint32Array.of(1, 4294967290);

adapter.operation('echo', { data: json }, async ({ data }) => {
  console.log('this goes to standard error');
  process.stdout.write('and so does this\n');
  return { data };
});
adapter.operation('mds.encode', { ...numbers, mask: vector }, (_, { noise }) => ({ shares: [noise, two] }), {
  rand: { noise: vector },
});
adapter.operation('quantizer.quantize', { q: decimal, level: decimal, weight: integer, x: reals }, () => ({ value: two }), {
  rand: { rounding: reals }, ranges: { weight: { max: 9 } },
});
adapter.operation('quantizer.dequantize', { q: decimal, level: decimal, format: text, value: vector }, () => ({
  x: Float64Array.of(1.5, -0),
}));
adapter.operation('key.agree', { private: bytes, public: bytes }, () => ({ secret: Buffer.from([0, 255]) }));
adapter.operation('shamir.share', { t: integer, n: integer, secret: bytes }, (_, { seed }) => ({ shares: [seed] }), {
  rand: { coefficients: bytes }, randomness: 'seeded',
});
adapter.operation('staleness.weight', {
  kind: text, numerator: integer, denominator: integer, start: decimal, level: decimal, tau: decimal,
}, ({ level }) => ({ weight: level }), { rand: { rounding: reals } });
adapter.operation('quantize.levels', { levels: decimal, range: reals, clip: flag, x: reals }, () => ({ value: two }), {
  rand: { rounding: reals },
});
adapter.operation('lightsecagg.aggregate_shares', {
  q: decimal, N: integer, T: integer, surviving: users, held: list(tuple(integer, vector)),
}, ({ held }) => ({ share: held[0][1] }));
adapter.operation('lightsecagg.round', {
  ...numbers, D: integer, d: integer, updates: list(vector), drop: object({ share: users, upload: users, recover: users }),
}, () => ({ aggregate: two, contributors: [0, 1] }), { rand: { masks: list(vector), noises: list(vector) } });

adapter.run();
