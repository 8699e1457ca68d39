// SPDX-License-Identifier: Apache-2.0
//
// SecAgg and SecAgg+, the semi-honest profile (SecAgg, sections 2 to 7): a user and the server, step by step. HeteroSAg
// has the same parties, with inputs in more parts and a message of its own for them.
//
// The state of a party is a plain object that is never changed: a step makes the next one, or refuses and makes none
// [ERR-01].

'use strict';

const { SERVER, MAX_MODULUS, Reject, refuse, show } = require('./refusals');
const { checkVector } = require('./integers');
const {
  checkKey, checkSessionId, hashNumbers, agree, publicKeyOf, seal, unseal, sealingMaterials,
} = require('./crypto');
const { encodeMessage } = require('./messages');
const { message, readInbox, readOwn } = require('./scripts');
const { ELEMENT, readElement, checkCoefficients, shareAmong, recover } = require('./shamir');
const { commitment } = require('./masks');
const {
  ascending, wellFormed, pairwiseKeys, selfKeys, maskInput, checkInput, checkSurvivorsOfParts, checkMemory, unmaskParts,
} = require('./parts');
const { checkDegree, Graph } = require('./graph');

const ADVERTISED_KEYS = 513;
const NEIGHBOUR_KEYS = 514;
const SECRET_SHARES = 515;
const SEED_COMMITMENT = 516;
const MASKED_INPUT = 517;
const UNMASK_REQUEST = 518;
const UNMASK_SHARES = 519;
const PHASES = ['advertise_keys', 'share_keys', 'masked_input', 'unmasking'];
const PROTOCOL = 'secagg';
const KEY = 32;

// ------------------------------------------------------------------------------------------------------------------
// Parameters

/** [SAG-01] [SAG-02] */
function checkSecAgg({ R, N, D, T, t, k, d }) {
  const given = `R=${R}, N=${N}, D=${D}, T=${T}, t=${t}, k=${k}, d=${d}`;
  if (![R, N, D, T, t, k, d].every(Number.isInteger)) refuse('bad_param', `not all integers: ${given} [SAG-01]`);
  if (!(R >= 2 && R <= MAX_MODULUS && d >= 1 && T >= 1 && D >= 0 && N - D >= T + 2)) {
    refuse('bad_param', `not allowed together: ${given} [SAG-01]`);
  }
  checkDegree(k, N);
  if (k >= 2 ** 16) refuse('bad_param', `k is not below 2**16: ${given} [SAG-01]`);
  const [least, most] = k === N - 1 ? [T + 2, N - D] : [2, Math.min(k + 1, N - D)];
  if (!(t >= least && t <= most)) refuse('bad_param', `t is not in [${least}, ${most}]: ${given} [SAG-02]`);
}

function checkRoundNumber(round) {
  if (!(Number.isInteger(round) && round >= 0 && round < 2 ** 32)) {
    refuse('out_of_range', `the round ${round} is not in [0, 2**32)`);
  }
}

/** The message of a masked input: its type, its fields but for the neighbours, and the vector of d elements in it. */
const MESSAGE = {
  type: MASKED_INPUT,
  write: (shared, user, masked) => ({ masked }),
  read({ numbers: { d, R } }, { sender, masked }) {
    wellFormed(sender, () => checkVector(masked, d, R, `the masked input of user ${sender}`));
    return masked;
  },
};

/** The one part of an input: all of it, modulo R, and all users. */
function wholeInput({ R, N, d }) {
  return { segment: 0, start: 0, length: d, R, bound: R, members: new Set(Array(N).keys()) };
}

/** What all parties agree on before the round. */
function agreement({ R, N, D, T, t, k, d, order, session, round }) {
  const numbers = { R, N, D, T, t, k, d };
  checkSecAgg(numbers);
  checkSessionId(session);
  checkRoundNumber(round);
  return {
    numbers,
    graph: new Graph(order, N, k),
    protocol: PROTOCOL,
    parameters: hashNumbers(numbers),
    session: Buffer.from(session),
    round,
    parts: [wholeInput(numbers)],
    form: MESSAGE,
    past: [],
  };
}

