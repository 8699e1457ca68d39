"use strict";
// The filter of the matrix and the buttons that copy; without scripts the page shows everything.
(() => {
  const form = document.querySelector(".filter");
  const find = document.getElementById("find");
  const rows = [...document.querySelectorAll(".row")];

  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const styles = new Set([...form.querySelectorAll("input[name=show]:checked")].map((box) => box.value));
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !styles.has(row.dataset.style) || !words.every((word) => text.includes(word));
      count += row.hidden ? 0 : 1;
    }
    for (const group of document.querySelectorAll("tbody.clauses")) {
      group.hidden = !group.querySelector(".row:not([hidden])");
    }
    document.getElementById("shown").textContent = `${count} of ${rows.length} clauses`;
  };

  const copyable = (element, text) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${text.slice(0, 60)}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    });
    element.append(button);
  };

  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
  const reveal = () => {
    const row = document.getElementById(location.hash.slice(1))?.closest(".row");
    if (row?.hidden) {
      row.hidden = false;
      row.closest("tbody").hidden = false;
      row.scrollIntoView();
    }
  };
  addEventListener("hashchange", reveal);
  reveal();
  if (navigator.clipboard) {
    for (const line of document.querySelectorAll(".replay")) {
      copyable(line, line.textContent);
    }
    for (const box of document.querySelectorAll(".exchange > div")) {
      copyable(box.querySelector("h4"), box.querySelector("pre").textContent);
    }
  }
})();
