// Draws over the grid: violations, the chain of the selected task, a deadlock's cycle.

const marked = markViolations();  // entries, and idle cells as "row,column"

function markViolations() {
  const entries = new Set();
  const idle = new Set();
  for (const violation of data.violations) {
    for (const [row, column] of violation.cells) {
      const entry = entryInColumn(row, column);
      if (entry === kNone) {
        idle.add(`${row},${column}`);
      } else {
        entries.add(entry);
      }
    }
  }
  return {entries, idle};
}

function entryInColumn(row, column) {
  if (row < 0 || row >= model.rows) {
    return kNone;
  }
  const {begin} = model.views.columns;
  let low = model.rowBegin[row];
  let high = model.rowBegin[row + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (begin[middle] < column) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < model.rowBegin[row + 1] && begin[low] === column ? low : kNone;
}

const markedEntries = () => marked.entries;

function frame(context, {x, y, width, height}, color, thickness) {
  context.strokeStyle = color;
  context.lineWidth = thickness;
  context.strokeRect(x + thickness / 2, y + thickness / 2, Math.max(width - thickness - 1, 1),
                     Math.max(height - thickness, 1));
}

function drawMarks(context) {
  for (const entry of marked.entries) {
    if (!onScreen(entry)) {
      continue;
    }
    const box = boxOf(entry);
    context.save();
    context.globalAlpha = 0.14;
    context.fillStyle = theme.bad;
    context.fillRect(box.x, box.y, Math.max(box.width, 2), box.height);
    context.restore();
    frame(context, {...box, width: Math.max(box.width, 3)}, theme.bad, 2);
  }
  if (state.view === "columns") {
    for (const place of marked.idle) {
      const [row, column] = place.split(",").map(Number);
      context.setLineDash([4, 3]);
      frame(context, idleBox(row, column), theme.bad, 2);
      context.setLineDash([]);
    }
  }
}

function inset({x, y, width, height}, by) {
  return {x: x + by, y: y + by, width: width - 2 * by, height: height - 2 * by};
}

function idleBox(row, column) {
  return {
    x: toX(column), width: state.scale,
    y: toY(row) + rowGap(), height: layout.row - 2 * rowGap(),
  };
}

function drawOverlay(context) {
  const bottom = Math.min(surfaces.grid.height, toY(model.rows));
  inPlot(context, layout.axis, bottom - layout.axis, () => {
    if (state.selected !== kNone) {
      drawSelection(context);
    }
    if (state.hovered !== kNone && state.hovered !== state.selected) {
      frame(context, boxOf(state.hovered), theme.text, 1.5);
    }
    if (state.violation !== kNone) {
      drawViolation(context, data.violations[state.violation]);
    }
  });
}

function onScreen(entry) {
  const {begin, end} = places();
  return end[entry] >= state.left && toX(begin[entry]) <= layout.plotLeft + layout.plotWidth;
}

function drawSelection(context) {
  context.save();
  context.globalAlpha = 0.62;
  context.fillStyle = theme.plot;
  context.fillRect(layout.plotLeft, layout.axis, layout.plotWidth, surfaces.grid.height);
  context.restore();
  context.font = theme.font;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const dependants = dependantsOf(state.selected).map((task) => model.taskEntry[task]);
  const shown = state.chain.map((entry, i) => [entry, i]).filter(([entry]) => onScreen(entry));
  for (const entry of dependants.filter(onScreen)) {
    drawBox(context, entry);
    arrow(context, state.selected, entry, theme.next);
    frame(context, boxOf(entry), theme.next, 2);
  }
  if (shown.length > kMostArrows) {
    drawChainLine(context, shown);
    return;
  }
  shown.forEach(([entry]) => drawBox(context, entry));
  for (const [entry, i] of shown) {
    if (i > 0 && model.row[state.chain[i - 1]] !== model.row[entry]) {
      arrow(context, state.chain[i - 1], entry, theme.accent);
    }
    frame(context, boxOf(entry), theme.accent, entry === state.selected ? 3 : 1.5);
  }
}

// Draws a chain as one line if it is too long for boxes and arrows.
const kMostArrows = 600;
function drawChainLine(context, shown) {
  context.strokeStyle = theme.accent;
  context.lineWidth = 1.5;
  context.beginPath();
  for (const [entry] of shown) {
    const {x, width, y, height} = boxOf(entry);
    context.lineTo(x, y + height / 2);
    context.lineTo(x + width, y + height / 2);
  }
  context.stroke();
}

// Draws a line from the end of one entry to the beginning of another; above the row if both are in
// one.
function arrow(context, from, to, color) {
  const a = boxOf(from);
  const b = boxOf(to);
  const x0 = a.x + a.width - 1;
  const y0 = a.y + a.height / 2;
  const y1 = b.y + b.height / 2;
  const lift = model.row[from] === model.row[to] ? -layout.row * 0.8 : 0;
  const bend = Math.max(10, Math.abs(b.x - x0) * 0.35);
  const last = {x: b.x - bend, y: y1 + lift};
  context.strokeStyle = color;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0 + lift, last.x, last.y, b.x, y1);
  context.stroke();
  arrowHead(context, last, {x: b.x, y: y1}, color);
}