/** The fewest users that a round may be left with. */
function fewest({ T, t }) {
  return Math.max(t, T + 2);
}

/** The i-th piece of some bytes. */
function piece(bytes, i, size) {
  return bytes.subarray(size * i, size * (i + 1));
}

// ------------------------------------------------------------------------------------------------------------------
// A user

/** The one message that the server sends to a user's step. */
function readFromServer(user, inbox, type) {
  const [received] = readOwn(user, inbox, type, (sender) => sender === SERVER);
  if (received === undefined) refuse('wrong_phase', `no message of type ${type} was received`);
  return received;
}

/** A list of users from the server: none twice [SAG-06] [SAG-19] and, as the table of section 4 has it, ascending. */
function readAscending(list, name) {
  const users = Array.from(list);
  if (new Set(users).size !== users.length) {
    refuse('inconsistent_sets', `${name} names a user twice [SAG-06] [SAG-19]`, [SERVER]);
  }
  if (users.some((user, i) => i > 0 && user < users[i - 1])) {
    refuse('malformed', `${name} is not in ascending order`, [SERVER]);
  }
  return users;
}

/** Bytes of a size for each of some users, as a Map. */
function readPieces(users, bytes, size, name, blamed) {
  if (bytes.length !== size * users.length) {
    refuse('malformed', `${name} has ${bytes.length} bytes for ${users.length} users, not ${size} for each`, blamed);
  }
  return new Map(users.map((user, i) => [user, piece(bytes, i, size)]));
}

/** [SAG-06] The keys that a user was sent, by neighbour. */
function readKeys(user, received) {
  const users = readAscending(received.users, 'users');
  const neighbours = user.graph.neighbours(user.index);
  const stranger = users.find((i) => !neighbours.includes(i));
  if (stranger !== undefined) refuse('inconsistent_sets', `user ${stranger} is no neighbour [SAG-06]`, [SERVER]);
  const sealing = readPieces(users, received.sealing, KEY, 'sealing', [SERVER]);
  const masking = readPieces(users, received.masking, KEY, 'masking', [SERVER]);
  return new Map(users.map((i) => [i, { sealing: sealing.get(i), masking: masking.get(i) }]));
}

/** [SAG-07] */
function checkDifferent(user, keys) {
  const owners = new Map([user.sealing.open, user.masking.open].map((key) => [key.toString('hex'), user.index]));
  for (const [owner, { sealing, masking }] of keys) {
    for (const key of [sealing, masking]) {
      const text = key.toString('hex');
      if (owners.has(text)) {
        const blamed = [...new Set([owners.get(text), owner])].filter((i) => i !== user.index);
        refuse('inconsistent_sets', `two keys are equal: of users ${owners.get(text)} and ${owner} [SAG-07]`,
          [...blamed, SERVER]);
      }
      owners.set(text, owner);
    }
  }
}

/** [SAG-09] [KEY-01] */
function agreeWith(own, key, peer) {
  return blaming([peer, SERVER], () => agree(own, key));
}

/** A refusal that names nobody blames some parties. */
function blaming(parties, work) {
  try {
    return work();
  } catch (problem) {
    if (problem instanceof Reject && problem.blamed.length === 0) problem.blamed = parties;
    throw problem;
  }
}

/** [SAG-09] What a user keeps of each neighbour: the secret for sealing, the public key for it, and the masks' keys. */
function meet(user, keys) {
  const peers = new Map();
  for (const [peer, { sealing, masking }] of keys) {
    const sealingSecret = agreeWith(user.sealing.secret, sealing, peer);
    const maskingSecret = agreeWith(user.masking.secret, masking, peer);
    const keyOf = (i) => (i === user.index ? user.masking.open : masking);
    const masks = pairwiseKeys(user, maskingSecret, user.index, peer, keyOf);
    peers.set(peer, { sealing: Buffer.from(sealing), sealingSecret, masks });
  }
  return peers;
}

