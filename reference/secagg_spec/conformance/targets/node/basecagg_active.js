// SPDX-License-Identifier: Apache-2.0
//
// The active profile of BASecAgg (BASecAgg, section 11): users sign a buffer, and answer only for one that W users signed.

'use strict';

const { SERVER, refuse } = require('./refusals');
const { readBytes, readSize, readCount, readRound, readVectors } = require('./encodings');
const { checkKey, checkRoster, readKeys, hashAttempt } = require('./crypto');
const { words, signProposal, checkQuorum, collect } = require('./agreement');
const { message, checkRound, perform, scriptOf } = require('./scripts');
const basecagg = require('./basecagg_parties');

const { userSteps, serverSteps, BUFFERED_SET, WEIGHTED_SHARE, readStep, readFromServer, checkStatus, entriesOf } = basecagg;
const SIGNED_BUFFER = 775;
const BUFFER_QUORUM = 776;
const PROTOCOL = 'basecagg-active';

/** [BSA-37] */
function checkThreshold({ N, D, U, T, W }) {
  if (!(2 * W > N + T && U <= W && W <= N - D)) {
    refuse('bad_param', `W = ${W} with N = ${N}, D = ${D}, U = ${U}, T = ${T}: not 2W > N + T, U <= W <= N - D [BSA-37]`);
  }
}

/** [BSA-45] [BSA-47] The hash of the parameters, of W, and of the sealing keys of all users. */
function attemptOf(p) {
  return hashAttempt({ ...basecagg.boundNumbers(p), W: p.W }, p.roster.map((key, user) => [user, [key]]));
}

/** What confirmations of the buffer of a round are bound to [BSA-38]. */
function ballotOf({ parameters, attempt, session, verification }, round) {
  return {
    protocol: PROTOCOL, parameters: attempt, session, round, purpose: 'buffered-set', type: SIGNED_BUFFER, verification,
    enough: parameters.W,
  };
}

/** [BSA-38] A buffer as it is signed; all users of the roster may sign it [BSA-44]. */
function proposalOf({ parameters: { N } }, users, stamps, weights) {
  const voters = Array.from({ length: N }, (_, i) => i);
  return { members: Array.from(users), further: [words(stamps), words(weights)], voters };
}

const activeUser = {
  ...userSteps,

  /** [BSA-38] [BSA-39] */
  confirm(user, inbox) {
    const { round, users, stamps, weights } = readFromServer(user, inbox, BUFFERED_SET);
    const [changes, [answer]] = userSteps.recover(user, inbox);
    const proposal = proposalOf(user, users, stamps, weights);
    const signature = signProposal(ballotOf(user, round), user.signing, user.index, proposal);
    const pending = { round, proposal, answer };
    return [{ ...changes, pending }, [message(user, SIGNED_BUFFER, SERVER, { round, signature })]];
  },

  /** [BSA-43] */
  recover(user, inbox) {
    const quorum = readFromServer(user, inbox, BUFFER_QUORUM);
    const { pending } = user;
    if (pending === null && quorum.round === user.answered) {
      refuse('replay', `the quorum of round ${quorum.round} was answered`);
    }
    if (pending === null || pending.round !== quorum.round) {
      refuse('wrong_phase', `nothing is set aside for the buffer of round ${quorum.round}`);
    }
    checkQuorum(ballotOf(user, pending.round), pending.proposal, quorum);
    return [{ pending: null }, [pending.answer]];
  },
};

const activeServer = {
  ...serverSteps,

  close(server, inbox) {
    const [changes, outbox] = serverSteps.close(server, inbox);
    return [{ ...changes, status: 'confirming' }, outbox];
  },

  /** [BSA-40] [BSA-41] [BSA-42] */
  confirm(server, inbox) {
    checkStatus(server, 'confirming', 'confirm');
    const { N } = server.parameters;
    const received = readStep(server, inbox, SIGNED_BUFFER, (i) => i < N);
    for (const one of received) checkRound(one, server.round);
    const entries = entriesOf(server);
    const [users, stamps] = [entries.map(({ user }) => user), entries.map(({ stamp }) => stamp)];
    const proposal = proposalOf(server, users, stamps, server.weights);
    const { signers, signatures } = collect(ballotOf(server, server.round), proposal, received);
    const outbox = signers.map((user) => message(server, BUFFER_QUORUM, user, { signers, signatures }));
    return [{ status: 'recovering', signers: new Set(signers) }, outbox];
  },

  /** [BSA-46] */
  recover(server, inbox) {
    checkStatus(server, 'recovering', 'recover');
    readStep(server, inbox, WEIGHTED_SHARE, (i) => server.signers.has(i));
    return serverSteps.recover(server, inbox);
  },
};

/** What a party of the profile has beside that of the semi-honest one. */
function extended(p) {
  checkThreshold(p);
  checkRoster(p.verification, p.N, 'verification'); // [SIG-04] [SIG-05]
  return { attempt: attemptOf(p), verification: p.verification };
}

const readRealVectors = basecagg.readRealVectors;
const parties = {
  user: {
    setup: {
      user: readSize, private: readBytes, signing: readBytes, roster: readKeys, verification: readKeys,
      updates: readVectors,
    },
    rand: { masks: readVectors, noises: readVectors },
    steps: activeUser,
    start(p, rand) {
      const channel = { private: p.private, roster: p.roster };
      const start = basecagg.userStart({ ...p, channel }, rand, PROTOCOL, attemptOf(p));
      checkKey(p.signing, 'signing'); // [SIG-04]
      return { ...start, ...extended(p), signing: p.signing, pending: null };
    },
  },
  server: {
    setup: { roster: readKeys, verification: readKeys },
    rand: { roundings: readRealVectors },
    steps: activeServer,
    start(p, rand) {
      const start = basecagg.serverStart(p, rand);
      checkRoster(p.roster, p.N); // [KEY-03] [KEY-04]
      return { ...start, ...extended(p), signers: new Set() };
    },
  },
};

const NUMBERS = { ...basecagg.NUMBERS, W: readCount };
const shared = { ...NUMBERS, session: readBytes, round: readRound };
const operations = {
  'basecagg_active.user': scriptOf(shared, parties.user, perform),
  'basecagg_active.server': scriptOf(shared, parties.server, perform),
};

module.exports = { NUMBERS, parties, advance: perform, operations };
