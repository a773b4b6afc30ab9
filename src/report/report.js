"use strict";
// Draws the pictures of report.html and nothing else: text, matrix and tables are plain HTML and complete without it.
// The numbers are in one JSON block; arrays are base64 of little-endian float32 (format 1) or float64 (format 2), NaN
// where nothing was measured.
const D = JSON.parse(document.getElementById("data").textContent);
const Numbers = D.format === 2 ? Float64Array : Float32Array;
const decode = text => new Numbers(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
D.learning_rates = D.learning_rates.map(decode);
for (const run of D.runs) {
  for (const curve of ["loss", "grad_norm", "eval_loss"]) if (run[curve] !== undefined) run[curve] = decode(run[curve]);
  run.learning_rate = D.learning_rates[run.learning_rate];
  for (const quantity in run.layers) run.layers[quantity] = decode(run.layers[quantity]);
}

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
const chosen = (id, otherwise) => $(id)?.value ?? otherwise;

// What the page shows; every control changes this and then the pictures.
const state = {
  hidden: new Set(),
  seed: "all",
  choice: D.choices.map(() => 0),                   // of each further axis the value that is shown
  at: 0,                                            // index of the layer step
  sub: "last",                                      // which sub-layer of a block
  gradient: chosen("#gradient-quantity"),
  update: chosen("#update-quantity"),
  heat: chosen("#heat-quantity"),
  curve: chosen("#curve", "loss"),
  scale: chosen("#loss-scale", "linear"),
};

// The last layer step at which something is there to see: where every run diverged, its last one holds no number.
state.at = Math.max(0, D.layer_steps.findLastIndex((_, at) => D.runs.some(run => {
  const rows = rowCount(run), values = run.layers[state.gradient ?? state.heat] ?? [];
  return values.subarray?.(at * rows, (at + 1) * rows).some(v => v > 0 && v < Infinity);
})));

// --- text ---------------------------------------------------------------------------------------------------------------
const escaped = text => text.replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
function fmt(v) {  // six significant digits
  if (v == null || Number.isNaN(v)) return "–";
  if (!isFinite(v) || v === 0) return String(v);
  return Math.abs(v) >= 1e-4 && Math.abs(v) < 1e6 ? String(+v.toPrecision(6)) : v.toExponential(5).replace("e+", "e");
}
const brief = v => Math.abs(v) >= 1e6 || Math.abs(v) < 1e-4 ? v.toExponential(2).replace("e+", "e") : fmt(+v.toPrecision(4));
function power(v) {
  const exponent = Math.round(Math.log10(v));
  if (exponent === 0 || exponent === 1) return String(10 ** exponent);
  return "10" + String(exponent).replace("-", "⁻").replace(/\d/g, d => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
}
const label = g => D.groups[g].label;
const key = g => `<span class="key${D.groups[g].dashed ? " dashed" : ""}" style="--c:var(--s${D.groups[g].slot})"></span>`;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = g => css("--s" + D.groups[g].slot);
const alpha = (hex, a) => hex + Math.round(a * 255).toString(16).padStart(2, "0");

// --- runs ---------------------------------------------------------------------------------------------------------------
const matches = run => run.choice.every((value, axis) => value === state.choice[axis]);
const shownGroups = () => D.groups.map((_, g) => g).filter(g => !state.hidden.has(g));
const runs = (panel, group) => D.runs.filter(run => run.panel === panel && run.group === group && matches(run) &&
  (state.seed === "all" || run.seed === +state.seed));
function rowCount(run) { return run.sublayers * D.panels[run.panel].depth + 3; }
const rowOf = (run, block) => block === 0 ? 0 : run.sublayers * block - (run.sublayers > 1 && state.sub === "first" ? 1 : 0);

// The runs whose values an axis covers: those that did not diverge, unless only such are shown.
function scaled() {
  const all = D.runs.filter(run => !state.hidden.has(run.group) && matches(run));
  const kept = all.filter(run => run.verdict !== "diverged");
  return kept.length ? kept : all;
}
// Mean (geometric on logarithmic pictures) and range over the chosen seeds.
function pool(values, log) {
  values = values.filter(v => Number.isFinite(v) && (!log || v > 0));
  if (!values.length) return { mean: null, lo: null, hi: null, n: 0 };
  const mean = values.reduce((sum, v) => sum + (log ? Math.log(v) : v), 0) / values.length;
  let lo = Infinity, hi = -Infinity;
  for (const v of values) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
  return { mean: log ? Math.exp(mean) : mean, lo, hi, n: values.length };
}
// The limits of a logarithmic axis; `tight` keeps to the values, else whole decades.
function decades(parts, tight) {
  let lo = Infinity, hi = 0;
  for (const part of parts) for (const v of part) if (v > 0 && v < Infinity) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
  if (hi === 0) return [.1, 10];
  return [tight ? lo * .8 : 10 ** Math.floor(Math.log10(lo)), Math.max(10 ** Math.ceil(Math.log10(hi)), 10 * lo)];
}

// --- pictures -----------------------------------------------------------------------------------------------------------
// x: positions of a panel · value(run, i): the number at position i · where(x): words for it · log: logarithmic axis ·
// range(): one axis for all panels, which stays while the slider moves · rest: position that is read out at rest
const overDepth = field => ({
  log: true, points: true, rest: 1, sync: "depth", xlabel: "block (0 is the embedding)", xname: "block",
  x: panel => Array.from({ length: D.panels[panel].depth + 1 }, (_, block) => block),
  value: (run, block) => run.layers[state[field]]?.[state.at * rowCount(run) + rowOf(run, block)],
  where: block => {
    const names = D.sublayers.length > 1 ? `, ${D.sublayers.at(state.sub === "first" ? 0 : -1)}` : "";
    return (block === 0 ? "embedding" : `block ${block}${names}`) + `, step ${D.layer_steps[state.at]}`;
  },
  range: () => decades(scaled().map(run => {
    const rows = rowCount(run);  // the last two rows, final norm and head, are not in the picture
    return (run.layers[state[field]] ?? []).filter((_, i) => i % rows < rows - 2);
  })),
});
const PICTURES = {
  loss: {
    sync: "step", xlabel: "step", xname: "step", spikes: true,
    rest: Math.max(0, D.steps.findLastIndex((_, i) => D.runs.some(run => Number.isFinite(run.loss[i])))),
    x: () => D.steps,
    value: (run, i) => run[state.curve]?.[i],
    where: step => `step ${step}`,
    get log() { return state.curve === "grad_norm" || (isLoss() && state.scale === "log"); },
    lines: panel => isLoss() ? D.panels[panel].lines : [],
    range() {
      const lines = D.panels.flatMap((_, panel) => this.lines(panel).map(line => line.value));
      const curves = scaled().map(run => run[state.curve] ?? []);
      if (this.log) return decades([lines, ...curves], true);
      const reference = isLoss() && lines.some(v => v > 0);
      let lo = state.curve === "learning_rate" ? 0 : Infinity, hi = -Infinity;
      for (const curve of curves) for (const v of curve) if (Number.isFinite(v)) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
      if (reference) return [Math.min(Math.min(...lines) * .8, lo), Math.max(...lines) * 1.25];
      const margin = (hi - lo) * .05 || Math.abs(hi) * .1 || 1;
      return hi < lo ? [0, 1] : [state.curve === "learning_rate" ? 0 : lo - margin, hi + margin];
    },
  },
  gradient: { ...overDepth("gradient"), labels: "left" },  // names where the lines part: at the end of the flow
  variance: { ...overDepth("variance") },
  update: { ...overDepth("update"), labels: "left" },
};
state.variance = "stream_variance";
const isLoss = () => state.curve === "loss" || state.curve === "eval_loss";

// x, then lower edge, upper edge and mean of each group.
function columns(picture, panel) {
  const x = picture.x(panel), data = [x];
  D.groups.forEach((_, g) => {
    const own = runs(panel, g), pooled = x.map((_, i) => pool(own.map(run => picture.value(run, i)), picture.log));
    data.push(pooled.map(v => v.lo), pooled.map(v => v.hi), pooled.map(v => v.mean));
  });
  return data;
}

// --- line charts --------------------------------------------------------------------------------------------------------
const FONT = "12px system-ui, sans-serif", HEIGHT = 264;
// Distances of ticks: 1, 2 and 5 times a power of ten; whole ones for steps and blocks.
const ROUND = Array.from({ length: 56 }, (_, k) => [1, 2, 5].map(m => +`${m}e${k - 28}`)).flat();
const WHOLE = ROUND.filter(step => step >= 1);
const charts = [];
let rebuilding = 0;

function labelWidth() {
  const context = document.createElement("canvas").getContext("2d");
  context.font = "600 " + FONT;
  return 12 + Math.min(180, Math.max(...D.groups.map(group => context.measureText(group.label).width)));
}
function powers(lo, hi) {
  const a = Math.ceil(Math.log10(lo) - 1e-9), b = Math.floor(Math.log10(hi) + 1e-9), by = Math.max(1, Math.ceil((b - a) / 7));
  const out = [];
  for (let e = a; e <= b; e += by) out.push(10 ** e);
  return out;
}
function axes(picture, left) {
  const axis = {
    stroke: () => css("--ink2"), font: FONT,
    grid: { stroke: () => css("--grid"), width: 1 }, ticks: { stroke: () => css("--line"), width: 1, size: 4 },
  };
  const values = picture.log ? { splits: (u, i, lo, hi) => powers(lo, hi), values: (u, v) => v.map(power), filter: (u, s) => s } :
    { incrs: ROUND, values: (u, v) => v.map(t => fmt(+t.toPrecision(6))) };
  return [
    { ...axis, size: 26, incrs: WHOLE, label: picture.xlabel, labelSize: 18, labelFont: FONT, labelGap: 0 },
    { ...axis, side: left ? 1 : 3, size: picture.log || isLoss() ? 44 : 62, ...values },
  ];
}
function lineChart(host, picture) {
  const panel = +host.dataset.panel, read = host.nextElementSibling, left = picture.labels === "left";
  const edge = { stroke: "transparent", width: 0, points: { show: false } };
  const series = D.groups.flatMap((group, g) => [{ ...edge }, { ...edge }, {
    stroke: () => colour(g), width: 2, spanGaps: true, dash: group.dashed ? [6, 3] : undefined,
    points: {  // also where a line would have no second end
      show: (chart, i) => picture.points || chart.data[i].filter(v => v != null).length === 1,
      size: 5, width: 1, fill: () => colour(g),
    },
  }]);
  const u = new uPlot({
    width: host.clientWidth, height: HEIGHT, padding: left ? [10, 0, 0, labelWidth()] : [10, labelWidth(), 0, 0],
    legend: { show: false },
    cursor: {
      y: false, drag: { x: true, y: false }, sync: { key: picture.sync },
      points: { size: 8, width: 0, fill: (chart, i) => i % 3 ? "transparent" : colour(i / 3 - 1) },
    },
    scales: {
      x: { time: false, range: (chart, lo, hi) => lo === hi ? [lo - .5, hi + .5] : [lo, hi] },
      y: { distr: picture.log ? 3 : 1, range: () => picture.range() },
    },
    axes: axes(picture, left),
    series: [{}, ...series],
    bands: D.groups.map((_, g) => ({ series: [3 * g + 2, 3 * g + 1], fill: () => alpha(colour(g), +css("--band")) })),
    hooks: { draw: [chart => decorate(chart, picture, panel)], setCursor: [chart => readOut(chart.cursor.idx)] },
  }, columns(picture, panel), host);

  // The numbers stand in a fixed block under the chart: what is read never covers what is looked at.
  function readOut(i) {
    if (!u.data[0].length) { read.textContent = "no step recorded yet"; return; }
    if (i == null) i = Math.min(picture.rest, u.data[0].length - 1);
    const cells = shownGroups().filter(g => runs(panel, g).length).map(g => {
      const own = runs(panel, g), p = pool(own.map(run => picture.value(run, i)), picture.log);
      const range = p.n > 1 ? `${fmt(p.lo)} to ${fmt(p.hi)}` : "";
      let seeds = "";
      const zero = p.n === 0 && own.some(run => picture.value(run, i) === 0);  // has no place on a logarithmic axis
      if (p.n > 0 && p.n < own.length) seeds = ` (${p.n} of ${own.length} seeds)`;
      if (p.n === 0 && !zero) seeds = own.every(run => run.verdict === "diverged") ? "diverged before" : "not measured";
      return `<div>${key(g)}${escaped(label(g))} <b>${zero ? "0" : fmt(p.mean)}</b><small>${range}${seeds}</small></div>`;
    });
    read.innerHTML = `<div>${picture.where(u.data[0][i])}</div>` + (cells.join("") || "<div>no run here</div>");
    u.at = i;
  }
  function moveTo(i) {
    i = Math.max(0, Math.min(u.data[0].length - 1, i));
    u.setCursor({ left: u.valToPos(u.data[0][i], "x"), top: 8 });
  }
  host.addEventListener("keydown", event => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
    if (by) { moveTo(u.at + by); event.preventDefault(); }
    if (event.key === "Escape") u.setScale("x", { min: u.data[0][0], max: u.data[0].at(-1) });
  }, { signal: listeners.signal });
  host.addEventListener("pointermove", event => {
    if (event.pointerType === "touch") u.setCursor({ left: event.clientX - u.over.getBoundingClientRect().left, top: 8 });
  }, { signal: listeners.signal });
  const chart = {
    host, picture, panel, u, moveTo,
    refresh() {
      D.groups.forEach((_, g) => [1, 2, 3].forEach(k => { u.series[3 * g + k].show = !state.hidden.has(g); }));
      u.setData(columns(picture, panel), true);
      readOut(u.cursor.idx);
    },
  };
  charts.push(chart);
  chart.refresh();
}

// Names that would touch form a cluster, centred on the mean of their lines.
function spread(labels, gap, lo, hi) {
  const clusters = [], half = cluster => cluster.items.length * gap / 2;
  for (const item of labels.sort((a, b) => a.y - b.y)) {
    clusters.push({ mid: item.y, items: [item] });
    for (let [a, b] = clusters.slice(-2); b && a.mid + half(a) > b.mid - half(b); [a, b] = clusters.slice(-2)) {
      a.mid = (a.mid * a.items.length + b.mid * b.items.length) / (a.items.length + b.items.length);
      a.items.push(...b.items);
      clusters.pop();
    }
  }
  for (const cluster of clusters) {
    const reach = (cluster.items.length - 1) * gap / 2, mid = Math.max(lo + reach, Math.min(hi - reach, cluster.mid));
    cluster.items.forEach((item, i) => { item.y = mid - reach + i * gap; });
  }
}
// How much of the curves a box would cover; an end of one is what a reader looks for.
function covered(u, left, top, width, height) {
  let count = 0;
  for (const g of shownGroups()) {
    let inside = false;
    u.data[0].forEach((step, i) => {
      const mean = u.data[3 * g + 3][i];
      if (mean == null) return;
      const x = u.valToPos(step, "x", true), y = u.valToPos(mean, "y", true);
      inside = x >= left - 8 * devicePixelRatio && x <= left + width + 8 * devicePixelRatio && y >= top && y <= top + height;
      if (inside) ++count;
    });
    if (inside) count += 1000;
  }
  return count;
}
// Reference lines, names at the line ends, what lies off the scale, spike marks.
function decorate(u, picture, panel) {
  const c = u.ctx, dpr = devicePixelRatio, { left, top, width, height } = u.bbox, atLeft = picture.labels === "left";
  const halo = (text, x, y, ink, most) => {
    c.lineJoin = "round"; c.lineWidth = 4 * dpr; c.strokeStyle = css("--bg"); c.strokeText(text, x, y, most);
    c.fillStyle = ink; c.fillText(text, x, y, most);
  };
  c.save();
  c.textBaseline = "middle";
  c.font = `${12 * dpr}px system-ui, sans-serif`;
  for (const line of picture.lines?.(panel) ?? []) {
    const y = u.valToPos(line.value, "y", true);
    if (!(y >= top && y <= top + height)) continue;
    c.setLineDash([5 * dpr, 4 * dpr]); c.lineWidth = dpr; c.strokeStyle = css("--ink2");
    c.beginPath(); c.moveTo(left, y); c.lineTo(left + width, y); c.stroke(); c.setLineDash([]);
    const text = `${line.name} ${line.value.toFixed(3)}`, wide = c.measureText(text).width, tall = 16 * dpr;
    let best = null;  // the place where it covers the least of the curves
    for (const right of [line.above, !line.above]) for (const above of [line.above, !line.above]) {
      const x = right ? left + width - 6 * dpr - wide : left + 6 * dpr, middle = y + (above ? -11 : 11) * dpr;
      if (middle - tall / 2 < top || middle + tall / 2 > top + height) continue;
      const cost = covered(u, x, middle - tall / 2, wide, tall);
      if (!best || cost < best.cost) best = { x, middle, cost };
    }
    c.textAlign = "left";
    if (best) halo(text, best.x, best.middle, css("--ink2"));
  }
  c.font = `600 ${12 * dpr}px system-ui, sans-serif`;
  const names = [], off = [];
  for (const g of shownGroups()) {
    const x = u.data[0], mean = u.data[3 * g + 3];
    const inside = x.map((_, i) => i).filter(i => mean[i] != null && x[i] >= u.scales.x.min && x[i] <= u.scales.x.max);
    const i = atLeft ? inside[0] : inside.at(-1);
    if (i == null) continue;
    const y = u.valToPos(mean[i], "y", true);
    if (y < top - 1 || y > top + height + 1) {
      off.push(`${y < top ? "↑" : "↓"} ${label(g)} ${brief(mean[i])}, ${picture.xname} ${x[i]}`);
    } else names.push({ g, y });
  }
  spread(names, 14 * dpr, top, top + height);
  c.textAlign = atLeft ? "right" : "left";
  for (const { g, y } of names) halo(label(g), atLeft ? left - 8 * dpr : left + width + 8 * dpr, y, colour(g), 180 * dpr);
  u.root.closest(".panel").querySelector(".off").textContent = off.length ? "off scale " + off.join(" ") : "";
  if (picture.spikes) D.spikes.forEach((spike, i) => {
    if (spike.panel !== panel || spike.series !== state.curve || spike.peak === null || state.hidden.has(spike.group)) return;
    if (!matches(spike) || (state.seed !== "all" && +state.seed !== spike.seed)) return;
    const x = u.valToPos(spike.peak_step, "x", true), y = u.valToPos(spike.peak, "y", true);
    if (!(y >= top && y <= top + height && x >= left && x <= left + width)) return;
    c.fillStyle = colour(spike.group);
    c.beginPath(); c.moveTo(x, y - 3 * dpr); c.lineTo(x - 5 * dpr, y - 12 * dpr); c.lineTo(x + 5 * dpr, y - 12 * dpr); c.fill();
    c.textAlign = "center";
    halo(`spike ${i + 1}`, Math.max(left + 24 * dpr, Math.min(left + width - 24 * dpr, x)), Math.max(8 * dpr, y - 20 * dpr), colour(spike.group));
  });
  c.restore();
}

// --- heat maps ----------------------------------------------------------------------------------------------------------
const VIRIDIS = ["440154", "482878", "3e4a89", "31688e", "26828e", "1f9e89", "35b779", "6dcd59", "b4de2c", "fde725"]
  .map(hex => [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16)));
