// SPDX-License-Identifier: Apache-2.0
//
// Refusals

'use strict';

const MAX_LINE = 67108864; // bytes [ADP-02]
const MAX_MODULUS = 4294967296; // [MOD-01]
const COUNT_LIMIT = 2147483648; // counts, users and weights are below 2**31 (adapter, section 3)
const SERVER = 4294967295; // the party number of the server (conventions, section 5)
const AUTHORITY = 4294967294; // that of the authority of BASA (BASA, section 3)

/**
 * The implementation says no, on purpose. `code` is one of section 5 of the adapter page [ADP-09]; `blamed` are the
 * parties of whom at least one is at fault.
 */
class Reject extends Error {
  constructor(code, message, blamed = []) {
    super(message);
    this.code = code;
    this.blamed = blamed;
  }
}

/** Allowed by the text, but too large to be offered here [ADP-06]. */
class Unsupported extends Error {}

function refuse(code, message, blamed) {
  throw new Reject(code, message, blamed);
}

function checkAnswerSize(bytes) {
  if (bytes > MAX_LINE) throw new Unsupported('the answer would not fit into a line');
}

/** A value for a message: short, whatever it is. */
function show(value) {
  if (typeof value === 'string') return JSON.stringify(value.length > 40 ? value.slice(0, 40) + '…' : value);
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'an object';
  return String(value);
}

module.exports = {
  MAX_LINE, MAX_MODULUS, COUNT_LIMIT, SERVER, AUTHORITY, Reject, Unsupported, refuse, checkAnswerSize, show,
};
