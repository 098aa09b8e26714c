// Functions with which the pages build elements.

const byId = (id) => document.getElementById(id);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// Makes an element: make("p", {class: "note"}, "text", child, ...).
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// Returns the same text as bytes_text() (base/byte_count.h).
function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const rounded = (value) => Math.round(value * 10) / 10;
  let [value, unit] = [bytes, 0];
  for (; Math.abs(rounded(value)) >= 1024 && unit + 1 < units.length; ++unit) {
    value /= 1024;
  }
  return `${unit === 0 ? Number(value.toPrecision(6)) : rounded(value).toFixed(1)} ${units[unit]}`;
}

// Shows the lines beside a point of the window, the first in bold. Without lines, hides the
// tooltip.
function showTooltip(lines, x, y) {
  const tooltip = byId("tooltip");
  tooltip.hidden = lines.length === 0;
  if (tooltip.hidden) {
    return;
  }
  const [head, ...rest] = lines;
  tooltip.replaceChildren(make("b", {}, head), ...rest.map((text) => make("div", {}, text)));
  const box = tooltip.getBoundingClientRect();
  const left = x + 16 + box.width > window.innerWidth ? x - box.width - 12 : x + 16;
  const top = y + 16 + box.height > window.innerHeight ? y - box.height - 12 : y + 16;
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${Math.max(4, top)}px`;
}

