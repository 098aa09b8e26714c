// The grid draws boxes if they are wide enough to tell apart. Otherwise each pixel gets the mean
// color of the tasks under it, which keeps a picture of a million tasks smooth.

// Narrow boxes show only the microbatch, if the largest one fits: all boxes or none.
const kMicrobatchDigits = String(Math.max(0, data.share - 1)).length;
const kPixelsPerBox = 3;  // narrower than this on average: means
const kSurplusShare = 0.25;  // share of its color with which a task that does nothing is drawn

function drawGrid() {
  const surface = surfaces.grid;
  const {context, width, height} = surface;
  context.fillStyle = theme.back;
  context.fillRect(0, 0, width, height);
  const bottom = Math.min(height, toY(model.rows));
  context.fillStyle = theme.plot;
  context.fillRect(layout.plotLeft, layout.axis, layout.plotWidth, bottom - layout.axis);
  drawAxis({context, height: bottom});
  const rows = visibleRows(height);
  inPlot(context, layout.axis, bottom - layout.axis, () => {
    for (const row of rows) {
      const first = firstAfter(row, state.left);
      const last = firstAfter(row, fromX(layout.plotLeft + layout.plotWidth));
      const shown = Math.min(last + 1, model.rowBegin[row + 1]);
      if ((shown - first) * kPixelsPerBox > layout.plotWidth) {
        drawMeans(context, row, first, shown);
        noteNarrow(kMeans);
        drawGaps(context, row, first, shown, 3);
      } else {
        drawGaps(context, row, first, shown);
        drawBoxes(context, row, first, shown);
      }
    }
    drawMarks(context);
  });
  context.save();
  context.beginPath();
  context.rect(0, layout.axis - 4, width, height - layout.axis + 4);
  context.clip();
  drawRowLabels(context, layout.row, toY, height);
  drawIdleShares(context, rows);
  drawScrollMark(context, state.top, height - layout.axis, model.rows * layout.row, layout.axis);
  context.restore();
  drawOverlay(context);
  showNarrowNote();
}

function visibleRows(height) {
  const rows = [];
  for (let row = Math.max(0, rowAt(layout.axis)); row < model.rows && toY(row) < height; ++row) {
    rows.push(row);
  }
  return rows;
}

const rowGap = () => (layout.row >= 16 ? 2 : layout.row >= 8 ? 1 : 0.5);

function boxOf(entry) {
  const {begin, end} = places();
  const x = toX(begin[entry]);
  return {
    x,
    width: Math.max(toX(end[entry]) - x, 0.5),
    y: toY(model.row[entry]) + rowGap(),
    height: layout.row - 2 * rowGap(),
  };
}

function drawBoxes(context, row, first, shown) {
  context.font = theme.font;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let entry = first; entry < shown; ++entry) {
    drawBox(context, entry);
  }
}

function drawBox(context, entry) {
  const {x, width, y, height} = boxOf(entry);
  const from = model.taskBegin[entry];
  const members = model.taskBegin[entry + 1] - from;
  const part = height / members;
  const gap = width > 4 ? 1 : 0;
  for (let i = 0; i < members; ++i) {
    const color = colorOf(from + i);
    const surplus = isSurplus(from + i);
    context.fillStyle = theme.tasks[color];
    context.globalAlpha = surplus ? kSurplusShare : 1;
    context.fillRect(x, y + i * part, width - gap, part);
    context.globalAlpha = 1;
    if (surplus && width > 6) {
      context.setLineDash([3, 2]);
      frame(context, {x, y: y + i * part, width, height: part}, theme.dim, 1);
      context.setLineDash([]);
    }
    const name = nameOf(from + i);
    const whole = name.length * 6.4 + 4 <= width;
    const tall = part >= 10 && width >= 9;
    if (tall && (whole || kMicrobatchDigits * 6.4 + 2 <= width)) {
      const text = whole ? name : String(model.microbatch[from + i]);
      context.fillStyle = surplus ? theme.dim : theme.texts[color];
      context.fillText(text, x + (width - gap) / 2, y + (i + 0.5) * part + 0.5);
      noteNarrow(whole ? kAllNamed : kMicrobatchAlone);
    } else {
      noteNarrow(kUnnamed);
    }
  }
  if (members > 1 && width > 6) {
    context.strokeStyle = theme.text;
    context.lineWidth = 0.75;
    context.strokeRect(x + 0.5, y + 0.5, width - gap - 1, height - 1);
  }
}

// Draws the idle time of the simulated schedule, hatched by its cause.
function drawGaps(context, row, first, shown, narrowest = 0.5) {
  if (state.view !== "time") {
    return;
  }
  const {begin, end, length} = places();
  const rowEnd = model.rowBegin[row + 1];
  const y = toY(row) + rowGap();
  const height = layout.row - 2 * rowGap();
  const fill = (from, to, cause) => {
    if ((to - from) * state.scale > narrowest) {
      context.fillStyle = hatch(cause);
      context.fillRect(toX(from), y, (to - from) * state.scale, height);
    }
  };
  for (let entry = first; entry < shown; ++entry) {
    const before = entry === model.rowBegin[row] ? 0 : end[entry - 1];
    const wait = (begin[entry] - before) * state.scale > narrowest && waitOf(entry);
    if (!wait) {
      continue;
    }
    if (wait.cause === "warmUp") {
      fill(before, begin[entry], "warmUp");
    } else {
      fill(before, begin[entry] - wait.transfer, "dependency");
      fill(begin[entry] - wait.transfer, begin[entry], "transfer");
    }
  }
  if (shown === rowEnd) {
    const empty = rowEnd === model.rowBegin[row];
    fill(empty ? 0 : end[rowEnd - 1], length, empty ? "warmUp" : "drain");
  }
}

