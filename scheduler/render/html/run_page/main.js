// Shows the state of a run, follows it, and posts what its buttons wish.

const token = new URLSearchParams(location.search).get("token") ?? "";
const asked = new URLSearchParams(location.hash.slice(1));
let state = data.state;
let lost = false;

const seconds = (value) => value === undefined ? "" : formatSeconds(value);

function showPhase() {
  const badge = byId("phase");
  const gone = lost && state.phase !== "ended";
  badge.textContent = state.phase === "ended" ? "ended" : gone ? "no answer" : state.phase;
  badge.className = `badge ${state.phase === "running" && !gone ? "right" : "wrong"}`;
  for (const name of ["checkpoint", "pause", "stop"]) {
    byId(name).disabled = lost || state.phase === "ended";
  }
  byId("checkpoint").disabled ||= !state.takes_checkpoints;
  byId("pause").textContent = state.phase === "paused" ? "Go on" : "Pause";
  if (state.phase === "ended") {
    say(`The run has ended: ${state.end}. This is its last state.`);
  } else if (gone) {
    say("The run does not answer: it has ended, or cannot be reached. This is the last state seen.");
  }
}

function say(text) {
  byId("said").textContent = text;
  byId("said").hidden = false;
}

function showFacts() {
  const of = state.steps === 0 ? "" : ` of ${state.steps}`;
  const step = ["step", `${state.step}${of}`];
  const facts = state.curve.step.length === 0 ? [step] : [step, ["loss", formatNumber(state.loss)],
                 [`${state.counted}/s`, formatNumber(state.per_second)], ["step time", formatSeconds(state.seconds)],
                 ["idle", `${(100 * state.bubble_fraction).toFixed(1)} %`]];
  if (state.restarts > 0) {
    const steps = state.repeated_steps === 1 ? "1 step" : `${state.repeated_steps} steps`;
    facts.push(["restarts", `${state.restarts} (${steps} repeated, ${formatSeconds(state.healing_seconds)})`]);
  }
  byId("facts").replaceChildren(...facts.map(([name, value]) => make("li", {}, `${name} `, make("b", {}, value))));
}

function showWorkers() {
  const head = ["rank", "stages", "place", "forward", "backward", "update", "waiting"];
  const rows = state.ranks.map((rank) => [rank.rank, rank.stages, rank.place, seconds(rank.forward_seconds),
                                          seconds(rank.backward_seconds), seconds(rank.update_seconds),
                                          seconds(rank.waiting_seconds)]);
  byId("workers").replaceChildren(make("tr", {}, ...head.map((name) => make("th", {}, name))),
                                  ...rows.map((row) => make("tr", {}, ...row.map((value) => make("td", {}, String(value))))));
}

function showList(name, events, text) {
  const newest = events.slice(-20).reverse();
  byId(name).replaceChildren(...newest.map((event) => make("li", {}, `step ${event.step}: ${text(event)}`)));
  if (newest.length === 0) {
    byId(name).replaceChildren(make("li", {class: "note"}, "none yet"));
  }
}

function showTimeline() {
  byId("timeline-section").hidden = state.timeline === null;
  if (state.timeline !== null) {
    byId("timeline-title").textContent = `Step ${state.timeline.step}, and why its ranks waited`;
    byId("timeline").replaceChildren(timelinePicture(state.timeline));
    byId("causes").replaceChildren(...causeList(state.timeline));
  }
}

function show() {
  byId("title").textContent = `${state.model} by ${state.schedule}`;
  byId("rate-title").textContent = `${state.counted} per second`;
  showPhase();
  showFacts();
  byId("late").hidden = state.waits === "";
  byId("waits").textContent = `After ${formatSeconds(state.running_seconds)}: ${state.waits}`;
  byId("loss").replaceChildren(curve(state.curve.step, state.curve.loss, "Loss by step"));
  byId("rate").replaceChildren(curve(state.curve.step, state.curve.per_second, "Throughput by step"));
  showTimeline();
  byId("memory").replaceChildren(memoryBars(state.ranks));
  showWorkers();
  showList("checkpoints", state.checkpoints, (event) => event.file);
  showList("messages", state.messages, (event) => event.text);
}

async function post(wish, text) {
  try {
    const answer = await fetch(`/${wish}`, {method: "POST", headers: {Authorization: `Bearer ${token}`}});
    const told = await answer.json();
    sayUnlessEnded(told.accepted ? text : `Not done: ${told.why}.`);
  } catch {
    sayUnlessEnded("The run did not answer.");
  }
}

// An answer may come after the last state, which says more.
function sayUnlessEnded(text) {
  if (state.phase !== "ended") {
    say(text);
  }
}

function follow() {
  const events = new EventSource(`/events?token=${encodeURIComponent(token)}`);
  events.onmessage = (event) => {
    const news = JSON.parse(event.data);
    state = "timeline" in news ? news : {...news, timeline: state.timeline};  // left out: as before
    byId("said").hidden ||= lost;  // that it does not answer
    lost = false;
    if (state.phase === "ended") {
      events.close();
    }
    show();
  };
  events.onerror = () => {  // the browser tries again by itself
    if (state.phase !== "ended") {
      lost = true;
      showPhase();
    }
  };
}

function showTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  show();
}

byId("checkpoint").addEventListener("click", () => post("checkpoint", "A checkpoint follows after this step."));
byId("stop").addEventListener("click", () => post("stop", "The run ends after this step."));
byId("pause").addEventListener("click", () => state.phase === "paused" ? post("continue", "The run goes on.")
                                                                       : post("pause", "The run waits after this step."));
byId("theme").addEventListener("click", () => showTheme(document.documentElement.dataset.theme !== "dark"));
showTheme(asked.has("theme") ? asked.get("theme") === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
if (location.protocol.startsWith("http") && state.phase !== "ended") {
  follow();
}
document.documentElement.dataset.ready = "yes";
