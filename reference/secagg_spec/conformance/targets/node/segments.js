// SPDX-License-Identifier: Apache-2.0
//
// The plan of HeteroSAg: subgroups, segments, and the cells of each segment (HeteroSAg, sections 2 and 4).

'use strict';

const { MAX_MODULUS, Unsupported, refuse, checkAnswerSize, show } = require('./refusals');
const { checkLength, isPrime } = require('./integers');
const { checkRange } = require('./levels');
const { readReals, readCount, readList, readString } = require('./encodings');

const MATRICES = ['cyclic', 'perfect']; // in the order of their numbers in a binding
const ALONE = -1; // how B shows a subgroup that is alone
const MOST_USERS = 65536; // as many as can hold shares of one secret [SHM-01]
const readCounts = (value, name) => readList(value, name, readCount);

/** The numbers of a session. */
const NUMBERS = {
  N: readCount, D: readCount, T: readCount, t: readCount, d: readCount, sizes: readCounts, subgroups: readCounts,
  levels: readCounts, range: readReals, matrix: readString,
};

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const modulo = (a, n) => ((a % n) + n) % n;

/** The numbers from `from` on. */
const run = (from, count) => Array.from({ length: count }, (_, i) => from + i);

/** The lengths of some runs that a number is cut into; the first ones have one more where they are not alike. */
function cut(total, pieces) {
  return run(0, pieces).map((i) => Math.floor(total / pieces) + (i < total % pieces ? 1 : 0));
}

/** Where each of some runs starts. */
function startsOf(lengths) {
  let next = 0;
  return lengths.map((length) => {
    next += length;
    return next - length;
  });
}

// ------------------------------------------------------------------------------------------------------------------
// The matrix. A row is the list of whom each subgroup is with; one that is alone is with itself.

/** Whom each of n points is with, where pairs are given by a function. */
function rowOf(n, partner) {
  return run(0, n).map(partner);
}

/** Whom each of n points is with, from pairs; points without one are alone. */
function rowOfPairs(n, pairs) {
  const row = run(0, n);
  for (const [a, b] of pairs) [row[a], row[b]] = [b, a];
  return row;
}

function cyclic(Z) {
  return run(0, Z).map((l) => rowOf(Z, (a) => modulo(l + 1 - a, Z)));
}

const isOddPrime = (n) => n > 2 && isPrime(n);

/** n = p + 1: modulo p; whoever would be with itself is with the point p. */
function factorsOnPrime(p) {
  return run(0, p).map((l) => {
    const partner = (a) => modulo(l + 1 - a, p);
    return rowOfPairs(p + 1, run(0, p).map((a) => [a, partner(a) === a ? p : partner(a)]));
  });
}

/** n = 2p. */
function factorsOnTwicePrime(p) {
  const n = 2 * p;
  const reflections = run(0, p).map((l) => rowOf(n, (a) => (a % p === l ? (a + p) % n : modulo(2 * l - a, n))));
  const steps = run(0, p).map((i) => 2 * i + 1).filter((j) => j !== p);
  const shifts = steps.map((j) => rowOfPairs(n, run(0, p).map((i) => [2 * i, (2 * i + j) % n])));
  return [...reflections, ...shifts];
}

const STARTERS = new Map([
  [16, [[1, 3], [2, 11], [4, 5], [6, 13], [7, 10], [8, 12], [9, 14]]],
  [28, [
    [1, 20], [2, 3], [4, 6], [5, 22], [7, 21], [8, 24], [9, 16], [10, 15], [11, 14], [12, 18], [13, 25], [17, 26], [19, 23],
  ]],
]);

function factorsOfStarter(n) {
  const moved = (l) => STARTERS.get(n).map(([a, b]) => [(a + l) % (n - 1), (b + l) % (n - 1)]);
  return run(0, n - 1).map((l) => rowOfPairs(n, [...moved(l), [l, n - 1]]));
}

/** A perfect one-factorisation of n points as a function, or null where section 4 has none. */
function factorsOf(n) {
  if (n === 2) return () => [[1, 0]];
  if (isOddPrime(n - 1)) return () => factorsOnPrime(n - 1);
  if (isOddPrime(n / 2)) return () => factorsOnTwicePrime(n / 2);
  return STARTERS.has(n) ? () => factorsOfStarter(n) : null;
}

const pointsFor = (Z) => Z + (Z % 2);

/** The points are the subgroups, and for odd Z one more, with whom one is alone. */
function perfect(Z) {
  const rows = factorsOf(pointsFor(Z))();
  if (Z % 2 === 0) return [...rows, run(0, Z)];
  return rows.map((row) => row.slice(0, Z).map((other, z) => (other === Z ? z : other)));
}

// ------------------------------------------------------------------------------------------------------------------
// Parameters

