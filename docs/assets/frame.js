// What the theme makes when a page is shown: boxes that scroll are reached by keys; a button beside code is no landmark.
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

  new MutationObserver(soon).observe(document.querySelector(".md-content") ?? document.body, {
    childList: true,
    subtree: true,
  });
  addEventListener("resize", soon);
  reach();
})();