function arrowHead(context, from, tip, color) {
  const angle = Math.atan2(tip.y - from.y, tip.x - from.x);
  context.fillStyle = color;
  context.beginPath();
  context.moveTo(tip.x, tip.y);
  for (const side of [-0.45, 0.45]) {
    context.lineTo(tip.x - 9 * Math.cos(angle + side), tip.y - 9 * Math.sin(angle + side));
  }
  context.fill();
}

// Draws one step of a cycle between the middles of two boxes, curved so that opposite arrows do not
// overlap.
function cycleArrow(context, from, to) {
  const middle = ({x, y, width, height}) => ({x: x + width / 2, y: y + height / 2});
  const a = middle(boxOf(from));
  const b = middle(boxOf(to));
  const far = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const bow = Math.min(layout.row * 0.4, far * 0.2);
  const turn = {x: (a.x + b.x) / 2 - bow * 2 * (b.y - a.y) / far,
                y: (a.y + b.y) / 2 + bow * 2 * (b.x - a.x) / far};
  const toward = (end) => {  // keeps the names readable
    const length = Math.hypot(turn.x - end.x, turn.y - end.y) || 1;
    const off = Math.min(18, far * 0.25) / length;
    return {x: end.x + (turn.x - end.x) * off, y: end.y + (turn.y - end.y) * off};
  };
  const start = toward(a);
  const tip = toward(b);
  context.beginPath();
  context.moveTo(start.x, start.y);
  context.quadraticCurveTo(turn.x, turn.y, tip.x, tip.y);
  for (const [color, thickness] of [[theme.back, 5], [theme.bad, 2.5]]) {
    context.strokeStyle = color;
    context.lineWidth = thickness;
    context.stroke();
  }
  arrowHead(context, turn, tip, theme.bad);
}

function drawViolation(context, violation) {
  for (const [row, column] of violation.cells) {
    const entry = entryInColumn(row, column);
    if (entry !== kNone) {
      frame(context, boxOf(entry), theme.bad, 3.5);
    } else if (state.view === "columns") {
      frame(context, idleBox(row, column), theme.bad, 3.5);
    }
  }
  const cycle = violation.cycle.map((name) => findTask(parseTask(name)))
                    .filter((task) => task !== kNone).map((task) => model.taskEntry[task]);
  if (violation.repair) {
    const [row, first, second] = violation.repair;
    context.setLineDash([5, 3]);
    for (const column of [first, second]) {
      const entry = entryInColumn(row, column);
      const box = entry === kNone ? idleBox(row, column) : boxOf(entry);
      if (entry !== kNone || state.view === "columns") {
        frame(context, inset(box, 5), theme.next, 2);
      }
    }
    context.setLineDash([]);
  }
  cycle.forEach((entry, i) => {
    const before = cycle[(i + cycle.length - 1) % cycle.length];
    if (before !== entry) {
      cycleArrow(context, before, entry);
    }
  });
}

function dependantsOf(entry) {
  const tasks = new Set();
  for (const task of tasksOf(entry)) {
    forEachDependant(task, (number) => {
      if (model.taskEntry[number] !== entry) {
        tasks.add(number);
      }
    });
  }
  return [...tasks];
}
