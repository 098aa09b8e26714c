;// Explains the colors: every swatch has the color of a task that is drawn.

const kNamedColors = 12;  // with more, the legend shows samples instead of names
const kSamples = 32;

// Groups tasks by the meaning of colors: position -> kind -> an example task.
const drawnTasks = new Map();
function tasksByColor() {
  if (!drawnTasks.has(state.colorBy)) {
    const drawn = new Map();
    for (let task = 0; task < model.kind.length; ++task) {
      if (isSurplus(task)) {
        continue;  // the legend has one swatch for all of these
      }
      const position = positionOf(task);
      if (!drawn.has(position)) {
        drawn.set(position, new Map());
      }
      const kinds = drawn.get(position);
      if (!kinds.has(model.kind[task])) {
        kinds.set(model.kind[task], task);
      }
    }
    const sorted = [...drawn].sort(([a], [b]) => a - b).map(([position, kinds]) =>
        [position, [...kinds].sort(([a], [b]) => a - b)]);
    drawnTasks.set(state.colorBy, sorted);
  }
  return drawnTasks.get(state.colorBy);
}

function taskSwatch(task) {
  const element = make("span", {class: "swatch"});
  element.style.background = theme.tasks[colorOf(task)];
  element.dataset.example = nameOf(task);
  return element;
}

// Makes a swatch of idle time of a cause.
function causeSwatch({id}) {
  const canvas = make("canvas", {class: "swatch", width: 11, height: 11});
  const context = canvas.getContext("2d");
  for (const fill of [theme.plot, hatch(id)]) {
    context.fillStyle = fill;
    context.fillRect(0, 0, 11, 11);
  }
  return canvas;
}

const legendItem = (...parts) => make("span", {class: "item"}, ...parts);

function colorItems(drawn) {
  const by = state.colorBy;
  if (by === "kind") {
    return [];
  }
  const first = ([, kinds]) => kinds[0][1];
  if (drawn.length <= kNamedColors) {
    return drawn.map((entry) => legendItem(taskSwatch(first(entry)),
        (by === "stage" && data.names[entry[0]]) || `${by} ${entry[0]}`));
  }
  const samples = Math.min(kSamples, drawn.length);
  const swatches = Array.from({length: samples}, (unused, i) =>
      taskSwatch(first(drawn[Math.floor(i * (drawn.length - 1) / (samples - 1))])));
  const plural = by === "microbatch" ? "microbatches" : `${by}s`;
  return [legendItem(make("span", {class: "samples"}, ...swatches),
                     `${plural} ${drawn[0][0]} to ${drawn[drawn.length - 1][0]}`)];
}

const kindText = (kind) => (kind === kUnknownKind ? "unknown kind"
    : `${kKinds[kind]} ${kKindNames[kind].toLowerCase()}`);

// Shows each kind with the shades of its chunks.
function kindItems(drawn) {
  const kinds = [...new Set(drawn.flatMap(([, tasks]) => tasks.map(([kind]) => kind)))];
  const items = kinds.sort((a, b) => a - b).map((kind) => {
    const tasks = drawn.flatMap(([, all]) => all.filter(([each]) => each === kind));
    const shades = new Map(tasks.map(([, task]) => [theme.tasks[colorOf(task)], task]));
    return legendItem(...[...shades.values()].slice(0, kSamples).map(taskSwatch), kindText(kind));
  });
  const chunks = drawn.map(([chunk]) => chunk);
  return chunks.length < 2 ? items : [...items, legendItem(
      `shades: chunk ${chunks[0]} strong, to chunk ${chunks[chunks.length - 1]} pale`)];
}

// Shows the shades of the position that has most of them.
function shadeItems(drawn) {
  const by = state.colorBy;
  if (by === "kind") {
    return kindItems(drawn);
  }
  const [position, kinds] = drawn.reduce((a, b) => (b[1].length > a[1].length ? b : a), [0, []]);
  return kinds.length < 2 ? [] : [legendItem(`shades, of ${by} ${position}:`),
    ...kinds.map(([kind, task]) => legendItem(taskSwatch(task), kindText(kind)))];
}

function causeItems() {
  const causes = !data.times ? [] : kCauses.filter((cause, i) =>
      data.times.rows.some((row) => row.bubbles[i] > 0));
  return causes.map((cause) => legendItem(causeSwatch(cause), `idle: ${cause.name}`));
}

function showLegend() {
  const drawn = tasksByColor();
  const surplus = !data.surplusText ? [] : [make("span", {class: "item wraps"},
      make("span", {class: "swatch surplus"}), data.surplusText)];
  byId("legend").replaceChildren(...[colorItems(drawn), shadeItems(drawn), causeItems(), surplus]
      .map((items) => make("div", {}, ...items)));
}

// Explains what the grid leaves out of narrow cells.
const kNarrowNotes = [
  "",
  "Narrow cells show the microbatch alone.",
  "Narrow cells bear no name: zoom in, or point at one.",
  "Too narrow to tell cells apart: mean colors; zoom in.",
];
const [kAllNamed, kMicrobatchAlone, kUnnamed, kMeans] = [0, 1, 2, 3];
let narrowest = kAllNamed;

function noteNarrow(what) {
  narrowest = Math.max(narrowest, what);
}

function showNarrowNote() {
  byId("narrow").textContent = kNarrowNotes[narrowest];
  narrowest = kAllNamed;
}
