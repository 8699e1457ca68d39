// SPDX-License-Identifier: Apache-2.0
//
// The parties of BASA, step by step: scripts, sessions, and epochs of all of them, with the encryption per position
// (BASA, sections 3 to 6; adapter, section 4).
//
// A party is a plain object that is never changed: a step makes the next one, or refuses and makes none [ERR-01].

'use strict';

const crypto = require('node:crypto');
const { SERVER, AUTHORITY, Reject, refuse } = require('./refusals');
const { add, checkLength, checkVector, elementwise } = require('./integers');
const { checkDraw, weightOf, isAdmissible } = require('./staleness');
const { checkKey, checkRoster, readKeys, publicKeyOf, u32 } = require('./crypto');
const { signedFields, sign, isValid } = require('./signatures');
const { message, readOfSession, oneOfEach, perform, scriptOf } = require('./scripts');
const {
  readBytes, readVector, readReals, writeVector, readSize, readRound, readList, readInteger, readVectors, readBoolean,
  isObject, readMembers,
} = require('./encodings');
const {
  KEY, BOX, PAIR_BOX, SELF_BOX, NUMBERS, positionsOf, hasSelfMasks, agreementOf, piece, pieces, maskUpdate, unmaskSum,
  sealBox, openBox,
} = require('./basa');

const EPOCH_KEYS = 1025;
const POSITION_REQUEST = 1026;
const POSITION_OFFER = 1027;
const ASSIGNMENT = 1028;
const KEY_REQUEST = 1029;
const POSITION_KEY = 1030;
const POSITION_UPLOAD = 1031;
const SETTLEMENT = 1032;
const POSITION_STATE = 1033;
const CLOSE_REQUEST = 1034;
const RELEASE = 1035;
const ABANDONMENT = 1036;

const [FREE, ACCEPTED, SKIPPED, VOID] = [0, 1, 2, 3]; // the states in a PositionState
const SIGNATURE = 64;
const LAST_EPOCH = 2 ** 32 - 1;
const NOTHING = Buffer.alloc(0);

// ------------------------------------------------------------------------------------------------------------------
// What all parties check

function checkStatus(party, wanted, phase) {
  if (party.status !== wanted) refuse('wrong_phase', `the step ${phase} of a party that is ${party.status}`);
}

function checkEmpty(inbox, phase) {
  if (inbox.length > 0) refuse('wrong_phase', `the step ${phase} receives nothing [MSG-03]`);
}

/** The one message that a step receives, of a type and from one of some senders. */
function readOne(party, inbox, type, senders) {
  const [received] = oneOfEach(party, readOfSession(party, inbox, [type]), senders);
  if (inbox.length !== 1) refuse('wrong_phase', `${inbox.length} messages, not one of type ${type} [MSG-03]`);
  return received;
}

/** The same, of the epoch that the party is in. */
function readOfEpoch(party, inbox, type, senders) {
  const received = readOne(party, inbox, type, senders);
  if (received.round !== party.round) {
    refuse('wrong_phase', `a message of epoch ${received.round}, not ${party.round} [MSG-03]`);
  }
  return received;
}

const isServer = (sender) => sender === SERVER;
const isAuthority = (sender) => sender === AUTHORITY;
const isUser = (party) => (sender) => sender < party.parameters.N;

/** [BAA-51] Refuses a message, unless it is of the right form. */
function checkForm(holds, text, { sender }) {
  if (!holds) refuse('malformed', `${text} [BAA-51]`, [sender]);
}

function checkRange(position, party, received) {
  const end = positionsOf(party.parameters);
  checkForm(position < end, `the position ${position} is not in [0, ${end})`, received);
}

/** [BAA-51] A list of pieces of bytes, of some size. */
function checkPieces(bytes, count, size, name, received) {
  checkForm(bytes.length === count * size, `${bytes.length} bytes of ${name}, not ${count} times ${size}`, received);
}

/** How many boxes the upload at a position has. */
function boxesOf(p, position) {
  return positionsOf(p) - 1 - position + (hasSelfMasks(p) ? 1 : 0);
}

/** How many public keys an epoch has. */
function publicKeysOf(p) {
  return positionsOf(p) * (hasSelfMasks(p) ? 2 : 1);
}

function hashOf(bytes) {
  return crypto.createHash('sha256').update(bytes).digest();
}

/** The SHA-256 of each of some boxes, one after the other. */
function hashesOf(boxes) {
  return Buffer.concat(pieces(boxes, BOX).map(hashOf));
}

/** What the authority signs: the keys of an epoch. */
function signedKeys(party, round, keys) {
  const signed = { purpose: 'epoch-keys', type: EPOCH_KEYS, signer: AUTHORITY, content: [keys] };
  return signedFields({ ...party.agreement, round, ...signed });
}

