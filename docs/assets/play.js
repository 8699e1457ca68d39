// The page "Play a round": users around a server, what happens to them, and what a coalition knows then.
(() => {
  const root = document.getElementById("play");
  const { PROTOCOLS, open, say, who, listed, capital, place } = globalThis.playRound ?? {};
  if (!root || !open) return;

  const ACTIONS = {
    before: "drop out before its upload",
    late: "upload too late",
    after: "drop out after its upload",
    collude: "share all that it has (collude)",
  };
  const FATES = {
    stays: ["", "stays to the end"],
    before: ["gone", "drops out before its upload"],
    late: ["too late", "uploads too late"],
    after: ["silent", "drops out after its upload"],
  };
  const HINT = "Each user shows its number and its value. Dashed users drop out or are late.";
  const games = new Map();
  const state = {};

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const unseen = (text) => make("span", { class: "play-unseen" }, text);
  const upTo = (count) => Array.from({ length: count }, (_, at) => at);
  const value = (numbers) => (numbers.length > 1 ? `(${numbers.join(", ")})` : String(numbers[0]));

  function begin(protocol, gone) {
    if (!games.has(protocol)) games.set(protocol, open(protocol));
    const game = games.get(protocol);
    const fate = upTo(game.numbers.N).map((user) => (user === gone ? "before" : "stays"));
    Object.assign(state, { game, fate, colluders: new Set(), server: true, lies: false, target: 0, told: [], at: 0 });
  }

  // The lie: to whom the server names which survivors.

  const asked = () => upTo(state.fate.length).filter((user) => state.fate[user] === "stays" && !state.colluders.has(user));

  /** About half of the users that are asked hear that the target has dropped out; it hears itself that it has not. */
  function split() {
    const survivors = upTo(state.fate.length).filter((user) => ["stays", "after"].includes(state.fate[user]));
    const others = asked().filter((user) => user !== state.target);
    const deceived = others.slice(0, Math.ceil(others.length / 2));
    state.told = state.fate.map((_, user) => {
      const named = new Set([...survivors, state.target]);
      if (deceived.includes(user)) named.delete(state.target);
      return named;
    });
  }

  function choice() {
    const told = Object.fromEntries(asked().map((user) => [user, [...state.told[user] ?? []].sort((a, b) => a - b)]));
    const colluders = [...state.colluders].sort((a, b) => a - b);
    return { fate: state.fate, colluders, server: state.server, told: state.lies ? told : null };
  }

  // The frame, which stays.

  const choose = make("select", {}, ...Object.entries(PROTOCOLS).map(([name, { title }]) => make("option", { value: name }, title)));
  const again = make("button", { type: "button" }, "Start again");
  const actions = make("fieldset", { class: "play-actions" }, make("legend", {}, "A click on a user makes it"));
  const ring = make("div", { class: "play-ring", role: "group", "aria-label": "Users and the server" });
  const rules = make("p", { class: "play-hint play-rules" });
  const hint = make("p", { class: "play-hint" });
  const verdict = make("div", { class: "play-verdict", "aria-live": "polite", "aria-atomic": "true" });
  const lies = make("input", { type: "checkbox" });
  const target = make("select", {});
  const table = make("div", { class: "play-told" });
  const seen = make("ul", {});

  function frame() {
    for (const [name, words] of Object.entries(ACTIONS)) {
      const input = make("input", { type: "radio", name: "play-action", value: name });
      input.checked = name === "before";
      actions.append(make("label", {}, input, words));
    }
    const lie = make("label", {}, lies, "The server lies: it tells different users different things about who has dropped out");
    const details = make("details", {}, make("summary", {}, "What they saw"), seen);
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", "A round to play");
    const choices = make("div", { class: "play-choices" }, make("label", {}, "Protocol", choose), again);
    root.append(choices, rules, actions, ring, hint, verdict, make("div", { class: "play-lie" }, lie, table), details);
    choose.addEventListener("change", () => start(choose.value));
    again.addEventListener("click", () => start(choose.value));
    lies.addEventListener("change", () => change(() => ((state.lies = lies.checked), split())));
    target.addEventListener("change", () => change(() => ((state.target = Number(target.value)), split())));
    ring.addEventListener("keydown", keys);
    root.hidden = false;
    document.getElementById("play-static").hidden = true;
  }

  function start(protocol, gone) {
    begin(protocol, gone);
    lies.checked = false;
    const N = state.fate.length;
    const dots = upTo(N).map((user) => {
      const angle = (2 * Math.PI * user) / N - Math.PI / 2;
      const place = `left: ${50 + 40 * Math.cos(angle)}%; top: ${50 + 40 * Math.sin(angle)}%`;
      const dot = make("button", { type: "button", class: "play-user", style: place });
      dot.addEventListener("click", () => change(() => act(user)));
      dot.addEventListener("focus", () => ((state.at = user), roam()));
      return dot;
    });
    const server = make("button", { type: "button", class: "play-server" });
    server.addEventListener("click", () => change(() => (state.server = !state.server)));
    ring.replaceChildren(...dots, server);
    target.replaceChildren(...upTo(N).map((user) => make("option", { value: user }, `user ${user}`)));
    const cells = state.game.parts.map(place);
    rules.textContent = promised(state.game.numbers);
    hint.textContent = cells.length > 1 ? `${HINT} The cells: ${cells.join("; ")}.` : HINT;
    change(() => {});
  }

  /** What the parameters of a game allow. */
  function promised({ N, D, T, t, U }) {
    const sum = t ? `t = ${t} shares rebuild a secret` : `U = ${U} answers give the sum`;
    return `Of N = ${N} users, D = ${D} may drop out, and T = ${T} may work with the server and learn no more than the sum; ${sum}.`;
  }

  function act(user) {
    const { value: action } = root.querySelector("[name=play-action]:checked");
    if (action !== "collude") state.fate[user] = state.fate[user] === action ? "stays" : action;
    else if (!state.colluders.delete(user)) state.colluders.add(user);
    if (state.lies) split();
  }

  function keys(event) {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by || !event.target.matches(".play-user") || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const dots = ring.querySelectorAll(".play-user");
    dots[(state.at + by + dots.length) % dots.length].focus();
  }

  /** One user is reached by the tabulator, the others by the arrow keys. */
  function roam() {
    ring.querySelectorAll(".play-user").forEach((dot, user) => (dot.tabIndex = user === state.at ? 0 : -1));
  }

  // What changes.

  function change(work) {
    work();
    const chosen = choice();
    const outcome = state.game.play(chosen);
    const said = say(state.game, chosen, outcome);
    showRing(said);
    showVerdict(chosen, outcome, said);
    showTold();
    seen.replaceChildren(...saw(chosen, outcome).map((text) => make("li", {}, text)));
  }

  function showRing({ exposed }) {
    ring.querySelectorAll(".play-user").forEach((dot, user) => {
      const fate = state.fate[user];
      const colludes = state.colluders.has(user);
      const words = [FATES[fate][0], colludes && "colludes", exposed.includes(user) && "exposed"].filter(Boolean);
      const input = value(state.game.inputs[user]);
      dot.className = `play-user ${fate}`;
      dot.classList.toggle("colludes", colludes);
      dot.classList.toggle("exposed", exposed.includes(user));
      const also = `${colludes ? "; colludes" : ""}${exposed.includes(user) ? "; its value is exposed" : ""}`;
      dot.replaceChildren(
        ...[unseen("User "), make("b", {}, String(user)), unseen(", whose value is "), make("span", {}, input)],
        ...words.map((word) => make("small", { "aria-hidden": "true" }, word)),
        unseen(`: ${FATES[fate][1]}${also}`),
      );
    });
    const server = ring.querySelector(".play-server");
    server.setAttribute("aria-pressed", String(state.server));
    const acts = state.server ? (state.lies ? "looks and lies" : "looks") : state.lies ? "lies" : "looks away";
    server.replaceChildren(make("b", {}, "server "), make("small", {}, acts));
    roam();
  }

  function showVerdict(chosen, outcome, said) {
    const items = said.items.map(([name, number]) => make("li", {}, `${name}: `, make("b", {}, String(number))));
    verdict.className = `play-verdict ${said.more ? "more" : ""}`;
    verdict.replaceChildren(
      make("p", { class: "play-said" }, said.verdict),
      ...(items.length ? [make("ul", {}, ...items)] : []),
      ...notes(chosen, outcome).map((text) => make("p", {}, text)),
    );
  }

  function notes({ colluders, server }, { stop, refusals, sums }) {
    const { T } = state.game.numbers;
    const found = [...new Set(Object.values(refusals))].map((why) => {
      const users = Object.keys(refusals).filter((user) => refusals[user] === why);
      return `${capital(listed(users))} ${users.length > 1 ? "refuse" : "refuses"} to answer: ${why}.`;
    });
    if (sums && server) found.push(`The round itself gave the server ${sums.map((sum) => value([...sum])).join(", ")}.`);
    if (stop) found.push(`The round ends without a sum: ${stop}.`);
    if (colluders.length > T) found.push(`${colluders.length} users collude. The text promises privacy against T = ${T} here.`);
    if (state.lies) found.push("The promise of this profile is for a server that follows the protocol; this one does not.");
    return found;
  }

  function saw(chosen, { seen: messages }) {
    const view = messages.map(({ from, what, numbers }) => `From user ${from}: ${what}${numbers ? `, ${value(numbers)}` : ""}`);
    const told = chosen.colluders.length ? [`All that ${listed(chosen.colluders)} drew, sent and received`] : [];
    return who(chosen) ? [...told, ...view] : ["Nothing"];
  }

  function showTold() {
    if (!state.lies) return table.replaceChildren();
    target.value = String(state.target);
    const all = upTo(state.fate.length);
    const head = make("tr", {}, make("th", { scope: "col" }, "hears"), ...all.map((user) => make("th", { scope: "col" }, String(user))));
    const cells = (user) => all.map((other) => make("td", {}, box(user, other)));
    const rows = asked().map((user) => make("tr", {}, make("th", { scope: "row" }, `user ${user}`), ...cells(user)));
    const said = make("label", {}, "Half of the users hear that this one has dropped out:", target);
    const caption = make("caption", {}, "Who hears that whom survives");
    // The table is changed in place where it can be, so that the focus stays.
    const old = table.querySelectorAll("input");
    const fresh = make("table", { class: "play-table" }, caption, make("thead", {}, head), make("tbody", {}, ...rows));
    const boxes = [...fresh.querySelectorAll("input")];
    const label = (one) => one.getAttribute("aria-label");
    if (old.length === boxes.length && boxes.every((one, at) => label(one) === label(old[at]))) {
      boxes.forEach((one, at) => (old[at].checked = one.checked));
    } else table.replaceChildren(said, fresh);
  }

  function box(user, other) {
    const input = make("input", { type: "checkbox", "aria-label": `User ${user} hears that user ${other} survives` });
    input.checked = state.told[user].has(other);
    input.addEventListener("change", () => change(() => state.told[user][input.checked ? "add" : "delete"](other)));
    return input;
  }

  frame();
  start("secagg", 2);
})();
