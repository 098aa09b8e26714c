// Holds the schedule as flat arrays: entries (cells that do something) in row order, and their
// tasks. If a task is listed twice, the first one counts, as in the checker.

const kKinds = "FBIWU";
const kKindNames = ["Forward", "Backward", "Input gradient", "Weight gradient", "Update"];
const [kForward, kBackward, kInput, kWeight, kUpdate, kUnknownKind] = [0, 1, 2, 3, 4, 5];
const kNone = -1;

const data = JSON.parse(document.getElementById("data").textContent);
const model = unpack(data);

function parseTask(text) {
  const parts = /^(-?\d+)(\D)(-?\d*)$/.exec(text);
  if (!parts) {
    return null;
  }
  const kind = kKinds.indexOf(parts[2]);
  return {
    kind: kind < 0 ? kUnknownKind : kind,
    stage: Number(parts[1]),
    microbatch: Number(parts[3] || 0),
  };
}

function taskKey(kind, stage, microbatch) {
  return (stage * 16777216 + microbatch) * 8 + kind;
}

function rowName(row) {
  return data.hasDriverRow && row + 1 === model.rows ? "driver" : `d${row}`;
}

function unpack(source) {
  const columns = [];
  const taskBegin = [0];
  const kind = [];
  const stage = [];
  const microbatch = [];
  const rowBegin = [0];
  for (const text of source.rows) {
    let column = 0;
    for (const cell of text ? text.split(" ") : []) {
      if (/^\d+$/.test(cell)) {
        column += Number(cell);  // that many idle cells
        continue;
      }
      for (const member of cell.split("|")) {
        const task = parseTask(member);
        kind.push(task.kind);
        stage.push(task.stage);
        microbatch.push(task.microbatch);
      }
      taskBegin.push(kind.length);
      columns.push(column++);
    }
    rowBegin.push(columns.length);
  }
  const entries = columns.length;
  const result = {
    rows: source.rows.length,
    entries,
    rowBegin: Int32Array.from(rowBegin),
    row: new Int32Array(entries),
    taskBegin: Int32Array.from(taskBegin),
    kind: Uint8Array.from(kind),
    stage: Int32Array.from(stage),
    microbatch: Int32Array.from(microbatch),
    taskEntry: new Int32Array(kind.length),
    numbers: new Map(),  // task key -> task number
    views: {},
    awaited: new Int32Array(entries).fill(kNone),  // the task number waited for
    transfer: new Float64Array(entries),
  };
  const begin = Float64Array.from(columns);
  result.views.columns = {begin, end: begin.map((c) => c + 1), length: Math.max(1, source.columns)};
  for (let row = 0; row < result.rows; ++row) {
    result.row.fill(row, rowBegin[row], rowBegin[row + 1]);
  }
  for (let entry = 0; entry < entries; ++entry) {
    for (let t = taskBegin[entry]; t < taskBegin[entry + 1]; ++t) {
      result.taskEntry[t] = entry;
      const key = taskKey(kind[t], stage[t], microbatch[t]);
      if (!result.numbers.has(key)) {
        result.numbers.set(key, t);
      }
    }
  }
  readGraph(result, source);
  if (source.times) {
    readTimes(result, source.times);
  }
  return result;
}

function readGraph(result, source) {
  result.preds = new Map();  // stage -> [[stage, whether it is owed a gradient]]
  result.succs = new Map();
  const add = (map, from, to, gradient) => {
    if (!map.has(from)) {
      map.set(from, []);
    }
    map.get(from).push([to, gradient === 1]);
  };
  for (const [producer, consumer, gradient] of source.edges) {
    add(result.preds, consumer, producer, gradient);
    add(result.succs, producer, consumer, gradient);
  }
  result.keeps = new Set(source.keeps);
  result.surplus = source.surplus;  // stage -> the letters of its backwards that do nothing
}

function readTimes(result, times) {
  const begin = new Float64Array(result.entries);
  const end = new Float64Array(result.entries);
  times.rows.forEach((row, r) => {
    const first = result.rowBegin[r];
    begin.set(row.starts, first);
    end.set(row.ends, first);
    if (row.transfers) {
      result.transfer.set(row.transfers, first);
    }
    (row.waits ? row.waits.split(" ") : []).forEach((text, i) => {
      if (text !== ".") {
        result.awaited[first + i] = findTask(parseTask(text), result);
      }
    });
  });
  result.views.time = {begin, end, length: times.makespan || 1};
}

// ---- tasks -----------------------------------------------------------------------------------

function findTask(task, from = model) {
  const number = task && from.numbers.get(taskKey(task.kind, task.stage, task.microbatch));
  return number === undefined || number === null ? kNone : number;
}

function taskName(kind, stage, microbatch) {
  return stage + (kKinds[kind] || "?") + (kind === kUpdate ? "" : microbatch);
}

function nameOf(task) {
  return taskName(model.kind[task], model.stage[task], model.microbatch[task]);
}

function entryName(entry) {
  return tasksOf(entry).map(nameOf).join("|");
}

function tasksOf(entry) {
  const tasks = [];
  for (let t = model.taskBegin[entry]; t < model.taskBegin[entry + 1]; ++t) {
    tasks.push(t);
  }
  return tasks;
}