/** What a user signs: the boxes of its upload. */
function signedBoxes(party, user, { position, stamp, weight }, hashes) {
  const content = [u32(position), u32(stamp), u32(weight), hashes];
  const signed = { purpose: 'boxes', type: POSITION_UPLOAD, signer: user, content };
  return signedFields({ ...party.agreement, round: party.round, ...signed });
}

/** [BAA-29] The keys of an epoch, signed by the authority, that some party sent. */
function checkEpochKeys(party, received) {
  const { round, keys, signature, sender } = received;
  checkPieces(keys, publicKeysOf(party.parameters), KEY, 'public keys', received);
  checkPieces(signature, 1, SIGNATURE, 'a signature', received);
  if (!isValid(party.authority, signedKeys(party, round, keys), signature)) {
    refuse('bad_signature', `the keys of epoch ${round} are not signed by the authority [BAA-29]`, [sender]);
  }
}

/** The first of what is left of some lists, by name, and the changes that take them off. */
function takeNext(party, names) {
  const [taken, left] = [{}, {}];
  for (const name of names) {
    if (party[name].length === 0) refuse('bad_param', `nothing is left of ${name}`);
    taken[name] = party[name][0];
    left[name] = party[name].slice(1);
  }
  return [taken, left];
}

/** What derivations of the epoch share that the party is in. */
function epochOf(party) {
  return { ...party.agreement, round: party.round };
}

// ------------------------------------------------------------------------------------------------------------------
// The authority
//
// status: closed or open; round: the epoch, open or last; positions: for each its status (unused, assigned, keyed,
// accepted or skipped), its user, and where it is accepted the hashes of its boxes; pair, own: the private keys.

const UNUSED = { status: 'unused', user: null, hashes: null };

function withPosition(authority, position, entry) {
  return { positions: authority.positions.map((known, k) => (k === position ? entry : known)) };
}

/** The positions of some status, ascending. */
function positionsThatAre({ positions }, ...statuses) {
  return [...positions.keys()].filter((k) => statuses.includes(positions[k].status));
}

/** [BAA-09] */
function checkAssignable(authority, position) {
  const no = (text) => refuse('wrong_phase', `position ${position}: ${text} [BAA-09]`);
  if (positionsThatAre(authority, 'keyed').length > 0) no('another one is keyed and not settled');
  if (positionsThatAre(authority, 'accepted').length >= authority.parameters.K) no('the buffer is full');
  const [first] = [...positionsThatAre(authority, 'assigned'), ...positionsThatAre(authority, 'unused')];
  if (position !== first) no(`the one to assign is ${first}`);
}

/** [BAA-10] */
function checkAssignee({ parameters, positions }, user, received) {
  if (user >= parameters.N) refuse('malformed', `user ${user} is not on the roster [BAA-10]`, [received.sender]);
  if (positions.some((known) => known.user === user && known.status !== 'assigned')) {
    refuse('replay', `user ${user} holds a key of the epoch [BAA-10]`);
  }
}

/** The hash of the box from an accepted position to a later one. */
function hashTo({ positions }, from, to) {
  return piece(positions[from].hashes, to - from - 1);
}

/** [BAA-14] [BAA-15] What is kept of a position whose upload was accepted. */
function settleAccepted(authority, received) {
  const { position, hashes, signature } = received;
  const { status, user } = authority.positions[position];
  if (status !== 'keyed') refuse('wrong_phase', `position ${position} is ${status}, not keyed [BAA-14] [BAA-15]`);
  checkPieces(hashes, boxesOf(authority.parameters, position), KEY, 'hashes', received);
  checkPieces(signature, 1, SIGNATURE, 'a signature', received);
  if (!isValid(authority.verification[user], signedBoxes(authority, user, received, hashes), signature)) {
    refuse('bad_signature', `user ${user} did not sign the boxes of position ${position} [BAA-14]`, [received.sender]);
  }
  return [{ status: 'accepted', user, hashes }, ACCEPTED];
}

/** [BAA-15] [BAA-16] What becomes of a position that timed out. */
function settleTimeout({ parameters, positions }, received) {
  const { position, stamp, weight, hashes, signature } = received;
  const { status } = positions[position];
  const empty = stamp === 0 && weight === 0 && hashes.length === 0 && signature.length === 0;
  checkForm(empty, 'a timeout with something of an upload', received);
  if (status === 'unused' || status === 'assigned') return [UNUSED, FREE];
  if (status !== 'keyed') refuse('wrong_phase', `position ${position} is ${status} already [BAA-15]`);
  return [{ ...positions[position], status: 'skipped' }, hasSelfMasks(parameters) ? SKIPPED : VOID];
}

/** [BAA-18] [BAA-19] */
function checkClosable(authority) {
  const { T, K } = authority.parameters;
  const accepted = positionsThatAre(authority, 'accepted').length;
  const unused = positionsThatAre(authority, 'unused').length;
  if (positionsThatAre(authority, 'assigned', 'keyed').length > 0) {
    refuse('wrong_phase', 'a position is assigned [BAA-18]');
  }
  if (accepted < T + 2 || (accepted < K && unused > 0)) {
    refuse('below_threshold', `${accepted} accepted and ${unused} unused positions [BAA-19]`);
  }
}

