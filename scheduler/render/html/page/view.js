// Holds which part of the schedule is visible, and formats numbers.

const kCauses = [
  {id: "warmUp", name: "warm-up", meaning: "before the row's first task"},
  {id: "dependency", name: "dependency", meaning: "until another row had made what was needed"},
  {id: "transfer", name: "transfer", meaning: "until that had arrived"},
  {id: "drain", name: "drain", meaning: "after the row's last task"},
];

// Most faults are about columns and are visible there.
const kUsualView = data.times && data.violations.length === 0 ? "time" : "columns";

const kColorBys = ["stage", "kind", "chunk", "microbatch"];

const state = {
  view: kUsualView,
  left: 0,       // at the plot's left edge, in columns or units of time
  scale: 1,      // pixels per column or unit
  top: 0,        // pixels of the rows scrolled away above
  memoryTop: 0,
  selected: kNone,  // entry
  member: kNone,    // the task of it that the user chose
  chain: [],
  violation: kNone,
  hovered: kNone,
  colorBy: "stage",
  scheme: null,  // "light" or "dark" if the user chose
};

// In CSS pixels; resize() measures it.
const layout = {
  width: 0, plotLeft: 48, plotWidth: 0, noteWidth: 120, axis: 24, row: 28, gridHeight: 0,
  strip: 40, memoryHeight: 0, overviewHeight: 18,
};

const places = () => model.views[state.view];
const toX = (at) => layout.plotLeft + (at - state.left) * state.scale;
const fromX = (x) => state.left + (x - layout.plotLeft) / state.scale;
const toY = (row) => layout.axis + row * layout.row - state.top;
const rowAt = (y) => Math.floor((y - layout.axis + state.top) / layout.row);

function smallestScale() {
  return layout.plotWidth / places().length;
}

// Returns a scale at which the shortest task can fill a third of the picture.
function largestScale() {
  const {begin, end, shortest = shortestEntry(begin, end)} = places();
  places().shortest = shortest;
  return Math.max(smallestScale(), layout.plotWidth / 3 / shortest);
}

function shortestEntry(begin, end) {
  let shortest = Infinity;
  for (let e = 0; e < begin.length; ++e) {
    if (end[e] > begin[e]) {
      shortest = Math.min(shortest, end[e] - begin[e]);
    }
  }
  return Number.isFinite(shortest) ? shortest : 1;
}

function clampView() {
  state.scale = Math.min(Math.max(state.scale, smallestScale()), largestScale());
  const most = places().length - layout.plotWidth / state.scale;
  state.left = Math.min(Math.max(state.left, 0), Math.max(most, 0));
  const hidden = (height, axis, row) => Math.max(0, model.rows * row - (height - axis));
  state.top = Math.min(Math.max(state.top, 0), hidden(layout.gridHeight, layout.axis, layout.row));
  state.memoryTop =
      Math.min(Math.max(state.memoryTop, 0), hidden(layout.memoryHeight, 10, layout.strip));
}

function fit() {
  state.left = 0;
  state.top = 0;
  state.scale = smallestScale();
}

// Keeps the point under x in its place.
function zoomAt(x, factor) {
  const at = fromX(x);
  state.scale *= factor;
  clampView();
  state.left = at - (x - layout.plotLeft) / state.scale;
  clampView();
}

function panBy(pixels) {
  state.left += pixels / state.scale;
  clampView();
}

// Moves as little as possible to bring [begin, end] and the row into view, and zooms in if it would
// be too narrow to see.
function reveal(begin, end, row) {
  const wanted = Math.min(24 / Math.max(end - begin, 1e-300), largestScale());
  if (state.scale < wanted && (end - begin) * state.scale < 6) {
    state.scale = wanted;
  }
  const seen = layout.plotWidth / state.scale;
  if (begin < state.left || end > state.left + seen) {
    state.left = (begin + end) / 2 - seen / 2;
  }
  const y = toY(row);
  if (y < layout.axis) {
    state.top -= layout.axis - y;
  } else if (y + layout.row > layout.gridHeight) {
    state.top += y + layout.row - layout.gridHeight;
  }
  clampView();
}

// Returns the first entry of the row that ends after `at`.
function firstAfter(row, at) {
  const {end} = places();
  let low = model.rowBegin[row];
  let high = model.rowBegin[row + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[middle] > at) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

function entryAt(row, at) {
  if (row < 0 || row >= model.rows) {
    return kNone;
  }
  const entry = firstAfter(row, at);
  return entry < model.rowBegin[row + 1] && places().begin[entry] <= at ? entry : kNone;
}

// ---- numbers ---------------------------------------------------------------------------------

// Uses as many digits as neighboring moments of this schedule need to differ.
function formatTime(value) {
  const length = model.views.time ? model.views.time.length : 1;
  const decimals = Math.min(12, Math.max(0, 4 - Math.ceil(Math.log10(length))));
  const text = value.toFixed(decimals);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function formatCount(value) {
  return value.toLocaleString("en");
}

function formatShare(part, whole) {
  return whole > 0 ? `${(100 * part / whole).toFixed(1)}%` : "0%";
}