/** What a payload between the user and a neighbour is sealed with. */
function materials(user, peers, sender, receiver) {
  const keyOf = (i) => (i === user.index ? user.sealing.open : peers.get(i).sealing);
  const { sealingSecret } = peers.get(sender === user.index ? receiver : sender);
  return sealingMaterials(sealingSecret, user.session, SECRET_SHARES, {
    protocol: user.protocol, parameters: user.attempt || user.parameters, round: user.round, sender, receiver,
    senderKey: keyOf(sender), receiverKey: keyOf(receiver),
  });
}

/** [SAG-10] The two shares of each holder. */
function shareSecrets(user, holders) {
  const { t } = user.numbers;
  const keyShares = shareAmong(user.masking.secret, t, holders, user.keyCoefficients);
  const seedShares = shareAmong(user.seed, t, holders, user.seedCoefficients);
  return new Map(holders.map((i) => [i, { key: keyShares.get(i), seed: seedShares.get(i) }]));
}

/** The two shares in a payload. */
function openShares(user, { sender, payload }) {
  const plaintext = unseal(materials(user, user.peers, sender, user.index), payload, sender);
  if (plaintext.length !== 2 * ELEMENT) {
    refuse('malformed', `the shares of user ${sender} have ${plaintext.length} bytes, not ${2 * ELEMENT}`, [sender]);
  }
  const [key, seed] = [piece(plaintext, 0, ELEMENT), piece(plaintext, 1, ELEMENT)];
  for (const bytes of [key, seed]) wellFormed(sender, () => readElement(bytes, `a share of user ${sender}`));
  return { key, seed };
}

/** [SAG-19] [SAG-20] The two sets of a request, each in ascending order. */
function readRequest(user, received) {
  const survivors = readAscending(received.survivors, 'survivors');
  const dropped = readAscending(received.dropped, 'dropped');
  const outside = [...survivors, ...dropped].find((i) => i >= user.numbers.N);
  if (outside !== undefined) refuse('inconsistent_sets', `user ${outside} is not on the roster [SAG-19]`, [SERVER]);
  const both = survivors.find((i) => dropped.includes(i));
  if (both !== undefined) refuse('inconsistent_sets', `user ${both} survives and has dropped [SAG-20]`, [SERVER]);
  return { survivors: new Set(survivors), dropped: new Set(dropped) };
}

/** [SAG-21] [SAG-22] [SAG-23] */
function checkRequest(user, { survivors, dropped }) {
  const wrong = (text) => refuse('inconsistent_sets', text, [SERVER]);
  const { t } = user.numbers;
  if (!survivors.has(user.index)) wrong(`user ${user.index} itself does not survive [SAG-21]`);
  if (survivors.size < fewest(user.numbers)) {
    refuse('below_threshold', `${survivors.size} survivors are too few [SAG-22]`);
  }
  const near = user.graph.holders(user.index, survivors).length;
  if (near < t) refuse('below_threshold', `${near} of the holders survive, fewer than t = ${t} [SAG-22]`);
  for (const i of user.held.keys()) {
    if (!survivors.has(i) && !dropped.has(i)) wrong(`user ${i} is not named [SAG-23]`);
  }
  for (const i of user.graph.neighbours(user.index)) {
    if (!user.held.has(i) && (survivors.has(i) || dropped.has(i))) wrong(`no share is held of user ${i} [SAG-23]`);
  }
  checkSurvivorsOfParts(user, survivors);
  checkMemory(user, survivors);
}

const userSteps = {
  advertise_keys(user, inbox) {
    if (inbox.length > 0) refuse('wrong_phase', 'the step advertise_keys of a user receives nothing');
    const keys = { sealing: user.sealing.open, masking: user.masking.open };
    return [{}, [message(user, ADVERTISED_KEYS, SERVER, keys)]];
  },

  share_keys: (user, inbox) => shareKeys(user, readFromServer(user, inbox, NEIGHBOUR_KEYS)),

  masked_input(user, inbox) {
    const { t } = user.numbers;
    const received = readOwn(user, inbox, SECRET_SHARES, (i) => user.peers.has(i)); // [MSG-03]
    const held = new Map(user.held);
    for (const one of received) held.set(one.sender, openShares(user, one));
    if (held.size < t) refuse('below_threshold', `${held.size} holders, fewer than t = ${t} [SAG-13]`);
    const neighbours = ascending(received.map(({ sender }) => sender));
    const pairwise = neighbours.map((peer) => [peer, user.peers.get(peer).masks]);
    const masked = maskInput(user.index, user.update, user.selfMasks, pairwise);
    const changes = { held, update: null, selfMasks: null, peers: null };
    const fields = { neighbours, ...user.form.write(user, user.index, masked) };
    return [changes, [message(user, user.form.type, SERVER, fields)]];
  },

  unmasking: (user, inbox) => answerRequest(user, requested(user, inbox)),
};

