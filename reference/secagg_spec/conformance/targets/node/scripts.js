// SPDX-License-Identifier: Apache-2.0
//
// Scripts: one party of a LightSecAgg round, step by step (adapter, section 4).
//
// A party is a plain object that is never changed: a step makes the next one, or refuses and makes none [ERR-01].

'use strict';

const { SERVER, AUTHORITY, Reject, refuse, show } = require('./refusals');
const { add, checkVector, elementwise } = require('./integers');
const { shareLength, encode, checkWork } = require('./code');
const { checkLightSecAgg, checkSurvivingSet, sumOfShares, recoverSum } = require('./lightsecagg');
const { readBytes, readVector, writeVector, readSize, readList, readString, readMembers } = require('./encodings');
const { SESSION, SealedChannel, checkSessionId, readKeys } = require('./crypto');
const { checkOrder } = require('./agreement');
const { encodeMessage, decodeMessage, readEntries, writeEntries, writeParty } = require('./messages');

const MASK_SHARE = 257;
const MASKED_UPDATE = 258;
const SURVIVING_SET = 259;
const AGGREGATED_SHARE = 260;
const PHASES = ['share', 'upload', 'recover'];

const plainChannel = {
  close: (sender, receiver, plaintext) => plaintext,
  open: (sender, receiver, payload) => payload,
};

/** A message of this party. */
function message(party, type, receiver, fields) {
  return { type, session: party.session, round: party.round, sender: party.index, receiver, ...fields };
}

/** The messages in an inbox, of a type and a session that the step takes [MSG-02] [MSG-03]. */
function readOfSession(party, inbox, types) {
  return inbox.map((bytes) => {
    const read = decodeMessage(bytes, types);
    if (!read.session.equals(party.session)) {
      refuse('wrong_phase', 'a message of another session [MSG-03]', [read.sender]);
    }
    return read;
  });
}

/** [MSG-03] */
function checkRound({ round, sender }, expected) {
  if (round !== expected) refuse('wrong_phase', `a message of round ${round}, not ${expected} [MSG-03]`, [sender]);
}

/** The messages in an inbox, of a type and with a header that the step takes [MSG-02] [MSG-03]. */
function readInbox(party, inbox, types) {
  const messages = readOfSession(party, inbox, types);
  for (const one of messages) checkRound(one, party.round);
  return messages;
}

/** The messages of a step that takes one from each of some senders [MSG-03] [MSG-04]. */
function readOwn(party, inbox, type, senders) {
  return oneOfEach(party, readInbox(party, inbox, [type]), senders);
}

/** [MSG-03] [MSG-04] Messages for this party, at most one of each of some senders. */
function oneOfEach(party, messages, senders) {
  const seen = new Set();
  for (const { sender, receiver } of messages) {
    if (receiver !== party.index) refuse('malformed', `a message for party ${receiver} [MSG-03]`, [sender]);
    if (!senders(sender)) refuse('unknown_peer', `party ${sender} has nothing to send here [MSG-03]`, [sender]);
    if (seen.has(sender)) refuse('replay', `a second message of party ${sender} [MSG-04]`, [sender]);
    seen.add(sender);
  }
  return messages;
}

// ------------------------------------------------------------------------------------------------------------------
// A user

const userSteps = {
  share(user, inbox) {
    if (inbox.length > 0) refuse('wrong_phase', 'the step share of a user receives nothing');
    const { q, N, U, T } = user.parameters;
    const shares = encode(q, N, U, T, user.mask, user.noise);
    const outbox = [];
    shares.forEach((share, j) => {
      if (j === user.index) return;
      const payload = user.channel.close(user.index, j, writeEntries(share));
      outbox.push(message(user, MASK_SHARE, j, { payload }));
    });
    return [{ held: new Map([[user.index, shares[user.index]]]) }, outbox];
  },

  upload(user, inbox) {
    const { q, N, U, T, d } = user.parameters;
    const held = new Map(user.held);
    for (const { sender, payload } of readOwn(user, inbox, MASK_SHARE, (i) => i < N && i !== user.index)) {
      const share = readEntries(user.channel.open(sender, user.index, payload));
      checkVector(share, shareLength(d, U, T), q, `the share of user ${sender}`);
      held.set(sender, share);
    }
    const masked = elementwise(add, user.update, user.mask, q); // [LSA-02]
    return [{ held, mask: null }, [message(user, MASKED_UPDATE, SERVER, { masked })]];
  },

  recover(user, inbox) {
    return answer(user, readSurvivingSet(user, inbox));
  },
};

