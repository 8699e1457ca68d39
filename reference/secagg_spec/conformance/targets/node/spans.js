// SPDX-License-Identifier: Apache-2.0
//
// What sums over several sets of users give away together (HeteroSAg, section 8), with BigInt.

'use strict';

const absolute = (x) => (x < 0n ? -x : x);
const divisorOf = (a, b) => (b === 0n ? absolute(a) : divisorOf(b, a % b));

/** A multiple of a vector of integers whose entries have no common divisor. */
function primitive(vector) {
  const divisor = vector.reduce(divisorOf, 0n);
  return divisor === 0n ? vector : vector.map((entry) => entry / divisor);
}

/** What is left of a vector modulo the span of a basis, up to a factor; each vector of it has a place that it clears. */
function reduced(vector, basis) {
  let rest = vector;
  for (const { at, entries } of basis) {
    const [factor, other] = [entries[at], rest[at]];
    if (other !== 0n) rest = primitive(rest.map((entry, i) => factor * entry - other * entries[i]));
  }
  return rest;
}

/** A basis with one more vector, or null when it is in the span already. */
function extended(basis, vector) {
  const entries = reduced(vector, basis);
  const at = entries.findIndex((entry) => entry !== 0n);
  return at < 0 ? null : [...basis, { at, entries }];
}

function rankOf(columns) {
  return columns.reduce((basis, { entries }) => extended(basis, entries) || basis, []).length;
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
 * Whether some coefficients give a combination that is not zero, and that is zero on the columns of `zeros` and on all
 * from `next` on but some with at most `most` members. Coefficients that are zero on columns of full rank are zero on
 * all.
 */
function search(columns, rank, next, zeros, most) {
  if (zeros.length === rank) return false;
  if (next === columns.length) return true;
  const { entries, size } = columns[next];
  const more = extended(zeros, entries);
  if (more === null) return search(columns, rank, next + 1, zeros, most);
  return (size <= most && search(columns, rank, next + 1, zeros, most - size))
    || search(columns, rank, next + 1, more, most);
}

/** [HSA-27] Whether a combination of the indicator vectors of sets is not zero on 1 to `most` of the members. */
function hasSmallCombination(members, sets, most) {
  const columns = columnsOf(members, sets);
  return search(columns, rankOf(columns), 0, [], most);
}

module.exports = { hasSmallCombination };
