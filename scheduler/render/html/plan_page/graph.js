// Draws the stage graph: producers left of consumers, branches above each other.

// Returns by stage the length of the longest path before it.
function layersOf(stages, edges) {
  const layer = Array(stages.length).fill(0);
  for (let round = 0; round < stages.length; ++round) {
    let moved = false;
    for (const [from, to] of edges) {
      if (layer[to] <= layer[from]) {
        layer[to] = layer[from] + 1;
        moved = true;
      }
    }
    if (!moved) {
      break;
    }
  }
  return layer;
}

// Groups the stages by layer; those with common neighbors are at about the same height.
function rowsOf(stages, edges, layer) {
  const layers = Array.from({length: Math.max(0, ...layer) + 1}, () => []);
  stages.forEach((_, stage) => layers[layer[stage]].push(stage));
  const height = Array(stages.length).fill(0);
  const place = () => layers.forEach((members) => members.forEach((stage, i) => {
    height[stage] = i - (members.length - 1) / 2;
  }));
  place();
  const mean = (stage) => {
    const near = edges.filter(([from, to]) => to === stage || from === stage)
                     .map(([from, to]) => height[from === stage ? to : from]);
    return near.length > 0 ? near.reduce((a, b) => a + b) / near.length : height[stage];
  };
  for (let sweep = 0; sweep < (stages.length > 200 ? 0 : 4); ++sweep) {
    for (const members of layers) {
      const wanted = new Map(members.map((stage) => [stage, mean(stage)]));
      members.sort((a, b) => wanted.get(a) - wanted.get(b) || a - b);
    }
    place();
  }
  return {layers, height};
}

function stageLines(stage, number) {
  return [
    `stage ${number}${stage.name ? `: ${stage.name}` : ""}`,
    `${counted(stage.operators, "operator")} on device ${stage.device}` +
        (stage.copies > 1 ? `, ${stage.copies} copies` : ""),
    `forward ${formatSeconds(stage.forward)}, backward ${formatSeconds(stage.backward)}`,
    `holds ${formatBytes(stage.bytes)}`,
  ];
}

function drawStage(stage, number, x, y, box) {
  const group = draw("g", {class: "stage", transform: `translate(${x} ${y})`},
                     draw("rect", {width: box.width, height: box.height, rx: 8}),
                     draw("rect", {class: "band", x: 1, y: 8, width: 5, height: box.height - 16,
                                   style: `fill: ${stageColor(number)}`}));
  const title = box.small ? String(number) : stage.name || `stage ${number}`;
  group.append(words(14, 20, shortened(title, box.letters), {class: "name"}));
  if (!box.small) {
    group.append(
        words(14, 37, `device ${stage.device}${stage.copies > 1 ? ` \u00d7${stage.copies}` : ""}, ` +
                          counted(stage.operators, "operator"), {class: "dim"}),
        words(14, 53, `F ${formatSeconds(stage.forward)}  B ${formatSeconds(stage.backward)}`, {class: "dim"}),
        words(14, 69, formatBytes(stage.bytes), {class: "dim"}));
  }
  return explain(group, stageLines(stage, number));
}

// Draws an edge from the right side of a box to the left of another. An edge that passes over
// stages curves below them.
function drawEdge([from, to, bytes], at, layer, box, bottom) {
  const [x0, y0] = [at(from).x + box.width, at(from).y + box.height / 2];
  const [x1, y1] = [at(to).x - 6, at(to).y + box.height / 2];
  const far = layer[to] - layer[from] > 1;
  const low = far && Math.abs(y1 - y0) < box.height ? bottom - 12 : null;
  const bend = low === null ? Math.max(24, (x1 - x0) / 2) : 40;
  const path = low === null
      ? `M${x0} ${y0}C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`
      : `M${x0} ${y0}C${x0 + bend} ${y0} ${x0} ${low} ${x0 + bend} ${low}` +
            `L${x1 - bend} ${low}C${x1} ${low} ${x1 - bend} ${y1} ${x1} ${y1}`;
  const most = Math.max(...data.edges.map((edge) => edge[2]), 1);
  const line = draw("path", {class: "edge", d: path, "stroke-width": 1.5 + 3 * bytes / most});
  const head = draw("path", {class: "edge-head", d: `M${x1 + 6} ${y1}l-9 -5v10z`});
  const lines = [`stage ${from} to ${to}`, `${formatBytes(bytes)} a microbatch`];
  const group = explain(draw("g", {}, line, head), lines);
  if (!box.small && bytes > 0) {
    group.append(words((x0 + x1) / 2, (low ?? (y0 + y1) / 2) - 6, formatBytes(bytes),
                       {class: "dim halo", "text-anchor": "middle"}));
  }
  return group;
}

function showGraph() {
  const {stages, edges} = data;
  const small = stages.length > 48;
  const box = {small, width: small ? 52 : 164, height: small ? 30 : 80, letters: small ? 5 : 20};
  const [stepX, stepY] = small ? [84, 44] : [250, 108];
  const layer = layersOf(stages, edges);
  const {layers, height} = rowsOf(stages, edges, layer);
  const tallest = Math.max(1, ...layers.map((members) => members.length));
  const skips = edges.some(([from, to]) => layer[to] - layer[from] > 1);
  const bottom = tallest * stepY + 20 + (skips ? 34 : 0);
  const at = (stage) => ({
    x: 16 + layer[stage] * stepX,
    y: 12 + (height[stage] + (tallest - 1) / 2) * stepY + (stepY - box.height) / 2,
  });
  const svg = drawing(32 + (layers.length - 1) * stepX + box.width, bottom,
                      `Graph of ${counted(stages.length, "stage")}`);
  svg.append(...edges.map((edge) => drawEdge(edge, at, layer, box, bottom)));
  svg.append(...stages.map((stage, s) => drawStage(stage, s, at(s).x, at(s).y, box)));
  byId("graph").replaceChildren(svg);
}
