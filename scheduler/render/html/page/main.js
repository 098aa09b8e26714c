// Puts the page together.

function resize() {
  const width = Math.floor(byId("picture").clientWidth);
  layout.width = width;
  layout.noteWidth = !data.times ? 60 : width < 640 ? 60 : 130;
  layout.plotLeft = 12 + 7 * String(model.rows).length + 14;
  layout.plotWidth = Math.max(60, width - layout.plotLeft - layout.noteWidth);
  const fixed = layout.overviewHeight + byId("memory-title").offsetHeight
      + byId("legend").offsetHeight + byId("narrow").offsetHeight + 40;
  const tall = Math.max(320, byId("picture").clientHeight - fixed);
  const rows = Math.max(1, model.rows);
  layout.row = Math.min(52, Math.max(6, Math.floor((tall * 0.62 - layout.axis) / rows)));
  layout.gridHeight = Math.min(layout.axis + rows * layout.row + 4, Math.floor(tall * 0.66));
  const rest = tall - layout.gridHeight;
  layout.strip = Math.min(64, Math.max(4, Math.floor(rest / rows)));
  layout.memoryHeight = Math.min(rows * layout.strip + 10, rest);
  resizeSurface("overview", width, layout.overviewHeight);
  resizeSurface("grid", width, layout.gridHeight);
  resizeSurface("memory", width, layout.memoryHeight);
}

function onResize() {
  const whole = state.scale <= smallestScale() * 1.001;
  resize();
  if (whole) {
    fit();
  }
  redraw();
}

function gridLabel() {
  return `Grid of ${model.rows} devices by ${state.view === "time" ? "time" : positionWord()}`;
}

function memoryLabel() {
  const peaks = curvesOf(state.view).rows.slice(0, kListed)
                    .map((row, r) => `device ${r} ${peakText(row)}`);
  return `Activations held over time: ${peaks.join(", ")}`;
}

function listen() {
  listenToCanvas(byId("grid"), {
    hover: hoverGrid,
    click: (event) => select(entryUnder(event)),
    scrollRows: (pixels) => { state.top += pixels; },
    rowsOnly: (event) => event.offsetX < layout.plotLeft,
  });
  listenToCanvas(byId("memory"), {
    hover: hoverMemory,
    click: () => {},
    scrollRows: (pixels) => { state.memoryTop += pixels; },
    rowsOnly: (event) => event.offsetX < layout.plotLeft,
  });
  listenToOverview(byId("overview"));
  document.addEventListener("keydown", onKey);
  byId("panel").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.task) {
      selectTask(button.dataset.task);
    } else if (button?.dataset.violation) {
      showViolation(Number(button.dataset.violation));
    }
  });
  const press = (id, act) => byId(id).addEventListener("click", () => {
    act();
    redraw();
  });
  press("view-time", () => setView("time"));
  press("view-columns", () => setView("columns"));
  press("zoom-in", kKeys["+"]);
  press("zoom-out", kKeys["-"]);
  press("fit", fit);
  press("theme", () => {
    setTheme(theme.dark ? "light" : "dark");
    rememberInAddress();
  });
  press("help", () => byId("keys").showModal());
  byId("find").addEventListener("submit", (event) => {
    event.preventDefault();
    findByName(byId("find-task").value);
  });
  byId("find-task").addEventListener("input", () => {
    byId("find-task").setAttribute("aria-invalid", "false");
    byId("find-miss").textContent = "";
  });
  byId("color-by").addEventListener("change", (event) => setColorBy(event.target.value));
  window.addEventListener("resize", onResize);
  window.addEventListener("hashchange", () => followAddress(location.hash));
  prefersDark.addEventListener("change", () => setTheme());
}

function listenToOverview(canvas) {
  const centerOn = (event) => {
    if (event.buttons === 1) {
      const at = (event.offsetX - layout.plotLeft) / layout.plotWidth * places().length;
      state.left = at - layout.plotWidth / state.scale / 2;
      redraw();
    }
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    centerOn(event);
  });
  canvas.addEventListener("pointermove", centerOn);
}

// Returns the place of a task in the window's pixels, for the console.
window.locateTask = (name) => {
  const task = findTask(parseTask(name));
  if (task === kNone) {
    return null;
  }
  const corner = byId("grid").getBoundingClientRect();
  const box = boxOf(model.taskEntry[task]);
  return {x: corner.x + box.x + box.width / 2, y: corner.y + box.y + box.height / 2};
};

byId("memory-title").textContent = kBytesKnown ? "Memory held" : "Held activations";
setTheme();
showFacts();
showBill();
byId("view-columns").textContent = data.form === "array" ? "Columns" : "Positions";
byId("view-time").disabled = !data.times;
resize();
const wantedFirst = location.hash;  // setView() will write the address
setView(state.view);
listen();
if (data.violations.length > 0 && !wantedFirst) {
  showViolation(0);
}
followAddress(wantedFirst);
document.documentElement.dataset.ready = "yes";
