// SPDX-License-Identifier: Apache-2.0
//
// Secret sharing (conventions, section 11), with BigInt.

'use strict';

const crypto = require('node:crypto');
const { Unsupported, refuse, checkAnswerSize } = require('./refusals');
const { checkLength } = require('./integers');
const { readBytes, readCount, readList, readUsers } = require('./encodings');

const P = 2n ** 521n - 1n;
const ELEMENT = 66; // bytes of a number of the field [SHM-05]
const SECRET = 32; // bytes of a secret
const MOST_HOLDERS = 65536; // [SHM-01]
const LAST_USER = 4294967294; // [SHM-02]

const numberOf = (bytes) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
const bytesOf = (number, size) => Buffer.from(number.toString(16).padStart(2 * size, '0'), 'hex').reverse();
const residue = (x) => ((x % P) + P) % P;
const pointOf = (user) => BigInt(user) + 1n;

/** [SHM-06] The number that stands in 66 bytes. */
function readElement(bytes, name) {
  if (bytes.length !== ELEMENT) refuse('length_mismatch', `${name} has ${bytes.length} bytes instead of 66 [SHM-06]`);
  const number = numberOf(bytes);
  if (number >= P) refuse('noncanonical', `${name} is not below 2**521 - 1 [SHM-06]`);
  return number;
}

/** [SHM-01] */
function checkThreshold(t, most) {
  if (t < 2 || t > most) refuse('bad_param', `t = ${t} is not in [2, ${most}] [SHM-01]`);
}

/** [SHM-01] [SHM-02] */
function checkHolders(users) {
  const seen = new Set();
  for (const user of users) {
    if (user < 0 || user > LAST_USER) refuse('unknown_peer', `there is no user ${user} [SHM-02]`);
    if (seen.has(user)) refuse('duplicate_id', `user ${user} is named twice [SHM-02]`);
    seen.add(user);
  }
  if (users.length > MOST_HOLDERS) refuse('bad_param', `${users.length} holders are too many [SHM-01]`);
}

function checkSharingWork(products) {
  if (products > 2e8) throw new Unsupported('too much work');
}

/** [SHM-04] The value of the polynomial at x; coefficients[k] belongs to x**k. */
function valueAt(coefficients, x) {
  let power = 1n;
  let sum = 0n;
  for (const coefficient of coefficients) {
    sum += coefficient * power;
    power = (power * x) % P;
  }
  return sum % P;
}

/** a**-1 modulo p, by the extended algorithm of Euclid. */
function inverse(a) {
  let [r, next] = [P, residue(a)];
  let [s, nextS] = [0n, 1n];
  while (next !== 0n) {
    const quotient = r / next;
    [r, next] = [next, r - quotient * next];
    [s, nextS] = [nextS, s - quotient * nextS];
  }
  return residue(s);
}

/**
 * Newton's form of the polynomial through the points: entry k is the divided difference of the first k + 1 values, and
 * belongs to (x - x_0) ... (x - x_(k-1)).
 */
function dividedDifferences(points, values) {
  const table = values.slice();
  const inverses = new Map(); // of differences of points, of which many are equal
  const inverseOf = (d) => {
    if (!inverses.has(d)) inverses.set(d, inverse(d));
    return inverses.get(d);
  };
  for (let order = 1; order < points.length; order += 1) {
    for (let i = points.length - 1; i >= order; i -= 1) {
      table[i] = residue((table[i] - table[i - 1]) * inverseOf(points[i] - points[i - order]));
    }
  }
  return table;
}

/** [SHM-08] [SHM-10] [SHM-11] The secret that at least t shares of distinct users give, checked before. */
function recover(t, users, values) {
  const points = users.map(pointOf);
  const differences = dividedDifferences(points, values);
  // The polynomial has a degree below t exactly when all differences from order t on are zero.
  if (differences.slice(t).some((difference) => difference !== 0n)) {
    refuse('bad_share', `${users.length} shares do not lie on one polynomial of degree below ${t} [SHM-10]`, users);
  }
  let number = 0n;
  for (let k = t - 1; k >= 0; k -= 1) number = residue(differences[k] - number * points[k]);
  if (number >= 2n ** 256n) refuse('bad_share', 'the shares give a number of more than 32 bytes [SHM-11]', users);
  return bytesOf(number, SECRET);
}

/** [SHM-07] Some numbers of the field, drawn anew. */
function drawElements(count) {
  const drawn = [];
  while (drawn.length < count) {
    const number = numberOf(crypto.randomBytes(ELEMENT)) & P;
    if (number !== P) drawn.push(number);
  }
  return drawn;
}

/** [SHM-06] t - 1 numbers of the field, as BigInts: the coefficient of x first. */
function checkCoefficients(coefficients, t, name) {
  checkLength(coefficients.length, t - 1, name);
  coefficients.forEach((number, k) => {
    if (typeof number !== 'bigint' || number < 0n || number >= P) {
      refuse('noncanonical', `${name}[${k}] is not in [0, 2**521 - 1) [SHM-06]`);
    }
  });
}

/** [SHM-04] The shares of a secret of 32 bytes, by holder; the coefficients are checked before. */
function shareAmong(secret, t, holders, coefficients) {
  checkHolders(holders);
  checkThreshold(t, holders.length);
  const polynomial = [numberOf(secret), ...coefficients];
  return new Map(holders.map((user) => [user, bytesOf(valueAt(polynomial, pointOf(user)), ELEMENT)]));
}

const operations = {
  'shamir.share': {
    params: { t: readCount, n: readCount, secret: readBytes },
    rand: { coefficients: readBytes },
    run({ t, n, secret }, { coefficients }) {
      if (n < 2 || n > MOST_HOLDERS) refuse('bad_param', `n = ${n} is not in [2, 65536] [SHM-01]`);
      checkThreshold(t, n);
      if (secret.length !== SECRET) refuse('length_mismatch', `the secret has ${secret.length} bytes [SHM-03]`);
      checkLength(coefficients.length, (t - 1) * ELEMENT, 'coefficients');
      checkAnswerSize(n * (2 * ELEMENT + 3));
      checkSharingWork(n * t);
      const polynomial = [numberOf(secret)];
      for (let k = 1; k < t; k += 1) {
        const piece = coefficients.subarray((k - 1) * ELEMENT, k * ELEMENT);
        polynomial.push(readElement(piece, `coefficient ${k}`));
      }
      const shares = [];
      for (let j = 0; j < n; j += 1) shares.push(bytesOf(valueAt(polynomial, pointOf(j)), ELEMENT).toString('hex'));
      return { shares };
    },
  },
  'shamir.reconstruct': {
    params: { t: readCount, users: readUsers, shares: (value, name) => readList(value, name, readBytes) },
    rand: {},
    run({ t, users, shares }) {
      checkThreshold(t, MOST_HOLDERS);
      checkHolders(users);
      checkLength(shares.length, users.length, 'shares');
      const values = shares.map((share, i) => readElement(share, `shares[${i}]`));
      if (users.length < t) refuse('below_threshold', `${users.length} shares are fewer than t = ${t} [SHM-09]`);
      checkSharingWork(users.length * users.length);
      return { secret: recover(t, users, values).toString('hex') };
    },
  },
};

module.exports = { ELEMENT, readElement, drawElements, checkCoefficients, shareAmong, recover, operations };
