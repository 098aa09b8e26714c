// Below the grid: how many activations each row holds, from the forwards that made them to the
// backwards (or weight gradients) that free them.

const curves = {};  // by view: for each row the moments and the number held from then on

function curvesOf(view) {
  if (!curves[view]) {
    curves[view] = [];
    for (let row = 0; row < model.rows; ++row) {
      curves[view].push(curveOfRow(row, model.views[view]));
    }
    curves[view].peak = Math.max(1, ...curves[view].map((curve) => curve.peak));
  }
  return curves[view];
}

function curveOfRow(row, {begin, end}) {
  const at = [];
  const held = [];
  let now = 0;
  let peak = 0;
  const step = (moment, change) => {
    if (change !== 0) {
      now += change;
      at.push(moment);
      held.push(now);
      peak = Math.max(peak, now);
    }
  };
  for (let entry = model.rowBegin[row]; entry < model.rowBegin[row + 1]; ++entry) {
    let made = 0;
    let freed = 0;
    for (let task = model.taskBegin[entry]; task < model.taskBegin[entry + 1]; ++task) {
      const kind = model.kind[task];
      if (model.keeps.has(model.stage[task])) {
        made += kind === kForward ? 1 : 0;
        freed += kind === kBackward || kind === kWeight ? 1 : 0;
      }
    }
    step(begin[entry], made);
    step(end[entry], -freed);
  }
  return {at: Float64Array.from(at), held: Int32Array.from(held), peak};
}

function heldAt(row, moment) {
  const {at, held} = curvesOf(state.view)[row];
  const i = countUntil(at, moment);
  return i > 0 ? held[i - 1] : 0;
}

// How many of the ascending moments are not after `moment`.
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
  context.fillStyle = theme.plot;
  context.fillRect(layout.plotLeft, top, layout.plotWidth, bottom - top);
  inPlot(context, top, bottom - top, () => {
    context.fillStyle = theme.curve;
    drawCurve(context, all[row], bottom, unit);
    if (layout.strip >= 16) {
      drawPeakLine(context, Math.max(top + 0.5, bottom - all[row].peak * unit + 0.5));
    }
  });
  if (row % Math.max(1, Math.ceil(12 / layout.strip)) === 0) {
    context.font = theme.font;
    context.textAlign = "left";
    context.textBaseline = "middle";
    context.fillStyle = theme.text;
    const label = layout.noteWidth > 80 ? `peak ${all[row].peak}` : String(all[row].peak);
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

// Steps, from pixel to pixel; where several fall on one, the highest of them. Equal neighbours are
// one rectangle: rectangles are what painting costs.
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
