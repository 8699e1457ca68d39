// SPDX-License-Identifier: Apache-2.0
//
// What sums over several sets of users give away together (HeteroSAg, section 8), with BigInt.
//
// The columns of a matrix of integers make a lattice, the vectors that they add up to with integer factors. Columns can be
// left out without a change of the rank r and of the divisor D exactly when the others make the same lattice: with the
// same rank, the quotient of the two divisors is the index of one lattice in the other. So nothing here depends on m.

'use strict';

/** The combination a * v - b * w of two vectors. */
const combine = (a, v, b, w) => v.map((entry, i) => a * entry - b * w[i]);

/** The divisor g of two numbers that are not both zero, g > 0, with factors x and y such that x * a + y * b = g. */
function bezout(a, b) {
  if (b === 0n) return a < 0n ? [-a, -1n, 0n] : [a, 1n, 0n];
  const [g, x, y] = bezout(b, a % b);
  return [g, y, x - (a / b) * y];
}

/** A lattice is a list of vectors, by the place of their first entry, or null where no vector starts there. */
const emptyLattice = (size) => Array(size).fill(null);

/** The lattice with one more vector. */
function extended(lattice, vector) {
  const made = [...lattice];
  let rest = vector;
  for (let at = 0; at < rest.length; at += 1) {
    if (rest[at] === 0n) continue;
    const own = made[at] || emptyLattice(rest.length).fill(0n);
    const [divisor, x, y] = bezout(own[at], rest[at]);
    made[at] = combine(x, own, -y, rest);
    rest = combine(own[at] / divisor, rest, rest[at] / divisor, own);
  }
  return made;
}

/** Whether a vector is in a lattice. */
function holds(lattice, vector) {
  let rest = vector;
  for (let at = 0; at < rest.length; at += 1) {
    if (rest[at] === 0n) continue;
    if (lattice[at] === null || rest[at] % lattice[at][at] !== 0n) return false;
    rest = combine(1n, rest, rest[at] / lattice[at][at], lattice[at]);
  }
  return true;
}

/** Whether a lattice, which is in another one, is all of it. */
function isAll(lattice, other) {
  return other.every((vector, at) => vector === null || (lattice[at] !== null && lattice[at][at] === vector[at]));
}

/** The members as columns: which sets each is in; members that are in the same sets are one column, of their number. */
function columnsOf(members, sets) {
  const columns = new Map();
  for (const user of members) {
    const entries = sets.map((set) => (set.has(user) ? 1n : 0n));
    const text = entries.join('');
    if (!columns.has(text)) columns.set(text, { entries, size: 0 });
    columns.get(text).size += 1;
  }
  return [...columns.values()].sort((a, b) => b.size - a.size);
}

/**
 * Whether some of the columns from `next` on, of at most `most` members, can be left out so that the others and those
 * that make the lattice `kept` do not make the lattice `all`. A column that is in `kept` already makes no difference.
 */
function search(columns, all, next, kept, most) {
  if (isAll(kept, all)) return false;
  if (next === columns.length) return true;
  const { entries, size } = columns[next];
  if (holds(kept, entries)) return search(columns, all, next + 1, kept, most);
  return (size <= most && search(columns, all, next + 1, kept, most - size))
    || search(columns, all, next + 1, extended(kept, entries), most);
}

/** [HSA-27] [HSA-28] Whether sets are light together in a cell of these members: by leaving out 1 to `most` of them. */
function areLight(members, sets, most) {
  const columns = columnsOf(members, sets);
  const empty = emptyLattice(sets.length);
  const all = columns.reduce((lattice, { entries }) => extended(lattice, entries), empty);
  return search(columns, all, 0, empty, most);
}

module.exports = { areLight };