/** [BAA-20] [BAA-21] */
function releasedKeys({ parameters, positions, pair, own }) {
  if (!hasSelfMasks(parameters)) return NOTHING;
  return Buffer.concat(positions.map(({ status }, k) => piece(status === 'accepted' ? own : pair, k)));
}

const ENDED = { status: 'closed', positions: null, pair: null, own: null };

const authoritySteps = {
  /** [BAA-07] [BAA-08] */
  open(authority, inbox) {
    const { parameters, signing } = authority;
    checkStatus(authority, 'closed', 'open');
    checkEmpty(inbox, 'open');
    if (authority.round === LAST_EPOCH) refuse('wrong_phase', `no epoch comes after ${LAST_EPOCH}`);
    const names = hasSelfMasks(parameters) ? ['pair_keys', 'self_keys'] : ['pair_keys'];
    const [{ pair_keys: pair, self_keys: own = NOTHING }, left] = takeNext(authority, names);
    const round = authority.round + 1;
    const keys = Buffer.concat(pieces(Buffer.concat([pair, own]), KEY).map(publicKeyOf));
    const signature = sign(signing, signedKeys(authority, round, keys));
    const positions = Array(positionsOf(parameters)).fill(UNUSED);
    const changes = { status: 'open', round, positions, pair, own, ...left };
    return [changes, [message(authority, EPOCH_KEYS, SERVER, { round, keys, signature })]];
  },

  /** [BAA-09] [BAA-10] [BAA-22] */
  assign(authority, inbox) {
    checkStatus(authority, 'open', 'assign');
    const received = readOfEpoch(authority, inbox, ASSIGNMENT, isServer);
    const { position, user } = received;
    checkRange(position, authority, received);
    checkAssignable(authority, position);
    checkAssignee(authority, user, received);
    return [withPosition(authority, position, { status: 'assigned', user, hashes: null }), []];
  },

  /** [BAA-11] [BAA-12] [BAA-13] [BAA-22] */
  issue(authority, inbox) {
    checkStatus(authority, 'open', 'issue');
    const received = readOfEpoch(authority, inbox, KEY_REQUEST, isUser(authority));
    const { position, sender } = received;
    checkRange(position, authority, received);
    const entry = authority.positions[position];
    if (entry.user !== sender) refuse('wrong_phase', `position ${position} is not that of user ${sender} [BAA-11]`);
    if (entry.status !== 'assigned') refuse('replay', `the key of position ${position} was given [BAA-12]`);
    const before = positionsThatAre(authority, 'accepted').filter((i) => i < position);
    const fields = {
      position, positions: before, senders: before.map((i) => authority.positions[i].user),
      hashes: Buffer.concat(before.map((i) => hashTo(authority, i, position))), key: piece(authority.pair, position),
    };
    const changes = withPosition(authority, position, { ...entry, status: 'keyed' });
    return [changes, [message(authority, POSITION_KEY, sender, fields)]];
  },

  /** [BAA-14] to [BAA-17] [BAA-22] */
  settle(authority, inbox) {
    checkStatus(authority, 'open', 'settle');
    const received = readOfEpoch(authority, inbox, SETTLEMENT, isServer);
    const { position, accepted } = received;
    checkRange(position, authority, received);
    checkForm(accepted <= 1, `accepted = ${accepted} is neither 1 nor 0`, received);
    const [entry, state] = (accepted === 1 ? settleAccepted : settleTimeout)(authority, received);
    const changes = state === VOID ? ENDED : withPosition(authority, position, entry);
    return [changes, [message(authority, POSITION_STATE, SERVER, { position, state })]];
  },

  /** [BAA-18] to [BAA-21] */
  close(authority, inbox) {
    checkStatus(authority, 'open', 'close');
    readOfEpoch(authority, inbox, CLOSE_REQUEST, isServer);
    checkClosable(authority);
    return [ENDED, [message(authority, RELEASE, SERVER, { keys: releasedKeys(authority) })]];
  },

  /** [BAA-21] */
  abandon(authority, inbox) {
    checkStatus(authority, 'open', 'abandon');
    readOfEpoch(authority, inbox, ABANDONMENT, isServer);
    return [ENDED, []];
  },
};

// ------------------------------------------------------------------------------------------------------------------
// A user
//
// status: idle, asked or fetched; round: the epoch of the offer; offer: what was offered; last: the epoch of the last
// upload, or null.

/** [BAA-52] */
function checkLast({ last }, { round }) {
  if (last !== null && round <= last) {
    refuse('replay', `an offer of epoch ${round}, and the last upload was in epoch ${last} [BAA-52]`);
  }
}

