// Plays a round with the modules of the Node implementation, and decides by rank what a coalition knows after it.
//
// A choice is { fate, colluders, server, told }: what happens to each user ("stays", "before": it drops out before its
// upload, "late": its upload arrives too late, "after": it drops out after its upload); the users that work together;
// whether the server is with them; and null, or for each user the survivors that a lying server names to it.
globalThis.playRound = (() => {
  const modules = globalThis.playModules;
  const { Buffer, probe } = globalThis.playStandIns;
  const { SERVER, Reject } = modules("refusals");
  const { subtract, multiply, multiplyAdd, inverse } = modules("integers");
  const { expand, agree } = modules("crypto");
  const { decodeMessage, encodeMessage } = modules("messages");
  const { userSteps, serverSteps, agreement, partiesOf } = modules("secagg");
  const { partsOf, pairwiseKeys, selfKeys } = modules("parts");
  const { ELEMENT, readElement, drawElements, recover } = modules("shamir");
  const code = modules("code");
  const [UNMASK_REQUEST, UNMASK_SHARES] = [518, 519];

  const PROTOCOLS = {
    secagg: {
      title: "SecAgg", numbers: { R: 97, N: 5, D: 2, T: 1, t: 3, k: 4, d: 1 }, inputs: [[12], [30], [21], [7], [5]],
    },
    lightsecagg: {
      title: "LightSecAgg", numbers: { q: 97, N: 5, D: 2, U: 3, T: 1, d: 2 }, inputs: [[12, 4], [3, 30], [21, 8], [7, 9], [5, 1]],
    },
    heterosag: {
      title: "HeteroSAg",
      numbers: {
        N: 8, D: 2, T: 1, t: 5, d: 2, sizes: [4, 4], subgroups: [1, 1], levels: [10, 25], range: [0, 1], matrix: "cyclic",
      },
      inputs: [[3, 9], [7, 1], [2, 5], [8, 4], [6, 20], [0, 13], [4, 24], [9, 11]],
    },
  };

  const upTo = (count) => Array.from({ length: count }, (_, at) => at);
  const vector = (length, hot = -1) => Uint32Array.from({ length }, (_, at) => (at === hot ? 1 : 0));
  const drawVector = (q, n) => expand(globalThis.playModules("node:crypto").randomBytes(32), q, n);

  /** What `work` returns, or the words with which it refuses. */
  function refusing(work) {
    try {
      return [work(), null];
    } catch (problem) {
      if (problem instanceof Reject) return [null, problem.message];
      throw problem;
    }
  }

  // What is known, by rank.

  /**
   * What rows determine of the secrets: a reduced basis. columns: { secret, known, value }; rows: { entries, value }, of
   * which `value` is what was seen. Known columns are taken out; then those that are no secrets are eliminated.
   */
  function determined(R, columns, rows) {
    const known = columns.map(({ known: is }, at) => (is ? at : -1)).filter((at) => at >= 0);
    const places = columns.map((_, at) => at).filter((at) => !columns[at].known);
    const noise = places.filter((at) => !columns[at].secret);
    const secrets = places.filter((at) => columns[at].secret);
    const order = [...noise, ...secrets];
    const work = rows.map(({ entries, value }) => {
      const told = known.reduce((sum, at) => multiplyAdd(entries[at], columns[at].value, sum, R), 0);
      return [...order.map((at) => entries[at]), subtract(value, told, R)];
    });
    const rest = reduce(R, work, order.length).filter((row) => row.slice(0, noise.length).every((entry) => entry === 0));
    return rest.map((row) => ({ row: row.slice(noise.length, order.length), value: row[order.length] }));
  }

  /** The reduced echelon form of some rows in their first columns, without rows that are zero there. */
  function reduce(R, rows, width) {
    const left = rows.map((row) => [...row]);
    const done = [];
    for (let column = 0; column < width; column += 1) {
      const at = left.findIndex((row) => row[column] !== 0);
      if (at < 0) continue;
      const [pivot] = left.splice(at, 1);
      const factor = inverse(pivot[column], R);
      const monic = pivot.map((entry) => multiply(entry, factor, R));
      for (const row of [...left, ...done]) {
        const times = subtract(0, row[column], R);
        if (times !== 0) monic.forEach((entry, place) => (row[place] = multiplyAdd(times, entry, row[place], R)));
      }
      done.push(monic);
    }
    return done;
  }

  // LightSecAgg. The steps are linear: a run with a single 1 among the unknown numbers gives a column of the view.

  function light(numbers, inputs) {
    const { User, Server } = modules("lightsecagg");
    const { q, N, U, T, d } = numbers;
    const size = T * code.shareLength(d, U, T);
    const users = upTo(N);
    const drawn = inputs.map((x) => ({ x: Uint32Array.from(x), mask: drawVector(q, d), noise: drawVector(q, size) }));

    /** A run: { seen, stop, sum, refusals }. seen: { from, what, numbers } */
    function run(values, { fate, colluders, server: curious, told }) {
      const [server, parties, seen, refusals] = [new Server(numbers), users.map((i) => new User(numbers, i)), [], {}];
      const see = (from, what, entries) => seen.push({ from, what, numbers: [...entries] });
      const arrived = new Map(users.map((i) => [i, parties[i].share(values[i].mask, values[i].noise)]));
      for (const [i, j, share] of server.relay(arrived)) {
        parties[j].receive(i, share);
        if (colluders.includes(j) && !colluders.includes(i)) see(i, `the share of its mask for user ${j}`, share);
      }
      for (const i of users.filter((user) => fate[user] !== "before")) {
        const masked = parties[i].upload(values[i].x);
        if (curious) see(i, "its masked update", masked);
        if (fate[i] !== "late") server.acceptMasked(i, masked);
      }
      const [surviving, stop] = told ? [told, null] : refusing(() => server.announce());
      if (stop) return { seen, refusals, stop };
      for (const i of users.filter((user) => fate[user] === "stays" && !(told && colluders.includes(user)))) {
        const [share, refusal] = refusing(() => parties[i].answer(told ? told[i] : surviving));
        if (refusal) refusals[i] = refusal;
        else if (curious && !colluders.includes(i)) see(i, "the sum of its shares", share);
        if (share && !told) server.acceptAnswer(i, share);
      }
      const [sum, failure] = told ? [null, null] : refusing(() => server.recover());
      return { seen, refusals, stop: failure, sum };
    }

    function play(choice) {
      const zero = users.map(() => ({ x: vector(d), mask: vector(d), noise: vector(size) }));
      const flat = ({ seen }) => seen.flatMap((one) => one.numbers);
      const outcome = run(drawn, choice);
      const columnsOf = (user, name, given) => [...given].map((value, element) => {
        const values = zero.map((one, at) => (at === user ? { ...one, [name]: vector(given.length, element) } : one));
        const known = choice.colluders.includes(user);
        return { user, element, secret: name === "x", known, value, entries: flat(run(values, choice)) };
      });
      const columns = users.flatMap((user) => Object.entries(drawn[user]).flatMap((named) => columnsOf(user, ...named)));
      const rows = flat(outcome).map((value, at) => ({ value, entries: columns.map(({ entries }) => entries[at]) }));
      const known = [knowledge({ R: q, members: users }, columns, rows)];
      return { ...outcome, sums: outcome.sum ? [outcome.sum] : null, known };
    }

    return { parts: [{ members: users, start: 0, length: d, R: q }], play };
  }

  function knowledge({ R, members, segment }, columns, rows) {
    const names = columns.filter(({ secret, known }) => secret && !known).map(({ user, element }) => [user, element]);
    return { R, members: [...members], segment, names, basis: determined(R, columns, rows) };
  }

  // SecAgg and HeteroSAg. A masked input is linear in the input and in the streams of the keys that the user derived.

  function masked(agreed, numbers, inputs) {
    const randomBytes = (size) => modules("node:crypto").randomBytes(size);
    const { N, t, d } = numbers;
    const users = upTo(N);
    const given = { ...numbers, order: users, session: Buffer.alloc(16), round: 0 };
    const opening = { open: (state) => [{}, [], { state }] };
    const parties = partiesOf(agreed, { user: opening, server: opening });
    const drawn = users.map(() => ({
      sealing_key: randomBytes(32), masking_key: randomBytes(32), self_seed: randomBytes(32),
      key_coefficients: drawElements(t - 1), seed_coefficients: drawElements(t - 1),
    }));
    const stateOf = (party) => party.step("open", []).state;
    const take = (steps, state, phase, inbox) => {
      const [changes, outbox, beside] = steps[phase](state, inbox);
      return { state: { ...state, ...changes }, outbox: outbox.map(encodeMessage), ...beside };
    };
    const mail = (messages, user) => messages.filter((bytes) => bytes.readUInt32LE(26) === user);

    // Up to the shares, all rounds are alike: nobody drops out before.
    let server = { state: stateOf(parties.newServer(given)), outbox: [] };
    const newUser = (user, update) => parties.newUser({ ...given, user, update: Uint32Array.from(update) }, drawn[user]);
    let states = users.map((user) => stateOf(newUser(user, inputs[user])));
    const shared = server.state;
    for (const phase of ["advertise_keys", "share_keys"]) {
      const done = users.map((user) => take(userSteps, states[user], phase, mail(server.outbox, user)));
      states = done.map(({ state }) => state);
      server = take(serverSteps, server.state, phase, done.flatMap(({ outbox }) => outbox));
    }
    const upload = (user, update) => take(userSteps, { ...states[user], update }, "masked_input", mail(server.outbox, user));
    const read = ({ outbox: [bytes] }) => shared.form.read(shared, decodeMessage(bytes, [shared.form.type]));
    const uploads = users.map((user) => upload(user, states[user].update));
    const openKeys = users.map((user) => server.state.keys.get(user).masking);

    /** Of each user, the streams in its masked input and its dependence on each of them: hex of the key -> vector. */
    const streams = users.map((user) => {
      const names = new Set();
      const probed = (word) => {
        probe.word = word;
        return read(upload(user, vector(d)));
      };
      probed((name) => (names.add(name), 0));
      const found = new Map([...names].map((hot) => [hot, probed((name) => (name === hot ? 1 : 0))]));
      probe.word = null;
      return found;
    });

    function play(choice) {
      const { fate, colluders, server: curious, told } = choice;
      const [seen, refusals, shares] = [[], {}, []];
      const see = (owner, kind, holder, bytes) => shares.push({ owner, kind, holder, bytes });
      const uploaded = users.filter((user) => fate[user] !== "before");
      for (const user of curious ? uploaded : []) {
        seen.push({ from: user, what: "its masked input", numbers: [...read(uploads[user])] });
      }
      for (const holder of colluders) {
        for (const [owner, { key, seed }] of uploads[holder].state.held) {
          see(owner, "key", holder, key);
          see(owner, "seed", holder, seed);
        }
      }
      const inTime = uploaded.filter((user) => fate[user] !== "late").flatMap((user) => uploads[user].outbox);
      const requested = told ? { outbox: lies(choice) } : null;
      const [asked, stop] = told ? [requested, null] : refusing(() => take(serverSteps, server.state, "masked_input", inTime));
      if (stop) return { seen, refusals, stop, known: known(choice, shares) };
      const answers = [];
      for (const user of users.filter((one) => fate[one] === "stays" && !(told && colluders.includes(one)))) {
        const [answer, refusal] = refusing(() => take(userSteps, uploads[user].state, "unmasking", mail(asked.outbox, user)));
        if (refusal) refusals[user] = refusal;
        else answers.push(...answer.outbox);
      }
      for (const bytes of curious ? answers : []) show(decodeMessage(bytes, [UNMASK_SHARES]), see, seen);
      const [result, failure] = told ? [null, null] : refusing(() => take(serverSteps, asked.state, "unmasking", answers));
      return { seen, refusals, stop: failure, sums: result && result.sums, known: known(choice, shares) };
    }

    /** The requests of a server that names different survivors to different users. */
    function lies({ told }) {
      return Object.entries(told).map(([user, survivors]) => encodeMessage({
        type: UNMASK_REQUEST, session: given.session, round: 0, sender: SERVER, receiver: Number(user),
        survivors, dropped: users.filter((one) => !survivors.includes(one)),
      }));
    }

    function show(answer, see, seen) {
      const told = [];
      for (const [list, kind] of [["survivors", "seed"], ["dropped", "key"]]) {
        const owners = [...answer[list]];
        const piece = (at) => answer[`${kind}_shares`].subarray(ELEMENT * at, ELEMENT * (at + 1));
        owners.forEach((owner, at) => see(owner, kind, answer.sender, piece(at)));
        if (owners.length) told.push(`its shares of the ${kind}s of ${listed(owners)}`);
      }
      seen.push({ from: answer.sender, what: told.join("; ") });
    }

    /** The secret of a user that shares give, or that is a colluder's own; null where it stays hidden. */
    function secretOf(owner, kind, { colluders }, shares) {
      if (colluders.includes(owner)) return kind === "key" ? drawn[owner].masking_key : drawn[owner].self_seed;
      const own = shares.filter((one) => one.owner === owner && one.kind === kind);
      const held = new Map(own.map(({ holder, bytes }) => [holder, bytes]));
      if (held.size < t) return null;
      return recover(t, [...held.keys()], [...held.values()].map((bytes) => readElement(bytes, "a share")));
    }

    /** The streams that the coalition computes, from the secrets that it has: hex of the key -> first number. */
    function streamsKnown(choice, shares) {
      const found = new Map();
      const keep = (keys) => keys.forEach((key, { R }) => found.set(key.toString("hex"), expand(key, R, 1)[0]));
      for (const owner of users) {
        const [seed, key] = ["seed", "key"].map((kind) => secretOf(owner, kind, choice, shares));
        if (seed) keep(selfKeys(shared, seed, owner));
        for (const peer of key ? users.filter((user) => user !== owner) : []) {
          keep(pairwiseKeys(shared, agree(key, openKeys[peer]), owner, peer, (user) => openKeys[user]));
        }
      }
      return found;
    }

    function known(choice, shares) {
      const words = streamsKnown(choice, shares);
      const rows = choice.server ? users.filter((user) => choice.fate[user] !== "before") : [];
      return shared.parts.map((part) => {
        const members = [...part.members];
        const inPart = rows.filter((user) => part.members.has(user));
        const on = (user, name) => (streams[user].get(name) ?? [])[part.start] ?? 0;
        const names = [...new Set(inPart.flatMap((user) => [...streams[user].keys()].filter((name) => on(user, name))))];
        const columns = [
          ...members.map((user) => {
            const [known, value] = [choice.colluders.includes(user), inputs[user][part.start]];
            return { user, element: part.start, secret: true, known, value };
          }),
          ...names.map((name) => ({ secret: false, known: words.has(name), value: words.get(name) })),
        ];
        const seen = inPart.map((user) => ({
          value: read(uploads[user])[part.start],
          entries: [...members.map((one) => Number(one === user)), ...names.map((name) => on(user, name))],
        }));
        return knowledge(part, columns, seen);
      });
    }

    return { parts: shared.parts, play };
  }

  /** A game: what stays the same while choices are made. */
  function open(protocol, numbers = PROTOCOLS[protocol].numbers, inputs = PROTOCOLS[protocol].inputs) {
    const agreed = { secagg: agreement, heterosag: modules("heterosag").agreement }[protocol];
    const game = agreed ? masked(agreed, numbers, inputs) : light(numbers, inputs);
    return { protocol, numbers, inputs, ...game };
  }

  // What is said of it.

  const listed = (users) => {
    const words = users.length > 1 ? `${users.slice(0, -1).join(", ")} and ${users.at(-1)}` : users.join();
    return `user${users.length > 1 ? "s" : ""} ${words}`;
  };

  /**
   * A basis of what is known in a part that is easy to read, each with its value: numbers of one user, then combinations
   * of its numbers, then sums, { users, element }, and then other combinations.
   */
  function found({ R, names, basis }) {
    const rows = basis.map(({ row, value }) => [...row, value]);
    const users = [...new Set(names.map(([user]) => user))];
    const elements = [...new Set(names.map(([, element]) => element))];
    const sets = upTo(2 ** users.length).slice(1).map((bits) => users.filter((_, at) => (bits >> at) & 1));
    const sums = sets.sort((a, b) => a.length - b.length).flatMap((set) => elements.map((element) => ({
      users: set, element, row: names.map(([user, at]) => Number(at === element && set.includes(user))),
    })));
    const single = sums.slice(0, names.length);
    const combinations = users.flatMap((user) => ofOne(R, names, rows, user).map((row) => ({ users: [user], row })));
    const others = rows.map((row) => ({ row: row.slice(0, -1) }));
    const chosen = [];
    for (const one of [...single, ...combinations, ...sums.slice(names.length), ...others]) {
      if (chosen.length === rows.length) break;
      const value = combined(R, rows, one.row);
      const list = [...chosen.map(({ row }) => row), one.row];
      if (value !== null && reduce(R, list, names.length).length === list.length) chosen.push({ ...one, value });
    }
    return chosen;
  }

  /** What rows give of the numbers of one user alone. */
  function ofOne(R, names, rows, user) {
    const places = upTo(names.length);
    const own = places.filter((at) => names[at][0] === user);
    const order = [...places.filter((at) => names[at][0] !== user), ...own];
    const left = reduce(R, rows.map((row) => order.map((at) => row[at])), order.length);
    const alone = left.filter((row) => row.slice(0, -own.length).every((entry) => entry === 0));
    return alone.map((row) => places.map((at) => row[order.indexOf(at)]));
  }

  /** The value of a combination of rows of a reduced basis, or null where the row is none. */
  function combined(R, rows, row) {
    const left = [...row, 0];
    for (const one of rows) {
      const times = left[one.findIndex((entry) => entry !== 0)];
      if (times) one.forEach((entry, at) => (left[at] = subtract(left[at], multiply(times, entry, R), R)));
    }
    return left.slice(0, -1).some((entry) => entry !== 0) ? null : subtract(0, left.at(-1), R);
  }

  function written(names, row) {
    const terms = names.map(([user, element], at) => [row[at], `x${user}[${element}]`]).filter(([factor]) => factor);
    return terms.map(([factor, name]) => (factor === 1 ? name : `${factor}·${name}`)).join(" + ");
  }

  /** What is known in a part, in words: [name, value]; the elements of an update together. */
  function worded({ names }, known, length) {
    const words = new Map();
    for (const { users, element, row, value } of known) {
      const whose = users && `${users.length > 1 ? "the sum" : "the value"} of ${listed(users)}`;
      const mixed = `${users ? `a combination of the numbers of ${listed(users)}: ` : ""}${written(names, row)}`;
      const name = element === undefined ? mixed : whose;
      words.set(name, [...(words.get(name) ?? []), [element, value]]);
    }
    return [...words].map(([name, values]) => {
      const numbers = values.map(([, value]) => value);
      const part = values.length < length && values[0][0] !== undefined ? `element ${values[0][0]} of ` : "";
      return [part + name, numbers.length > 1 ? `(${numbers.join(", ")})` : numbers[0]];
    });
  }

  /** Who looks at what it got. */
  function who({ server, colluders }) {
    const users = colluders.length ? listed(colluders) : "";
    return capital(server ? `the server${users && ` with ${users}`}` : users);
  }

  /** The name of a cell. */
  function place({ segment, members }) {
    const users = [...members];
    return `segment ${segment} (users ${users[0]} to ${users.at(-1)})`;
  }

  const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

  /**
   * What the coalition knows: { verdict, items, exposed, more }. items: [name, value]; exposed: the users of whose own
   * numbers something is known; more: whether more is known than one sum in each part.
   */
  function say(game, choice, { known }) {
    const whose = who(choice);
    if (!whose) return { verdict: "Nobody looks at what was sent.", items: [], exposed: [], more: false };
    const parts = known.map((part, at) => ({ part, list: found(part), length: game.parts[at].length }));
    const single = parts.flatMap(({ list }) => list.filter(({ users }) => users?.length === 1));
    const exposed = [...new Set(single.flatMap(({ users }) => users))];
    const named = (name, part) => (parts.length > 1 ? `${name} in ${place(part)}` : name);
    const told = parts.map(({ part, list, length }) => worded(part, list, length).map(([name, value]) => [named(name, part), value]));
    const more = exposed.length > 0 || told.some((list) => list.length > 1);
    const items = told.flat();
    const others = choice.colluders.length ? "the other users" : "the users";
    const what = items.length === 0 ? `nothing about the values of ${others}`
      : items.length === 1 ? `${items[0][0]} and nothing else`
      : more ? "more than a sum"
      : `${items.length} sums, one in each cell, and nothing else`;
    return { verdict: `${whose} learned ${what}.`, items, exposed, more };
  }

  return { PROTOCOLS, open, say, who, listed, capital, place };
})();
