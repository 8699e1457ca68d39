// SPDX-License-Identifier: Apache-2.0
//
// BASecAgg, one function at a time (BASecAgg, sections 2, 5 and 6; adapter, section 4).

'use strict';

const { SERVER, refuse } = require('./refusals');
const {
  add, subtract, checkFieldModulus, checkElements, checkLength, checkVector, elementwise,
} = require('./integers');
const { checkCode, shareLength, checkWork, combine, decode, checkUserList } = require('./code');
const { checkLevel, quantize } = require('./quantizer');
const { FUNCTION, checkFunction, floorOf, isAdmissible } = require('./staleness');
const {
  readVector, readReals, writeVector, writeReals, readDecimal, readInteger, readCount, readRound, readList, readUsers,
  readVectors,
} = require('./encodings');

const EXACT = 2n ** 53n; // integers up to here are binary64 numbers

/** The numbers of a session, in the order of the text [BSA-03]. */
const NUMBERS = {
  q: readDecimal, N: readCount, D: readCount, U: readCount, T: readCount, d: readCount, K: readCount, c_l: readDecimal,
  c_g: readDecimal, tau_max: readCount, ...FUNCTION,
};

// ------------------------------------------------------------------------------------------------------------------
// Parameters

/** The largest integer whose sums with weights of K · c_g all together are decoded rightly: ⌊(q-1)/2⌋. */
function half(q) {
  return Math.floor((q - 1) / 2);
}

/** [BSA-02], what it says of K, c_g and q. */
function checkBudget({ q, K, c_g: level }) {
  checkFieldModulus(q);
  if (!(Number.isInteger(level) && level >= 1 && K >= 1 && K * level <= half(q))) {
    refuse('bad_param', `not allowed together: q=${q}, K=${K}, c_g=${level} [BSA-02]`);
  }
}

/** [BSA-01] [BSA-02], what they say of the numbers that tell which buffers are taken. */
function checkBufferNumbers(p) {
  const { q, N, T, K, c_g: level, tau_max: oldest } = p;
  checkBudget(p);
  checkFunction(p);
  if (!(T >= 1 && T + 2 <= K && K <= N && N < q && oldest >= 0)) {
    refuse('bad_param', `not allowed together: q=${q}, N=${N}, T=${T}, K=${K}, tau_max=${oldest} [BSA-01]`);
  }
  if (floorOf(p, level, oldest).floor < 1) {
    refuse('bad_param', `c_g = ${level} gives a staleness of ${oldest} a weight below 1 [BSA-02]`);
  }
}

/** [BSA-01] [BSA-02] */
function checkParameters(p) {
  const { N, D, U, T, d, K, c_l: fine, c_g: coarse } = p;
  checkBufferNumbers(p);
  if (!(U > T && D >= 0 && N - D >= U && d >= 1)) {
    refuse('bad_param', `not allowed together: N=${N}, D=${D}, U=${U}, T=${T}, d=${d} [BSA-01]`);
  }
  checkLevel(fine);
  if (BigInt(fine) * BigInt(K) * BigInt(coarse) > EXACT) {
    refuse('bad_param', `c_l · K · c_g is above 2**53: ${fine} · ${K} · ${coarse} [BSA-02]`);
  }
}

// ------------------------------------------------------------------------------------------------------------------
// The formulas

/** The integer that an element stands for [QNT-06]. */
function decoded(element, q) {
  return element <= half(q) ? element : element - q;
}

/** [BSA-06] */
function checkMagnitudes(update, { q, K, c_g: level }) {
  const bound = Math.floor(half(q) / (K * level));
  update.forEach((element, i) => {
    const v = decoded(element, q);
    if (Math.abs(v) > bound) refuse('out_of_range', `update[${i}]: ${v} is above ${bound} in magnitude [BSA-06]`);
  });
}

/** [BSA-04] [BSA-06] */
function maskUpdate(p, update, mask) {
  checkMagnitudes(update, p);
  return elementwise(add, update, mask, p.q);
}

/**
 * [BSA-21] [BSA-22] [BSA-23] [BSA-25] What a user asks of a buffer; holds(user, stamp): whether it holds that share.
 * [BSA-24] follows: there are K >= T + 2 entries, and no admissible weight of a staleness up to tau_max is 0 [BSA-02].
 */
function checkBuffer(p, round, { users, stamps, weights }, holds) {
  const { N, K, c_g: level, tau_max: oldest } = p;
  const wrong = (text) => refuse('inconsistent_sets', text, [SERVER]);
  if (![users, stamps, weights].every((list) => list.length === K)) wrong(`the buffer has not ${K} entries [BSA-21]`);
  users.forEach((user, i) => {
    if (!(user >= 0 && user < N)) wrong(`user ${user} is not in [0, ${N}) [BSA-21]`);
    if (i > 0 && user <= users[i - 1]) wrong(`user ${user} comes after user ${users[i - 1]} [BSA-21]`);
  });
  users.forEach((user, i) => {
    const staleness = round - stamps[i];
    if (!(staleness >= 0 && staleness <= oldest)) {
      wrong(`the stamp ${stamps[i]} in a buffer of round ${round} is not allowed [BSA-22]`);
    }
    if (!isAdmissible(weights[i], p, level, staleness)) {
      wrong(`${weights[i]} is no weight of a staleness of ${staleness} [BSA-23]`);
    }
    if (!holds(user, stamps[i])) {
      refuse('inconsistent_sets', `no share of user ${user} is held under the stamp ${stamps[i]} [BSA-25]`);
    }
  });
}

