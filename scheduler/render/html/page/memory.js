// Draws below the grid what each row holds. Activations count from the forwards that made them to
// the backwards (or their halves) that free them. If the simulation knew bytes, the curves are
// bytes.

const kBytesKnown = Boolean(data.times && data.times.rows.some((row) => row.bytes));
const curves = {};  // by view: for each row {counts, bytes}, and the highest point of all

function curvesOf(view) {
  if (!curves[view]) {
    const rows = [];
    for (let row = 0; row < model.rows; ++row) {
      rows.push({counts: countsOf(row, model.views[view]), bytes: bytesOf(row, model.views[view])});
    }
    curves[view] = {rows, peak: rows.reduce((most, row) => Math.max(most, shownOf(row).peak), 1e-300)};
  }
  return curves[view];
}

const shownOf = (row) => (kBytesKnown ? row.bytes : row.counts);

// A curve has the value `held` from each moment on, until the next.
class Curve {
  constructor(before) {
    this.at = [-Infinity];
    this.held = [before];
    this.peak = before;
  }

  add(moment, held) {
    if (held !== this.held[this.held.length - 1]) {
      this.at.push(moment);
      this.held.push(held);
      this.peak = Math.max(this.peak, held);
    }
  }

  value(moment) {
    return this.held[countUntil(this.at, moment) - 1];
  }
}

function countsOf(row, {begin, end}) {
  const curve = new Curve(0);
  let now = 0;
  for (let entry = model.rowBegin[row]; entry < model.rowBegin[row + 1]; ++entry) {
    let freed = 0;
    for (let task = model.taskBegin[entry]; task < model.taskBegin[entry + 1]; ++task) {
      now += model.kind[task] === kForward && model.keeps.has(model.stage[task]) ? 1 : 0;
      freed += endsBackward(task) ? 1 : 0;
    }
    curve.add(begin[entry], now);
    now -= freed;
    curve.add(end[entry], now);
  }
  return curve;
}

// The bytes that stay after the last task were also there before the first.
function bytesOf(row, {begin, end}) {
  const times = data.times?.rows[row];
  if (!times?.bytes) {
    return new Curve(0);
  }
  const curve = new Curve(times.bytesAfter.at(-1) ?? 0);
  times.bytes.forEach((bytes, i) => {
    const entry = model.rowBegin[row] + i;
    curve.add(begin[entry], bytes);
    curve.add(end[entry], times.bytesAfter[i]);
  });
  return curve;
}

// Returns how many of the ascending moments are not after `moment`.
function countUntil(at, moment) {
  let low = 0;
  let high = at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle] <= moment) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

function peakText({counts, bytes}) {
  return kBytesKnown ? `${formatBytes(bytes.peak)}, ${counts.peak} held` : `peak ${counts.peak}`;
}

const stripTop = (row) => row * layout.strip - state.memoryTop + 4;

function drawMemory() {
  const {context, width, height} = surfaces.memory;
  context.fillStyle = theme.back;
  context.fillRect(0, 0, width, height);
  const all = curvesOf(state.view);
  for (let row = 0; row < model.rows; ++row) {
    if (stripTop(row) < height && stripTop(row) + layout.strip > 0) {
      drawStrip(context, row, all);
    }
  }
  drawRowLabels(context, layout.strip, stripTop, height);
  drawScrollMark(context, state.memoryTop, height, model.rows * layout.strip, 0);
}

function drawStrip(context, row, all) {
  const gap = layout.strip > 12 ? 3 : layout.strip > 6 ? 1 : 0.5;
  const top = stripTop(row) + gap;
  const bottom = stripTop(row) + layout.strip;
  const unit = (bottom - top) / all.peak;
  const curve = shownOf(all.rows[row]);
  context.fillStyle = theme.plot;
  context.fillRect(layout.plotLeft, top, layout.plotWidth, bottom - top);
  inPlot(context, top, bottom - top, () => {
    context.fillStyle = theme.curve;
    drawCurve(context, curve, bottom, unit);
    if (layout.strip >= 16) {
      drawPeakLine(context, Math.max(top + 0.5, bottom - curve.peak * unit + 0.5));
    }
  });
  if (row % Math.max(1, Math.ceil(12 / layout.strip)) === 0) {
    context.font = theme.font;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = theme.text;
    const label = layout.noteWidth > 80 ? peakText(all.rows[row])
        : kBytesKnown ? formatBytes(curve.peak) : String(curve.peak);
    context.fillText(label, layout.plotLeft + layout.plotWidth + 10,
                     (stripTop(row) + gap + bottom) / 2);
  }
}

function drawPeakLine(context, y) {
  context.strokeStyle = theme.dim;
  context.lineWidth = 1;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(layout.plotLeft, y);
  context.lineTo(layout.plotLeft + layout.plotWidth, y);
  context.stroke();
  context.setLineDash([]);
}

// Draws steps from pixel to pixel. If several fall on one pixel, draws the highest. Equal neighbors
// become one rectangle, because the number of rectangles decides the time to paint.
function drawCurve(context, {at, held}, bottom, unit) {
  const right = layout.plotLeft + layout.plotWidth;
  const pixelOf = (i) => (i < at.length ? Math.round(toX(at[i])) : right);
  let i = countUntil(at, state.left);
  let value = i > 0 ? held[i - 1] : 0;
  let x = layout.plotLeft;
  let from = x;
  let drawn = value;
  const until = (next, high) => {
    if (high !== drawn) {
      context.fillRect(from, bottom - drawn * unit, x - from, drawn * unit);
      from = x;
      drawn = high;
    }
    x = next;
  };
  while (x < right) {
    const next = pixelOf(i);
    if (next > x) {
      until(Math.min(next, right), value);
      continue;
    }
    let high = 0;
    while (i < at.length && pixelOf(i) <= x) {
      value = held[i++];
      high = Math.max(high, value);
    }
    until(x + 1, high);
  }
  until(right, -1);
}