/** What a user makes of the keys that it was sent, which it checks. */
function shareKeys(user, received) {
  const keys = readKeys(user, received);
  const { t } = user.numbers;
  checkDifferent(user, keys);
  const holders = ascending([user.index, ...keys.keys()]);
  if (holders.length < t) refuse('below_threshold', `${holders.length} holders, fewer than t = ${t} [SAG-08]`);
  const peers = meet(user, keys);
  const shares = shareSecrets(user, holders);
  const outbox = [...peers.keys()].map((peer) => {
    const { key, seed } = shares.get(peer);
    const payload = seal(materials(user, peers, user.index, peer), Buffer.concat([key, seed]));
    return message(user, SECRET_SHARES, peer, { payload });
  });
  outbox.push(message(user, SEED_COMMITMENT, SERVER, { commitment: commitment(user, user.seed, user.index) }));
  const changes = {
    peers,
    held: new Map([[user.index, shares.get(user.index)]]),
    selfMasks: selfKeys(user, user.seed, user.index),
    masking: null, seed: null, keyCoefficients: null, seedCoefficients: null,
  };
  return [changes, outbox];
}

/** The request in an inbox, which the user may answer. */
function requested(user, inbox) {
  const request = readRequest(user, readFromServer(user, inbox, UNMASK_REQUEST));
  checkRequest(user, request);
  return request;
}

/** [SAG-24] [HSA-27] The shares that a request asks for. */
function answerRequest(user, request) {
  const holdsOf = (set) => ascending(user.held.keys()).filter((i) => set.has(i));
  const [survivors, dropped] = [holdsOf(request.survivors), holdsOf(request.dropped)];
  const answer = message(user, UNMASK_SHARES, SERVER, {
    survivors,
    seed_shares: Buffer.concat(survivors.map((i) => user.held.get(i).seed)),
    dropped,
    key_shares: Buffer.concat(dropped.map((i) => user.held.get(i).key)),
  });
  return [{ held: null, past: [...user.past, request.survivors] }, [answer]];
}

// ------------------------------------------------------------------------------------------------------------------
// The server

/** [SAG-05] [SAG-11] [SAG-18] The core of some users, which must be large enough. */
function enough(server, candidates, name) {
  const { numbers, graph } = server;
  const core = graph.core(candidates, numbers.t);
  if (core.size < fewest(numbers)) {
    refuse('below_threshold', `${name} has ${core.size} members, fewer than ${fewest(numbers)} [SAG-18]`);
  }
  return core;
}

/** [SAG-18] [SAG-27] */
function checkHolders(server, present, clause) {
  const { t } = server.numbers;
  for (const user of server.sharers) {
    const count = server.graph.holders(user, present).length;
    if (count < t) refuse('below_threshold', `${count} holders of user ${user} are left, not t = ${t} ${clause}`);
  }
}

function checkSize(bytes, size, name, sender) {
  if (bytes.length !== size) {
    refuse('malformed', `${name} of user ${sender} has ${bytes.length} bytes, not ${size} [KEY-03]`, [sender]);
  }
}

/** [MSG-03] [MSG-04] The shares in the server's step share_keys: sender -> receiver -> message. */
function sortShares(server, messages) {
  const bySender = new Map();
  for (const one of messages) {
    const { sender, receiver } = one;
    if (!server.keys.has(sender)) refuse('unknown_peer', `user ${sender} was sent no keys [MSG-03]`, [sender]);
    if (!server.graph.neighbours(sender).includes(receiver) || !server.keys.has(receiver)) {
      refuse('malformed', `a share from user ${sender} to party ${receiver}, whose keys it was not sent`, [sender]);
    }
    if (!bySender.has(sender)) bySender.set(sender, new Map());
    const receivers = bySender.get(sender);
    if (receivers.has(receiver)) refuse('replay', `two shares from user ${sender} to user ${receiver}`, [sender]);
    receivers.set(receiver, one);
  }
  return bySender;
}

