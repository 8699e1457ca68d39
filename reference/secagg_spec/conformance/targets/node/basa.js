// SPDX-License-Identifier: Apache-2.0
//
// BASA, one function at a time, with the encryption per position (BASA, sections 2, 4 and 5; adapter, section 4).
//
// `epoch` below holds what all derivations of an epoch share: the numbers p of the session, the protocol's name, the hash
// of the parameters, the session id, and the number of the epoch as `round`.

'use strict';

const { Reject, refuse, show } = require('./refusals');
const {
  add, subtract, multiply, checkModulus, checkLength, checkVector, elementwise, addInto,
} = require('./integers');
const { checkWork } = require('./code');
const { checkLevel } = require('./quantizer');
const { KINDS, FUNCTION, checkFunction, floorOf } = require('./staleness');
const { EXACT, half, decoded, divisorOf, average } = require('./basecagg');
const {
  checkKey, checkSessionId, readKeys, expand, agree, publicKeyOf, u32, fields, hashNumbers, deriveKey, encrypt, decrypt,
} = require('./crypto');
const { selfKey } = require('./masks');
const {
  readBytes, readVector, writeVector, writeReals, readDecimal, readInteger, readCount, readSize, readRound, readList,
  readTuple, readUsers, readVectors, readString,
} = require('./encodings');

const PROTOCOL = 'basa';
const KEY = 32; // the bytes of a seed, of a key, of a hash
const BOX = 80; // the bytes of a box [BAA-04]
const NONCE = Buffer.alloc(12); // of a box: its key is for it alone
const TIMEOUTS = ['settle', 'void']; // in the order of their numbers in a binding
const PAIR_BOX = 'pair-box';
const SELF_BOX = 'self-box';

/** The numbers of a session, in the order of the text. */
const NUMBERS = {
  R: readDecimal, N: readCount, T: readCount, d: readCount, K: readCount, S: readCount, c_l: readDecimal,
  c_g: readDecimal, tau_max: readCount, ...FUNCTION, timeouts: readString,
};

// ------------------------------------------------------------------------------------------------------------------
// Parameters

/** How many positions there are. */
function positionsOf({ K, S }) {
  return K + S;
}

function hasSelfMasks({ timeouts }) {
  return timeouts === 'settle';
}

/** [BAA-01] */
function checkNumbers({ R, N, T, d, K, S, tau_max: oldest, timeouts }) {
  checkModulus(R);
  if (!TIMEOUTS.includes(timeouts)) refuse('bad_param', `timeouts is settle or void, not ${show(timeouts)} [BAA-01]`);
  const holds = d >= 1 && T >= 1 && K >= T + 2 && S >= 0 && K + S <= N && K + S <= 2 ** 16 && oldest >= 0;
  if (!(holds && (S === 0 || timeouts === 'settle'))) {
    const given = `N=${N}, T=${T}, d=${d}, K=${K}, S=${S}, tau_max=${oldest}, timeouts=${timeouts}`;
    refuse('bad_param', `not allowed together: ${given} [BAA-01]`);
  }
}

/** [BAA-02] */
function checkLevels(p) {
  const { R, K, c_l: fine, c_g: coarse, tau_max: oldest } = p;
  checkFunction(p);
  checkLevel(fine);
  checkLevel(coarse);
  if (floorOf(p, coarse, oldest).floor < 1) {
    refuse('bad_param', `c_g = ${coarse} gives a staleness of ${oldest} a weight below 1 [BAA-02]`);
  }
  if (K * coarse > half(R)) refuse('bad_param', `K · c_g is above (R-1)/2: ${K} · ${coarse}, R=${R} [BAA-02]`);
  if (BigInt(fine) * BigInt(K) * BigInt(coarse) > EXACT) {
    refuse('bad_param', `c_l · K · c_g is above 2**53: ${fine} · ${K} · ${coarse} [BAA-02]`);
  }
}