function ramp(t) {
  t = Math.max(0, Math.min(1, t)) * 9;
  const i = Math.min(8, Math.floor(t));
  return VIRIDIS[i].map((v, k) => Math.round(v + (VIRIDIS[i + 1][k] - v) * (t - i)));
}
const heats = [];
let heatRange = [1e-6, 1];
let paper = false;  // while printing

function heatMap(canvas) {
  const panel = +canvas.dataset.panel, group = +canvas.dataset.group, depth = D.panels[panel].depth;
  const sample = D.runs.find(run => run.panel === panel && run.group === group), perBlock = sample?.sublayers ?? 1;
  const rows = perBlock * depth + 3, cols = D.layer_steps.length, left = 34, bottom = 18, top = 2;
  const rowHeight = rows > 400 ? 1 : Math.max(2, Math.min(6, Math.floor(216 / rows)));
  const plotHeight = rows * rowHeight;
  const rowTop = row => top + (rows - 1 - row) * rowHeight;
  const rowName = row => {
    if (row === 0) return "embedding";
    if (row === rows - 1) return "head";
    if (row === rows - 2) return "final norm";
    const sublayer = perBlock > 1 ? `, ${D.sublayers.at(row % 2 ? 0 : -1)}` : "";
    return `block ${Math.ceil(row / perBlock)}${sublayer}`;
  };
  let cells = [], pick = null;
  canvas.style.height = plotHeight + bottom + top + "px";
  const heat = {
    canvas, panel, group,
    load() {
      const own = runs(panel, group);
      cells = Array.from({ length: cols * rows }, (_, i) => pool(own.map(run => run.layers[state.heat]?.[i]), true));
    },
    values: () => cells.map(cell => cell.mean),
    draw() {
      const dpr = devicePixelRatio, width = paper ? 124 : canvas.clientWidth, c = canvas.getContext("2d");
      if (!width || !cols) return;
      canvas.width = width * dpr; canvas.height = (plotHeight + bottom + top) * dpr; c.scale(dpr, dpr);
      const [lo, hi] = heatRange.map(Math.log), cw = (width - left) / cols;
      c.fillStyle = css("--grid"); c.fillRect(left, top, width - left, plotHeight);
      c.fillStyle = css("--bg");  // a row that no step has: a sub-layer that this group lacks
      for (let row = 0; row < rows; row++) {
        let missing = true;
        for (let s = 0; s < cols && missing; s++) missing = cells[s * rows + row].n === 0;
        if (missing) c.fillRect(left, rowTop(row), width - left, rowHeight);
      }
      for (let s = 0; s < cols; s++) for (let row = 0; row < rows; row++) {
        const v = cells[s * rows + row].mean;
        if (v == null) continue;
        c.fillStyle = `rgb(${ramp((Math.log(v) - lo) / (hi - lo))})`;
        c.fillRect(left + s * cw, rowTop(row), Math.ceil(cw * dpr) / dpr, rowHeight);
      }
      c.fillStyle = css("--ink2"); c.font = "11px system-ui, sans-serif"; c.textBaseline = "middle"; c.textAlign = "right";
      const marks = [["emb", 0], ["head", rows - 1]];
      if (depth > 1) marks.push([String(Math.round(depth / 2)), perBlock * Math.round(depth / 2)]);
      for (const [text, row] of marks)
        c.fillText(text, left - 4, Math.max(top + 5, Math.min(top + plotHeight - 5, rowTop(row) + rowHeight / 2)));
      c.textBaseline = "top"; c.textAlign = "left";
      if (cols > 1) c.fillText(String(D.layer_steps[0]), left, top + plotHeight + 4);
      c.textAlign = "right"; c.fillText("step " + D.layer_steps[cols - 1], width, top + plotHeight + 4);
      c.lineWidth = 1.5; c.strokeStyle = css("--ink");
      c.beginPath(); c.moveTo(left + state.at * cw, top + plotHeight + 2); c.lineTo(left + (state.at + 1) * cw, top + plotHeight + 2); c.stroke();
      if (pick) for (const [ink, thick] of [["#fff", 3], ["#000", 1]]) {
        c.strokeStyle = ink; c.lineWidth = thick; c.strokeRect(left + pick[0] * cw, rowTop(pick[1]), cw, rowHeight);
      }
    },
    choose(s, row) {
      pick = [Math.max(0, Math.min(cols - 1, s)), Math.max(0, Math.min(rows - 1, row))];
      heat.draw();
      const p = cells[pick[0] * rows + pick[1]];
      $("#heatread").innerHTML = `${key(group)}<b>${escaped(label(group))}</b>, ${escaped(D.panels[panel].label)}, ` +
        `${rowName(pick[1])}, step ${D.layer_steps[pick[0]]}: <b>${p.n ? fmt(p.mean) : "not measured"}</b>` +
        (p.n > 1 ? ` <small class="note">${fmt(p.lo)} to ${fmt(p.hi)} over ${p.n} seeds</small>` : "");
    },
    clear() { pick = null; heat.draw(); },
  };
  const follow = event => {
    const box = canvas.getBoundingClientRect();
    heat.choose(Math.floor((event.clientX - box.left - left) / (box.width - left) * cols),
      rows - 1 - Math.floor((event.clientY - box.top - top) / rowHeight));
  };
  canvas.addEventListener("pointermove", follow);
  canvas.addEventListener("pointerdown", follow);
  canvas.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") heat.clear(); });
  canvas.addEventListener("click", () => { if (pick) setStep(pick[0]); });
  canvas.addEventListener("keydown", event => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (by) {
      const [s, row] = pick ?? [state.at, 1 - by[1]];
      heat.choose(s + by[0], row + by[1]);
      event.preventDefault();
    }
    if (event.key === "Enter" && pick) setStep(pick[0]);
  });
  canvas.addEventListener("blur", heat.clear);
  heats.push(heat);
}
function drawHeats() {
  if (!$("#scale")) return;
  const visible = heats.filter(heat => !state.hidden.has(heat.group) && runs(heat.panel, heat.group).length);
  for (const heat of heats) heat.canvas.closest(".tile").hidden = !visible.includes(heat);
  visible.forEach(heat => heat.load());
  const within = scaled();
  heatRange = decades(visible.filter(heat => within.some(run => run.panel === heat.panel && run.group === heat.group)).map(heat => heat.values()));
  visible.forEach(heat => heat.draw());
  const canvas = $("#scale"), c = canvas.getContext("2d"), dpr = devicePixelRatio, width = canvas.clientWidth;
  canvas.width = width * dpr; canvas.height = 34 * dpr; c.scale(dpr, dpr);
  for (let x = 20; x < width - 20; x++) { c.fillStyle = `rgb(${ramp((x - 20) / (width - 40))})`; c.fillRect(x, 0, 1.5, 12); }
  c.fillStyle = css("--ink2"); c.font = FONT; c.textAlign = "center"; c.textBaseline = "top";
  const [lo, hi] = heatRange.map(Math.log10);
  for (const v of powers(...heatRange)) {
    const x = 20 + (Math.log10(v) - lo) / (hi - lo) * (width - 40);
    c.fillRect(x - .5, 12, 1, 4); c.fillText(power(v), x, 18);
  }
  $("#heattitle").textContent = $("#heat-quantity").selectedOptions[0].dataset.title;
}

