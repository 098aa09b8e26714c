// Writes the texts beside the grid: the selected task, the violations, the use of time.

const kListed = 200;  // of a chain; further ones are counted

function taskButton(task) {
  return make("button", {class: "task", "data-task": nameOf(task)}, taskSwatch(task), nameOf(task));
}

function placeOf(entry) {
  const {begin, end} = places();
  return state.view === "time" ? `${formatTime(begin[entry])}\u2013${formatTime(end[entry])}`
                               : `${positionWord()} ${begin[entry]}`;
}

const positionWord = () => (data.form === "array" ? "column" : "position");

function definitions(pairs) {
  return make("dl", {}, ...pairs.filter(Boolean).flatMap(([term, ...what]) =>
      [make("dt", {}, term), make("dd", {}, ...what)]));
}

// ---- facts above the grid --------------------------------------------------------------------

function showFacts() {
  byId("title").textContent = data.title;
  const facts = [
    [formatCount(model.rows), model.rows === 1 ? "device" : "devices"],
    [formatCount(data.stages), data.stages === 1 ? "stage" : "stages"],
    [formatCount(data.microbatches), data.microbatches === 1 ? "microbatch" : "microbatches"],
    [formatCount(data.columns), positionWord() + (data.columns === 1 ? "" : "s")],
  ];
  if (data.times) {
    const idle = data.times.rows.reduce((sum, row) => sum + row.idle, 0);
    facts.push([formatTime(data.times.makespan), "makespan"]);
    facts.push([formatShare(idle, data.times.makespan * model.rows), "idle"]);
  }
  const items = facts.map(([value, name]) => make("li", {}, make("b", {}, value), " " + name));
  items.push(make("li", {class: "hash", title: "Hash of the list form"}, data.hash));
  const faults = data.violations.length + data.unlisted;
  items.push(make("li", {class: faults ? "badge wrong" : "badge right"}, faults === 0
      ? "valid" : `${formatCount(faults)} violation${faults === 1 ? "" : "s"}`));
  byId("facts").replaceChildren(...items);
}

// ---- the selected entry ----------------------------------------------------------------------

function showSelection() {
  const entry = state.selected;
  if (entry === kNone) {
    byId("selection").replaceChildren(
        make("p", {class: "note"}, "Click a task, or move to it with the arrow keys, to see what "
             + "held it up, back to the start, and what it holds up."));
    return;
  }
  const parts = [make("h2", {}, entryName(entry))];
  parts.push(...tasksOf(entry).map((task) => make("p", {}, describeTask(task))));
  parts.push(definitions(factsOf(entry)));
  parts.push(...tasksOf(entry).flatMap(prerequisiteList));
  parts.push(...dependantList(entry), ...chainList());
  byId("selection").replaceChildren(...parts);
}

function factsOf(entry) {
  const facts = [["Device", String(model.row[entry])]];
  if (data.times) {
    const {begin, end} = model.views.time;
    facts.push(["Start", formatTime(begin[entry])], ["End", formatTime(end[entry])],
               ["Duration", formatTime(end[entry] - begin[entry])],
               ["Waited", ...waitText(entry)]);
  }
  const word = positionWord();
  facts.push([word[0].toUpperCase() + word.slice(1), String(model.views.columns.begin[entry])]);
  return facts;
}

function waitText(entry) {
  const wait = waitOf(entry);
  if (!wait) {
    return ["not at all: ready when its device was"];
  }
  const why = kCauses.find((cause) => cause.id === wait.cause).name;
  const way = wait.transfer > 0 ? `, ${formatTime(wait.transfer)} of it on its way` : "";
  return [`${formatTime(wait.total)} for `, taskButton(wait.task), ` (${why}${way})`];
}

function prerequisiteList(task) {
  const items = [];
  forEachPrerequisite(task, (kind, stage, microbatch) => {
    const number = findTask({kind, stage, microbatch});
    const entry = number === kNone ? kNone : model.taskEntry[number];
    items.push(number === kNone
        ? make("li", {class: "wrong"}, `${taskName(kind, stage, microbatch)} is missing`)
        : make("li", {}, taskButton(number), ` device ${model.row[entry]}, ${placeOf(entry)}`));
  });
  return items.length === 0
      ? [] : [make("h3", {}, `${nameOf(task)} needs`), shortList("ul", items)];
}

function dependantList(entry) {
  const items = dependantsOf(entry).map((task) => {
    const holder = model.taskEntry[task];
    return make("li", {}, taskButton(task), ` device ${model.row[holder]}, ${placeOf(holder)}`);
  });
  return items.length === 0
      ? [] : [make("h3", {class: "next"}, "Directly waiting for it"), shortList("ul", items)];
}

function shortList(tag, items) {
  const list = make(tag, {}, ...items.slice(0, kListed));
  if (items.length > kListed) {
    list.append(make("li", {class: "note"}, `and ${formatCount(items.length - kListed)} more`));
  }
  return list;
}

function chainList() {
  const chain = state.chain;
  if (chain.length < 2) {
    return [];
  }
  const latest = chain.slice(-kListed).reverse();
  const items = latest.map((entry, i) => {
    const next = latest[i - 1];
    const why = next === undefined ? "" : linkText(entry, next);
    return make("li", {}, taskButton(model.taskBegin[entry]),
                ` device ${model.row[entry]}, ${placeOf(entry)}${why}`);
  });
  const list = make("ol", {id: "chain"}, ...items);
  if (chain.length > kListed) {
    list.append(make("li", {class: "note"}, `and ${formatCount(chain.length - kListed)} before`));
  }
  return [make("h3", {class: "accent"}, "What held it up, back to the start"), list];
}

