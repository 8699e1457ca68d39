// SPDX-License-Identifier: Apache-2.0
//
// HeteroSAg: the parties of SecAgg on a plan of cells, and its functions one at a time (HeteroSAg, sections 5 to 8;
// adapter, section 4).

'use strict';

const crypto = require('node:crypto');
const { refuse } = require('./refusals');
const { checkLength, checkVector } = require('./integers');
const { checkUserList } = require('./code');
const { checkKey, checkSessionId, hashParameters, readKeys } = require('./crypto');
const { Graph } = require('./graph');
const { drawElements } = require('./shamir');
const { refusalOf } = require('./scripts');
const { PHASES, checkRoundNumber, partiesOf } = require('./secagg');
const {
  wellFormed, partsOf, elementsOf, membersIn, pairwiseKeys, selfKeys, maskInput, checkInput, checkSurvivorsOfParts, checkMemory,
  unmaskParts,
} = require('./parts');
const { packedSize, pack, unpack } = require('./packing');
const { quantizeAll } = require('./levels');
const { MATRICES, NUMBERS, planOf } = require('./segments');
const { checkMethod, averageRow } = require('./averages');
const {
  readBytes, readReals, readVector, writeVector, writeReals, readInteger, readCount, readSize, readRound, readList,
  readTuple, readUsers, readString, readBoolean, readMembers,
} = require('./encodings');

const PROTOCOL = 'heterosag';
const MASKED_SEGMENTS = 1281;
const RECEIVER_AT = 26; // where the receiver stands in a header (conventions, section 5)

// ------------------------------------------------------------------------------------------------------------------
// What all parties agree on

/** The integer that the bytes of a binary64 number are, big-endian. */
function integerOf(real) {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(real + 0); // zero without a sign
  return bytes.readBigUInt64BE();
}

/** [HSA-22] The names and values that keys are bound to. */
function boundParameters({ N, D, T, t, d, range, matrix, sizes, subgroups, levels }) {
  const numbers = { N, D, T, t, d, r1: integerOf(range[0]), r2: integerOf(range[1]), matrix: MATRICES.indexOf(matrix) };
  const groups = sizes.flatMap((users, g) => Object.entries({ users, subgroups: subgroups[g], levels: levels[g] }));
  return [...Object.entries(numbers), ...groups].map(([name, value]) => [name, String(value)]);
}

/** [HSA-15] The packed segments of a user, one after the other. */
function packSegments(shared, user, vector) {
  return Buffer.concat(partsOf(shared, user).map((part) => pack(elementsOf(vector, part), part.R)));
}

/** [HSA-16] The vector in the packed segments of a user, whom a refusal blames. */
function unpackSegments(shared, user, bytes) {
  const parts = partsOf(shared, user);
  const size = parts.reduce((total, { length, R }) => total + packedSize(length, R), 0);
  if (bytes.length !== size) {
    refuse('malformed', `the segments of user ${user} have ${bytes.length} bytes, not ${size} [HSA-16]`, [user]);
  }
  const vector = new Uint32Array(shared.numbers.d);
  let rest = bytes;
  for (const { start, length, R } of parts) {
    vector.set(wellFormed(user, () => unpack(rest.subarray(0, packedSize(length, R)), length, R)), start);
    rest = rest.subarray(packedSize(length, R));
  }
  return vector;
}

/** The message of a masked input. */
const MESSAGE = {
  type: MASKED_SEGMENTS,
  write: (shared, user, masked) => ({ segments: packSegments(shared, user, masked) }),
  read: (shared, { sender, segments }) => unpackSegments(shared, sender, segments),
};

/** What all parties agree on before a round, but for the round itself. */
function plannedOf(p) {
  const { N, D, T, t, d } = p;
  const plan = planOf(p);
  return {
    numbers: { N, D, T, t, d },
    plan,
    parts: plan.cells.flat(),
    protocol: PROTOCOL,
    parameters: hashParameters(boundParameters(p)),
    form: MESSAGE,
    past: [],
  };
}

/** The same, and the round. */
function sharedOf(p) {
  checkSessionId(p.session);
  checkRoundNumber(p.round);
  return { ...plannedOf(p), session: Buffer.from(p.session), round: p.round };
}

// ------------------------------------------------------------------------------------------------------------------
// Parties

/** Users of the roster, each once, ascending. */
function checkAscending(users, N, name) {
  checkUserList(users, N, name);
  const at = users.findIndex((user, i) => i > 0 && user < users[i - 1]);
  if (at >= 0) refuse('inconsistent_sets', `${name}: user ${users[at]} comes after user ${users[at - 1]}`);
}

/** The survivors of the requests that a user answered, or that the server sent, before; user: none for the server. */
function readPast(shared, user, past) {
  return past.map((users, i) => {
    checkAscending(users, shared.numbers.N, `past[${i}]`);
    if (users.length === 0) refuse('below_threshold', `past[${i}] is without users [ADP-38]`);
    if (user !== undefined && !users.includes(user)) {
      refuse('inconsistent_sets', `past[${i}] is without user ${user} [ADP-38]`);
    }
    const survivors = new Set(users);
    checkSurvivorsOfParts(shared, survivors);
    return survivors;
  });
}

