// Looks at a page as it is shown: a function of what axe is asked to try, null for a look without it.
async (asked) => {
  for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  for (const moving of document.getAnimations()) {
    try { moving.finish(); } catch { moving.cancel(); }
  }
  const found = [];
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) found.push(`is ${wide} wide in a window of ${innerWidth}`);
  for (const image of document.querySelectorAll("img:not([alt])")) found.push(`has no words for ${image.src}`);
  if (!asked) return found;
  const seen = await axe.run(document, { ...asked, resultTypes: ["violations"], preload: false });
  for (const { id, nodes } of seen.violations) {
    found.push(`${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 200)}: ${nodes[0].failureSummary}`);
  }
  return found;
}
