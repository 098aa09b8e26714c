// Canvases and colors.

const surfaces = {};  // id -> {canvas, context, width, height}
const theme = {};     // colors by name, from the style sheet
// Holds, by meaning of the colors, how many stages, chunks or microbatches share them.
const kColorCounts = data.colors.counts;

function resizeSurface(id, width, height) {
  const canvas = byId(id);
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  surfaces[id] = {canvas, context: canvas.getContext("2d"), width, height};
  surfaces[id].context.setTransform(ratio, 0, 0, ratio, 0, 0);
}

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "plot", "line", "text", "dim", "bad", "accent", "next", "curve",
                      "warmUp", "dependency", "transfer", "drain"]) {
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
  theme.dark = document.documentElement.dataset.theme === "dark";
  theme.font = "11px system-ui, sans-serif";
  theme.tasks = data.colors[theme.dark ? "dark" : "light"][state.colorBy];
  theme.taskRgb = theme.tasks.map(toRgb);
  theme.plotRgb = toRgb(theme.plot);
  theme.texts = theme.taskRgb.map((rgb) => (luminance(rgb) > 0.18 ? "#14181d" : "#ffffff"));
}

function toRgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// Returns the relative luminance, from 0 to 1: above 0.18 black stands out more than white.
function luminance(rgb) {
  const [r, g, b] = rgb.map((part) => (part / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// Returns the task's position among those that colors distinguish.
function positionOf(task) {
  switch (state.colorBy) {
    case "stage":
      return Math.max(0, model.stage[task]);
    case "kind":  // chunks are its shades
    case "chunk":
      return data.chunks[model.stage[task]] || 0;
    case "microbatch":
      return Math.max(0, model.microbatch[task]);
    default:
      return 0;
  }
}

// Returns the position of the task's color in the theme's lists. If there are very many, neighbors
// share one.
function colorOf(task) {
  const colors = theme.tasks.length / kKinds.length;
  const count = kColorCounts[state.colorBy];
  const position = Math.min(positionOf(task), count - 1);
  const place = count <= colors ? position : Math.floor(position * colors / count);
  return place * kKinds.length + Math.min(model.kind[task], kUpdate);
}

// Makes diagonal lines for idle time of a cause.
const patterns = new Map();
function hatch(cause) {
  const key = cause + theme.dark;
  if (!patterns.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const c = tile.getContext("2d");
    c.globalAlpha = 0.28;
    c.fillStyle = theme[cause];
    c.fillRect(0, 0, 8, 8);
    c.globalAlpha = 0.6;
    c.strokeStyle = theme[cause];
    c.lineWidth = 1;
    c.beginPath();
    for (const shift of [-8, 0, 8]) {
      c.moveTo(shift - 1, 9);
      c.lineTo(shift + 9, -1);
    }
    c.stroke();
    patterns.set(key, c.createPattern(tile, "repeat"));
  }
  return patterns.get(key);
}

// Draws at the right edge which rows are visible, if not all are.
function drawScrollMark(context, scrolled, shown, total, top) {
  if (total > shown + 1) {
    context.fillStyle = theme.line;
    context.fillRect(layout.width - 4, top, 4, shown);
    context.fillStyle = theme.dim;
    context.fillRect(layout.width - 4, top + shown * scrolled / total, 4, shown * shown / total);
  }
}

// Calls draw() with painting confined to the rows and columns of the plot.
function inPlot(context, top, height, draw) {
  context.save();
  context.beginPath();
  context.rect(layout.plotLeft, top, layout.plotWidth, height);
  context.clip();
  draw();
  context.restore();
}

// Draws numbers along the top: in steps of 1, 2 or 5 times a power of ten, not too close to each
// other.
function drawAxis({context, height}) {
  const apart = state.view === "columns" ? 34 : 70;
  let step = 10 ** Math.floor(Math.log10(apart / state.scale));
  step *= [1, 2, 5, 10].find((factor) => factor * step * state.scale >= apart * 0.999);
  if (state.view === "columns") {
    step = Math.max(1, Math.round(step));
  }
  context.font = theme.font;
  context.textBaseline = "middle";
  const center = state.view === "columns" ? state.scale / 2 : 0;
  const last = Math.min(fromX(layout.plotLeft + layout.plotWidth), places().length);
  let lastLabel = -Infinity;
  for (let at = Math.ceil(state.left / step) * step; at <= last + step * 1e-6; at += step) {
    const x = toX(at);
    context.fillStyle = theme.line;
    context.fillRect(x, layout.axis - 5, 1, height - layout.axis + 5);
    const label = state.view === "columns" ? String(Math.round(at)) : formatTime(at);
    const half = context.measureText(label).width / 2;
    const middle = Math.max(x + center, layout.plotLeft + half);
    if (middle - half > lastLabel && middle + half <= layout.plotLeft + layout.plotWidth + 20 &&
        (state.view === "time" || at < places().length)) {
      context.fillStyle = theme.dim;
      context.textAlign = "center";
      context.fillText(label, middle, layout.axis / 2 - 1);
      lastLabel = middle + half + 6;
    }
  }
}

function drawRowLabels(context, rowHeight, toTop, height) {
  const step = Math.max(1, Math.ceil(12 / rowHeight));
  context.font = theme.font;
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.fillStyle = theme.dim;
  for (let row = 0; row < model.rows; row += step) {
    const y = toTop(row) + rowHeight / 2;
    if (y > 4 && y < height) {
      context.fillText(rowName(row), layout.plotLeft - 10, y);
    }
  }
}