/** [BAA-28] */
function checkEpoch({ parameters, stamps }, { round, sender }) {
  const staleness = round - stamps[0];
  if (!(staleness >= 0 && staleness <= parameters.tau_max)) {
    refuse('inconsistent_sets', `an offer of epoch ${round} for the stamp ${stamps[0]} [BAA-28]`, [sender]);
  }
}

/** [BAA-51] The lists of a key's message: as long as each other, the positions ascending and before its own. */
function checkLists({ parameters: { N }, offer }, received) {
  const { positions, senders, hashes } = received;
  const rising = positions.every((i, n) => i < offer.position && (n === 0 || i > positions[n - 1]));
  checkForm(rising, `the positions before ${offer.position} do not ascend to it`, received);
  checkForm(senders.length === positions.length, `${senders.length} users of ${positions.length} positions`, received);
  checkForm(senders.every((user) => user < N), 'a sender of boxes is not on the roster', received);
  checkForm(new Set(senders).size === senders.length, 'two boxes of one sender', received);
  checkPieces(hashes, positions.length, KEY, 'hashes', received);
}

/** [BAA-30] */
function checkPositionKey(user, received) {
  const { position, key, sender } = received;
  const { offer } = user;
  if (position !== offer.position) {
    refuse('inconsistent_sets', `a key of position ${position}, not ${offer.position} [BAA-30]`, [sender]);
  }
  checkPieces(key, 1, KEY, 'a key', received);
  if (!publicKeyOf(key).equals(piece(offer.keys, position))) {
    refuse('malformed', `the key does not belong to the public key of position ${position} [BAA-30]`, [sender]);
  }
  checkLists(user, received);
}

/** [BAA-31] The boxes that were offered, as the authority names them. */
function namedBoxes({ offer }, { positions, hashes }) {
  const boxes = pieces(offer.boxes, BOX);
  if (boxes.length !== positions.length) {
    refuse('malformed', `${boxes.length} boxes, where the authority names ${positions.length} [BAA-31]`, [SERVER]);
  }
  if (!hashesOf(offer.boxes).equals(hashes)) {
    refuse('bad_signature', 'a box has not the hash that the authority names [BAA-31]', [SERVER]);
  }
  return boxes;
}

/** The results of some pieces of work; where boxes do not open, the refusal blames the senders of all of them. */
function openAll(works) {
  const [results, blamed] = [[], new Set()];
  for (const work of works) {
    try {
      results.push(work());
    } catch (problem) {
      if (!(problem instanceof Reject)) throw problem;
      problem.blamed.forEach((party) => blamed.add(party));
    }
  }
  if (blamed.size > 0) refuse('bad_ciphertext', `${blamed.size} users sent boxes that do not open`, [...blamed]);
  return results;
}

/** [BAA-32] The seeds from the positions before: list of [position, seed]. */
function seedsBefore(user, { positions, senders, key }, boxes) {
  const to = user.offer.position;
  return openAll(boxes.map((box, n) => () => {
    const from = positions[n];
    return [from, openBox(epochOf(user), { purpose: PAIR_BOX, sender: senders[n], from, to }, key, box)];
  }));
}

/** [BAA-33] The boxes of an upload, one after the other. */
function sealSeeds(user, seeds, own) {
  const { parameters: p, offer, index: sender } = user;
  const { position: from, keys } = offer;
  const [epoch, end] = [epochOf(user), positionsOf(p)];
  const boxes = [];
  for (let to = from + 1; to < end; to += 1) {
    boxes.push(sealBox(epoch, { purpose: PAIR_BOX, sender, from, to }, own, piece(keys, to), piece(seeds, to)));
  }
  if (hasSelfMasks(p)) {
    const use = { purpose: SELF_BOX, sender, from, to: from };
    boxes.push(sealBox(epoch, use, own, piece(keys, end + from), piece(seeds, from)));
  }
  return Buffer.concat(boxes);
}

