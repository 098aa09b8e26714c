// Handles mouse, keys and the address.

let drawing = false;
function redraw() {
  if (!drawing) {
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      clampView();
      drawOverview();
      drawGrid();
      drawMemory();
    });
  }
}

// ---- what the user may do --------------------------------------------------------------------

function select(entry, task = kNone) {
  state.selected = entry;
  state.member = task;
  state.chain = entry === kNone ? [] : chainOf(entry, state.view);
  state.violation = kNone;
  if (entry !== kNone) {
    const {begin, end} = places();
    reveal(begin[entry], end[entry], model.row[entry]);
  }
  byId("status").textContent = entry === kNone ? "" : entryLines(entry).join(", ");
  showSelection();
  showViolations();
  rememberInAddress();
  redraw();
}

function selectTask(name) {
  const task = findTask(parseTask(name));
  if (task !== kNone) {
    select(model.taskEntry[task], task);
  }
  return task !== kNone;
}

function setView(view) {
  if (!model.views[view]) {
    return;
  }
  state.view = view;
  fit();
  for (const button of document.querySelectorAll("[data-view]")) {
    button.setAttribute("aria-pressed", String(button.dataset.view === view));
  }
  byId("grid").setAttribute("aria-label", gridLabel());
  byId("memory").setAttribute("aria-label", memoryLabel());
  if (state.violation === kNone) {
    select(state.selected, state.member);
  } else {
    showViolation(state.violation);
  }
}

function showViolation(number) {
  const violation = data.violations[number];
  select(kNone);
  state.violation = number;
  showViolations();
  const named = violation.cells.map(([row, column]) => ({row, column}));
  const cells = named.length > 0 ? named : [{row: violation.row, column: violation.column}];
  const seen = cells.filter(({row, column}) => row >= 0 && column >= 0);
  if (seen.length > 0) {
    revealCells(seen);
  }
  rememberInAddress();
  redraw();
}

function revealCells(cells) {
  const {begin, end} = places();
  const spans = cells.map(({row, column}) => {
    const entry = entryInColumn(row, column);
    return entry === kNone ? {row, from: column, to: column + 1}
                           : {row, from: begin[entry], to: end[entry]};
  });
  const from = Math.min(...spans.map((span) => span.from));
  const to = Math.max(...spans.map((span) => span.to));
  const wide = (to - from) * state.scale > layout.plotWidth;
  if (wide) {
    state.scale = layout.plotWidth / (1.2 * (to - from));
  }
  reveal(from, to, spans[0].row);
  byId("panel").querySelector("[aria-pressed=true]")?.scrollIntoView({block: "nearest"});
}

function moveSelection(rows, steps) {
  if (state.selected === kNone) {
    const first = model.rowBegin.findIndex((begin, row) => begin < model.rowBegin[row + 1]);
    select(first < 0 ? kNone : model.rowBegin[first]);
    return;
  }
  const row = model.row[state.selected];
  if (steps !== 0) {
    const next = state.selected + steps;
    if (next >= model.rowBegin[row] && next < model.rowBegin[row + 1]) {
      select(next);
    }
    return;
  }
  for (let to = row + rows; to >= 0 && to < model.rows; to += rows) {
    if (model.rowBegin[to] < model.rowBegin[to + 1]) {
      const near = firstAfter(to, places().begin[state.selected]);
      select(Math.min(near, model.rowBegin[to + 1] - 1));
      return;
    }
  }
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

// Follows the system until the user chooses a scheme.
function setTheme(chosen = state.scheme) {
  state.scheme = chosen;
  document.documentElement.dataset.theme = chosen ?? (prefersDark.matches ? "dark" : "light");
  readTheme();
  showLegend();
  showSelection();
  redraw();
}

function setColorBy(by) {
  state.colorBy = by;
  byId("color-by").value = by;
  setTheme();
  onResize();  // legends differ in height
  rememberInAddress();
}

function findByName(typed) {
  const name = typed.trim().toUpperCase();
  const found = selectTask(name);
  byId("find-task").setAttribute("aria-invalid", String(!found));
  byId("find-miss").textContent = found ? ""
      : parseTask(name) ? `no task ${name} in this schedule` : "write a task, e.g. 1F3";
}

// ---- the address: #select=1F3&view=columns&color=kind ---------------------------------------------------

function rememberInAddress() {
  const words = [];
  if (state.selected !== kNone) {
    words.push(`select=${nameOf(state.member === kNone ? model.taskBegin[state.selected] : state.member)}`);
  }
  if (state.violation !== kNone) {
    words.push(`violation=${state.violation}`);
  }
  if (state.view !== kUsualView) {
    words.push(`view=${state.view}`);
  }
  if (state.colorBy !== kColorBys[0]) {
    words.push(`color=${state.colorBy}`);
  }
  if (state.scheme) {
    words.push(`theme=${state.scheme}`);
  }
  const wanted = words.length > 0 ? `#${words.join("&")}` : "";
  if (wanted !== location.hash && window === window.top) {  // a frame has no address of its own
    history.replaceState(null, "", wanted || location.pathname);
  }
}

function followAddress(fragment) {
  const wanted = new URLSearchParams(fragment.slice(1));
  if (["light", "dark"].includes(wanted.get("theme"))) {
    setTheme(wanted.get("theme"));
  }
  if (kColorBys.includes(wanted.get("color"))) {
    setColorBy(wanted.get("color"));
  }
  if (wanted.has("view") && wanted.get("view") !== state.view) {
    setView(wanted.get("view"));
  }
  if (wanted.has("select")) {
    selectTask(wanted.get("select"));
  }
  if (data.violations[Number(wanted.get("violation") ?? -1)]) {
    showViolation(Number(wanted.get("violation")));
  }
}

// ---- mouse -----------------------------------------------------------------------------------

function listenToCanvas(canvas, {hover, click, scrollRows, rowsOnly}) {
  let from = null;  // place where the button went down
  canvas.addEventListener("pointerdown", (event) => {
    from = {x: event.clientX, y: event.clientY, moved: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) {
      hover(event);
      return;
    }
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (from.moved || Math.abs(dx) + Math.abs(dy) > 4) {
      showTooltip([]);
      panBy(-dx);
      scrollRows(-dy);
      from = {x: event.clientX, y: event.clientY, moved: true};
      redraw();
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (from && !from.moved) {
      click(event);
    }
    from = null;
  });
  canvas.addEventListener("pointercancel", () => { from = null; });
  canvas.addEventListener("pointerleave", () => {
    showTooltip([]);
    state.hovered = kNone;
    redraw();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    showTooltip([]);
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (rowsOnly(event)) {
      scrollRows(event.deltaY);
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      panBy(sideways);
    } else {
      zoomAt(event.offsetX, Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)));
    }
    redraw();
  }, {passive: false});
  canvas.addEventListener("dblclick", () => {
    fit();
    redraw();
  });
}