/** The surviving set that the server announces to a user. [LSA-09] [LSA-10] [LSA-11] [LSA-32] */
function readSurvivingSet(user, inbox) {
  const [announced] = readOwn(user, inbox, SURVIVING_SET, (sender) => sender === SERVER);
  if (announced === undefined) refuse('wrong_phase', 'no surviving set was announced [LSA-09]');
  const surviving = Array.from(announced.users);
  checkSurvivingSet(surviving, user.parameters.N, user.parameters.T, user.held);
  checkOrder(surviving, 'the surviving set');
  return surviving;
}

/** [LSA-08] What a user's last step makes of a surviving set. */
function answer(user, surviving) {
  const share = sumOfShares(surviving, user.held, user.parameters.q);
  return [{ held: new Map() }, [message(user, AGGREGATED_SHARE, SERVER, { share })]];
}

// ------------------------------------------------------------------------------------------------------------------
// The server

const serverSteps = {
  /** [LSA-05] */
  share(server, inbox) {
    const { N } = server.parameters;
    const bySender = new Map();
    const messages = readInbox(server, inbox, [MASK_SHARE]);
    for (const { sender, receiver } of messages) {
      if (sender >= N || receiver >= N || sender === receiver) {
        refuse('malformed', `a share from party ${sender} to party ${receiver} [MSG-03]`, [sender]);
      }
      if (!bySender.has(sender)) bySender.set(sender, new Set());
      const receivers = bySender.get(sender);
      if (receivers.has(receiver)) refuse('replay', `two shares from user ${sender} to user ${receiver}`, [sender]);
      receivers.add(receiver);
    }
    const complete = (sender) => bySender.get(sender).size === N - 1;
    const sharers = new Set([...bySender.keys()].filter(complete));
    return [{ sharers }, messages.filter(({ sender }) => sharers.has(sender))];
  },

  /** [LSA-06] [LSA-07] [LSA-16] */
  upload(server, inbox) {
    const { q, U, T, d } = server.parameters;
    const masked = new Map();
    for (const received of readOwn(server, inbox, MASKED_UPDATE, (i) => server.sharers.has(i))) {
      checkVector(received.masked, d, q, `the masked update of user ${received.sender}`);
      masked.set(received.sender, received.masked);
    }
    const surviving = [...masked.keys()].sort((a, b) => a - b);
    if (surviving.length < Math.max(U, T + 2)) {
      refuse('below_threshold', `${surviving.length} users survive, fewer than U = ${U} or T + 2 = ${T + 2} [LSA-07]`);
    }
    return [{ masked }, surviving.map((user) => message(server, SURVIVING_SET, user, { users: surviving }))];
  },

  /** [LSA-13] to [LSA-16] */
  recover(server, inbox) {
    const { q, U, T, d } = server.parameters;
    const answers = readOwn(server, inbox, AGGREGATED_SHARE, (i) => (server.signers || server.masked).has(i));
    for (const { sender, share } of answers) {
      checkVector(share, shareLength(d, U, T), q, `the aggregated share of user ${sender}`);
    }
    const users = answers.map(({ sender }) => sender);
    const shares = answers.map(({ share }) => share);
    const aggregate = blaming(users, () => recoverSum(server.parameters, [...server.masked.values()], users, shares));
    return [{}, [], { aggregate: writeVector(aggregate) }];
  },
};

/** [LSA-15] A refusal for shares that lie on no codeword blames all who answered. */
function blaming(users, work) {
  try {
    return work();
  } catch (problem) {
    if (problem instanceof Reject && problem.code === 'bad_share') problem.blamed = users;
    throw problem;
  }
}

// ------------------------------------------------------------------------------------------------------------------
// Scripts

/** The entry of a step that is taken, and the party after it. */
function perform(steps, party, { phase, inbox }) {
  const [changes, outbox, beside] = steps[phase](party, inbox);
  const entry = { outbox: outbox.map((sent) => encodeMessage(sent).toString('hex')), ...beside };
  return [entry, { ...party, ...changes }];
}