const userSteps = {
  request(user, inbox) {
    checkEmpty(inbox, 'request');
    const [{ stamps: stamp }] = takeNext(user, ['updates', 'stamps']);
    return [{ status: 'asked', offer: null }, [message(user, POSITION_REQUEST, SERVER, { round: stamp })]];
  },

  /** [BAA-28] [BAA-29] [BAA-52] */
  fetch(user, inbox) {
    checkStatus(user, 'asked', 'fetch');
    const received = readOne(user, inbox, POSITION_OFFER, isServer);
    const { round, position, keys, boxes } = received;
    checkRange(position, user, received);
    checkForm(boxes.length % BOX === 0, `${boxes.length} bytes are no boxes`, received);
    checkEpochKeys(user, received);
    checkEpoch(user, received);
    checkLast(user, received);
    const changes = { status: 'fetched', round, offer: { position, keys, boxes } };
    return [changes, [message(user, KEY_REQUEST, AUTHORITY, { round, position })]];
  },

  /** [BAA-23] to [BAA-27], [BAA-30] to [BAA-34] */
  upload(user, inbox) {
    checkStatus(user, 'fetched', 'upload');
    const { parameters: p, offer: { position } } = user;
    const received = readOfEpoch(user, inbox, POSITION_KEY, isAuthority);
    const [given, left] = takeNext(user, ['updates', 'stamps', 'seeds', 'box_keys', 'roundings']);
    checkPositionKey(user, received);
    const before = seedsBefore(user, received, namedBoxes(user, received));
    const stamp = given.stamps;
    const weight = weightOf(p, p.c_g, user.round - stamp, given.roundings);
    const masked = maskUpdate(epochOf(user), position, weight, given.updates, before, given.seeds);
    const boxes = sealSeeds(user, given.seeds, given.box_keys);
    const fields = { position, stamp, weight, masked, boxes };
    const signature = sign(user.signing, signedBoxes(user, user.index, fields, hashesOf(boxes)));
    const sent = message(user, POSITION_UPLOAD, SERVER, { ...fields, signature });
    return [{ status: 'idle', offer: null, last: user.round, ...left }, [sent]];
  },
};

// ------------------------------------------------------------------------------------------------------------------
// The server
//
// status: idle, filling, serving, settling or closing; round: the epoch, or the last one; keys, signature: of EpochKeys;
// settled: for each position that was settled as accepted or skipped, in their order, its user, and where it is accepted
// its weight and its boxes; sum: of the masked updates in the buffer; serving: the user at the next position; kept: its
// upload, where there is one.

const IDLE = { status: 'idle', settled: [], sum: null, serving: null, kept: null };

/** The accepted positions, ascending. */
function acceptedOf({ settled }) {
  return [...settled.keys()].filter((k) => settled[k].boxes !== null);
}

/** The box of an accepted position to a later one, or with `to` the position itself its self box. */
function boxOf({ parameters, settled }, from, to) {
  const at = to === from ? positionsOf(parameters) - 1 - from : to - from - 1;
  return piece(settled[from].boxes, at, BOX);
}

/** [BAA-36] */
function checkServable(server, user) {
  const { parameters, settled } = server;
  const no = (text) => refuse('wrong_phase', `${text} [BAA-36]`);
  if (acceptedOf(server).length >= parameters.K) no('the buffer is full');
  if (settled.length >= positionsOf(parameters)) no('no position is left');
  if (settled.some((entry) => entry.user === user)) no(`user ${user} had a position of this epoch`);
}

/** [BAA-38] [BAA-49] */
function checkStaleness({ parameters, round }, stamp, sender) {
  const staleness = round - stamp;
  if (!(staleness >= 0 && staleness <= parameters.tau_max)) {
    refuse('inconsistent_sets', `the stamp ${stamp} in epoch ${round} [BAA-38] [BAA-49]`, [sender]);
  }
}

/** [BAA-37] to [BAA-39] */
function checkUpload(server, received) {
  const { parameters: p, verification, round } = server;
  const { sender, position, stamp, weight, masked, boxes, signature } = received;
  if (sender !== server.serving) refuse('wrong_phase', `an upload of user ${sender}, who is not served [BAA-37]`);
  if (position !== server.settled.length) refuse('wrong_phase', `an upload for position ${position} [BAA-37]`);
  checkStaleness(server, stamp, sender);
  if (!isAdmissible(weight, p, p.c_g, round - stamp)) {
    refuse('inconsistent_sets', `${weight} is no weight of a staleness of ${round - stamp} [BAA-38]`, [sender]);
  }
  checkForm(masked.length === p.d && masked.every((x) => x < p.R), 'the masked update is no vector of d elements',
    received);
  checkPieces(boxes, boxesOf(p, position), BOX, 'boxes', received);
  checkPieces(signature, 1, SIGNATURE, 'a signature', received);
  if (!isValid(verification[sender], signedBoxes(server, sender, received, hashesOf(boxes)), signature)) {
    refuse('bad_signature', `user ${sender} did not sign its boxes [BAA-39]`, [sender]);
  }
}

/** [BAA-51] Whether a state is one of the profile, and of what was uploaded. */
function isPossible({ parameters, kept }, state) {
  const possible = [FREE, hasSelfMasks(parameters) ? SKIPPED : VOID];
  return possible.includes(state) || (state === ACCEPTED && kept !== null);
}

/** [BAA-30] Each released key belongs to the public key that it should belong to. */
function checkReleased(server, received) {
  const { parameters: p, keys: published } = server;
  if (!hasSelfMasks(p)) {
    checkPieces(received.keys, 0, KEY, 'released keys', received);
    return;
  }
  checkPieces(received.keys, positionsOf(p), KEY, 'released keys', received);
  const accepted = new Set(acceptedOf(server));
  pieces(received.keys, KEY).forEach((key, k) => {
    const wanted = piece(published, accepted.has(k) ? positionsOf(p) + k : k);
    if (!publicKeyOf(key).equals(wanted)) {
      refuse('malformed', `the key of position ${k} is another one [BAA-30]`, [received.sender]);
    }
  });
}