/** [BAA-01] [BAA-02] */
function checkParameters(p) {
  checkNumbers(p);
  checkLevels(p);
  checkWork(p.d * positionsOf(p) ** 2);
}

/** What all derivations of a session share; `round` is the epoch, where there is one. */
function agreementOf(p) {
  checkParameters(p);
  checkSessionId(p.session);
  const numbers = Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, p[name]]));
  const bound = { ...numbers, kind: KINDS.indexOf(p.kind), timeouts: TIMEOUTS.indexOf(p.timeouts), encryption: 0 };
  return { p, protocol: PROTOCOL, parameters: hashNumbers(bound), session: p.session, round: p.round };
}

// ------------------------------------------------------------------------------------------------------------------
// Masks

function beginning({ protocol, parameters }) {
  return [Buffer.from('secagg-spec', 'ascii'), u32(1), Buffer.from(protocol, 'ascii'), parameters];
}

/** [BAA-03] The mask from position i to position j. */
function pairMask(epoch, seed, i, j) {
  const info = fields([
    ...beginning(epoch), u32(epoch.round), Buffer.from('pairwise-mask', 'ascii'), u32(0), u32(i), u32(j),
  ]);
  return expand(deriveKey(seed, epoch.session, info), epoch.p.R, epoch.p.d);
}

/** [BAA-03] The self mask of position k. */
function selfMask(epoch, seed, k) {
  return expand(selfKey(epoch, seed, k), epoch.p.R, epoch.p.d);
}

function subtractFrom(sum, vector, R) {
  for (let i = 0; i < sum.length; i += 1) sum[i] = subtract(sum[i], vector[i], R);
}

/** [BAA-25] */
function checkMagnitudes(update, { R, K, c_g: level }) {
  const bound = Math.floor(half(R) / (K * level));
  update.forEach((element, i) => {
    const v = decoded(element, R);
    if (Math.abs(v) > bound) refuse('out_of_range', `update[${i}]: ${v} is above ${bound} in magnitude [BAA-25]`);
  });
}

/** The i-th seed of some, one after the other. */
function piece(bytes, i, size = KEY) {
  return bytes.subarray(size * i, size * (i + 1));
}

/** Some bytes in pieces of a size, which they fill. */
function pieces(bytes, size) {
  return Array.from({ length: bytes.length / size }, (_, i) => piece(bytes, i, size));
}

/** [BAA-26] The masked update at position k; before: list of [position, seed]; seeds: P of them, one after the other. */
function maskUpdate(epoch, k, weight, update, before, seeds) {
  const { p } = epoch;
  checkMagnitudes(update, p);
  const masked = Uint32Array.from(update, (element) => multiply(element, weight, p.R));
  if (hasSelfMasks(p)) addInto(masked, selfMask(epoch, piece(seeds, k), k), p.R);
  for (let j = k + 1; j < positionsOf(p); j += 1) addInto(masked, pairMask(epoch, piece(seeds, j), k, j), p.R);
  for (const [i, seed] of before) subtractFrom(masked, pairMask(epoch, seed, i, k), p.R);
  return masked;
}

/**
 * [BAA-41] The sum of the weighted updates; masked: the sum of the masked ones; own: list of [position, seed] of self
 * masks; skipped: list of [from, to, seed] of the masks to positions that were not accepted.
 */
function unmaskSum(epoch, masked, own, skipped) {
  const sum = Uint32Array.from(masked);
  for (const [k, seed] of own) subtractFrom(sum, selfMask(epoch, seed, k), epoch.p.R);
  for (const [i, j, seed] of skipped) subtractFrom(sum, pairMask(epoch, seed, i, j), epoch.p.R);
  return sum;
}

// ------------------------------------------------------------------------------------------------------------------
// Boxes. What a box is for: { purpose, sender, from, to }.

function bindingOf(epoch, { purpose, sender, from, to }) {
  return fields([
    ...beginning(epoch), epoch.session, u32(epoch.round), Buffer.from(purpose, 'ascii'), u32(sender), u32(from), u32(to),
  ]);
}

