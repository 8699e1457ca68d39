// Filters the claims of the ledger. Without a script the page shows all of them. Nothing is loaded from elsewhere.
(() => {
  const form = document.getElementById("claim-filters");
  const status = form.querySelector("[role=status]");
  const fields = ["paper", "verdict", "kind", "method", "text", "single"];
  const claims = [...document.querySelectorAll(".claims li")].map((element) => ({
    element,
    ...element.dataset,
    words: `${element.textContent.toLowerCase()} ${element.dataset.words}`,
  }));
  const papers = [...new Set(claims.map((claim) => claim.paper))];

  const asked = () => Object.fromEntries(new FormData(form));

  function fits(claim, { paper, verdict, kind, method, text, single }) {
    return (
      (!paper || claim.paper === paper) &&
      (!verdict || claim.verdict === verdict) &&
      (!kind || claim.kind === kind) &&
      (!method || claim.method.split(" ").includes(method)) &&
      (!single || "single" in claim) &&
      text.toLowerCase().split(/\s+/).every((word) => claim.words.includes(word))
    );
  }

  function show() {
    const wanted = asked();
    for (const claim of claims) claim.element.hidden = !fits(claim, wanted);
    const shown = claims.filter((claim) => !claim.element.hidden);
    for (const paper of papers) document.getElementById(paper).hidden = !shown.some((claim) => claim.paper === paper);
    return shown.length;
  }

  let waiting;
  // What is typed is told, and put into the address, when the typing stops.
  function update(delay = 0) {
    const count = show();
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      status.textContent = count ? `${count} of ${claims.length} claims are shown.` : "No claim is as asked.";
      const query = new URLSearchParams(Object.entries(asked()).filter(([, value]) => value)).toString();
      const address = location.pathname + (query ? `?${query}` : "") + location.hash;
      if (address !== location.pathname + location.search + location.hash) history.replaceState(null, "", address);
    }, delay);
  }

  // Words that no field knows change nothing.
  function take(query) {
    form.reset();
    const given = new URLSearchParams(query);
    for (const name of fields) {
      const field = form.elements[name];
      const value = given.get(name) ?? "";
      if (field.type === "checkbox") field.checked = value === field.value;
      else if (field.tagName !== "SELECT" || [...field.options].some((option) => option.value === value)) field.value = value;
    }
  }

  // A link of the summary leads to a paper where no script runs; where the claims are filtered, it leads to the filters.
  function land() {
    const place = location.hash.slice(1);
    if (location.search && [...papers, "summary"].includes(place)) history.replaceState(null, "", `${location.search}#${form.id}`);
  }

  // The name of a place in the address; none if nothing can decode it, such as #100%.
  function named() {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return "";
    }
  }

  // Whoever follows a link to a paper sees it, whatever is filtered; a link to a claim leads to its entry.
  function reveal() {
    const target = document.getElementById(named());
    if (!target) return;
    if (target.hidden) {
      take("");
      update();
    }
    target.scrollIntoView();
  }

  form.addEventListener("input", (event) => update(event.target.name === "text" ? 300 : 0));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(update));
  addEventListener("hashchange", reveal);
  addEventListener("popstate", () => {
    take(location.search);
    update();
  });
  document.querySelector(".ledger-matrix").addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='?']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState(null, "", link.href);
    land();
    take(location.search);
    update();
    form.scrollIntoView();
    form.elements.paper.focus({ preventScroll: true });
  });

  land();
  take(location.search);
  form.hidden = false;
  update();
  if (location.hash) reveal();
})();
