// Draws the last step: the cells of each row, and the cause of each wait between them.

const causeNames = {warm_up: "warm-up", dependency: "dependency", communication: "transfer",
                    overhead: "overhead", drain: "drain"};

const stageColor = (cell) => {
  const colors = data.colors[document.documentElement.dataset.theme];
  return colors[Number.parseInt(cell, 10) % colors.length];
};

function timelinePicture(timeline) {
  const [width, rowHeight, left] = [1200, 26, 84];
  const x = (seconds) => left + (width - left - 4) * seconds / (timeline.makespan_seconds || 1);
  const picture = drawing(width, rowHeight * timeline.rows.length + 18, "Timeline of the last step");
  timeline.rows.forEach((row, r) => {
    const top = r * rowHeight + 2;
    const block = (style, span, lines) =>
        explain(draw("rect", {class: style, x: x(span.start_seconds), y: top, height: rowHeight - 4,
                              width: Math.max(0.3, x(span.end_seconds) - x(span.start_seconds))}), lines);
    const lasts = (span) => `${formatSeconds(span.end_seconds - span.start_seconds)}, from ${formatSeconds(span.start_seconds)}`;
    picture.append(words(4, top + 15, row.ranks.length === 1 ? `rank ${row.ranks[0]}` : `ranks ${row.ranks[0]}\u2026`));
    for (const wait of row.waits) {
      picture.append(block(`wait ${wait.cause}`, wait, [`waits: ${causeNames[wait.cause]}`, lasts(wait)]));
    }
    for (const cell of row.cells) {
      const rect = block("cell", cell, [cell.cell, lasts(cell)]);
      rect.setAttribute("fill", stageColor(cell.cell));
      picture.append(rect);
      if (x(cell.end_seconds) - x(cell.start_seconds) > 26) {
        picture.append(words((x(cell.start_seconds) + x(cell.end_seconds)) / 2, top + 15, cell.cell,
                             {"text-anchor": "middle", "pointer-events": "none"}));
      }
    }
  });
  picture.append(words(left, rowHeight * timeline.rows.length + 13, "0 s", {class: "dim"}),
                 words(width - 4, rowHeight * timeline.rows.length + 13, formatSeconds(timeline.makespan_seconds),
                       {class: "dim", "text-anchor": "end"}));
  return picture;
}

// Returns a legend with the share of each cause in the time of all rows.
function causeList(timeline) {
  const sums = Object.fromEntries(Object.keys(causeNames).map((cause) => [cause, 0]));
  for (const wait of timeline.rows.flatMap((row) => row.waits)) {
    sums[wait.cause] += wait.end_seconds - wait.start_seconds;
  }
  const whole = timeline.makespan_seconds * timeline.rows.length || 1;
  return Object.entries(sums).map(([cause, seconds]) =>
      make("li", {}, make("span", {class: `swatch ${cause}`}),
           `${causeNames[cause]} ${(100 * seconds / whole).toFixed(1)} %`));
}
