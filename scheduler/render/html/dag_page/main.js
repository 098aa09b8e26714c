// Shows the picture of a training DAG, and the details of the node that was clicked.

const data = JSON.parse(byId("data").textContent);
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const asked = new URLSearchParams(location.hash.slice(1));
const hasOperators = data.operators.some((chunks) => chunks.some((list) => list.length > 0));
const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const nodeElement = (number) => byId(`node-${number}`);

function showTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

// Returns the distinct neighbors with what leads to them: [[number, "data"], ...].
function neighbors(number, own, other) {
  const found = new Map();
  for (const edge of data.edges) {
    if (edge[own] === number && (edge[2] !== "order" || !found.has(edge[other]))) {
      found.set(edge[other], edge[2]);
    }
  }
  return Array.from(found);
}

function neighborList(title, style, list) {
  if (list.length === 0) {
    return [];
  }
  const items = list.map(([number, kind]) => {
    const button = make("button", {class: "task", "data-node": number}, data.nodes[number].name);
    button.addEventListener("click", () => choose(number, true));
    return make("li", {}, button, make("span", {class: "note"}, ` ${kind}`));
  });
  return [make("h3", {class: style}, title), make("ul", {}, ...items)];
}

function factsOf(node) {
  const facts = [["kind", node.kind]];
  const add = (name, value) => value >= 0 && facts.push([name, value]);
  add("stage", node.stage);
  add("microbatch", node.microbatch);
  add("chunk", node.chunk);
  facts.push(["ranks", node.ranks], ["stream", node.stream],
             ["issued", `number ${node.turn} of ${node.of}`]);
  if (node.idle) {
    facts.push(["work", "none: its stage does not need it"]);
  }
  return make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))]));
}

function operatorsOf(node) {
  if (!["forward", "backward", "input", "weight"].includes(node.kind)) {
    return [];
  }
  if (!hasOperators) {
    return [make("p", {class: "note"}, "The graph was made without a model; with --model its nodes have operators.")];
  }
  const list = data.operators[node.stage][node.chunk];
  const title = `${counted(list.length, "operator")} of the chunk's forward`;
  return [make("h3", {}, title), make("ol", {id: "operators"}, ...list.map((name) => make("li", {}, name)))];
}

function showSelection(number) {
  const node = data.nodes[number];
  byId("selection").replaceChildren(
      make("h2", {}, node.name), factsOf(node), ...operatorsOf(node),
      ...neighborList("waits for", "accent", neighbors(number, 1, 0)),
      ...neighborList("before", "next", neighbors(number, 0, 1)));
}

function choose(number, scroll) {
  const graph = byId("graph");
  graph.classList.add("selecting");
  for (const element of graph.querySelectorAll(".near, .chosen")) {
    element.classList.remove("near", "chosen");
  }
  nodeElement(number).classList.add("chosen");
  for (const line of graph.querySelectorAll(".line[data-from]")) {
    const [from, to] = [Number(line.dataset.from), Number(line.dataset.to)];
    if (from === number || to === number) {
      line.classList.add("near");
      nodeElement(from === number ? to : from).classList.add("near");
    }
  }
  if (scroll) {
    nodeElement(number).scrollIntoView({block: "nearest", inline: "nearest"});
  }
  showSelection(number);
  location.replace(`#node=${number}`);
}

function chooseNone() {
  const graph = byId("graph");
  graph.classList.remove("selecting");
  for (const element of graph.querySelectorAll(".near, .chosen")) {
    element.classList.remove("near", "chosen");
  }
  byId("selection").replaceChildren(make("p", {class: "note"}, "Click a node to see what it does, and what it waits for."));
}

function showPicture() {
  const picture = new DOMParser().parseFromString(data.svg, "image/svg+xml").documentElement;
  byId("graph").append(document.importNode(picture, true));
  data.nodes.forEach((node, number) => {
    const element = nodeElement(number);
    fill(element, {tabindex: 0, role: "button", "aria-label": node.name}, []);
    element.addEventListener("click", (event) => {
      event.stopPropagation();
      choose(number, false);
    });
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        choose(number, false);
      }
    });
  });
  byId("graph").addEventListener("click", chooseNone);
  document.addEventListener("keydown", (event) => event.key === "Escape" && chooseNone());
}

byId("title").textContent = data.title;
byId("facts").append(...[["stages", data.stages], ["microbatches", data.microbatches], ["nodes", data.nodes.length]]
    .map(([name, value]) => make("li", {}, `${name} `, make("b", {}, String(value)))));
byId("theme").addEventListener("click", () => showTheme(document.documentElement.dataset.theme !== "dark"));
showTheme(asked.has("theme") ? asked.get("theme") === "dark" : prefersDark.matches);
showPicture();
chooseNone();
if (data.nodes[asked.get("node")] !== undefined) {
  choose(Number(asked.get("node")), true);
}
document.documentElement.dataset.ready = "yes";
