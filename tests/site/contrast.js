// What has too little contrast, of the elements that a selector names: a function of the selector.
(places) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((part, k) => part * a + below[k] * (1 - a));
  const behind = (element) => {
    if (!element) return [255, 255, 255];
    const colour = rgba(getComputedStyle(element).backgroundColor);
    return colour[3] === 1 ? colour.slice(0, 3) : over(colour, behind(element.parentElement));
  };
  const light = (colour) => {
    const [r, g, b] = colour.map(
      (part) => (part <= 10 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4),
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const weak = new Map();
  for (const element of document.querySelectorAll(places)) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    if (element.matches(".headerlink") || !element.checkVisibility()) continue;
    const below = behind(element);
    const [high, low] = [light(over(rgba(getComputedStyle(element).color), below)), light(below)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) weak.set(`${element.tagName} ${element.className}`, `${ratio.toFixed(2)} ${element.textContent}`);
  }
  return [...weak].map((pair) => pair.join(" "));
}