/** [BAA-40] What the server does with the state of the position that it settles. */
function afterState({ serving: user, kept, settled, sum, parameters }, state) {
  const filling = { status: 'filling', serving: null, kept: null };
  if (state === VOID) return IDLE;
  if (state === FREE) return filling;
  if (state === SKIPPED) return { ...filling, settled: [...settled, { user, weight: null, boxes: null }] };
  const { weight, boxes, masked } = kept;
  return {
    ...filling, settled: [...settled, { user, weight, boxes }], sum: elementwise(add, sum, masked, parameters.R),
  };
}

/** [BAA-42] The seeds that released keys give: of the self masks, and of the masks to positions not accepted. */
function openReleased(server, keys) {
  const accepted = acceptedOf(server);
  const works = [];
  for (const from of accepted) {
    for (let to = from; to < positionsOf(server.parameters); to += 1) {
      if (to > from && accepted.includes(to)) continue;
      const use = { purpose: to === from ? SELF_BOX : PAIR_BOX, sender: server.settled[from].user, from, to };
      works.push(() => [from, to, openBox(epochOf(server), use, piece(keys, to), boxOf(server, from, to))]);
    }
  }
  return openAll(works);
}

const serverSteps = {
  /** [BAA-29] [BAA-50] */
  open(server, inbox) {
    const { parameters, last } = server;
    checkStatus(server, 'idle', 'open');
    const received = readOne(server, inbox, EPOCH_KEYS, isAuthority);
    const { round, keys, signature } = received;
    checkEpochKeys(server, received);
    if (round <= last) refuse('replay', `the keys of epoch ${round}, not after ${last} [BAA-50]`, [AUTHORITY]);
    const sum = new Uint32Array(parameters.d);
    return [{ ...IDLE, status: 'filling', round, last: round, keys, signature, sum }, []];
  },

  /** [BAA-35] [BAA-36] [BAA-49] */
  offer(server, inbox) {
    checkStatus(server, 'filling', 'offer');
    const { keys, signature, settled: { length: position } } = server;
    const { round: stamp, sender: user } = readOne(server, inbox, POSITION_REQUEST, isUser(server));
    checkServable(server, user);
    checkStaleness(server, stamp, user);
    const boxes = Buffer.concat(acceptedOf(server).map((i) => boxOf(server, i, position)));
    return [{ status: 'serving', serving: user }, [
      message(server, POSITION_OFFER, user, { position, keys, signature, boxes }),
      message(server, ASSIGNMENT, AUTHORITY, { position, user }),
    ]];
  },

  /** [BAA-37] to [BAA-39] */
  take(server, inbox) {
    checkStatus(server, 'serving', 'take');
    const received = readOfEpoch(server, inbox, POSITION_UPLOAD, isUser(server));
    checkUpload(server, received);
    const { position, stamp, weight, masked, boxes, signature } = received;
    const told = { position, accepted: 1, stamp, weight, hashes: hashesOf(boxes), signature };
    return [{ status: 'settling', kept: { weight, masked, boxes } }, [message(server, SETTLEMENT, AUTHORITY, told)]];
  },

  expire(server, inbox) {
    checkStatus(server, 'serving', 'expire');
    checkEmpty(inbox, 'expire');
    const position = server.settled.length;
    const told = { position, accepted: 0, stamp: 0, weight: 0, hashes: NOTHING, signature: NOTHING };
    return [{ status: 'settling' }, [message(server, SETTLEMENT, AUTHORITY, told)]];
  },

  /** [BAA-40] */
  settle(server, inbox) {
    checkStatus(server, 'settling', 'settle');
    const received = readOfEpoch(server, inbox, POSITION_STATE, isAuthority);
    const { position, state } = received;
    if (position !== server.settled.length) refuse('wrong_phase', `position ${position} is not open`);
    checkForm(isPossible(server, state), `the state ${state} can't be`, received);
    return [afterState(server, state), []];
  },

  close(server, inbox) {
    checkStatus(server, 'filling', 'close');
    checkEmpty(inbox, 'close');
    return [{ status: 'closing' }, [message(server, CLOSE_REQUEST, AUTHORITY, {})]];
  },

  /** [BAA-30] [BAA-41] [BAA-42] */
  recover(server, inbox) {
    const { parameters: p } = server;
    checkStatus(server, 'closing', 'recover');
    const received = readOfEpoch(server, inbox, RELEASE, isAuthority);
    checkReleased(server, received);
    const opened = hasSelfMasks(p) ? openReleased(server, received.keys) : [];
    const own = opened.filter(([from, to]) => from === to).map(([from, , seed]) => [from, seed]);
    const sum = unmaskSum(epochOf(server), server.sum, own, opened.filter(([from, to]) => from !== to));
    return [IDLE, [], { aggregate: writeVector(sum) }];
  },

  abandon(server, inbox) {
    checkEmpty(inbox, 'abandon');
    if (server.status === 'idle') refuse('wrong_phase', 'there is no epoch to abandon');
    return [IDLE, [message(server, ABANDONMENT, AUTHORITY, {})]];
  },
};