// Draws one line of pixels: the share of each that tasks cover, in their colors.
let line = null;  // buffers, kept between frames
function drawMeans(context, row, first, shown) {
  const ratio = window.devicePixelRatio || 1;
  const pixels = Math.max(1, Math.round(layout.plotWidth * ratio));
  if (!line || line.pixels !== pixels) {
    const canvas = document.createElement("canvas");
    canvas.width = pixels;
    canvas.height = 1;
    line = {pixels, canvas, context: canvas.getContext("2d"), sum: new Float32Array(pixels * 4)};
    line.image = line.context.createImageData(pixels, 1);
  }
  line.sum.fill(0);
  const {begin, end} = places();
  const scale = state.scale * ratio;
  for (let entry = first; entry < shown; ++entry) {
    const from = Math.max(0, (begin[entry] - state.left) * scale);
    const to = Math.min(pixels, (end[entry] - state.left) * scale);
    for (let pixel = Math.floor(from); pixel < to; ++pixel) {
      addToLine(entry, pixel, Math.min(to, pixel + 1) - Math.max(from, pixel));
    }
  }
  const bytes = line.image.data;
  for (let at = 0; at < line.sum.length; at += 4) {
    const rest = Math.max(0, 1 - line.sum[at + 3]);
    for (let part = 0; part < 3; ++part) {
      bytes[at + part] = line.sum[at + part] + rest * theme.plotRgb[part];
    }
    bytes[at + 3] = 255;
  }
  line.context.putImageData(line.image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(line.canvas, layout.plotLeft, toY(row) + rowGap(), layout.plotWidth,
                    layout.row - 2 * rowGap());
}

function addToLine(entry, pixel, share) {
  const from = model.taskBegin[entry];
  const to = model.taskBegin[entry + 1];
  for (let task = from; task < to; ++task) {
    const weight = share / (to - from) * (isSurplus(task) ? kSurplusShare : 1);
    const rgb = theme.taskRgb[colorOf(task)];
    line.sum[pixel * 4] += weight * rgb[0];
    line.sum[pixel * 4 + 1] += weight * rgb[1];
    line.sum[pixel * 4 + 2] += weight * rgb[2];
    line.sum[pixel * 4 + 3] += weight;
  }
}

// Draws at each row's end how much of the time it was idle, as a number and by cause.
function drawIdleShares(context, rows) {
  if (!data.times) {
    return;
  }
  const left = layout.plotLeft + layout.plotWidth + 10;
  const makespan = data.times.makespan;
  const barWidth = layout.noteWidth - 62;
  context.textBaseline = "middle";
  context.font = theme.font;
  const step = Math.max(1, Math.ceil(12 / layout.row));
  for (const row of rows) {
    const y = toY(row);
    const {idle, bubbles} = data.times.rows[row];
    if (row % step === 0) {
      context.fillStyle = theme.text;
      context.textAlign = "right";
      context.fillText(formatShare(idle, makespan), left + 40, y + layout.row / 2);
    }
    const height = Math.min(8, layout.row - 2 * rowGap());
    const top = y + (layout.row - height) / 2;
    let x = left + 48;
    bubbles.forEach((bubble, i) => {
      const width = barWidth > 8 && makespan > 0 ? barWidth * bubble / makespan : 0;
      context.fillStyle = theme[kCauses[i].id];
      context.fillRect(x, top, width, height);
      x += width;
    });
    if (barWidth > 8) {
      context.fillStyle = theme.plot;
      context.fillRect(x, top, left + 48 + barWidth - x, height);
    }
  }
}

// Draws the whole length in one strip: how busy the rows are, the visible part, the places of
// violations.
let busyShare = {};
function drawOverview() {
  const {context, width, height} = surfaces.overview;
  context.fillStyle = theme.back;
  context.fillRect(0, 0, width, height);
  const buckets = Math.max(1, Math.round(layout.plotWidth));
  const shares = overviewShares(buckets);
  context.fillStyle = theme.plot;
  context.fillRect(layout.plotLeft, 0, layout.plotWidth, height);
  context.fillStyle = theme.curve;
  for (let i = 0; i < buckets; ++i) {
    const tall = (height - 2) * Math.min(1, shares[i]);
    context.fillRect(layout.plotLeft + i, height - tall, 1, tall);
  }
  const whole = layout.plotWidth / places().length;
  context.fillStyle = theme.bad;
  for (const entry of markedEntries()) {
    context.fillRect(layout.plotLeft + places().begin[entry] * whole - 1, 0, 3, height);
  }
  const x = layout.plotLeft + state.left * whole;
  const seen = layout.plotWidth * layout.plotWidth / (state.scale * places().length);
  context.strokeStyle = theme.accent;
  context.lineWidth = 2;
  context.strokeRect(x + 1, 1, Math.max(4, Math.min(seen, layout.plotWidth) - 2), height - 2);
}

function overviewShares(buckets) {
  if (busyShare.view === state.view && busyShare.buckets === buckets) {
    return busyShare.shares;
  }
  const shares = new Float32Array(buckets);
  const {begin, end, length} = places();
  const scale = buckets / length;
  for (let entry = 0; entry < model.entries; ++entry) {
    const to = Math.min(buckets, end[entry] * scale);
    for (let i = Math.floor(begin[entry] * scale); i < to; ++i) {
      shares[i] += (Math.min(to, i + 1) - Math.max(begin[entry] * scale, i)) / model.rows;
    }
  }
  busyShare = {view: state.view, buckets, shares};
  return shares;
}