/** [BSA-27] The sum of vectors, each times its weight. */
function weighted(q, weights, vectors) {
  return combine(weights, vectors, vectors[0].length, q);
}

/** [BSA-29] [BSA-30] [BSA-31] The weighted sum of the updates; all is of the right form. */
function recoverWeighted({ q, U, T, d }, weights, masked, users, shares) {
  if (users.length < U) refuse('below_threshold', `${users.length} answers are fewer than U = ${U} [BSA-30]`);
  const masks = decode(q, U, T, d, users, shares);
  return elementwise(subtract, weighted(q, weights, masked), masks, q);
}

/** [BSA-32] What an average is divided by: the level times the sum of the weights, a number that is exact [BSA-02]. */
function divisorOf(level, weights) {
  const divisor = BigInt(level) * Array.from(weights, BigInt).reduce((sum, weight) => sum + weight, 0n);
  if (divisor === 0n) refuse('bad_param', 'the sum of the weights is 0 [BSA-32]');
  if (divisor > EXACT) refuse('bad_param', `c_l = ${level} times the sum of the weights is above 2**53 [BSA-02]`);
  return Number(divisor);
}

/** [BSA-33] Only the quotient is rounded. */
function average(q, divisor, sum) {
  return Float64Array.from(sum, (element) => decoded(element, q) / divisor);
}

// ------------------------------------------------------------------------------------------------------------------
// Operations

/** `held`: a list of [user, stamp, vector]. */
function readHeld(value, name) {
  return readList(value, name, (item, at) => {
    if (!Array.isArray(item) || item.length !== 3) refuse('malformed', `${at} is not a user, a stamp and a vector`);
    return { user: readInteger(item[0], at), stamp: readRound(item[1], at), share: readVector(item[2], at) };
  });
}

/** [ADP-16] The shares by user: each user at most once, all of one length. */
function sortHeld(held, q, N) {
  checkUserList(held.map(({ user }) => user), N, 'held');
  for (const { user, share } of held) {
    if (share.length < 1) refuse('bad_param', 'a share has at least one element [BSA-01]');
    checkVector(share, held[0].share.length, q, `the share of user ${user}`);
  }
  return new Map(held.map(({ user, stamp, share }) => [user, { stamp, share }]));
}

const operations = {
  'basecagg.encode': {
    params: { q: readDecimal, K: readCount, c_l: readDecimal, c_g: readDecimal, x: readReals },
    rand: { rounding: readReals },
    run({ q, K, c_l: fine, c_g: coarse, x }, { rounding }) {
      checkBudget({ q, K, c_g: coarse });
      checkLevel(fine);
      checkLength(rounding.length, x.length, 'rounding');
      return { value: writeVector(quantize(q, fine, K * coarse, x, rounding)) }; // [BSA-36]
    },
  },
  'basecagg.mask': {
    params: { q: readDecimal, K: readCount, c_g: readDecimal, update: readVector, mask: readVector },
    rand: {},
    run(p) {
      checkBudget(p);
      checkLength(p.mask.length, p.update.length, 'mask'); // [BSA-05]
      if (p.update.length < 1) refuse('bad_param', 'an update has at least one element [BSA-01]');
      checkElements(p.update, p.q, 'update');
      checkElements(p.mask, p.q, 'mask');
      return { masked: writeVector(maskUpdate(p, p.update, p.mask)) };
    },
  },
  'basecagg.combine': {
    params: {
      q: readDecimal, N: readCount, T: readCount, K: readCount, c_g: readDecimal, tau_max: readCount, ...FUNCTION,
      round: readRound, users: readUsers, stamps: readVector, weights: readVector, held: readHeld,
    },
    rand: {},
    run(p) {
      checkBufferNumbers(p);
      const held = sortHeld(p.held, p.q, p.N);
      checkBuffer(p, p.round, p, (user, stamp) => held.has(user) && held.get(user).stamp === stamp);
      return { share: writeVector(weighted(p.q, p.weights, p.users.map((user) => held.get(user).share))) };
    },
  },
  'basecagg.recover': {
    params: {
      q: readDecimal, N: readCount, U: readCount, T: readCount, d: readCount, c_l: readDecimal, weights: readVector,
      masked: readVectors, users: readUsers, shares: readVectors,
    },
    rand: {},
    run(p) {
      const { q, N, U, T, d, c_l: level, weights, masked, users, shares } = p;
      checkCode(q, N, U, T);
      if (d < 1) refuse('bad_param', `d = ${d} is below 1 [BSA-01]`);
      checkLevel(level);
      checkElements(weights, q, 'weights');
      const divisor = divisorOf(level, weights);
      checkLength(masked.length, weights.length, 'masked');
      masked.forEach((vector, i) => checkVector(vector, d, q, `masked[${i}]`));
      checkLength(shares.length, users.length, 'shares');
      checkUserList(users, N, 'users');
      shares.forEach((vector, i) => checkVector(vector, shareLength(d, U, T), q, `shares[${i}]`));
      checkWork(U * users.length + U * (users.length - T) * shareLength(d, U, T));
      const sum = recoverWeighted(p, weights, masked, users, shares);
      return { sum: writeVector(sum), average: writeReals(average(q, divisor, sum), 'binary64') };
    },
  },
};

module.exports = {
  EXACT, NUMBERS, half, decoded, divisorOf, average, checkParameters, maskUpdate, checkBuffer, weighted, recoverWeighted,
  operations,
};