function stageName(stage) {
  const name = data.names[stage];
  return `stage ${stage}` + (name ? ` (${name})` : "");
}

const isSurplusKind = (kind, stage) => (model.surplus[stage] || "").includes(kKinds[kind]);
const isSurplus = (task) => isSurplusKind(model.kind[task], model.stage[task]);
// Returns whether the task is the last to use what its forward has kept.
function endsBackward(task) {
  const kind = model.kind[task];
  const stage = model.stage[task];
  return !isSurplus(task) && (kind === kBackward || kind === kWeight
      || (kind === kInput && isSurplusKind(kWeight, stage)));
}

function describeTask(task) {
  const kind = kKindNames[model.kind[task]] || "Unknown kind";
  const stage = stageName(model.stage[task]);
  const nothing = isSurplus(task) ? ", does nothing" : "";
  return model.kind[task] === kUpdate
      ? `${kind} of ${stage}`
      : `${kind} of microbatch ${model.microbatch[task]}, ${stage}${nothing}`;
}

// ---- what waits for what ---------------------------------------------------------------------

// Calls visit(kind, stage, microbatch) for all tasks that must end before the task may start.
function forEachPrerequisite(task, visit) {
  const s = model.stage[task];
  const m = model.microbatch[task];
  const gradients = () => {
    for (const [c, gradient] of model.succs.get(s) || []) {
      if (gradient) {
        visit(model.numbers.has(taskKey(kInput, c, m)) ? kInput : kBackward, c, m);
      }
    }
  };
  switch (model.kind[task]) {
    case kForward:
      for (const [p] of model.preds.get(s) || []) {
        visit(kForward, p, m);
      }
      return;
    case kBackward:
    case kInput:
      visit(kForward, s, m);
      if (!isSurplus(task)) {
        gradients();
      }
      return;
    case kWeight:
      visit(kInput, s, m);
      if (isSurplusKind(kInput, s)) {
        gradients();  // it does the whole backward
      }
      return;
    case kUpdate:
      for (let b = 0; b < data.share; ++b) {
        for (const kind of [kBackward, kWeight]) {
          if (model.numbers.has(taskKey(kind, s, b))) {
            visit(kind, s, b);
          }
        }
      }
  }
}

// Calls visit(task number) for each task that directly waits for this one.
function forEachDependant(task, visit) {
  const s = model.stage[task];
  const m = model.microbatch[task];
  const kind = model.kind[task];
  const offer = (k, stage, microbatch) => {
    const number = findTask({kind: k, stage, microbatch});
    if (number !== kNone) {
      visit(number);
    }
  };
  if (kind === kForward) {
    (model.succs.get(s) || []).forEach(([c]) => offer(kForward, c, m));
    offer(kBackward, s, m);
    offer(kInput, s, m);
  }
  const replaced = kind === kBackward && model.numbers.has(taskKey(kInput, s, m));
  if ((kind === kBackward && !replaced) || kind === kInput) {
    for (const [p, gradient] of model.preds.get(s) || []) {
      if (gradient) {
        offer(kBackward, p, m);
        offer(isSurplusKind(kInput, p) ? kWeight : kInput, p, m);
      }
    }
  }
  if (kind === kInput) {
    offer(kWeight, s, m);
  }
  if (kind === kBackward || kind === kWeight) {
    offer(kUpdate, s, 0);
  }
}

// Returns the entry that decided when this one started: the one whose result came last, or the
// previous one of the row if the row waited for none. In columns, the prerequisite in the latest
// column.
function causeOf(entry, view) {
  if (view === "time") {
    if (model.awaited[entry] !== kNone) {
      return model.taskEntry[model.awaited[entry]];
    }
    return entry > model.rowBegin[model.row[entry]] ? entry - 1 : kNone;
  }
  let latest = kNone;
  for (const task of tasksOf(entry)) {
    forEachPrerequisite(task, (kind, stage, microbatch) => {
      const number = findTask({kind, stage, microbatch});
      const holder = number === kNone ? kNone : model.taskEntry[number];
      const {begin} = model.views.columns;
      if (holder !== kNone && (latest === kNone || begin[holder] > begin[latest])) {
        latest = holder;
      }
    });
  }
  return latest;
}

// Returns entries, each the cause of the next; the last is `entry`. Ends where a deadlock closes on
// itself.
function chainOf(entry, view) {
  const chain = [];
  const seen = new Set();
  for (let at = entry; at !== kNone && !seen.has(at); at = causeOf(at, view)) {
    chain.push(at);
    seen.add(at);
  }
  return chain.reverse();
}

// Returns how long the row was idle before the entry, and why; nothing if it was not.
function waitOf(entry) {
  if (model.awaited[entry] === kNone) {
    return null;
  }
  const {begin, end} = model.views.time;
  const first = entry === model.rowBegin[model.row[entry]];
  const total = begin[entry] - (first ? 0 : end[entry - 1]);
  const transfer = Math.min(model.transfer[entry], total);
  return {
    task: model.awaited[entry],
    total,
    transfer,
    cause: first ? "warmUp" : transfer >= total / 2 ? "transfer" : "dependency",
  };
}
