// Formats figures of a run, and draws curves and bars.

const data = JSON.parse(byId("data").textContent);

function formatSeconds(seconds) {
  const [size, unit] = seconds >= 1 || seconds === 0 ? [1, "s"] : seconds >= 1e-3 ? [1e-3, "ms"] : [1e-6, "\u00b5s"];
  return `${Number((seconds / size).toPrecision(3))} ${unit}`;
}

// Returns a number in four digits; a loss that is not finite comes as null.
const formatNumber = (number) => number === null ? "not finite" : String(Number(number.toPrecision(4)));

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

const words = (x, y, text, attributes = {}) => draw("text", {x, y, ...attributes}, text);

function drawing(width, height, label) {
  return draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label});
}

// Shows the lines while the pointer is on the element.
function explain(element, lines) {
  element.addEventListener("pointermove", (event) => showTooltip(lines, event.clientX, event.clientY));
  element.addEventListener("pointerleave", () => showTooltip([]));
  return element;
}

// Draws values over steps, from the least to the most of them. Those that are not finite are gaps.
function curve(steps, values, label) {
  const [width, height, left, top, bottom] = [600, 180, 64, 10, 20];
  const picture = drawing(width, height, label);
  const finite = values.filter((value) => value !== null);
  if (finite.length === 0) {
    picture.append(words(width / 2, height / 2, "no step yet", {class: "dim", "text-anchor": "middle"}));
    return picture;
  }
  const [least, most] = [Math.min(...finite), Math.max(...finite)];
  const [first, last] = [steps[0], steps[steps.length - 1]];
  const x = (step) => left + (width - left - 10) * (last === first ? 0.5 : (step - first) / (last - first));
  const y = (value) => top + (height - top - bottom) * (most === least ? 0.5 : (most - value) / (most - least));
  for (const value of most === least ? [most] : [least, (least + most) / 2, most]) {
    picture.append(draw("line", {class: "grid", x1: left, x2: width - 10, y1: y(value), y2: y(value)}),
                   words(left - 6, y(value) + 4, formatNumber(value), {class: "dim", "text-anchor": "end"}));
  }
  picture.append(words(left, height - 5, `step ${first}`, {class: "dim"}),
                 words(width - 10, height - 5, `step ${last}`, {class: "dim", "text-anchor": "end"}));
  let path = "", pen = "M";
  steps.forEach((step, i) => {
    path += values[i] === null ? "" : `${pen}${x(step).toFixed(1)} ${y(values[i]).toFixed(1)}`;
    pen = values[i] === null ? "M" : "L";
  });
  picture.append(draw("path", {class: "curve", d: path}));
  if (finite.length === 1) {
    picture.append(draw("circle", {cx: x(last), cy: y(finite[0]), r: 3, fill: "var(--accent)"}));
  }
  return picture;
}

// Draws the most that each rank has held, with its bill as a line.
function memoryBars(ranks) {
  const [width, rowHeight, left] = [600, 22, 64];
  const most = Math.max(1, ...ranks.map((rank) => Math.max(rank.billed_bytes ?? 0, rank.peak_bytes ?? 0)));
  const x = (bytes) => left + (width - left - 110) * bytes / most;
  const picture = drawing(width, rowHeight * ranks.length, "Memory of each rank");
  ranks.forEach((rank, i) => {
    const [held, billed] = [rank.peak_bytes ?? 0, rank.billed_bytes];
    const over = billed !== undefined && held > billed;
    const bar = draw("rect", {class: over ? "memory over" : "memory", x: left, y: i * rowHeight + 4,
                              width: x(held) - left, height: rowHeight - 8});
    const row = draw("g", {}, words(4, i * rowHeight + 15, `rank ${rank.rank}`), bar,
                     words(width - 104, i * rowHeight + 15, formatBytes(held)));
    if (billed !== undefined) {
      row.append(draw("line", {class: "bill", x1: x(billed), x2: x(billed), y1: i * rowHeight + 2, y2: (i + 1) * rowHeight - 2}));
    }
    picture.append(explain(row, [`rank ${rank.rank}`, `most held in the last step: ${formatBytes(held)}`,
                                 billed === undefined ? "no bill" : `bill: ${formatBytes(billed)}`]));
  });
  return picture;
}
