// Of each picture that a selector finds: the size of its smallest writing as it is shown, and what is cut off.
(selector) =>
  [...document.querySelectorAll(selector)].map((svg) => {
    const { width } = svg.viewBox.baseVal;
    const scale = svg.getBoundingClientRect().width / width;
    const texts = [...svg.querySelectorAll("text")];
    const cut = texts.filter((text) => text.getBBox().x + text.getBBox().width > width);
    return {
      size: Math.min(...texts.map((text) => parseFloat(getComputedStyle(text).fontSize))) * scale,
      cut: cut.map((text) => text.textContent),
    };
  });