function boxKey(epoch, binding, secret, sealedBy, sealedTo) {
  return deriveKey(secret, epoch.session, Buffer.concat([binding, fields([sealedBy, sealedTo])]));
}

/** [BAA-04] [BAA-06] */
function sealBox(epoch, use, own, publicKey, seed) {
  const binding = bindingOf(epoch, use);
  const sealedBy = publicKeyOf(own);
  const key = boxKey(epoch, binding, agree(own, publicKey), sealedBy, publicKey);
  return Buffer.concat([sealedBy, encrypt(key, NONCE, binding, seed)]);
}

/** [BAA-05] [BAA-06] The seed in a box. */
function openBox(epoch, use, own, box) {
  const failed = () => refuse('bad_ciphertext', `the box from ${use.from} to ${use.to} does not open`, [use.sender]);
  if (box.length !== BOX) failed();
  const binding = bindingOf(epoch, use);
  const sealedBy = box.subarray(0, KEY);
  try {
    const key = boxKey(epoch, binding, agree(own, sealedBy), sealedBy, publicKeyOf(own));
    return decrypt(key, NONCE, binding, box.subarray(KEY), use.sender);
  } catch (problem) {
    if (!(problem instanceof Reject)) throw problem;
    return failed();
  }
}

// ------------------------------------------------------------------------------------------------------------------
// Operations

function checkPosition(position, p, name) {
  if (!(position >= 0 && position < positionsOf(p))) {
    refuse('out_of_range', `${name} = ${position} is not in [0, ${positionsOf(p)})`);
  }
}

/** Positions below an end, ascending. */
function checkAscending(positions, end, name) {
  positions.forEach((position, i) => {
    if (!(position >= 0 && position < end)) refuse('out_of_range', `${name}[${i}] = ${position} is not in [0, ${end})`);
    if (i > 0 && position <= positions[i - 1]) {
      refuse('inconsistent_sets', `${name}: ${position} comes after ${positions[i - 1]}`);
    }
  });
}

function checkWeight(weight, { c_g: level }, name) {
  if (!(weight >= 1 && weight <= level)) refuse('out_of_range', `${name} = ${weight} is not in [1, ${level}]`);
}

function checkSeeds(seeds, name) {
  seeds.forEach((seed, i) => checkKey(seed, `${name}[${i}]`));
}

/** What a box is for, as far as it is allowed. */
function checkUse(p) {
  const { N, sender, from, to, purpose } = p;
  if (sender >= N) refuse('unknown_peer', `the sender ${sender} is not in [0, ${N})`);
  checkPosition(from, p, 'from');
  checkPosition(to, p, 'to');
  if (purpose !== PAIR_BOX && purpose !== SELF_BOX) refuse('bad_param', `no purpose of a box: ${show(purpose)}`);
  if (purpose === PAIR_BOX && !(from < to)) refuse('bad_param', `a pair-box from ${from} to ${to}`);
  if (purpose === SELF_BOX && !(from === to && hasSelfMasks(p))) {
    refuse('bad_param', `a self-box from ${from} to ${to}, with the timeouts ${p.timeouts}`);
  }
}

/** `skipped`: a list of [from, to, seed]. */
const readSkipped = (value, name) => readList(value, name, readTuple(readInteger, readInteger, readBytes));

/** One seed from each accepted position to each later one that is not accepted. */
function checkSkipped(p, accepted, skipped) {
  const missing = new Set();
  const members = new Set(accepted);
  for (const i of accepted) {
    for (let j = i + 1; j < positionsOf(p); j += 1) if (!members.has(j)) missing.add(`${i} ${j}`);
  }
  for (const [i, j, seed] of skipped) {
    if (!missing.delete(`${i} ${j}`)) refuse('inconsistent_sets', `a seed from ${i} to ${j} that is not needed`);
    checkKey(seed, `the seed from ${i} to ${j}`);
  }
  if (missing.size > 0) refuse('inconsistent_sets', `${missing.size} seeds to skipped positions are missing`);
}