// --- controls -----------------------------------------------------------------------------------------------------------
const depthPictures = ["gradient", "variance", "update"];
function refresh(ids = Object.keys(PICTURES)) {
  for (const chart of charts) if (ids.some(id => PICTURES[id] === chart.picture)) chart.refresh();
}
function all() { refresh(); drawHeats(); }
function setStep(i) {
  state.at = i;
  for (const slider of $$("input.step")) { slider.value = i; slider.nextElementSibling.value = D.layer_steps[i]; }
  refresh(depthPictures);
  for (const heat of heats) if (!heat.canvas.closest(".tile").hidden) heat.draw();
}
function setSeed(seed) {
  state.seed = String(seed);
  if ($("#seed")) $("#seed").value = state.seed;
  all();
}
function setChoice(choice) {
  state.choice = choice;
  for (const select of $$("select.choice")) select.value = choice[+select.dataset.axis];
  for (const setting of $$(".setting")) setting.textContent = D.choices.map((axis, i) => `${axis.label} ${axis.values[choice[i]]}`).join(", ");
  all();
}
function setCurve(curve) {
  if (state.curve === curve || !$("#curve")) return;
  state.curve = $("#curve").value = curve;
  const { title, what } = $("#curve").selectedOptions[0].dataset;
  $("#losstitle").textContent = title;
  $("#loss-scale").disabled = !isLoss();
  for (const node of $$("#loss .what")) node.textContent = what;
  build();
}
let listeners = new AbortController();
// Makes all line charts anew: the kind of an axis cannot be changed in a chart that stands.
function build() {
  for (const chart of charts.splice(0)) chart.u.destroy();
  listeners.abort();
  listeners = new AbortController();
  for (const host of $$(".plot")) lineChart(host, PICTURES[host.dataset.picture]);
}
function theme(choice) {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = choice !== "auto" ? choice : dark ? "dark" : "light";
}
const on = (selector, event, act) => { for (const node of $$(selector)) node.addEventListener(event, e => act(node, e)); };

