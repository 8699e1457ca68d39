// SPDX-License-Identifier: Apache-2.0
//
// The code that shares a mask

'use strict';

const { Unsupported, refuse } = require('./refusals');
const { subtract, multiplyAdd, multiply, inverse, checkFieldModulus, checkLength, checkVector } = require('./integers');

/** The default point of user j [MDS-02]: distinct and not 0, since j < N < q. */
function pointOf(user) {
  return user + 1;
}

/** [MDS-01] 1 <= T < U <= N < q, with q a prime. */
function checkCode(q, N, U, T) {
  checkFieldModulus(q);
  if (!(1 <= T && T < U && U <= N && N < q)) {
    refuse('bad_param', `1 <= T < U <= N < q does not hold for T=${T}, U=${U}, N=${N}, q=${q} [MDS-01]`);
  }
}

/** L, the number of elements of a share. */
function shareLength(d, U, T) {
  return Math.ceil(d / (U - T));
}

/** What no machine does in an acceptable time is not offered. */
function checkWork(products) {
  if (products > 1e10) throw new Unsupported('too much work');
}

/** The shares of all users, without checks. mask: d elements; noise: T·L elements, row by row. */
function encode(q, N, U, T, mask, noise) {
  const L = shareLength(mask.length, U, T);
  // [MDS-03] U rows of L columns: the mask continued by zeros, then the noise.
  const matrix = new Uint32Array(U * L);
  matrix.set(mask, 0);
  matrix.set(noise, (U - T) * L);
  // [MDS-04] The polynomial of each column, at the point of each user, by Horner's rule.
  const shares = [];
  for (let j = 0; j < N; j += 1) {
    const share = matrix.slice((U - 1) * L);
    const a = pointOf(j);
    for (let k = U - 2; k >= 0; k -= 1) {
      const row = k * L;
      for (let l = 0; l < L; l += 1) share[l] = multiplyAdd(a, share[l], matrix[row + l], q);
    }
    shares.push(share);
  }
  return shares;
}

/** Sum over i of weights[i] · vectors[i][l], for every l. */
function combine(weights, vectors, length, q) {
  const sum = new Uint32Array(length);
  for (let i = 0; i < weights.length; i += 1) {
    const weight = weights[i];
    const vector = vectors[i];
    for (let l = 0; l < length; l += 1) sum[l] = multiplyAdd(weight, vector[l], sum[l], q);
  }
  return sum;
}

/**
 * [MDS-05] [MDS-06] [MDS-09] The vector of d elements from the shares of at least U distinct users, checked before.
 *
 * Each column of M is a polynomial of degree below U, known at the points of the first U users. With
 * A(X) = (X - a_1)…(X - a_U) and A_i = A / (X - a_i), Lagrange's basis is A_i / A_i(a_i); row k of M is the
 * combination of the shares with the coefficients of X**k in that basis. Each further share must be the value of the
 * same polynomial at its own point.
 */
function decode(q, U, T, d, users, shares) {
  const L = shareLength(d, U, T);
  const points = users.map(pointOf);

  // A, lowest coefficient first.
  const product = new Uint32Array(U + 1);
  product[0] = 1;
  for (let i = 0; i < U; i += 1) {
    for (let k = i + 1; k >= 0; k -= 1) {
      const shifted = k > 0 ? product[k - 1] : 0;
      product[k] = subtract(shifted, multiply(points[i], product[k], q), q);
    }
  }

  // rows[k][i]: the coefficient of X**k in the basis polynomial of user i; scale[i] = 1 / A_i(a_i).
  const wanted = U - T;
  const rows = Array.from({ length: wanted }, () => new Uint32Array(U));
  const scale = new Uint32Array(U);
  const quotient = new Uint32Array(U);
  for (let i = 0; i < U; i += 1) {
    let coefficient = 0;
    let value = 0; // A_i(a_i), by Horner's rule along the division
    for (let k = U - 1; k >= 0; k -= 1) {
      coefficient = multiplyAdd(points[i], coefficient, product[k + 1], q);
      quotient[k] = coefficient;
      value = multiplyAdd(points[i], value, coefficient, q);
    }
    scale[i] = inverse(value, q);
    for (let k = 0; k < wanted; k += 1) rows[k][i] = multiply(scale[i], quotient[k], q);
  }

  // [MDS-09] [LSA-15] The basis at a further point x is A(x) / (x - a_i) · scale[i].
  for (let extra = U; extra < users.length; extra += 1) {
    const x = points[extra];
    let atX = 1;
    for (let i = 0; i < U; i += 1) atX = multiply(atX, subtract(x, points[i], q), q);
    const weights = new Uint32Array(U);
    for (let i = 0; i < U; i += 1) {
      weights[i] = multiply(multiply(atX, scale[i], q), inverse(subtract(x, points[i], q), q), q);
    }
    const expected = combine(weights, shares, L, q);
    for (let l = 0; l < L; l += 1) {
      if (expected[l] !== shares[extra][l]) {
        refuse('bad_share', `the shares of the users ${users.join(', ').slice(0, 200)} lie on no codeword [MDS-09]`);
      }
    }
  }

  const vector = new Uint32Array(wanted * L);
  for (let k = 0; k < wanted; k += 1) vector.set(combine(rows[k], shares, L, q), k * L);
  return vector.subarray(0, d);
}

/** [MDS-07] [MDS-08] and the form of the shares; then the decoder. */
function checkedDecode(q, N, U, T, d, users, shares) {
  checkLength(shares.length, users.length, 'shares');
  checkUserList(users, N, 'users'); // [MDS-08]
  if (users.length < U) refuse('below_threshold', `${users.length} shares are fewer than U = ${U} [MDS-07]`);
  const L = shareLength(d, U, T);
  shares.forEach((share, i) => checkVector(share, L, q, `shares[${i}]`));
  checkWork(U * users.length + U * (users.length - T) * L);
  return decode(q, U, T, d, users, shares);
}

/** No user twice, and none outside [0, N). */
function checkUserList(users, N, name) {
  const seen = new Set();
  for (const user of users) {
    if (!(user >= 0 && user < N)) refuse('unknown_peer', `${name}: user ${user} is not in [0, ${N})`);
    if (seen.has(user)) refuse('duplicate_id', `${name}: user ${user} is named twice`);
    seen.add(user);
  }
  return seen;
}

module.exports = { pointOf, checkCode, shareLength, checkWork, encode, combine, decode, checkedDecode, checkUserList };
