// SPDX-License-Identifier: Apache-2.0
//
// Scripts of the active profile of LightSecAgg (LightSecAgg, section 9; adapter, section 4).

'use strict';

const { SERVER, refuse } = require('./refusals');
const { readBytes, readVector, readSize, readCount } = require('./encodings');
const { SESSION, SealedChannel, checkKey, checkRoster, readKeys, hashAttempt } = require('./crypto');
const { setOf, signProposal, checkQuorum, collect } = require('./agreement');
const {
  MASK_SHARE, message, readOwn, readSurvivingSet, answer, userSteps, serverSteps, userStart, serverStart, inOrder,
  scriptOf,
} = require('./scripts');

const SIGNED_SET = 261;
const QUORUM = 262;
const PROTOCOL = 'lightsecagg-active';
const PHASES = ['share', 'upload', 'confirm', 'recover'];

/** [LSA-19] */
function checkThreshold({ N, D, T, W }) {
  if (!(2 * W > N + T && W <= N - D)) {
    refuse('bad_param', `W = ${W} with N = ${N}, D = ${D}, T = ${T}: not 2W > N + T and W <= N - D [LSA-19]`);
  }
}

/** The parameters of the profile, in the order of the text [LSA-31]. */
function numbersOf({ q, N, D, U, T, d, W }) {
  return { q, N, D, U, T, d, W };
}

/** [LSA-34] The hash of the parameters and of the sealing keys of all users. */
function attemptOf(p) {
  return hashAttempt(numbersOf(p), p.roster.map((key, user) => [user, [key]]));
}

/** What confirmations are bound to [LSA-21] [LSA-34]. */
function ballotOf({ parameters, attempt, session, round, verification }) {
  return {
    protocol: PROTOCOL, parameters: attempt, session, round, purpose: 'surviving-set', type: SIGNED_SET, verification,
    enough: parameters.W,
  };
}

const activeUser = {
  share: userSteps.share,
  upload: userSteps.upload,

  /** [LSA-20] [LSA-21] [LSA-22] */
  confirm(user, inbox) {
    const members = readSurvivingSet(user, inbox);
    if (!members.includes(user.index)) {
      refuse('inconsistent_sets', `the surviving set is without user ${user.index} [LSA-20]`, [SERVER]);
    }
    const signature = signProposal(ballotOf(user), user.signing, user.index, setOf(members));
    return [{ members }, [message(user, SIGNED_SET, SERVER, { signature })]];
  },

  /** [LSA-26] */
  recover(user, inbox) {
    const [quorum] = readOwn(user, inbox, QUORUM, (sender) => sender === SERVER);
    if (quorum === undefined) refuse('wrong_phase', 'no quorum was received [LSA-29]');
    checkQuorum(ballotOf(user), setOf(user.members), quorum);
    return answer(user, user.members);
  },
};

const activeServer = {
  share: serverSteps.share,
  upload: serverSteps.upload,
  recover: serverSteps.recover, // [LSA-36]

  /** [LSA-23] [LSA-24] [LSA-25] */
  confirm(server, inbox) {
    const received = readOwn(server, inbox, SIGNED_SET, (i) => server.masked.has(i));
    const { signers, signatures } = collect(ballotOf(server), setOf(server.masked.keys()), received);
    const outbox = signers.map((user) => message(server, QUORUM, user, { signers, signatures }));
    return [{ signers: new Set(signers) }, outbox];
  },
};

const parties = {
  user: {
    setup: {
      user: readSize, private: readBytes, signing: readBytes, roster: readKeys, verification: readKeys,
      update: readVector,
    },
    rand: { mask: readVector, noise: readVector },
    steps: activeUser,
    start(p, rand) {
      const start = userStart(p, rand);
      checkThreshold(p);
      checkKey(p.signing, 'signing'); // [SIG-04]
      checkRoster(p.verification, p.N, 'verification'); // [SIG-04] [SIG-05]
      const attempt = attemptOf(p);
      const channel = new SealedChannel({ ...p, type: MASK_SHARE }, PROTOCOL, attempt); // [LSA-31]
      const { signing, verification } = p;
      return { ...start, attempt, channel, signing, verification };
    },
  },
  server: {
    setup: { roster: readKeys, verification: readKeys },
    rand: {},
    steps: activeServer,
    start(p) {
      const start = serverStart(p);
      checkThreshold(p);
      checkRoster(p.roster, p.N); // [KEY-03] [KEY-04]
      checkRoster(p.verification, p.N, 'verification'); // [SIG-04] [SIG-05]
      return { ...start, attempt: attemptOf(p), verification: p.verification };
    },
  },
};

const shared = { ...SESSION, W: readCount };
const advance = inOrder(PHASES);
const operations = {
  'lightsecagg_active.user': scriptOf(shared, parties.user, advance),
  'lightsecagg_active.server': scriptOf(shared, parties.server, advance),
};

module.exports = { parties, advance, operations };