// ------------------------------------------------------------------------------------------------------------------
// How parties start

/** A party before its first step, of what is right. */
function newParty(p, agreement, index, beside) {
  return { parameters: p, agreement, session: p.session, round: p.round, index, status: 'idle', last: null, ...beside };
}

/** [BAA-24] The form of updates and of the draws for their weights. */
function checkUpdates({ R, d }, updates, roundings) {
  updates.forEach((update, i) => checkVector(update, d, R, `updates[${i}]`));
  roundings.forEach((draw, i) => checkDraw(draw, `roundings[${i}]`));
}

function checkSampled(list, bytes, name) {
  list.forEach((sampled, i) => checkLength(sampled.length, bytes, `${name}[${i}]`));
}

function userStart(p, rand) {
  const { N, user, signing, verification, authority, updates, stamps } = p;
  const agreement = agreementOf(p);
  if (user >= N) refuse('unknown_peer', `user ${user} is not in [0, ${N})`);
  checkKey(signing, 'signing'); // [SIG-04]
  checkKey(authority, 'authority');
  checkRoster(verification, N, 'verification');
  checkUpdates(p, updates, rand.roundings);
  checkLength(stamps.length, updates.length, 'stamps');
  checkSampled(rand.seeds, KEY * positionsOf(p), 'seeds');
  checkSampled(rand.box_keys, KEY, 'box_keys');
  return newParty(p, agreement, user, { signing, authority, updates, stamps, ...rand, offer: null });
}

function serverStart(p) {
  const { N, round, verification, authority } = p;
  const agreement = agreementOf(p);
  checkKey(authority, 'authority');
  checkRoster(verification, N, 'verification');
  return newParty(p, agreement, SERVER, { authority, verification, last: round, ...IDLE });
}

function authorityStart(p, rand) {
  const { N, round, signing, verification } = p;
  const agreement = agreementOf(p);
  checkKey(signing, 'signing');
  checkRoster(verification, N, 'verification');
  checkSampled(rand.pair_keys, KEY * positionsOf(p), 'pair_keys');
  checkSampled(rand.self_keys, KEY * positionsOf(p), 'self_keys');
  if (!hasSelfMasks(p)) checkLength(rand.self_keys.length, 0, 'self_keys');
  return newParty(p, agreement, AUTHORITY, { signing, verification, ...rand, ...ENDED, round: round - 1 });
}

const parties = {
  user: {
    setup: {
      user: readSize, signing: readBytes, verification: readKeys, authority: readBytes, updates: readVectors,
      stamps: readVector,
    },
    rand: { seeds: readKeys, box_keys: readKeys, roundings: readReals },
    steps: userSteps,
    start: userStart,
  },
  server: {
    setup: { verification: readKeys, authority: readBytes }, rand: {}, steps: serverSteps, start: serverStart,
  },
  authority: {
    setup: { signing: readBytes, verification: readKeys },
    rand: { pair_keys: readKeys, self_keys: readKeys },
    steps: authoritySteps,
    start: authorityStart,
  },
};

// ------------------------------------------------------------------------------------------------------------------
// All of them: a server, an authority and N users that follow the protocol

const ASKING = { user: readInteger, stamp: readRound };

const EVENTS = { upload: ASKING, expire: { ...ASKING, keyed: readBoolean }, late: ASKING, close: {} };

/** [ADP-36] */
function readEvent(value, name) {
  if (!isObject(value) || typeof value.event !== 'string' || !Object.hasOwn(EVENTS, value.event)) {
    refuse('malformed', `${name} is no event [ADP-36]`);
  }
  return readMembers(value, name, { event: (kind) => kind, ...EVENTS[value.event] });
}

/** An Ed25519 key pair: the 32 bytes of each key. */
function signingPair() {
  const { privateKey, publicKey } = crypto.generateKeyPairSync('ed25519');
  return {
    own: privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-KEY),
    shown: publicKey.export({ format: 'der', type: 'spki' }).subarray(-KEY),
  };
}

/** The parties, and the epochs that were opened. A refusal of a party ends it all. */
class Play {
  constructor(p, updates, draws) {
    const agreement = agreementOf(p);
    const { own: signing, shown: authority } = signingPair();
    const verification = []; // of users that come to an event
    this.signing = [];
    this.p = p;
    this.lists = { updates, roundings: Array.from(draws) };
    this.epochs = [];
    this.server = newParty(p, agreement, SERVER, { authority, verification, last: p.round - 1, ...IDLE });
    this.authority = newParty(p, agreement, AUTHORITY, { signing, verification, ...ENDED, round: p.round - 1 });
    this.userOf = (user, given) => newParty(p, agreement, user, { signing: this.keyOf(user), authority, ...given });
    this.open();
  }

