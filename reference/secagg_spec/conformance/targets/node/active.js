// SPDX-License-Identifier: Apache-2.0
//
// Scripts of the active profile of LightSecAgg (LightSecAgg, section 9; adapter, section 4).

'use strict';

const { SERVER, refuse } = require('./refusals');
const { readBytes, readVector, readSize, readCount } = require('./encodings');
const { SESSION, SealedChannel, checkKey, checkRoster, readKeys, u32, hashAttempt } = require('./crypto');
const { signedFields, sign, isValid } = require('./signatures');
const {
  MASK_SHARE, message, readOwn, checkOrder, readSurvivingSet, answer, userSteps, serverSteps, userStart, serverStart,
  inOrder, scriptOf,
} = require('./scripts');

const SIGNED_SET = 261;
const QUORUM = 262;
const SIGNATURE = 64;
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

/** What a user signs when it confirms a set [LSA-21]. */
function confirmed(party, signer, members) {
  return signedFields({
    protocol: PROTOCOL,
    parameters: party.attempt,
    session: party.session,
    round: party.round,
    purpose: 'surviving-set',
    type: SIGNED_SET,
    signer,
    content: [Buffer.concat([...members].sort((a, b) => a - b).map(u32))],
  });
}

function isConfirmation(party, signer, members, signature) {
  return isValid(party.verification[signer], confirmed(party, signer, members), signature);
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
    const signature = sign(user.signing, confirmed(user, user.index, members));
    return [{ members }, [message(user, SIGNED_SET, SERVER, { signature })]];
  },

  /** [LSA-26] */
  recover(user, inbox) {
    const [quorum] = readOwn(user, inbox, QUORUM, (sender) => sender === SERVER);
    if (quorum === undefined) refuse('wrong_phase', 'no quorum was received [LSA-29]');
    checkQuorum(user, Array.from(quorum.signers), quorum.signatures);
    return answer(user, user.members);
  },
};

/** [LSA-27] [LSA-28] [LSA-29] [LSA-33] */
function checkQuorum(user, signers, signatures) {
  const { W } = user.parameters;
  if (new Set(signers).size !== signers.length) {
    refuse('inconsistent_sets', 'the quorum names a signer twice [LSA-27]', [SERVER]);
  }
  const outside = signers.find((signer) => !user.members.includes(signer));
  if (outside !== undefined) refuse('inconsistent_sets', `user ${outside} does not survive [LSA-27]`, [SERVER]);
  checkOrder(signers, 'the list of signers');
  if (signatures.length !== SIGNATURE * signers.length) {
    refuse('malformed', `${signatures.length} bytes of signatures for ${signers.length} signers`, [SERVER]);
  }
  if (signers.length < W) refuse('below_threshold', `${signers.length} signers, fewer than W = ${W} [LSA-29]`);
  signers.forEach((signer, i) => {
    const signature = signatures.subarray(SIGNATURE * i, SIGNATURE * (i + 1));
    if (!isConfirmation(user, signer, user.members, signature)) {
      refuse('bad_signature', `the signature of user ${signer} is not valid [LSA-28]`, [SERVER]);
    }
  });
}

const activeServer = {
  share: serverSteps.share,
  upload: serverSteps.upload,
  recover: serverSteps.recover,

  /** [LSA-23] [LSA-24] [LSA-25] */
  confirm(server, inbox) {
    const { W } = server.parameters;
    const surviving = [...server.masked.keys()];
    const received = readOwn(server, inbox, SIGNED_SET, (i) => server.masked.has(i));
    for (const { sender, signature } of received) {
      if (!isConfirmation(server, sender, surviving, signature)) {
        refuse('bad_signature', `the signature of user ${sender} is not valid [LSA-24]`, [sender]);
      }
    }
    if (received.length < W) {
      refuse('below_threshold', `${received.length} users confirm the set, fewer than W = ${W} [LSA-23]`);
    }
    received.sort((a, b) => a.sender - b.sender);
    const signers = received.map(({ sender }) => sender);
    const signatures = Buffer.concat(received.map(({ signature }) => signature));
    return [{}, signers.map((user) => message(server, QUORUM, user, { signers, signatures }))];
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
