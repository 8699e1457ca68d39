// SPDX-License-Identifier: Apache-2.0
//
// The active profile of SecAgg (SecAgg, section 10): users sign their keys and the surviving set.

'use strict';

const { SERVER, refuse } = require('./refusals');
const { checkKey, checkRoster, hashAttempt } = require('./crypto');
const { signedFields, sign, isValid } = require('./signatures');
const { SIGNATURE, setOf, signProposal, checkQuorum, collect } = require('./agreement');
const { message, readOwn } = require('./scripts');
const {
  agreement, userSteps, serverSteps, readFromServer, readPieces, shareKeys, requested, answerRequest, relayKeys,
  onRoster, checkSize, partiesOf,
} = require('./secagg');

const SIGNED_KEYS = 520;
const SIGNED_NEIGHBOUR_KEYS = 521;
const SIGNED_SURVIVORS = 522;
const SURVIVOR_QUORUM = 523;
const KEY = 32;
const PROTOCOL = 'secagg-active';

/** [SAG-51] What a user signs when it signs its keys. */
function signedKeys({ parameters, session, round }, signer, sealing, masking) {
  const content = [sealing, masking];
  return signedFields({
    protocol: PROTOCOL, parameters, session, round, purpose: 'advertised-keys', type: SIGNED_KEYS, signer, content,
  });
}

function checkSignedKeys(party, owner, { sealing, masking, signature }, clause, blamed) {
  if (!isValid(party.verification[owner], signedKeys(party, owner, sealing, masking), signature)) {
    refuse('bad_signature', `the signature of user ${owner} on its keys is not valid ${clause}`, [blamed]);
  }
}

/** [SAG-67] The hash of the parameters and of the keys of U_1: lists of user, sealing key, masking key. */
function attemptOf({ numbers }, keys) {
  return hashAttempt(numbers, keys.map(([user, ...both]) => [user, both]));
}

/** [SAG-56] What the signatures on the surviving set are bound to. */
function ballotOf({ attempt, session, round, verification, numbers }) {
  return {
    protocol: PROTOCOL, parameters: attempt, session, round, purpose: 'surviving-set', type: SIGNED_SURVIVORS,
    verification, enough: numbers.t,
  };
}

const activeUser = {
  advertise_keys(user, inbox) {
    const [changes] = userSteps.advertise_keys(user, inbox);
    const keys = { sealing: user.sealing.open, masking: user.masking.open };
    const signature = sign(user.signing, signedKeys(user, user.index, keys.sealing, keys.masking));
    return [changes, [message(user, SIGNED_KEYS, SERVER, { ...keys, signature })]];
  },

  /** [SAG-53] [SAG-67] */
  share_keys(user, inbox) {
    const received = readFromServer(user, inbox, SIGNED_NEIGHBOUR_KEYS);
    const users = Array.from(received.users);
    const outside = users.find((i) => i >= user.numbers.N);
    if (outside !== undefined) refuse('bad_signature', `user ${outside} has no verification key [SAG-53]`, [SERVER]);
    const of = (name, size) => [...readPieces(users.map((_, i) => i), received[name], size, name, [SERVER]).values()];
    const [sealing, masking, signatures] = [of('sealing', KEY), of('masking', KEY), of('signatures', SIGNATURE)];
    users.forEach((owner, i) => {
      const sent = { sealing: sealing[i], masking: masking[i], signature: signatures[i] };
      checkSignedKeys(user, owner, sent, '[SAG-53]', SERVER);
    });
    const listed = users.map((owner, i) => [owner, sealing[i], masking[i]]);
    const attempt = attemptOf(user, [...listed, [user.index, user.sealing.open, user.masking.open]]);
    const [changes, outbox] = shareKeys({ ...user, attempt }, received);
    return [{ ...changes, attempt }, outbox];
  },

  masked_input: userSteps.masked_input,

  /** [SAG-54] [SAG-55] */
  consistency_check(user, inbox) {
    const request = requested(user, inbox);
    const signature = signProposal(ballotOf(user), user.signing, user.index, setOf(request.survivors));
    return [{ request }, [message(user, SIGNED_SURVIVORS, SERVER, { signature })]];
  },

  /** [SAG-60] */
  unmasking(user, inbox) {
    const quorum = readFromServer(user, inbox, SURVIVOR_QUORUM);
    checkQuorum(ballotOf(user), setOf(user.request.survivors), quorum);
    return answerRequest(user, user.request);
  },
};

const activeServer = {
  /** [SAG-52] [SAG-67] */
  advertise_keys(server, inbox) {
    const received = readOwn(server, inbox, SIGNED_KEYS, onRoster(server));
    for (const sent of received) {
      for (const name of ['sealing', 'masking']) checkSize(sent[name], KEY, `the ${name} key`, sent.sender);
      checkSignedKeys(server, sent.sender, sent, '[SAG-52]', sent.sender);
    }
    const [changes, outbox] = relayKeys(server, received);
    const keys = [...changes.keys].map(([user, { sealing, masking }]) => [user, sealing, masking]);
    const signatures = new Map(received.map(({ sender, signature }) => [sender, signature]));
    const signed = outbox.map((one) => ({
      ...one, type: SIGNED_NEIGHBOUR_KEYS, signatures: Buffer.concat(one.users.map((i) => signatures.get(i))),
    }));
    return [{ ...changes, attempt: attemptOf(server, keys) }, signed];
  },

  share_keys: serverSteps.share_keys,
  masked_input: serverSteps.masked_input,

  /** [SAG-57] [SAG-58] [SAG-59] */
  consistency_check(server, inbox) {
    const received = readOwn(server, inbox, SIGNED_SURVIVORS, (i) => server.masked.has(i));
    const { signers, signatures } = collect(ballotOf(server), setOf(server.masked.keys()), received);
    const outbox = signers.map((user) => message(server, SURVIVOR_QUORUM, user, { signers, signatures }));
    return [{ signers: new Set(signers) }, outbox];
  },

  unmasking: serverSteps.unmasking, // [SAG-64]
};

/** What all parties agree on; the graph is complete, so the order says nothing. */
function agreed({ verification, signing, ...p }) {
  const { N, T, t, k } = p;
  checkRoster(verification, N, 'verification'); // [SIG-04] [SIG-05]
  const shared = agreement({ ...p, order: verification.map((_, i) => i) });
  if (!(k === N - 1 && 2 * t > N + T)) {
    refuse('bad_param', `k = ${k}, t = ${t} with N = ${N}, T = ${T}: not k = N - 1 and 2t > N + T [SAG-50]`);
  }
  if (signing !== undefined) checkKey(signing, 'signing'); // [SIG-04]
  return { ...shared, protocol: PROTOCOL, verification, signing };
}

module.exports = {
  PHASES: Object.keys(activeUser), ...partiesOf(agreed, { user: activeUser, server: activeServer }),
};