/** What the parties of SecAgg take as agreed on: here the graph is complete. */
function agreement(p) {
  const shared = sharedOf(p);
  const { N } = shared.numbers;
  const past = p.past === undefined ? [] : readPast(shared, p.user, p.past);
  return { ...shared, graph: new Graph([...Array(N).keys()], N, N - 1), past };
}

const { newUser, newServer } = partiesOf(agreement);

// ------------------------------------------------------------------------------------------------------------------
// A whole round

/** What a user samples. */
function drawUser(t) {
  return {
    sealing_key: crypto.randomBytes(32),
    masking_key: crypto.randomBytes(32),
    self_seed: crypto.randomBytes(32),
    key_coefficients: drawElements(t - 1),
    seed_coefficients: drawElements(t - 1),
  };
}

/** What the server sends, by user. */
function deliver(messages) {
  const inboxes = new Map();
  for (const bytes of messages) {
    const receiver = bytes.readUInt32LE(RECEIVER_AT);
    if (!inboxes.has(receiver)) inboxes.set(receiver, []);
    inboxes.get(receiver).push(bytes);
  }
  return inboxes;
}

/** [HSA-21] The last answer of the server, where users drop out before their steps; gone: phase -> users. */
function playRound(users, server, gone) {
  let left = [...users.keys()];
  let inboxes = new Map();
  let answer;
  for (const phase of PHASES) {
    left = left.filter((i) => !gone[phase].includes(i) && (phase === PHASES[0] || inboxes.has(i)));
    const sent = left.map((i) => users[i].step(phase, inboxes.get(i) || []).outbox);
    answer = server.step(phase, sent.flat());
    inboxes = deliver(answer.outbox);
  }
  return answer;
}

/** The survivors' quantised inputs; all that is given is checked, also of users that drop out. */
function quantizeInputs({ parts }, { N, range, clip, x }, rounding) {
  checkLength(x.length, N, 'x');
  checkLength(rounding.length, N, 'rounding');
  return x.map((input, user) => {
    const levels = partsOf({ parts }, user).flatMap(({ length, bound }) => Array(length).fill(bound));
    checkLength(input.length, levels.length, `x[${user}]`);
    return quantizeAll(input, range, (i) => levels[i], clip, rounding[user]);
  });
}

/** The sums of a row's cells with survivors, as section 7 takes them. */
function rowOfSums(cells, sums, contributors) {
  const survivors = new Set(contributors);
  const seen = cells.map((cell) => ({ levels: cell.bound, count: membersIn(cell, survivors).length }));
  return seen.filter(({ count }) => count > 0).map((cell) => ({ ...cell, sum: sums.shift() }));
}

/** [HSA-23] to [HSA-26] The segments of the aggregate, one after the other. */
function averageSums({ plan }, { range, method, trim }, sums, contributors) {
  const left = [...sums];
  const rows = plan.cells.map((cells) => rowOfSums(cells, left, contributors));
  return rows.flatMap((row) => [...averageRow(range, row, method, trim)]);
}

// ------------------------------------------------------------------------------------------------------------------
// Operations

/** N keys of 32 bytes, of which any may be equal. */
function checkKeys(keys, N) {
  checkLength(keys.length, N, 'keys');
  keys.forEach((key, i) => checkKey(key, `keys[${i}]`));
}

/** [ADP-38] What `user` agreed on with others: list of [user, secret]. */
function checkSecrets(secrets, N, user) {
  checkUserList(secrets.map(([peer]) => peer), N, 'secrets');
  for (const [peer, secret] of secrets) {
    if (peer === user) refuse('unknown_peer', `secrets: user ${user} agrees on nothing with itself`);
    checkKey(secret, `the secret with user ${peer}`);
  }
}

/** [ADP-38] dropped user -> (survivor -> secret), from a list that has each of these pairs once. */
function agreedSecrets({ numbers: { N } }, survivors, secrets) {
  const agreed = new Map(secrets.map(([i]) => [i, new Map()]));
  for (const [i, j, secret] of secrets) {
    if (!(i >= 0 && i < N)) refuse('unknown_peer', `secrets: user ${i} is not in [0, ${N})`);
    if (survivors.has(i) || !survivors.has(j)) {
      refuse('inconsistent_sets', `secrets: not a dropped user and a survivor: ${i}, ${j} [ADP-38]`);
    }
    if (agreed.get(i).has(j)) refuse('duplicate_id', `secrets: users ${i} and ${j} are named twice [ADP-38]`);
    checkKey(secret, `the secret of users ${i} and ${j}`);
    agreed.get(i).set(j, secret);
  }
  checkComplete(survivors, agreed);
  return agreed;
}