on("input.step", "input", slider => setStep(+slider.value));
on(".chip", "click", (chip, event) => {
  const g = +chip.dataset.group;
  if (event.shiftKey) state.hidden = new Set(D.groups.map((_, i) => i).filter(i => i !== g));
  else if (!state.hidden.delete(g)) state.hidden.add(g);
  for (const other of $$(".chip")) other.setAttribute("aria-pressed", !state.hidden.has(+other.dataset.group));
  all();
});
on("#seed", "change", select => setSeed(select.value));
on("select.choice", "change", select => setChoice(state.choice.map((v, axis) => axis === +select.dataset.axis ? +select.value : v)));
on("#theme", "change", select => { theme(select.value); all(); });
on(".sub", "change", select => {
  state.sub = select.value;
  for (const other of $$(".sub")) other.value = select.value;
  refresh(depthPictures);
});
for (const id of ["gradient", "update"]) on(`#${id}-quantity`, "change", select => {
  state[id] = select.value;
  for (const what of $$(`#${id} .what`)) what.textContent = select.selectedOptions[0].textContent;
  refresh([id]);
});
on("#heat-quantity", "change", select => { state.heat = select.value; drawHeats(); });
on("#loss-scale", "change", select => { state.scale = select.value; build(); });
on("#curve", "change", select => setCurve(select.value));
on("#copy", "click", button => navigator.clipboard?.writeText($(".command code").textContent)
  .then(() => { button.textContent = "copied"; }));
