// What the theme makes when a page is shown: boxes that scroll are reached by keys; a button beside code is no landmark.
// Who comes by the address of an entry that has moved is led to it.
(() => {
  function reach() {
    for (const box of document.querySelectorAll(".md-typeset__scrollwrap, div.arithmatex")) {
      if (box.scrollWidth > box.clientWidth && !box.querySelector("a, button")) box.tabIndex = 0;
    }
    for (const box of document.querySelectorAll("nav.md-code__nav:not([role])")) box.setAttribute("role", "group");
  }

  let waiting;
  function soon() {
    clearTimeout(waiting);
    waiting = setTimeout(reach, 50);
  }

  // The theme takes from code what lets keys reach it; it is given back.
  function changed(records) {
    for (const { target, type } of records) {
      if (type === "attributes" && target.matches("pre > code:not([tabindex])")) target.tabIndex = 0;
    }
    if (records.some(({ type }) => type === "childList")) soon();
  }

  function follow() {
    const there = location.hash && document.getElementById(location.hash.slice(1));
    if (there && there.matches("a.moved")) location.replace(there.href);
  }

  new MutationObserver(changed).observe(document.querySelector(".md-content") ?? document.body, {
    attributeFilter: ["tabindex"],
    childList: true,
    subtree: true,
  });
  addEventListener("resize", soon);
  for (const code of document.querySelectorAll("pre > code:not([tabindex])")) code.tabIndex = 0;
  reach();
  addEventListener("hashchange", follow);
  follow();
})();