/** The messages of an inbox by their type. */
function split(messages, type) {
  return messages.filter((one) => one.type === type);
}

/** The commitments by user. */
function readCommitments(server, messages) {
  const commitments = new Map();
  for (const { sender, receiver, commitment: bytes } of messages) {
    if (receiver !== SERVER) refuse('malformed', `a commitment for party ${receiver} [MSG-03]`, [sender]);
    if (!server.keys.has(sender)) refuse('unknown_peer', `user ${sender} was sent no keys [MSG-03]`, [sender]);
    if (commitments.has(sender)) refuse('replay', `a second commitment of user ${sender} [MSG-04]`, [sender]);
    checkSize(bytes, KEY, 'the commitment', sender);
    commitments.set(sender, bytes);
  }
  return commitments;
}

/** [SAG-26] The shares that an answer must hold, and no others: owner -> number. */
function readAnswer(server, answer) {
  const { sender } = answer;
  const wrong = (text) => refuse('malformed', `the answer of user ${sender}: ${text} [SAG-26]`, [sender]);
  const owners = server.graph.holders(sender, server.sharers);
  const shares = new Map();
  for (const [list, field, surviving] of [['survivors', 'seed_shares', true], ['dropped', 'key_shares', false]]) {
    const expected = owners.filter((i) => server.masked.has(i) === surviving);
    const found = Array.from(answer[list]);
    if (found.join() !== expected.join()) wrong(`${list} are not the users whose shares it holds`);
    for (const [owner, bytes] of readPieces(expected, answer[field], ELEMENT, field, [sender])) {
      shares.set(owner, wellFormed(sender, () => readElement(bytes, `a share of user ${owner}`)));
    }
  }
  return shares;
}

/** [SAG-28] A recovered secret of a user, checked against what it announced. */
function recoverSecret(server, answers, owner, isRight) {
  const holders = server.graph.holders(owner, answers);
  const blamed = ascending(new Set([owner, ...holders]));
  let secret;
  try {
    secret = recover(server.numbers.t, holders, holders.map((i) => answers.get(i).get(owner)));
  } catch (problem) {
    // The owner may have dealt shares that lie on no polynomial, with all holders honest.
    if (problem instanceof Reject && problem.code === 'bad_share') problem.blamed = blamed;
    throw problem;
  }
  if (!isRight(secret)) refuse('bad_share', `the secret of user ${owner} is not what it announced [SAG-28]`, blamed);
  return secret;
}

/** [SAG-28] The self seed of a survivor. */
function recoverSeed(server, answers, user) {
  const announced = server.commitments.get(user);
  return recoverSecret(server, answers, user, (bytes) => commitment(server, bytes, user).equals(announced));
}

/** What a dropped user agreed on with its neighbours that survive: neighbour -> secret. */
function recoverAgreed(server, answers, user) {
  const { masking } = server.keys.get(user);
  const secret = recoverSecret(server, answers, user, (bytes) => publicKeyOf(bytes).equals(masking));
  const left = server.graph.neighbours(user).filter((i) => server.masked.has(i));
  return new Map(left.map((i) => [i, blaming([user, i], () => agree(secret, server.keys.get(i).masking))]));
}

/** [SAG-34] [SAG-35] A key that the server may hand on; owners: whose the others are, by their text. */
function checkServed(sender, key, owners) {
  blaming([sender], () => agree(Buffer.alloc(KEY), key));
  const text = key.toString('hex');
  if (owners.has(text)) {
    const blamed = [...new Set([owners.get(text), sender])];
    refuse('inconsistent_sets', `users ${blamed.join(' and ')} advertise one key [SAG-35]`, blamed);
  }
  owners.set(text, sender);
}

