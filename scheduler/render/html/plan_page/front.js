// Draws all candidates by the bytes of their fullest device and the time of a step, and marks those
// that no other beats in both.

const kListedCandidates = 200;
let picked = data.candidates.findIndex((candidate) => candidate.chosen);

// Holds by candidate whether it is on the front.
function frontOf(candidates) {
  const order = candidates.map((_, i) => i).sort(
      (a, b) => candidates[a].bytes - candidates[b].bytes || candidates[a].seconds - candidates[b].seconds);
  const front = Array(candidates.length).fill(false);
  let fastest = Infinity;
  for (const i of order) {
    front[i] = candidates[i].seconds < fastest;
    fastest = Math.min(fastest, candidates[i].seconds);
  }
  return front;
}

const front = frontOf(data.candidates);

function candidateLines(candidate) {
  const fits = data.budget === null || candidate.bytes <= data.budget;
  return [candidate.name, `${formatSeconds(candidate.seconds)} a step`,
          `${formatBytes(candidate.bytes)} on its fullest device${fits ? "" : ", too much"}`];
}

function pick(number) {
  picked = number;
  showFront();
  showList();
}

function drawAxes(svg, x, y, frame) {
  for (const tick of byteTicksUpTo(frame.bytes, 5)) {
    svg.append(draw("path", {class: "tick", d: `M${x(tick)} ${frame.top}V${frame.bottom}`}),
               words(x(tick), frame.bottom + 16, formatBytes(tick), {class: "dim", "text-anchor": "middle"}));
  }
  for (const tick of ticksUpTo(frame.seconds, 5)) {
    svg.append(draw("path", {class: "tick", d: `M${frame.left} ${y(tick)}H${frame.right}`}),
               words(frame.left - 6, y(tick) + 4, formatSeconds(tick), {class: "dim", "text-anchor": "end"}));
  }
  svg.append(words(frame.right, frame.bottom + 32, "memory of the fullest device", {class: "dim", "text-anchor": "end"}),
             words(8, 14, "time of a step", {class: "dim"}));
  if (data.bound > 0) {
    svg.append(draw("path", {class: "bound", d: `M${frame.left} ${y(data.bound)}H${frame.right}`}),
               words(frame.left + 6, y(data.bound) + 14, `no plan is faster than ${formatSeconds(data.bound)}`,
                     {class: "bound-text"}));
  }
  if (data.budget !== null && data.budget <= frame.bytes) {
    svg.append(draw("path", {class: "limit", d: `M${x(data.budget)} ${frame.top}V${frame.bottom}`}),
               words(x(data.budget) - 6, frame.top + 10, "budget", {class: "limit-text", "text-anchor": "end"}));
  }
}

function showFront() {
  const {candidates} = data;
  const width = Math.max(360, byId("front").clientWidth - 2);
  const frame = {left: 70, right: width - 20, top: 26, bottom: 300};
  frame.bytes = 1.05 * Math.max(1, ...candidates.map((c) => c.bytes));
  frame.seconds = 1.1 * Math.max(data.bound, ...candidates.map((c) => c.seconds), 1e-9);
  const x = (bytes) => frame.left + (frame.right - frame.left) * bytes / frame.bytes;
  const y = (seconds) => frame.bottom - (frame.bottom - frame.top) * seconds / frame.seconds;
  const svg = drawing(width, frame.bottom + 42, `${counted(candidates.length, "candidate")} by memory and time`);
  drawAxes(svg, x, y, frame);
  const line = candidates.filter((_, i) => front[i]).sort((a, b) => a.bytes - b.bytes);
  if (line.length > 0) {
    const steps = line.map((c, i) => `${i === 0 ? "M" : "H"}${x(c.bytes)}${i === 0 ? " " : "V"}${y(c.seconds)}`);
    svg.append(draw("path", {class: "front-line", d: `${steps.join("")}H${frame.right}`}));
  }
  candidates.forEach((candidate, i) => {
    const kind = `${candidate.chosen ? " chosen" : front[i] ? " on-front" : ""}${i === picked ? " picked" : ""}`;
    const point = draw("circle", {class: `point${kind}`, cx: x(candidate.bytes), cy: y(candidate.seconds),
                                  r: candidate.chosen ? 7 : 5, "data-candidate": i});
    point.addEventListener("click", () => pick(i));
    svg.append(explain(point, candidateLines(candidate)));
  });
  byId("front").replaceChildren(svg);
  byId("picked").textContent = picked < 0 ? "" : candidateLines(candidates[picked]).join(", ");
}

function showList() {
  const number = (text) => make("td", {class: "number"}, text);
  const rows = data.candidates.slice(0, kListedCandidates).map((candidate, i) => {
    const button = make("button", {}, candidate.name);
    button.addEventListener("click", () => pick(i));
    const remarks = [candidate.chosen ? "chosen" : "", front[i] ? "on the front" : "",
                     data.budget !== null && candidate.bytes > data.budget ? "does not fit" : ""];
    return make("tr", i === picked ? {class: "picked"} : {}, make("td", {}, button),
                number(formatSeconds(candidate.seconds)), number(formatBytes(candidate.bytes)),
                make("td", {}, remarks.filter((text) => text).join(", ")));
  });
  const rest = data.candidates.length - rows.length;
  byId("list").replaceChildren(
      make("tr", {}, make("th", {}, "Candidate"), make("th", {class: "number"}, "Step"),
           make("th", {class: "number"}, "Fullest device"), make("th", {}, "")),
      ...rows, rest > 0 ? make("tr", {}, make("td", {class: "note"}, `and ${rest} more`)) : "");
}