/** The same, for a party that takes its steps in the order of `phases`. */
function inOrder(phases) {
  return (steps, party, step) => {
    const { taken = 0 } = party;
    const wanted = phases.indexOf(step.phase);
    if (wanted < taken) refuse('replay', `the step ${step.phase} was taken before [LSA-04] [LSA-12] [LSA-22]`);
    if (wanted > taken) refuse('wrong_phase', `the step ${step.phase} comes after ${phases[taken]}`);
    return perform(steps, { ...party, taken: taken + 1 }, step);
  };
}

/** The parties that a refusal names, as they stand in answers. */
function writeBlamed({ blamed }) {
  return blamed.filter((i) => i === SERVER || i === AUTHORITY || i < 2 ** 31).map(writeParty);
}

/** The entry of a step, and the party after it. */
function take(advance, steps, party, step) {
  try {
    return advance(steps, party, step);
  } catch (problem) {
    return [refusalOf(problem), party];
  }
}

/** The entry of a refused step; what is no refusal is thrown again. */
function refusalOf(problem) {
  if (!(problem instanceof Reject)) throw problem;
  return { reject: { code: problem.code, message: problem.message, blamed: writeBlamed(problem) } };
}

/** steps: what the party does in each phase; advance: how it takes one of them. */
function play(advance, steps, start, script) {
  let party = start;
  const entries = [];
  for (const step of script) {
    const [entry, next] = take(advance, steps, party, step);
    entries.push(entry);
    party = next;
  }
  return { steps: entries };
}

function readStep(value, name, phases) {
  const step = readMembers(value, name, { phase: readString, inbox: (list, at) => readList(list, at, readBytes) });
  if (!phases.includes(step.phase)) refuse('malformed', `${name}: no phase ${show(step.phase)}`);
  return step;
}

/** The reader of `steps`, for a protocol with these phases. */
const readSteps = (phases) => (value, name) => readList(value, name, (step, at) => readStep(step, at, phases));

function readChannel(value, name) {
  return value === 'plain' ? null : readMembers(value, name, { private: readBytes, roster: readKeys });
}

/** A user before its first step, but for its channel. */
function userStart(p, { mask, noise }) {
  const { q, N, U, T, d, session, round, user, update } = p;
  checkLightSecAgg(p);
  checkSessionId(session);
  if (user >= N) refuse('unknown_peer', `user ${user} is not in [0, ${N})`);
  const L = shareLength(d, U, T);
  checkVector(update, d, q, 'update'); // [LSA-03]
  checkVector(mask, d, q, 'mask');
  checkVector(noise, T * L, q, 'noise');
  checkWork(N * U * L);
  return { parameters: p, session, round, index: user, update, mask, noise, held: new Map() };
}

/** The server before its first step. */
function serverStart(p) {
  checkLightSecAgg(p);
  checkSessionId(p.session);
  const { session, round } = p;
  return { parameters: p, session, round, index: SERVER, sharers: new Set(), masked: new Map() };
}

/** The two parties of a protocol: what each is given beside the session, what it samples, its steps, how it starts. */
const parties = {
  user: {
    setup: { user: readSize, channel: readChannel, update: readVector },
    rand: { mask: readVector, noise: readVector },
    steps: userSteps,
    start(p, rand) {
      const start = userStart(p, rand);
      const sealed = p.channel && new SealedChannel({ ...p, ...p.channel, type: MASK_SHARE }); // [LSA-18]
      return { ...start, channel: sealed || plainChannel };
    },
  },
  server: { setup: {}, rand: {}, steps: serverSteps, start: serverStart },
};

/** The operation that plays a script of a party; shared: the readers of what all parties are given. */
function scriptOf(shared, { setup, rand, steps, start }, advance) {
  const params = { ...shared, ...setup, steps: readSteps(Object.keys(steps)) };
  return { params, rand, run: (p, sampled) => play(advance, steps, start(p, sampled), p.steps) };
}

const advance = inOrder(PHASES);

const operations = {
  'lightsecagg.user': scriptOf(SESSION, parties.user, advance),
  'lightsecagg.server': scriptOf(SESSION, parties.server, advance),
};

module.exports = {
  MASK_SHARE, plainChannel, message, readOfSession, checkRound, readInbox, oneOfEach, readOwn, readSurvivingSet,
  answer, userSteps, serverSteps, blaming, userStart, serverStart, perform, inOrder, writeBlamed, refusalOf, readChannel,
  readSteps, scriptOf, parties, advance, operations,
};