/** Whether a sender is on the roster. */
function onRoster({ numbers: { N } }) {
  return (sender) => sender < N;
}

/** [SAG-05] What the server sends to each user of U_1, of the keys that arrived. */
function relayKeys(server, received) {
  const advertised = new Map();
  const owners = new Map();
  for (const { sender, sealing, masking } of received) {
    checkSize(sealing, KEY, 'the sealing key', sender);
    checkSize(masking, KEY, 'the masking key', sender);
    for (const key of [sealing, masking]) checkServed(sender, key, owners);
    advertised.set(sender, { sealing, masking });
  }
  const members = enough(server, advertised.keys(), 'U_1');
  const keys = new Map([...members].map((user) => [user, advertised.get(user)]));
  const outbox = [...members].map((user) => {
    const users = server.graph.neighbours(user).filter((i) => keys.has(i));
    const all = (name) => Buffer.concat(users.map((i) => keys.get(i)[name]));
    return message(server, NEIGHBOUR_KEYS, user, { users, sealing: all('sealing'), masking: all('masking') });
  });
  return [{ keys }, outbox];
}

const serverSteps = {
  /** [SAG-05] */
  advertise_keys: (server, inbox) => relayKeys(server, readOwn(server, inbox, ADVERTISED_KEYS, onRoster(server))),

  /** [SAG-11] */
  share_keys(server, inbox) {
    const messages = readInbox(server, inbox, [SECRET_SHARES, SEED_COMMITMENT]);
    const bySender = sortShares(server, split(messages, SECRET_SHARES));
    const commitments = readCommitments(server, split(messages, SEED_COMMITMENT));
    const complete = (user) => server.graph.neighbours(user).every(
      (i) => !server.keys.has(i) || (bySender.has(user) && bySender.get(user).has(i)),
    );
    const sharers = enough(server, [...commitments.keys()].filter(complete), 'U_2');
    const outbox = split(messages, SECRET_SHARES).filter((one) => sharers.has(one.sender) && sharers.has(one.receiver));
    return [{ sharers, commitments }, outbox];
  },

  /** [SAG-16] [SAG-17] [SAG-18] */
  masked_input(server, inbox) {
    const { numbers, sharers } = server;
    const masked = new Map();
    for (const received of readOwn(server, inbox, server.form.type, (i) => sharers.has(i))) {
      const { sender, neighbours } = received;
      const wanted = ascending(server.graph.neighbours(sender).filter((i) => sharers.has(i)));
      if (Array.from(neighbours).join() !== wanted.join()) {
        refuse('inconsistent_sets', `the input of user ${sender} is masked with other neighbours [SAG-37]`, [sender]);
      }
      masked.set(sender, server.form.read(server, received));
    }
    if (masked.size < fewest(numbers)) {
      refuse('below_threshold', `${masked.size} users survive, fewer than ${fewest(numbers)} [SAG-18]`);
    }
    checkHolders(server, masked, '[SAG-18]');
    checkSurvivorsOfParts(server, masked);
    checkMemory(server, masked);
    const survivors = ascending(masked.keys());
    const dropped = ascending(sharers).filter((i) => !masked.has(i));
    const past = [...server.past, new Set(survivors)]; // [HSA-28]
    return [{ masked, past }, survivors.map((user) => message(server, UNMASK_REQUEST, user, { survivors, dropped }))];
  },

  /** [SAG-26] to [SAG-29] */
  unmasking(server, inbox) {
    const answers = new Map();
    for (const answer of readOwn(server, inbox, UNMASK_SHARES, (i) => (server.signers || server.masked).has(i))) {
      answers.set(answer.sender, readAnswer(server, answer));
    }
    checkHolders(server, answers, '[SAG-27]');
    const seeds = new Map();
    const agreed = new Map();
    for (const user of ascending(server.sharers)) {
      if (server.masked.has(user)) seeds.set(user, recoverSeed(server, answers, user));
      else agreed.set(user, recoverAgreed(server, answers, user));
    }
    const sums = unmaskParts(server, server.masked, seeds, agreed, (i) => server.keys.get(i).masking);
    const aggregate = Uint32Array.from(sums.flatMap((sum) => Array.from(sum)));
    return [{}, [], { aggregate, sums, contributors: ascending(server.masked.keys()) }];
  },
};