function checkAccepted(p, accepted) {
  const { T, K, timeouts } = p;
  checkAscending(accepted, positionsOf(p), 'accepted');
  const least = timeouts === 'void' ? K : T + 2;
  if (!(accepted.length >= least && accepted.length <= K)) {
    refuse('below_threshold', `${accepted.length} accepted positions are not in [${least}, ${K}] [BAA-19]`);
  }
}

const SESSION = { ...NUMBERS, session: readBytes, round: readRound };
const BOXED = { ...SESSION, sender: readSize, from: readInteger, to: readInteger, purpose: readString };

const operations = {
  'basa.mask': {
    params: {
      ...SESSION, position: readInteger, accepted: readUsers, before: readKeys, seeds: readBytes, weight: readCount,
      update: readVector,
    },
    rand: {},
    run(p) {
      const { position, accepted, before, seeds, weight, update } = p;
      const epoch = agreementOf(p);
      checkPosition(position, p, 'position');
      checkAscending(accepted, position, 'accepted');
      checkLength(before.length, accepted.length, 'before');
      checkSeeds(before, 'before');
      checkLength(seeds.length, KEY * positionsOf(p), 'seeds');
      checkWeight(weight, p, 'weight');
      checkVector(update, p.d, p.R, 'update'); // [BAA-24]
      const known = accepted.map((i, n) => [i, before[n]]);
      return { masked: writeVector(maskUpdate(epoch, position, weight, update, known, seeds)) };
    },
  },
  'basa.seal': {
    params: { ...BOXED, public: readBytes, seed: readBytes },
    rand: { box_key: readBytes },
    run(p, { box_key: own }) {
      const epoch = agreementOf(p);
      checkUse(p);
      checkKey(p.public, 'public');
      checkKey(p.seed, 'seed');
      checkKey(own, 'box_key');
      return { box: sealBox(epoch, p, own, p.public, p.seed).toString('hex') };
    },
  },
  'basa.open': {
    params: { ...BOXED, private: readBytes, box: readBytes },
    rand: {},
    run(p) {
      const epoch = agreementOf(p);
      checkUse(p);
      checkKey(p.private, 'private');
      return { seed: openBox(epoch, p, p.private, p.box).toString('hex') };
    },
  },
  'basa.recover': {
    params: {
      ...SESSION, accepted: readUsers, weights: readVector, masked: readVectors, own: readKeys, skipped: readSkipped,
    },
    rand: {},
    run(p) {
      const { R, d, accepted, weights, masked, own, skipped } = p;
      const epoch = agreementOf(p);
      checkAccepted(p, accepted);
      checkLength(weights.length, accepted.length, 'weights');
      weights.forEach((weight, i) => checkWeight(weight, p, `weights[${i}]`));
      checkLength(masked.length, accepted.length, 'masked');
      masked.forEach((vector, i) => checkVector(vector, d, R, `masked[${i}]`));
      checkLength(own.length, hasSelfMasks(p) ? accepted.length : 0, 'own');
      checkSeeds(own, 'own');
      checkSkipped(p, accepted, skipped);
      const total = masked.reduce((sum, vector) => elementwise(add, sum, vector, R), new Uint32Array(d));
      const sum = unmaskSum(epoch, total, own.map((seed, n) => [accepted[n], seed]), skipped);
      const divisor = divisorOf(p.c_l, weights);
      return { sum: writeVector(sum), average: writeReals(average(R, divisor, sum), 'binary64') }; // [BAA-43]
    },
  },
};

module.exports = {
  KEY, BOX, PAIR_BOX, SELF_BOX, NUMBERS, positionsOf, hasSelfMasks, agreementOf, piece, pieces, maskUpdate, unmaskSum,
  sealBox, openBox, checkAscending, operations,
};