on("a[data-choice]", "click", link => { if (link.dataset.choice) setChoice(link.dataset.choice.split(" ").map(Number)); });
on("a[data-spike]", "click", link => {
  const spike = D.spikes[+link.dataset.spike];
  setChoice(spike.choice);
  setCurve(spike.series);
  setSeed(spike.seed);
  if (state.hidden.has(spike.group)) $(`.chip[data-group="${spike.group}"]`).click();
  const chart = charts.find(c => c.picture === PICTURES.loss && c.panel === spike.panel);
  if (!chart) return;
  chart.host.focus({ preventScroll: true });
  requestAnimationFrame(() => chart.moveTo(D.steps.indexOf(spike.peak_step)));  // after uPlot has laid the chart out
});
on("th button", "click", button => {
  const th = button.parentElement, body = th.closest("table").tBodies[0], up = th.getAttribute("aria-sort") !== "ascending";
  for (const other of th.parentElement.children) other.removeAttribute("aria-sort");
  th.setAttribute("aria-sort", up ? "ascending" : "descending");
  const value = row => row.cells[th.cellIndex].dataset.v ?? row.cells[th.cellIndex].textContent;
  const compare = (p, q) => {
    const a = value(p), b = value(q);
    if (a === "" || b === "") return (a === "") - (b === "");  // nothing to compare stands last, either way
    return (up ? 1 : -1) * (!isNaN(a) && !isNaN(b) ? a - b : a.localeCompare(b));
  };
  body.append(...[...body.rows].sort(compare));
});
let width = innerWidth;
function fit() {
  for (const chart of charts) chart.u.setSize({ width: chart.host.clientWidth, height: HEIGHT });
  drawHeats();
}
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; fit(); } });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { theme(chosen("#theme", "auto")); all(); });
// Paper: light, everything open, and pictures drawn again at the width of half an A4 page.
addEventListener("beforeprint", () => {
  paper = true;
  document.documentElement.dataset.theme = "light";
  for (const details of $$("details")) details.open = true;
  for (const chart of charts) chart.u.setSize({ width: 330, height: 220 });
  drawHeats();
});
addEventListener("afterprint", () => { paper = false; theme(chosen("#theme", "auto")); fit(); });

for (const slider of $$("input.step")) slider.max = D.layer_steps.length - 1;
document.documentElement.style.setProperty("--read", Math.max(172, labelWidth() + 90) + "px");
build();
$$(".tile canvas").forEach(heatMap);
setChoice(state.choice);  // draws all
if (D.layer_steps.length) setStep(state.at);
document.body.dataset.ready = "1";
