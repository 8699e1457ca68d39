// Looks at a page that has come to rest: a function of what axe is asked to try, null for a look without it.
async (asked) => {
  const found = [];
  for (const image of document.querySelectorAll("img:not([alt])")) found.push(`has no words for ${image.src}`);
  if (!asked) return found;
  const seen = await axe.run(document, { ...asked, resultTypes: ["violations"], preload: false });
  for (const { id, nodes } of seen.violations) {
    found.push(`${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 200)}: ${nodes[0].failureSummary}`);
  }
  return found;
}