/** [HSA-01], what it says of groups. */
function checkGroups({ N, T, sizes, subgroups }) {
  const wrong = (text) => refuse('bad_param', `${text} [HSA-01]`);
  checkLength(subgroups.length, sizes.length, 'subgroups');
  if (![...sizes, ...subgroups].every((count) => count >= 1)) wrong('a group has no user or no subgroup');
  if (sum(sizes) !== N) wrong(`the groups have ${sum(sizes)} users, and N = ${N}`);
  if (sum(subgroups) < 2) wrong(`${sum(subgroups)} subgroups are fewer than 2`);
  sizes.forEach((size, g) => {
    if (Math.floor(size / subgroups[g]) < T + 2) wrong(`a subgroup of group ${g} has fewer than T + 2 = ${T + 2} users`);
  });
}

/** [HSA-01], the rest of it, and [SHM-01]: on the complete graph all users hold shares. */
function checkCounts({ N, D, T, t }) {
  if (N > MOST_USERS) refuse('bad_param', `N = ${N} is above ${MOST_USERS} [SHM-01]`);
  if (!(T >= 1 && D >= 0 && N - D >= T + 2 && t >= T + 2 && t <= N - D)) {
    refuse('bad_param', `not allowed together: N=${N}, D=${D}, T=${T}, t=${t} [HSA-01]`);
  }
}

/** [HSA-02] */
function checkLevelsOfGroups({ sizes, levels }) {
  checkLength(levels.length, sizes.length, 'levels');
  levels.forEach((count, g) => {
    if (count < 2 || (g > 0 && count < levels[g - 1])) {
      refuse('bad_param', `group ${g} has ${count} levels: below 2, or fewer than the group before [HSA-02]`);
    }
  });
}

/** [HSA-06] */
function checkMatrix(matrix, Z) {
  if (!MATRICES.includes(matrix)) refuse('bad_param', `matrix is cyclic or perfect, not ${show(matrix)}`);
  if (matrix === 'perfect' && factorsOf(pointsFor(Z)) === null) {
    refuse('bad_param', `there is no perfect matrix of ${Z} subgroups [HSA-06]`);
  }
}

/** What would take a machine too long, or too much memory, is not offered. */
function checkPlanWork(N, Z) {
  checkAnswerSize(32 * Z * Z);
  if (N * Z > 1e7) throw new Unsupported('too much work');
}

/** [HSA-01] to [HSA-06], but for [HSA-03] */
function checkNumbers(p) {
  const Z = sum(p.subgroups);
  checkCounts(p);
  checkGroups(p);
  checkLevelsOfGroups(p);
  if (Z > p.d) refuse('bad_param', `${Z} segments of ${p.d} elements [HSA-04]`);
  checkRange(p.range);
  checkMatrix(p.matrix, Z);
  checkPlanWork(p.N, Z);
}

// ------------------------------------------------------------------------------------------------------------------
// The plan

/** [HSA-12] [HSA-03] A cell: levels of the group of its smaller subgroup, and a modulus that holds the sum. */
function cellOf(plan, segment, subgroups) {
  const users = subgroups.flatMap((z) => plan.members[z]);
  const bound = plan.levels[subgroups[0]];
  const R = users.length * (bound - 1) + 1;
  if (R > MAX_MODULUS) refuse('bad_param', `the modulus ${R} of segment ${segment} is above 2**32 [HSA-03]`);
  const [start, length] = [plan.starts[segment], plan.lengths[segment]];
  return { segment, start, length, R, bound, members: new Set(users), subgroups };
}

/** The cells of a row, by their smallest subgroups. */
function cellsOf(plan, row, segment) {
  const smaller = row.map((other, z) => [z, other]).filter(([z, other]) => z <= other);
  return smaller.map(([z, other]) => cellOf(plan, segment, z === other ? [z] : [z, other]));
}

/**
 * [HSA-11] The plan of some numbers: the users of each subgroup, the levels of its group, the segments, and the cells as
 * the parts of an input.
 */
function planOf(p) {
  checkNumbers(p);
  const counts = p.sizes.flatMap((size, g) => cut(size, p.subgroups[g]));
  const firsts = startsOf(counts);
  const lengths = cut(p.d, counts.length);
  const plan = {
    members: counts.map((count, z) => run(firsts[z], count)),
    levels: p.subgroups.flatMap((count, g) => Array(count).fill(p.levels[g])),
    lengths,
    starts: startsOf(lengths),
  };
  const rows = p.matrix === 'cyclic' ? cyclic(counts.length) : perfect(counts.length);
  return { ...plan, cells: rows.map((row, segment) => cellsOf(plan, row, segment)) };
}

/** A row of a table: an entry for each subgroup, made from its cell. */
function rowOfCells(cells, entryOf) {
  const row = [];
  for (const cell of cells) for (const z of cell.subgroups) row[z] = entryOf(cell);
  return row;
}

function matrixEntry({ subgroups }) {
  return subgroups.length === 1 ? ALONE : subgroups[0];
}

const operations = {
  'segment.plan': {
    params: NUMBERS,
    rand: {},
    run(p) {
      const { members, lengths, cells } = planOf(p);
      const table = (entryOf) => cells.map((row) => rowOfCells(row, entryOf));
      return {
        members, lengths, matrix: table(matrixEntry), levels: table(({ bound }) => bound), moduli: table(({ R }) => String(R)),
      };
    },
  },
};

module.exports = { MATRICES, NUMBERS, planOf, operations };
