// Draws a bar for each device: its peak, the parts of it, and its relation to the budget.

const kParts = [["parameters", "parameters, gradients, optimizer"], ["kept", "kept for backwards"],
                ["transient", "only while a task runs"]];
const kPartColors = ["--accent", "--dependency", "--transfer"];

const totalOf = (rank) => rank.parameters + rank.kept + rank.transient;

function rankLines(rank, number) {
  const budget = data.budget === null ? [] : [
    totalOf(rank) > data.budget ? `${formatBytes(totalOf(rank) - data.budget)} too much`
                                : `${formatBytes(data.budget - totalOf(rank))} left`];
  return [`device ${number}: ${formatBytes(totalOf(rank))}`,
          ...kParts.map(([part, name]) => `${formatBytes(rank[part])} ${name}`), ...budget];
}

function showMemory() {
  const line = data.ranks.length > 32 ? 10 : 26;
  const [left, top] = [80, 26];
  const width = Math.max(360, byId("ranks").clientWidth - 2);
  const right = width - 96;
  const height = top + line * data.ranks.length + (data.budget === null ? 8 : 24);
  const svg = drawing(width, height, "Memory of each device");
  const most = Math.max(1, data.budget ?? 0, ...data.ranks.map(totalOf));
  const x = (bytes) => left + (right - left) * bytes / most;
  for (const tick of byteTicksUpTo(most, 5)) {
    svg.append(draw("path", {class: "tick", d: `M${x(tick)} ${top - 4}V${top + line * data.ranks.length}`}),
               words(x(tick), 15, formatBytes(tick), {class: "dim", "text-anchor": "middle"}));
  }
  data.ranks.forEach((rank, r) => {
    const y = top + r * line;
    const bar = draw("g", {});
    let sum = 0;
    kParts.forEach(([part], i) => {
      bar.append(draw("rect", {x: x(sum), y: y + 3, width: x(rank[part]) - left, height: line - 6,
                               style: `fill: var(${kPartColors[i]})`}));
      sum += rank[part];
    });
    const over = data.budget !== null && sum > data.budget;
    if (over) {
      bar.append(draw("rect", {class: line > 12 ? "over" : "over thin", x: left, y: y + 3,
                               width: x(sum) - left, height: line - 6}));
    }
    if (line > 12) {
      bar.append(words(left - 8, y + line / 2 + 4, `device ${r}`, {class: "dim", "text-anchor": "end"}),
                 words(width - 14, y + line / 2 + 4, formatBytes(sum), {"text-anchor": "end"}));
    }
    svg.append(explain(bar, rankLines(rank, r)));
  });
  if (data.budget !== null) {
    svg.append(draw("path", {class: "limit", d: `M${x(data.budget)} ${top - 6}V${height - 14}`}),
               words(Math.max(x(data.budget) - 5, 90), height - 4, `budget ${formatBytes(data.budget)}`,
                     {class: "limit-text", "text-anchor": "end"}));
  }
  byId("ranks").replaceChildren(svg);
  byId("parts").replaceChildren(...kParts.map(([, name], i) => {
    const swatch = make("i", {class: "swatch"});
    swatch.style.background = `var(${kPartColors[i]})`;
    return make("span", {class: "item"}, swatch, name);
  }));
}
