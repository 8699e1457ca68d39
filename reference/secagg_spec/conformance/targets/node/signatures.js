// SPDX-License-Identifier: Apache-2.0
//
// Signatures (conventions, section 10): Ed25519, with node:crypto.

'use strict';

const crypto = require('node:crypto');
const { refuse } = require('./refusals');
const { readBytes, readSize, readRound, readList, readTuple } = require('./encodings');
const {
  checkKey, checkSessionId, readAscii, readDecimalText, readType, u32, fields, hashParameters,
} = require('./crypto');

// What stands before the 32 bytes of an Ed25519 key in its DER encodings (RFC 8410).
const PRIVATE_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
const PRIME = 2n ** 255n - 19n;

/** [SIG-01] What a signature is over. `parameters` is the hash of the session's parameters. */
function signedFields({ protocol, parameters, session, round, purpose, type, signer, content }) {
  return fields([
    Buffer.from('secagg-spec', 'ascii'), u32(1), Buffer.from(protocol, 'ascii'), parameters, session, u32(round),
    Buffer.from(purpose, 'ascii'), u32(type), u32(signer), ...content,
  ]);
}

/** [SIG-01] */
function sign(privateBytes, data) {
  const key = Buffer.concat([PRIVATE_PREFIX, privateBytes]);
  return crypto.sign(null, data, crypto.createPrivateKey({ key, format: 'der', type: 'pkcs8' }));
}

/** [SIG-03] RFC 8032, 5.1.3: y is below the prime, and a point with x = 0, where y is 1 or -1, has no sign bit. */
function isDecoded(publicBytes) {
  const number = BigInt(`0x${Buffer.from(publicBytes).reverse().toString('hex')}`);
  const y = BigInt.asUintN(255, number);
  const sign = number !== y;
  return y < PRIME && !(sign && (y === 1n || y === PRIME - 1n));
}

/** [SIG-02] [SIG-03] The library takes no S that is not below the order, and does not multiply by the cofactor. */
function isValid(publicBytes, data, signature) {
  if (signature.length !== 64 || !isDecoded(publicBytes)) return false;
  const key = Buffer.concat([PUBLIC_PREFIX, publicBytes]);
  try {
    return crypto.verify(null, data, crypto.createPublicKey({ key, format: 'der', type: 'spki' }), signature);
  } catch {
    return false; // the bytes are no point
  }
}

const SIGNED = {
  protocol: readAscii, parameters: (value, name) => readList(value, name, readTuple(readAscii, readDecimalText)),
  session: readBytes, round: readRound, purpose: readAscii, type: readType, signer: readSize,
  content: (value, name) => readList(value, name, readBytes),
};

function signedBytes(p) {
  checkSessionId(p.session);
  return signedFields({ ...p, parameters: hashParameters(p.parameters) });
}

const operations = {
  'signature.sign': {
    params: { ...SIGNED, private: readBytes },
    rand: {},
    run(p) {
      const data = signedBytes(p);
      checkKey(p.private, 'private'); // [SIG-04]
      return { signature: sign(p.private, data).toString('hex'), signed: data.toString('hex') };
    },
  },
  'signature.verify': {
    params: { ...SIGNED, public: readBytes, signature: readBytes },
    rand: {},
    run(p) {
      const data = signedBytes(p);
      checkKey(p.public, 'public'); // [SIG-04]
      if (!isValid(p.public, data, p.signature)) refuse('bad_signature', 'the signature is not valid [SIG-02]');
      return {};
    },
  },
};

module.exports = { signedFields, sign, isValid, operations };