  keyOf(user) {
    if (this.signing[user] === undefined) {
      const { own, shown } = signingPair();
      this.signing[user] = own;
      this.server.verification[user] = shown;
    }
    return this.signing[user];
  }

  /** A step of the server or the authority: its entry, with the bytes of its messages. */
  step(name, steps, phase, inbox) {
    const [entry, after] = perform(steps, this[name], { phase, inbox });
    this[name] = after;
    return { ...entry, outbox: bytesOf(entry) };
  }

  serve(phase, inbox = []) {
    return this.step('server', serverSteps, phase, inbox);
  }

  rule(phase, inbox = []) {
    return this.step('authority', authoritySteps, phase, inbox);
  }

  open() {
    const bytes = KEY * positionsOf(this.p);
    const self = hasSelfMasks(this.p) ? bytes : 0;
    Object.assign(this.authority, { pair_keys: [crypto.randomBytes(bytes)], self_keys: [crypto.randomBytes(self)] });
    this.serve('open', this.rule('open').outbox);
    this.epochs.push({ round: String(this.server.round), positions: [], users: [], weights: '', sum: null });
  }

  /** What the object of the epoch shows of the buffer. */
  record() {
    const positions = acceptedOf(this.server);
    const entries = positions.map((k) => this.server.settled[k]);
    Object.assign(this.epochs.at(-1), {
      positions, users: entries.map(({ user }) => user), weights: writeVector(entries.map(({ weight }) => weight)),
    });
  }

  /** The user is offered the position. */
  offer(user, given) {
    let party = this.userOf(user, given);
    const act = (phase, inbox) => {
      const [entry, after] = perform(userSteps, party, { phase, inbox });
      party = after;
      return bytesOf(entry);
    };
    const [offered, assigned] = this.serve('offer', act('request', [])).outbox;
    this.rule('assign', [assigned]);
    return { act, offered };
  }

  /** The upload of a user, with the next of the updates. */
  uploadOf({ user, stamp }) {
    const [{ updates: update, roundings: draw }, left] = takeNext(this.lists, ['updates', 'roundings']);
    this.lists = left;
    const { act, offered } = this.offer(user, {
      updates: [update], stamps: [stamp], roundings: [draw], seeds: [crypto.randomBytes(KEY * positionsOf(this.p))],
      box_keys: [crypto.randomBytes(KEY)],
    });
    return act('upload', this.rule('issue', act('fetch', [offered])).outbox);
  }

  settle(phase, inbox) {
    this.serve('settle', this.rule('settle', this.serve(phase, inbox).outbox).outbox);
  }

  upload(event) {
    this.settle('take', this.uploadOf(event));
    this.record();
  }

  expire({ user, stamp, keyed }) {
    const { act, offered } = this.offer(user, { updates: [null], stamps: [stamp] });
    if (keyed) this.rule('issue', act('fetch', [offered]));
    this.settle('expire');
  }

  late(event) {
    const sent = this.uploadOf(event);
    this.settle('expire');
    try {
      this.serve('take', sent);
    } catch (problem) {
      if (problem instanceof Reject) return;
      throw problem;
    }
    throw new Error('the server took an upload that was late');
  }

  close() {
    const released = this.rule('close', this.serve('close').outbox).outbox;
    this.epochs.at(-1).sum = this.serve('recover', released).aggregate;
  }

  /** An event; where the epoch has ended, another one is opened for it. */
  play(event) {
    if (this.server.status === 'idle') this.open();
    this[event.event](event);
  }
}

function bytesOf({ outbox }) {
  return outbox.map((hex) => Buffer.from(hex, 'hex'));
}

// ------------------------------------------------------------------------------------------------------------------
// Operations

const shared = { ...NUMBERS, session: readBytes, round: readRound };
const operations = {
  'basa.user': scriptOf(shared, parties.user, perform),
  'basa.server': scriptOf(shared, parties.server, perform),
  'basa.authority': scriptOf(shared, parties.authority, perform),
  'basa.epochs': {
    params: {
      ...shared, updates: readVectors, schedule: (value, name) => readList(value, name, readEvent),
    },
    rand: { roundings: readReals },
    run(p, { roundings }) {
      const { N, updates, schedule } = p;
      const play = new Play(p, updates, roundings);
      checkUpdates(p, updates, roundings);
      schedule.forEach(({ user = 0 }, i) => {
        if (!(user >= 0 && user < N)) refuse('unknown_peer', `schedule[${i}]: user ${user} is not in [0, ${N})`);
      });
      for (const event of schedule) play.play(event);
      return { epochs: play.epochs };
    },
  },
};

module.exports = { NUMBERS, parties, advance: perform, operations };