function entryUnder(event) {
  return event.offsetY > layout.axis && event.offsetX >= layout.plotLeft
      ? entryAt(rowAt(event.offsetY), fromX(event.offsetX)) : kNone;
}

function hoverGrid(event) {
  const entry = entryUnder(event);
  if (entry !== state.hovered) {
    state.hovered = entry;
    redraw();
  }
  const inside = event.offsetX >= layout.plotLeft && event.offsetY > layout.axis &&
      event.offsetX <= layout.plotLeft + layout.plotWidth;
  const lines = entry !== kNone ? entryLines(entry)
      : inside ? gapLines(rowAt(event.offsetY), fromX(event.offsetX)) : [];
  showTooltip(lines, event.clientX, event.clientY);
}

function hoverMemory(event) {
  const row = Math.floor((event.offsetY - stripTop(0)) / layout.strip);
  const at = fromX(event.offsetX);
  const inside = row >= 0 && row < model.rows && event.offsetX >= layout.plotLeft &&
      event.offsetX <= layout.plotLeft + layout.plotWidth;
  const moment = state.view === "time" ? `at ${formatTime(at)}` : `in ${positionWord()} ${Math.floor(at)}`;
  showTooltip(inside ? heldLines(row, at, moment) : [], event.clientX, event.clientY);
}

function heldLines(row, at, moment) {
  const {counts, bytes} = curvesOf(state.view).rows[row];
  const activations = `${counts.value(at)} activation${counts.value(at) === 1 ? "" : "s"}`;
  return [
    `device ${row} ${moment}`,
    kBytesKnown ? `holds ${formatBytes(bytes.value(at))}, ${activations}` : `holds ${activations}`,
    kBytesKnown ? `at most ${formatBytes(bytes.peak)}, ${counts.peak}` : `at most ${counts.peak}`,
  ];
}

// ---- keys ------------------------------------------------------------------------------------

const center = () => layout.plotLeft + layout.plotWidth / 2;
const kKeys = {
  "ArrowLeft": () => moveSelection(0, -1),
  "ArrowRight": () => moveSelection(0, 1),
  "ArrowUp": () => moveSelection(-1, 0),
  "ArrowDown": () => moveSelection(1, 0),
  "+": () => zoomAt(center(), 1.5),
  "=": () => zoomAt(center(), 1.5),
  "-": () => zoomAt(center(), 1 / 1.5),
  "0": fit,
  "a": () => panBy(-layout.plotWidth / 5),
  "d": () => panBy(layout.plotWidth / 5),
  "w": () => { state.top -= 3 * layout.row; },
  "s": () => { state.top += 3 * layout.row; },
  "t": () => setView(state.view === "time" ? "columns" : "time"),
  "c": () => setColorBy(kColorBys[(kColorBys.indexOf(state.colorBy) + 1) % kColorBys.length]),
  "v": () => data.violations.length > 0 && showViolation((state.violation + 1) % data.violations.length),
  "/": () => byId("find-task").focus(),
  "?": () => byId("keys").showModal(),
  "Escape": () => select(kNone),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) {
    return;
  }
  if (event.target.matches("input, select")) {
    if (event.key === "Escape") {
      byId("grid").focus();
    }
    return;
  }
  const arrow = event.key.startsWith("Arrow");
  if (arrow && document.activeElement !== byId("grid")) {
    return;  // elsewhere these keys scroll
  }
  const act = kKeys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (act) {
    event.preventDefault();
    act();
    redraw();
  }
}