// ------------------------------------------------------------------------------------------------------------------
// A party

class Party {
  #steps;
  #state;

  constructor(steps, state) {
    this.#steps = steps;
    this.#state = { ...state, taken: 0 };
  }

  /**
   * One step on the messages of its inbox, a list of Buffers: { outbox: Buffers }, and for the server's last step
   * { outbox: [], aggregate: Uint32Array, contributors: users } too. It throws a Reject, and then nothing has happened.
   */
  step(phase, inbox) {
    const phases = Object.keys(this.#steps);
    const wanted = phases.indexOf(phase);
    if (wanted < 0) refuse('malformed', `no phase ${show(phase)}`);
    const { taken } = this.#state;
    if (wanted < taken) refuse('replay', `the step ${phase} was taken before [SAG-15] [SAG-25] [SAG-54]`);
    if (wanted > taken) refuse('wrong_phase', `the step ${phase} comes after ${phases[taken]}`);
    const [changes, outbox, beside] = this.#steps[phase](this.#state, inbox.map((bytes) => Buffer.from(bytes)));
    const answer = { outbox: outbox.map(encodeMessage), ...beside };
    this.#state = { ...this.#state, ...changes, taken: taken + 1 };
    return answer;
  }

  /** The survivors of the requests that it answered or sent in its session, each list ascending. [HSA-27] [HSA-28] */
  past() {
    return this.#state.past.map(ascending);
  }
}

function keyPair(secret, name) {
  checkKey(secret, name);
  return { secret: Buffer.from(secret), open: publicKeyOf(secret) };
}

/** What a user samples, checked. */
function checkSampled({ t }, rand) {
  checkKey(rand.self_seed, 'self_seed');
  checkCoefficients(rand.key_coefficients, t, 'key_coefficients');
  checkCoefficients(rand.seed_coefficients, t, 'seed_coefficients');
}

/** The two key pairs of a user. */
function keyPairs(rand) {
  const sealing = keyPair(rand.sealing_key, 'sealing_key');
  const masking = keyPair(rand.masking_key, 'masking_key');
  if (sealing.open.equals(masking.open)) refuse('bad_param', 'one key for sealing and masking [SAG-07]');
  return { sealing, masking };
}

/** A user before its first step; shared: what all parties agree on. */
function userOf(steps, shared, { user, update }, rand) {
  const { numbers } = shared;
  if (!(Number.isInteger(user) && user >= 0 && user < numbers.N)) {
    refuse('unknown_peer', `user ${user} is not in [0, ${numbers.N})`);
  }
  checkInput(shared, user, update); // [SAG-14] [HSA-13]
  checkSampled(numbers, rand);
  return new Party(steps, {
    ...shared,
    index: user,
    update: Uint32Array.from(update),
    ...keyPairs(rand),
    seed: Buffer.from(rand.self_seed),
    keyCoefficients: [...rand.key_coefficients],
    seedCoefficients: [...rand.seed_coefficients],
  });
}

/**
 * The parties of a protocol with these steps, before their first one; agreed: what all parties agree on, from what one
 * of them is given. In SecAgg, p: the numbers R, N, D, T, t, k, d; order: the users as they stand on the circle;
 * session: 16 bytes; round; and for a user also user; update: Uint32Array. rand: sealing_key, masking_key and self_seed
 * as Buffers of 32 bytes, key_coefficients and seed_coefficients as lists of t - 1 BigInts, that of x first.
 */
function partiesOf(agreed, steps = { user: userSteps, server: serverSteps }) {
  return {
    newUser: (p, rand) => userOf(steps.user, agreed(p), p, rand),
    newServer: (p) => new Party(steps.server, { ...agreed(p), index: SERVER }),
  };
}

module.exports = {
  PHASES, agreement, userSteps, serverSteps, readFromServer, readPieces, shareKeys, requested, answerRequest, relayKeys,
  onRoster, checkSize, checkSecAgg, checkRoundNumber, partiesOf, ...partiesOf(agreement),
};
