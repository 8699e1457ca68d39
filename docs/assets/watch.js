// Steps through recorded rounds. The data is in watch-data.js; nothing is loaded from elsewhere.
(() => {
  const SERVER = -1;
  const AUTHORITY = -2;
  const SVG = "http://www.w3.org/2000/svg";
  const root = document.getElementById("watch");
  const protocols = window.watchData;
  if (!root || !protocols) return;
  const state = { protocol: 0, run: 0, step: 0 };

  // Small helpers.

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function draw(tag, attributes, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  const party = (number) => ({ [SERVER]: "server", [AUTHORITY]: "authority" })[number] ?? `user ${number}`;
  const counted = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
  // Names such as x_0, s_0,1 and x(1)_3, with what is written below the line below the line.
  function symbols(text) {
    const parts = text.replaceAll("*", "·").replaceAll("-", "−").split(/([a-z](?:\([\dt]\))?_(?:\d+|[ijk])(?:,(?:\d+|[ijk]))?)/);
    return parts.map((part, at) => {
      if (!(at & 1)) return part;
      const [letter, index] = part.split("_");
      return make("span", { class: "watch-name" }, make("var", {}, letter), make("sub", {}, index));
    });
  }

  const vector = (numbers) => `(${numbers.join(", ")})`;
  const named = (users) => (users.length === 1 ? "user " : "users ") + users.join(", ");
  const current = () => {
    const protocol = protocols[state.protocol];
    const run = protocol.runs[state.run];
    return { protocol, run, moment: run.moments[state.step] };
  };

  // What is said of a moment.

  function told({ protocol, moment }) {
    const text = protocol.texts[moment.key];
    const other = (moment.happened ?? []).find((name) => name in text);
    const heading = (moment.happened ?? []).includes("ended") ? protocol.ended : text.heading;
    return { heading, text: other ? text[other] : text.text, clauses: text.clauses };
  }

  function gone({ run }) {
    const present = run.moments[state.step].present ?? [];
    return Array.from({ length: run.users }, (_, user) => user).filter((user) => !present.includes(user));
  }

  // The picture: users above, the server below, a line for each message on its way.

  function hops(sending) {
    const between = (a, b) => a >= 0 && b >= 0;
    return sending.parcels.flatMap(({ routes }) =>
      routes.map(([a, b]) => {
        if (!between(a, b)) return [a, b];
        return sending.role === "user" ? [a, SERVER] : [SERVER, b];
      }),
    );
  }

  function picture(shown) {
    const { run, moment } = shown;
    const width = Math.max(320, run.users * 38 + 10);
    const lines = [...new Set((moment.sendings ?? []).flatMap(hops).map(String))].map((text) => text.split(",").map(Number));
    const authority = run.moments.some((one) => (one.sendings ?? []).flatMap(hops).flat().includes(AUTHORITY));
    const place = {
      ...Object.fromEntries(Array.from({ length: run.users }, (_, user) => [user, [(width * (user + 0.5)) / run.users, 26]])),
      [SERVER]: [authority ? width * 0.25 : width / 2, 138],
      [AUTHORITY]: [width * 0.77, 138],
    };
    const missing = gone(shown);
    const svg = draw("svg", { viewBox: `0 0 ${width} 164`, role: "img", class: "watch-picture" });
    svg.append(draw("title", {}, sentence(shown)));
    lines.forEach(([a, b]) => svg.append(arrow(place[a], place[b], a < 0 && b < 0 ? 46 : 23)));
    for (let user = 0; user < run.users; user += 1) svg.append(circle(user, place[user], shown, missing));
    svg.append(box("server", place[SERVER]));
    if (authority) svg.append(box("authority", place[AUTHORITY]));
    return svg;
  }

  function arrow([x, y], [u, v], away) {
    const length = Math.hypot(u - x, v - y) || 1;
    const [dx, dy] = [(u - x) / length, (v - y) / length];
    const [sx, sy, ex, ey] = [x + dx * away, y + dy * away, u - dx * away, v - dy * away];
    const group = draw("g", { class: "watch-line" });
    group.append(draw("path", { d: `M${sx} ${sy}L${ex} ${ey}`, fill: "none" }));
    const head = `M${ex} ${ey}L${ex - dx * 9 - dy * 4} ${ey - dy * 9 + dx * 4}L${ex - dx * 9 + dy * 4} ${ey - dy * 9 - dx * 4}z`;
    group.append(draw("path", { d: head }));
    return group;
  }

  function circle(user, [x, y], { protocol, moment }, missing) {
    const acting = (moment.acting ?? []).includes(user);
    const away = protocol.id === "multi-round" && !acting ? "away" : "gone";
    const kind = missing.includes(user) ? away : acting ? "acting" : "";
    const group = draw("g", { class: `watch-user ${kind}` });
    group.append(draw("circle", { cx: x, cy: y, r: 17 }));
    group.append(draw("text", { x, y: y + 5, "text-anchor": "middle" }, String(user)));
    if (kind === "gone") group.append(draw("path", { d: `M${x - 12} ${y - 12}L${x + 12} ${y + 12}` }));
    return group;
  }

  function box(name, [x, y]) {
    const group = draw("g", { class: "watch-server" });
    group.append(draw("rect", { x: x - 44, y: y - 17, width: 88, height: 34, rx: 5 }));
    group.append(draw("text", { x, y: y + 5, "text-anchor": "middle" }, name));
    return group;
  }

  function sentence(shown) {
    const missing = gone(shown);
    const sent = (shown.moment.sendings ?? []).flatMap(({ parcels }) => parcels).map(({ kind }) => kind);
    const absent = missing.length ? ` Not there: ${named(missing)}.` : "";
    return (sent.length ? `Sent: ${[...new Set(sent)].join(", ")}.` : "Nothing is sent.") + absent;
  }

  // What is known.

  function knowledge({ run, moment }) {
    const panel = make("div", { class: "watch-known" }, make("h3", {}, "What the server knows now"));
    panel.append(...known(moment.server, "Nothing of any update, nor of any sum of updates."));
    const also = make("details", {}, make("summary", {}, `And if user ${run.colluder} tells the server all it has?`));
    also.append(...known(moment.colluding, "Of the updates of the others still nothing."));
    panel.append(also);
    return panel;
  }

  function known(found, nothing) {
    if (!found.dimension) return [make("p", {}, nothing)];
    const list = make("ul", {});
    for (const text of found.functionals) list.append(make("li", {}, ...symbols(text)));
    const count = `${found.dimension} of ${counted(found.unknown, "unknown number")}, and no more:`;
    const told = [make("p", {}, count), list];
    if (found.exposed) told.push(make("p", {}, make("strong", {}, `The update of ${either(found.exposed)} is no longer hidden.`)));
    if (found.hidden) told.push(make("p", {}, `What it cannot know: anything of the update of ${either(found.hidden)} by itself.`));
    return told;
  }

  function either(users) {
    return `user ${users.join(", ").replace(/, (\d+)$/, " or $1")}`;
  }

  // What is sent, and what is added.

  function messages({ moment }) {
    const parcels = (moment.sendings ?? []).flatMap((sending) => sending.parcels);
    if (!parcels.length) return [];
    const body = make("tbody");
    for (const parcel of parcels) {
      const number = `${counted(parcel.routes.length, "message")}, ${counted(parcel.bytes, "byte")}`;
      body.append(make("tr", {}, make("th", { scope: "row" }, parcel.kind), make("td", {}, routes(parcel)), make("td", {}, number)));
      if (parcel.example) body.append(make("tr", { class: "example" }, make("td", { colspan: 3 }, `e.g. ${parcel.example}`)));
    }
    return [make("h3", {}, "What is sent"), make("div", { class: "watch-scroll", tabindex: 0, role: "group", "aria-label": "Messages" }, make("table", { class: "watch-messages" }, body))];
  }

  function routes({ routes: pairs }) {
    const each = (users) => {
      const distinct = [...new Set(users)].sort((a, b) => a - b);
      return distinct[0] < 0 ? party(distinct[0]) : named(distinct);
    };
    return `${each(pairs.map(([a]) => a))} → ${each(pairs.map(([, b]) => b))}`;
  }

  function sums({ moment }) {
    const cards = (moment.additions ?? []).map(card);
    if (!cards.length) return [];
    const how = "Add each column, as on a clock: what reaches the modulus starts again at 0.";
    return [make("h3", {}, "Add it up"), make("p", { class: "watch-names" }, how), make("div", { class: "watch-cards" }, ...cards)];
  }

  function card({ modulus, terms, result, about }) {
    const body = make("tbody");
    terms.forEach((term, at) => body.append(row(term, term.factor < 0 ? "−" : at ? "+" : "")));
    const last = row({ ...result, factor: 1 }, "=");
    last.className = "result";
    body.append(last);
    const caption = [about, `modulo ${modulus}`].filter(Boolean).join(", ");
    return make("table", { class: "watch-sum" }, make("caption", {}, caption), body);
  }

  function row({ name, vector: numbers, factor }, sign) {
    const times = Math.abs(factor ?? 1) > 1 ? `${Math.abs(factor)} · ` : "";
    const cells = numbers.map((number) => make("td", {}, String(number)));
    return make("tr", {}, make("td", { class: "sign" }, sign), make("th", { scope: "row" }, times, ...symbols(name)), ...cells);
  }

  function drawn({ moment }) {
    const values = moment.values ?? [];
    if (!values.length) return [];
    const list = make("ul", { class: "watch-values" });
    for (const { name, vector: numbers } of values) list.append(make("li", {}, ...symbols(name), ": ", make("code", {}, vector(numbers))));
    return [make("details", {}, make("summary", {}, "What the users drew, and what only they know"), list)];
  }

  function updates({ run }) {
    return make("p", { class: "watch-updates" }, "The updates, which the server must not see: ", ...equations(run.inputs));
  }

  function equations(terms) {
    return terms.flatMap(({ name, vector: numbers }, at) => [at ? ", " : "", ...symbols(name), ` = ${vector(numbers)}`]);
  }

  function outcome({ run }) {
    if (state.step < run.moments.length - 1) return [];
    if (run.ended) return [make("p", { class: "watch-outcome" }, make("strong", {}, "No sum: "), `${run.ended}.`)];
    return [make("p", { class: "watch-outcome" }, make("strong", {}, "The result: "), ...equations(run.summed))];
  }

  // The frame, which stays, and what changes in it.

  const chooseProtocol = make("select", {});
  const chooseRun = make("select", {});
  const back = make("button", { type: "button" }, "← Back");
  const next = make("button", { type: "button" }, "Next →");
  const count = make("span", { class: "watch-count" });
  const live = make("p", { class: "watch-live", "aria-live": "polite" });
  const stage = make("div", { class: "watch-stage" });

  function frame() {
    protocols.forEach(({ title }, at) => chooseProtocol.append(make("option", { value: at }, title)));
    root.setAttribute("role", "region");
    root.setAttribute("aria-label", "A recorded run, step by step");
    root.append(
      make("div", { class: "watch-choices" }, make("label", {}, "Protocol", chooseProtocol), make("label", {}, "What happens", chooseRun)),
      make("div", { class: "watch-steps" }, back, count, next),
      stage,
      live,
    );
    chooseProtocol.addEventListener("change", () => go({ protocol: Number(chooseProtocol.value), run: 0, step: 0 }));
    chooseRun.addEventListener("change", () => go({ run: Number(chooseRun.value), step: 0 }));
    back.addEventListener("click", () => move(-1));
    next.addEventListener("click", () => move(1));
    document.addEventListener("keydown", keys);
    window.addEventListener("hashchange", () => read() && show());
    root.hidden = false;
    document.getElementById("watch-static").hidden = true;
  }

  function keys(event) {
    const inside = root.contains(document.activeElement) || document.activeElement === document.body;
    const plain = !(event.altKey || event.ctrlKey || event.metaKey || event.shiftKey);
    if (!inside || !plain || event.target.closest("select, .watch-scroll")) return;
    if (event.key === "ArrowRight") move(1);
    if (event.key === "ArrowLeft") move(-1);
  }

  function move(by) {
    const step = state.step + by;
    if (step >= 0 && step < current().run.moments.length) go({ step });
  }

  function go(changes) {
    Object.assign(state, changes);
    const { protocol, run } = current();
    history.replaceState(null, "", `#watch-${protocol.id}.${run.run}.${state.step + 1}`);
    show();
    const { heading, text } = told(current());
    live.textContent = `Step ${state.step + 1} of ${run.moments.length}: ${heading}. ${text}`;
  }

  function read() {
    const [, id, run, step] = location.hash.match(/^#watch-([a-z-]+)(?:\.([a-z]+))?(?:\.(\d+))?$/) ?? [];
    const protocol = protocols.findIndex((one) => one.id === id);
    if (protocol < 0) return false;
    state.protocol = protocol;
    state.run = Math.max(0, protocols[protocol].runs.findIndex((one) => one.run === run));
    state.step = Math.min(Math.max(0, Number(step ?? 1) - 1), current().run.moments.length - 1);
    return true;
  }

  function show() {
    const shown = current();
    const { protocol, run, moment } = shown;
    const { heading, text, clauses } = told(shown);
    chooseProtocol.value = String(state.protocol);
    chooseRun.replaceChildren(...protocol.runs.map(({ title }, at) => make("option", { value: at }, title)));
    chooseRun.value = String(state.run);
    count.textContent = `Step ${state.step + 1} of ${run.moments.length}`;
    back.disabled = state.step === 0;
    next.disabled = state.step === run.moments.length - 1;
    const [phase, role] = moment.key.split(".");
    const where = role ? `${moment.title}, ${role === "user" ? "users" : "server"}` : moment.title ?? phase;
    const links = clauses.flatMap(([id, address], at) => [at ? ", " : "", make("a", { href: address }, id)]);
    const missing = gone(shown);
    const absent = missing.length && protocol.id !== "multi-round" ? [make("p", { class: "watch-absent" }, `Not there: ${named(missing)}.`)] : [];
    stage.replaceChildren(
      make("p", { class: "watch-phase" }, where),
      make("h2", {}, heading),
      make("p", {}, text, " ", make("span", { class: "watch-clauses" }, "(", ...links, ")")),
      ...absent,
      updates(shown),
      picture(shown),
      ...outcome(shown),
      knowledge(shown),
      ...sums(shown),
      ...drawn(shown),
      make("p", { class: "watch-names" }, ...symbols(protocol.names)),
      ...messages(shown),
      make("p", { class: "watch-names" }, make("a", { href: protocol.page }, `The text of ${protocol.title}`)),
    );
  }

  read();
  frame();
  show();
})();