/** [ADP-38] Each two users share a cell. */
function checkComplete(survivors, agreed) {
  for (const [i, found] of agreed) {
    const missing = [...survivors].find((j) => !found.has(j));
    if (missing !== undefined) refuse('inconsistent_sets', `secrets: users ${i} and ${missing} are missing [ADP-38]`);
  }
}

/** The answers of a user to requests, one after the other; it remembers those that it answered. */
function answerRequests(shared, requests) {
  const past = [];
  return requests.map((users) => {
    const survivors = new Set(users);
    try {
      checkSurvivorsOfParts(shared, survivors);
      checkMemory({ ...shared, past }, survivors);
    } catch (problem) {
      return refusalOf(problem);
    }
    past.push(survivors);
    return {};
  });
}

/** [ADP-38] Requests that one user may get: it survives in all of them, and enough others do. */
function checkRequests({ N, T, t }, requests) {
  requests.forEach((users, i) => {
    checkAscending(users, N, `requests[${i}]`);
    if (users.length < Math.max(t, T + 2)) {
      refuse('below_threshold', `requests[${i}] has ${users.length} survivors, fewer than ${Math.max(t, T + 2)}`);
    }
  });
  const [first = []] = requests;
  if (requests.length > 0 && !first.some((user) => requests.every((users) => users.includes(user)))) {
    refuse('inconsistent_sets', 'no user survives in all requests [ADP-38]');
  }
}

const ROUND = { ...NUMBERS, session: readBytes, round: readRound };
const readRows = (value, name) => readList(value, name, readReals);
const readGone = (value, name) => readMembers(value, name, Object.fromEntries(PHASES.map((phase) => [phase, readUsers])));

const operations = {
  'heterosag.mask': {
    params: {
      ...ROUND, user: readSize, self_seed: readBytes, keys: readKeys,
      secrets: (value, name) => readList(value, name, readTuple(readInteger, readBytes)), update: readVector,
    },
    rand: {},
    run(p) {
      const { N, user, self_seed: seed, keys, secrets, update } = p;
      const shared = sharedOf(p);
      checkUserList([user], N, 'user');
      checkKey(seed, 'self_seed');
      checkKeys(keys, N);
      checkSecrets(secrets, N, user);
      checkInput(shared, user, update); // [HSA-13]
      const pairwise = secrets.map(([i, secret]) => [i, pairwiseKeys(shared, secret, user, i, (j) => keys[j])]);
      const masked = maskInput(user, update, selfKeys(shared, seed, user), pairwise);
      return { segments: packSegments(shared, user, masked).toString('hex') };
    },
  },
  'heterosag.unmask': {
    params: {
      ...ROUND, keys: readKeys, survivors: readUsers, segments: readKeys, self_seeds: readKeys,
      secrets: (value, name) => readList(value, name, readTuple(readInteger, readInteger, readBytes)),
    },
    rand: {},
    run(p) {
      const { N, keys, survivors, segments, self_seeds: seeds, secrets } = p;
      const shared = sharedOf(p);
      checkKeys(keys, N);
      if (survivors.length === 0) refuse('below_threshold', 'nobody survives [ADP-38]');
      checkAscending(survivors, N, 'survivors');
      checkLength(segments.length, survivors.length, 'segments');
      checkLength(seeds.length, survivors.length, 'self_seeds');
      seeds.forEach((seed, i) => checkKey(seed, `self_seeds[${i}]`));
      checkSurvivorsOfParts(shared, new Set(survivors)); // [HSA-17]
      const agreed = agreedSecrets(shared, new Set(survivors), secrets);
      const masked = new Map(survivors.map((user, i) => [user, unpackSegments(shared, user, segments[i])]));
      const seedOf = new Map(survivors.map((user, i) => [user, seeds[i]]));
      return { sums: unmaskParts(shared, masked, seedOf, agreed, (i) => keys[i]).map(writeVector) };
    },
  },
  'heterosag.request': {
    params: { ...NUMBERS, requests: (value, name) => readList(value, name, readUsers) },
    rand: {},
    run(p) {
      const shared = plannedOf(p);
      checkRequests(p, p.requests);
      return { answers: answerRequests(shared, p.requests) };
    },
  },
  'heterosag.round': {
    params: { ...NUMBERS, clip: readBoolean, x: readRows, method: readString, trim: readCount, drop: readGone },
    rand: { rounding: readRows },
    run(p, { rounding }) {
      const { N, t, method, trim, drop } = p;
      const given = { ...p, session: crypto.randomBytes(16), round: 0 };
      checkMethod(method, trim);
      checkUserList(PHASES.flatMap((phase) => drop[phase]), N, 'drop'); // [ADP-16]
      const updates = quantizeInputs(plannedOf(p), p, rounding);
      const users = updates.map((update, user) => newUser({ ...given, user, update }, drawUser(t)));
      const { sums, contributors } = playRound(users, newServer(given), drop);
      const aggregate = averageSums(plannedOf(p), p, sums, contributors);
      return { sums: sums.map(writeVector), aggregate: writeReals(aggregate, 'binary64'), contributors };
    },
  },
};

module.exports = { NUMBERS, agreement, newUser, newServer, operations };