// Returns why `next` could not start before `entry` was done.
function linkText(entry, next) {
  if (state.view === "time" && model.row[entry] === model.row[next] &&
      model.awaited[next] === kNone) {
    return ", busy";
  }
  const wait = state.view === "time" ? waitOf(next) : null;
  return wait && wait.transfer > 0 ? ", then its transfer" : "";
}

// ---- what is wrong ---------------------------------------------------------------------------

function showViolations() {
  if (data.violations.length === 0) {
    return;
  }
  const items = data.violations.map((violation, i) => {
    const place = violation.row < 0 ? "" : ` device ${violation.row}`
        + (violation.column < 0 ? "" : `, ${positionWord()} ${violation.column}`);
    const button = make("button",
        {class: "violation", "data-violation": i, "aria-pressed": i === state.violation},
        make("b", {}, violation.rule), place + (violation.task ? ` (${violation.task})` : ""),
        make("span", {}, violation.message.replaceAll("->", "\u2192")), unmarkedText(violation),
        repairText(violation));
    return make("li", {}, button);
  });
  if (data.unlisted > 0) {
    items.push(make("li", {class: "note"}, `and ${formatCount(data.unlisted)} more`));
  }
  byId("violations").replaceChildren(make("h2", {}, "Violations"), make("ol", {}, ...items));
}

function unmarkedText({unmarked}) {
  return unmarked > 0 ? make("span", {}, `${formatCount(unmarked)} of its cells are not marked.`)
                      : null;
}

function repairText({repair}) {
  return repair && make("span", {class: "repair"},
                        "The two cells in dashed frames, exchanged, repair it.");
}

// ---- where the time goes ---------------------------------------------------------------------

function showBill() {
  if (!data.times) {
    byId("bill").replaceChildren(make("p", {class: "note"},
        "Without a simulated timeline there are columns only, and no idle time to explain."));
    return;
  }
  const rows = data.times.rows;
  const whole = data.times.makespan * model.rows;
  const totals = kCauses.map((cause, i) => rows.reduce((sum, row) => sum + row.bubbles[i], 0));
  const bar = make("div", {class: "bar", "aria-hidden": "true"});
  const items = kCauses.map((cause, i) => {
    const part = make("span", {class: cause.id});
    part.style.width = formatShare(totals[i], whole);
    bar.append(part);
    return make("tr", {}, make("th", {scope: "row", title: cause.meaning},
                               make("span", {class: `swatch ${cause.id}`}), cause.name),
                make("td", {}, formatTime(totals[i])), make("td", {}, formatShare(totals[i], whole)));
  });
  byId("bill").replaceChildren(
      make("h2", {}, "Idle time by cause"), bar,
      make("table", {}, make("tbody", {}, ...items)), rankTable(rows));
}

function rankTable(rows) {
  const head = ["device", ...kCauses.map((cause) => cause.name.replace("unication", "")), "idle",
                "peak held"];
  const body = rows.slice(0, kListed).map((row, r) => make("tr", {}, make("th", {scope: "row"}, rowName(r)),
      ...row.bubbles.map((bubble) => make("td", {}, formatTime(bubble))),
      make("td", {}, formatShare(row.idle, data.times.makespan)),
      make("td", {}, String(row.peak))));
  return make("details", {}, make("summary", {}, "By device"), make("table", {class: "ranks"},
      make("thead", {}, make("tr", {}, ...head.map((name) => make("th", {scope: "col"}, name)))),
      make("tbody", {}, ...body)));
}

// ---- tooltips ---------------------------------------------------------------------------------

function entryLines(entry) {
  const lines = [entryName(entry), ...tasksOf(entry).map(describeTask), `device ${model.row[entry]}`];
  if (data.times) {
    const {begin, end} = model.views.time;
    lines.push(`${formatTime(begin[entry])} to ${formatTime(end[entry])}, lasts `
               + formatTime(end[entry] - begin[entry]));
    const wait = waitOf(entry);
    lines.push(wait ? waitLine(wait) : "did not wait: ready when its device was");
  }
  if (state.view === "columns") {
    lines.push(`${positionWord()} ${model.views.columns.begin[entry]}`);
  }
  if (marked.entries.has(entry)) {
    lines.push(...data.violations.filter((violation) => violation.cells.some(([row, column]) =>
        entryInColumn(row, column) === entry)).slice(0, 3).map((v) => `${v.rule}: ${v.message}`));
  }
  return lines;
}

function waitLine({task, total, transfer, cause}) {
  const why = kCauses.find((c) => c.id === cause).name;
  const way = transfer > 0 ? `, ${formatTime(transfer)} of it in transfer` : "";
  return `waited ${formatTime(total)} for ${nameOf(task)} (${why}${way})`;
}

// Returns what the row does at a moment at which it runs nothing.
function gapLines(row, at) {
  if (state.view !== "time" || row < 0 || row >= model.rows || at < 0 || at > places().length) {
    return [];
  }
  const next = firstAfter(row, at);
  const {begin, end, length} = places();
  const from = next === model.rowBegin[row] ? 0 : end[next - 1];
  if (next === model.rowBegin[row + 1]) {
    return [`device ${row} idle`, `${formatTime(from)} to ${formatTime(length)} (drain): nothing left to do`];
  }
  const wait = waitOf(next);
  return [`device ${row} idle`, `${formatTime(from)} to ${formatTime(begin[next])}`,
          `${entryName(next)} ${wait ? waitLine(wait) : "follows"}`];
}
