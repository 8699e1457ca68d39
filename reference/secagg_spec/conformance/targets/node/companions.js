// SPDX-License-Identifier: Apache-2.0
//
// Who comes and goes together over the requests of a session (HeteroSAg, section 8).

'use strict';

/** [HSA-27] [HSA-28] How few companions a member has who is in some of the sets; Infinity when none is in any. */
function fewestCompanions(members, sets) {
  const sizes = new Map();
  for (const user of members) {
    const held = sets.map((set) => (set.has(user) ? '1' : '0')).join('');
    if (held.includes('1')) sizes.set(held, (sizes.get(held) || 0) + 1);
  }
  return [...sizes.values()].reduce((fewest, size) => Math.min(fewest, size), Infinity);
}

module.exports = { fewestCompanions };
