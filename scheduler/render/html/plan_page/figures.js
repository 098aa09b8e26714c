// Holds the plan, and formats and draws its figures.

const data = JSON.parse(byId("data").textContent);

function formatSeconds(seconds) {
  const [size, unit] = seconds >= 1 || seconds === 0 ? [1, "s"] : seconds >= 1e-3 ? [1e-3, "ms"] : [1e-6, "\u00b5s"];
  return `${Number((seconds / size).toPrecision(3))} ${unit}`;
}

// Makes an element of a drawing.
function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

const words = (x, y, text, attributes = {}) => draw("text", {x, y, ...attributes}, text);

function drawing(width, height, label) {
  return draw("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
}

// Shows the lines while the pointer is on the element.
function explain(element, lines) {
  element.addEventListener("pointermove", (event) => showTooltip(lines, event.clientX, event.clientY));
  element.addEventListener("pointerleave", () => showTooltip([]));
  return element;
}

// Returns about that many round numbers from 0 to `end`.
function ticksUpTo(end, count) {
  const least = end / count;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= least * 0.999);
  return Array.from({length: Math.floor(end / step * 1.0001) + 1}, (_, i) => i * step);
}

// Does the same for bytes, in steps of a power of two.
function byteTicksUpTo(end, count) {
  const step = 2 ** Math.ceil(Math.log2(end / count));
  return Array.from({length: Math.floor(end / step) + 1}, (_, i) => i * step);
}

const stageColor = (stage) => {
  const colors = data.colors[document.documentElement.dataset.theme];
  return colors[stage % colors.length];
};

const shortened = (text, letters) =>
    text.length > letters ? `${text.slice(0, letters - 1)}\u2026` : text;

const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
