// SPDX-License-Identifier: Apache-2.0
//
// Agreement on one set: users sign the set that they are sent, and count signatures (LightSecAgg, section 9; SecAgg,
// section 10; BASecAgg, section 11).
//
// A ballot is what signatures are bound to, and how many are enough: { protocol, parameters: a hash, session, round,
// purpose, type: of the message that carries them, verification: keys, enough }.
// A proposal is what is signed: { members: users, further: fields beside them, voters: who may sign }.

'use strict';

const { SERVER, refuse } = require('./refusals');
const { u32 } = require('./crypto');
const { signedFields, sign, isValid } = require('./signatures');

const SIGNATURE = 64;

/** The proposal of a set among whose members each may sign. */
function setOf(users) {
  const members = [...users].sort((a, b) => a - b);
  return { members, further: [], voters: members };
}

/** Numbers as a field of content. */
function words(numbers) {
  return Buffer.concat(Array.from(numbers, u32));
}

/** What a user signs when it agrees. */
function signedProposal(ballot, signer, { members, further }) {
  return signedFields({ ...ballot, signer, content: [words(members), ...further] });
}

/** [LSA-21] [SAG-56] [BSA-38] */
function signProposal(ballot, key, signer, proposal) {
  return sign(key, signedProposal(ballot, signer, proposal));
}

/** [LSA-24] [LSA-28] [SAG-57] [SAG-62] [BSA-41] [BSA-44] */
function checkSignature(ballot, signer, proposal, signature, blamed) {
  if (!isValid(ballot.verification[signer], signedProposal(ballot, signer, proposal), signature)) {
    refuse('bad_signature', `the signature of user ${signer} is not valid`, [blamed]);
  }
}

/** [LSA-32] [LSA-33] Users in ascending order; none of them is there twice. */
function checkOrder(users, name) {
  if (users.some((user, i) => i > 0 && user < users[i - 1])) {
    refuse('malformed', `${name} is not in ascending order`, [SERVER]);
  }
}

/**
 * [LSA-27] [LSA-28] [LSA-29] [LSA-33] [SAG-60] to [SAG-63] [SAG-75] [BSA-43] [BSA-44] [BSA-50] proposal: what the user
 * signed itself.
 */
function checkQuorum(ballot, proposal, { signers: listed, signatures }) {
  const signers = Array.from(listed);
  if (new Set(signers).size !== signers.length) {
    refuse('inconsistent_sets', 'the quorum names a signer twice', [SERVER]);
  }
  const outside = signers.find((signer) => !proposal.voters.includes(signer));
  if (outside !== undefined) refuse('inconsistent_sets', `user ${outside} has nothing to sign`, [SERVER]);
  checkOrder(signers, 'the list of signers');
  if (signatures.length !== SIGNATURE * signers.length) {
    refuse('malformed', `${signatures.length} bytes of signatures for ${signers.length} signers`, [SERVER]);
  }
  if (signers.length < ballot.enough) {
    refuse('below_threshold', `${signers.length} signers, fewer than ${ballot.enough}`);
  }
  signers.forEach((signer, i) => {
    checkSignature(ballot, signer, proposal, signatures.subarray(SIGNATURE * i, SIGNATURE * (i + 1)), SERVER);
  });
}

/** What the server makes of the signatures that arrived, { sender, signature } each: the signers, and all signatures. */
function collect(ballot, proposal, received) {
  for (const { sender, signature } of received) checkSignature(ballot, sender, proposal, signature, sender);
  if (received.length < ballot.enough) {
    refuse('below_threshold', `${received.length} users signed the set, fewer than ${ballot.enough}`);
  }
  const sorted = [...received].sort((a, b) => a.sender - b.sender);
  return {
    signers: sorted.map(({ sender }) => sender),
    signatures: Buffer.concat(sorted.map(({ signature }) => signature)),
  };
}

module.exports = { SIGNATURE, setOf, words, signProposal, checkOrder, checkQuorum, collect };
