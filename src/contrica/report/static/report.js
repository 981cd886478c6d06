"use strict";
// Draws the scores of all rows on one canvas: a scatter, or a histogram of one score.
(() => {
  const data = JSON.parse(document.getElementById("points").textContent);
  const canvas = document.getElementById("plot");
  const tip = document.getElementById("tip");
  const legend = document.getElementById("legend");
  const status = document.getElementById("plot-status");
  const control = (id) => document.getElementById(id);
  const N = data.n;
  const COLOURS = 8; // --c0 to --c7 of the style sheet
  const NONE = 65535; // a row without a value
  const MARGIN = { left: 58, right: 14, top: 12, bottom: 44 };
  // cividis, which colour-blind readers see as others do
  const RAMP = ["#00224e", "#2a3f6d", "#575c6d", "#7d7c78", "#a59c74", "#d2c060", "#fee838"];
  const STEPS = 32;

  // --- data ---

  function decoded(text, Kind) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return new Kind(bytes.buffer);
  }
  const dataset = decoded(data.dataset, Uint8Array);
  const rows = decoded(data.rows, Uint32Array);
  const cache = new Map();
  function once(key, make) {
    if (!cache.has(key)) cache.set(key, make());
    return cache.get(key);
  }
  const scores = (i) => once(`score ${i}`, () => decoded(data.scores[i], Float32Array));
  const values = (i) => once(`column ${i}`, () =>
    decoded(data.columns[i].values, data.columns[i].levels.length ? Uint16Array : Float32Array));
  const nameOf = (i) => (data.names ? data.names[i] : `row ${rows[i]}`);
  const isBack = (i) => i >= data.first_background;

  function extent(numbers, from, to) {
    let low = Infinity, high = -Infinity;
    for (let i = from; i < to; i++) {
      if (numbers[i] < low) low = numbers[i];
      if (numbers[i] > high) high = numbers[i];
    }
    if (!(low <= high)) return [0, 1];
    return low < high ? [low, high] : [low - 0.5, low + 0.5];
  }

  // --- what is chosen ---

  const state = { hidden: new Set(), chosen: -1 };
  function choices() {
    return {
      x: Number(control("axis-x").value),
      y: Number(control("axis-y").value),
      column: Number(control("colour-by").value) - 1,
      back: control("show-background").checked,
    };
  }
  const isHistogram = (now) => now.y === data.scores.length;

  // The kinds that foreground rows are drawn as, the most frequent first, and the kind of each row.
  function kinds(column) {
    return once(`kinds ${column}`, () => {
      const count = data.first_background, kind = new Uint8Array(count);
      if (column < 0) return { names: [data.datasets[0]], kind, isRamp: false };
      const levels = data.columns[column].levels, own = values(column);
      if (!levels.length) {
        const [low, high] = extent(own, 0, count);
        for (let i = 0; i < count; i++) {
          const unit = (own[i] - low) / (high - low);
          kind[i] = Number.isNaN(unit) ? STEPS : Math.min(STEPS - 1, Math.floor(unit * STEPS));
        }
        return { names: Array(STEPS + 1).fill(""), kind, isRamp: true, low, high };
      }
      const sizes = new Map();
      for (let i = 0; i < count; i++) sizes.set(own[i], (sizes.get(own[i]) || 0) + 1);
      const known = [...sizes.keys()].filter((code) => code !== NONE);
      known.sort((a, b) => sizes.get(b) - sizes.get(a) || a - b);
      const shown = known.slice(0, COLOURS);
      const place = new Map(shown.map((code, i) => [code, i]));
      for (let i = 0; i < count; i++) kind[i] = place.has(own[i]) ? place.get(own[i]) : COLOURS;
      const names = shown.map((code) => levels[code]);
      const others = known.length - shown.length, unknown = sizes.has(NONE);
      const rest = [others ? `${others} others` : "", unknown ? "no value" : ""].filter(Boolean).join(", ");
      if (rest) names[COLOURS] = rest;
      return { names, kind, isRamp: false };
    });
  }

  // --- colours ---

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  function ramp(unit) {
    const place = Math.max(0, Math.min(1, unit)) * (RAMP.length - 1);
    const i = Math.min(RAMP.length - 2, Math.floor(place)), part = place - i;
    const channel = (hex, k) => parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
    const mix = (k) => Math.round(channel(RAMP[i], k) * (1 - part) + channel(RAMP[i + 1], k) * part);
    return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
  }
  function colourOf(kind, found) {
    if (found.isRamp) return kind === STEPS ? css("--other") : ramp((kind + 0.5) / STEPS);
    return css(kind < COLOURS ? `--c${kind}` : "--other");
  }

  // --- drawing ---

  let view = null; // how scores become pixels, of what is drawn now

  function scale(low, high, from, to) {
    const margin = (high - low) * 0.04;
    const a = low - margin, b = high + margin;
    const at = (value) => from + ((value - a) / (b - a)) * (to - from);
    return { at, back: (pixel) => a + ((pixel - from) / (to - from)) * (b - a), low: a, high: b };
  }

  function ticks(low, high, count) {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((each) => each >= raw);
    const found = [];
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(value);
    return found.map((value) => (Math.abs(value) < step / 1e6 ? 0 : value));
  }
  const short = (value) => String(Number(value.toPrecision(4)));

  function axes(context, width, height, x, y, labels) {
    const left = MARGIN.left, bottom = height - MARGIN.bottom;
    context.strokeStyle = css("--line");
    context.fillStyle = css("--soft");
    context.font = "12px system-ui, sans-serif";
    context.lineWidth = 1;
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const value of ticks(x.low, x.high, Math.max(3, width / 110))) {
      const at = Math.round(x.at(value)) + 0.5;
      context.beginPath(); context.moveTo(at, MARGIN.top); context.lineTo(at, bottom); context.stroke();
      context.fillText(short(value), at, bottom + 5);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of ticks(y.low, y.high, Math.max(3, height / 70))) {
      const at = Math.round(y.at(value)) + 0.5;
      context.beginPath(); context.moveTo(left, at); context.lineTo(width - MARGIN.right, at); context.stroke();
      context.fillText(short(value), left - 6, at);
    }
    context.fillStyle = css("--ink");
    context.font = "13px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillText(labels[0], (left + width - MARGIN.right) / 2, height - 12);
    context.save();
    context.translate(13, (MARGIN.top + bottom) / 2);
    context.rotate(-Math.PI / 2);
    context.fillText(labels[1], 0, 0);
    context.restore();
  }

  function draw() {
    const box = canvas.getBoundingClientRect();
    const density = window.devicePixelRatio || 1;
    const width = Math.max(200, box.width), height = Math.max(200, box.height);
    canvas.width = Math.round(width * density);
    canvas.height = Math.round(height * density);
    const context = canvas.getContext("2d");
    context.setTransform(density, 0, 0, density, 0, 0);
    context.fillStyle = css("--paper");
    context.fillRect(0, 0, width, height);
    const now = choices(), found = kinds(now.column);
    view = { width, height, now, found, index: null };
    if (isHistogram(now)) drawHistogram(context); else drawScatter(context);
    const some = data.first_background, others = N - some;
    const drawn = now.back ? `${some} foreground and ${others} background rows` : `${some} foreground rows`;
    canvas.dataset.drawn = drawn; // what was drawn, for whoever asks
    if (state.chosen < 0) status.textContent = `${drawn}.`;
  }

  const isShown = (i) => (isBack(i) ? view.now.back : !state.hidden.has(view.found.kind[i]));

  function drawScatter(context) {
    const { width, height, now, found } = view;
    const xs = scores(now.x), ys = scores(now.y), end = now.back ? N : data.first_background;
    const x = scale(...extent(xs, 0, end), MARGIN.left, width - MARGIN.right);
    const y = scale(...extent(ys, 0, end), height - MARGIN.bottom, MARGIN.top);
    Object.assign(view, { x, y, xs, ys });
    axes(context, width, height, x, y, [`pattern ${now.x + 1}`, `pattern ${now.y + 1}`]);
    const size = N > 20000 ? 2 : N > 4000 ? 3 : 4;
    const dot = (i) => context.fillRect(x.at(xs[i]) - size / 2, y.at(ys[i]) - size / 2, size, size);
    if (now.back) {
      context.globalAlpha = 0.5;
      context.fillStyle = css("--back");
      for (let i = data.first_background; i < N; i++) dot(i);
    }
    context.globalAlpha = 0.8;
    const byKind = once(`order ${now.column}`, () => {
      const lists = found.names.map(() => []);
      for (let i = 0; i < data.first_background; i++) lists[found.kind[i]].push(i);
      return lists;
    });
    for (let kind = byKind.length - 1; kind >= 0; kind--) { // the most frequent last
      if (!byKind[kind] || state.hidden.has(kind)) continue;
      context.fillStyle = colourOf(kind, found);
      for (const i of byKind[kind]) dot(i);
    }
    context.globalAlpha = 1;
    if (state.chosen >= 0 && isShown(state.chosen)) {
      context.strokeStyle = css("--ink");
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x.at(xs[state.chosen]), y.at(ys[state.chosen]), 7, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  function drawHistogram(context) {
    const { width, height, now, found } = view, xs = scores(now.x);
    const end = now.back ? N : data.first_background, [low, high] = extent(xs, 0, end);
    const bins = 60, step = (high - low) / bins;
    const whole = found.isRamp ? { names: [data.datasets[0]], isRamp: false } : found;
    const sets = whole.names.map(() => new Float64Array(bins)), back = new Float64Array(bins);
    for (let i = 0; i < end; i++) {
      const bin = Math.min(bins - 1, Math.floor((xs[i] - low) / step));
      if (isBack(i)) back[bin] += 1 / (N - data.first_background);
      else if (isShown(i)) sets[found.isRamp ? 0 : found.kind[i]][bin] += 1 / data.first_background;
    }
    const top = Math.max(...back, ...sets.map((each) => Math.max(0, ...(each || []))), 1e-9);
    const x = scale(low, high, MARGIN.left, width - MARGIN.right);
    const y = scale(0, top, height - MARGIN.bottom, MARGIN.top);
    Object.assign(view, { x, y, xs, histogram: { low, step, bins, back, sets } });
    axes(context, width, height, x, y, [`pattern ${now.x + 1}`, "share of the dataset's rows"]);
    const bars = (heights, colour, alpha) => {
      context.fillStyle = context.strokeStyle = colour;
      context.beginPath();
      context.moveTo(x.at(low), y.at(0));
      heights.forEach((value, bin) => {
        context.lineTo(x.at(low + bin * step), y.at(value));
        context.lineTo(x.at(low + (bin + 1) * step), y.at(value));
      });
      context.lineTo(x.at(high), y.at(0));
      context.globalAlpha = alpha; context.fill();
      context.globalAlpha = 1; context.lineWidth = 1.5; context.stroke();
    };
    if (now.back) bars(back, css("--back"), 0.45);
    sets.forEach((heights, kind) => {
      if (heights && !state.hidden.has(kind)) bars(heights, colourOf(kind, whole), 0.25);
    });
  }

  // --- legend ---

  function fillLegend() {
    const found = kinds(choices().column);
    legend.replaceChildren();
    const text = (words) => document.createTextNode(words);
    if (found.isRamp) {
      const bar = document.createElement("span");
      bar.className = "ramp";
      bar.style.background = `linear-gradient(90deg, ${RAMP.join(", ")})`;
      legend.append(text(short(found.low)), bar, text(short(found.high)));
      return;
    }
    found.names.forEach((name, kind) => {
      const button = document.createElement("button"), dot = document.createElement("span");
      dot.className = "dot";
      dot.style.background = colourOf(kind, found);
      button.type = "button";
      button.setAttribute("aria-pressed", String(!state.hidden.has(kind)));
      button.append(dot, text(name));
      button.addEventListener("click", () => {
        if (!state.hidden.delete(kind)) state.hidden.add(kind);
        button.setAttribute("aria-pressed", String(!state.hidden.has(kind)));
        draw();
      });
      legend.append(button);
    });
  }

  // --- rows under the pointer, and by the keyboard ---

  const CELL = 24;
  const cellOf = (px, py) => Math.floor(px / CELL) * 4096 + Math.floor(py / CELL);
  function nearest(px, py) {
    if (!view.index) { // made when first needed
      view.index = new Map();
      for (let i = 0; i < N; i++) {
        if (!isShown(i)) continue;
        const key = cellOf(view.x.at(view.xs[i]), view.y.at(view.ys[i]));
        if (!view.index.has(key)) view.index.set(key, []);
        view.index.get(key).push(i);
      }
    }
    let best = -1, least = 15 ** 2;
    for (let dx = -CELL; dx <= CELL; dx += CELL) {
      for (let dy = -CELL; dy <= CELL; dy += CELL) {
        for (const i of view.index.get(cellOf(px + dx, py + dy)) || []) {
          // foreground rows lie on top
          const far = (view.x.at(view.xs[i]) - px) ** 2 + (view.y.at(view.ys[i]) - py) ** 2 + (isBack(i) ? 9 : 0);
          if (far < least) [best, least] = [i, far];
        }
      }
    }
    return best;
  }

  function described(i) {
    const lines = [`${nameOf(i)} (${data.datasets[dataset[i]]})`];
    lines.push(`pattern ${view.now.x + 1}: ${short(view.xs[i])}, pattern ${view.now.y + 1}: ${short(view.ys[i])}`);
    data.columns.forEach((column, c) => {
      const value = values(c)[i], known = column.levels.length ? value !== NONE : !Number.isNaN(value);
      if (known) lines.push(`${column.name}: ${column.levels.length ? column.levels[value] : short(value)}`);
    });
    return lines.join("\n");
  }

  function show(px, py, words) {
    tip.hidden = !words;
    if (!words) return;
    tip.textContent = words;
    tip.style.left = `${Math.min(px + 14, view.width - tip.offsetWidth - 4)}px`;
    tip.style.top = `${Math.min(py + 14, view.height - tip.offsetHeight - 4)}px`;
  }

  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    if (view.histogram && isHistogram(view.now)) {
      const { low, step, bins, back, sets } = view.histogram, bin = Math.floor((view.x.back(px) - low) / step);
      if (bin < 0 || bin >= bins) return show(0, 0, "");
      const some = sets.reduce((sum, each) => sum + (each ? each[bin] : 0), 0);
      const percent = (part) => `${(100 * part).toFixed(1)} %`;
      return show(px, py, `${short(low + bin * step)} to ${short(low + (bin + 1) * step)}\n` +
        `foreground ${percent(some)}, background ${percent(back[bin])}`);
    }
    const i = nearest(px, py);
    show(px, py, i < 0 ? "" : described(i));
  });
  canvas.addEventListener("pointerleave", () => show(0, 0, ""));

  function choose(i) {
    state.chosen = i;
    draw();
    if (i < 0) return show(0, 0, "");
    show(view.x.at(view.xs[i]), view.y.at(view.ys[i]), described(i));
    status.textContent = described(i).replaceAll("\n", "; ");
  }
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") return choose(-1);
    if (!step || isHistogram(view.now)) return;
    event.preventDefault();
    const order = once(`sorted ${view.now.x}`, () =>
      Uint32Array.from({ length: N }, (_, i) => i).sort((a, b) => view.xs[a] - view.xs[b]));
    let place = state.chosen < 0 ? (step > 0 ? -1 : N) : order.indexOf(state.chosen);
    do place += step; while (place >= 0 && place < N && !isShown(order[place]));
    if (place >= 0 && place < N) choose(order[place]);
  });
  canvas.addEventListener("blur", () => { if (state.chosen >= 0) choose(-1); });

  // --- start ---

  for (const id of ["axis-x", "axis-y", "colour-by", "show-background"]) {
    control(id).addEventListener("change", () => {
      if (id === "colour-by") { state.hidden.clear(); fillLegend(); }
      state.chosen = -1;
      show(0, 0, "");
      draw();
    });
  }
  const redraw = () => { fillLegend(); draw(); };
  window.addEventListener("resize", draw);
  window.addEventListener("beforeprint", redraw);
  window.addEventListener("afterprint", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  window.matchMedia("print").addEventListener("change", redraw);
  const copy = control("copy");
  if (navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", () =>
      navigator.clipboard.writeText(control("methods-text").textContent).then(() => { copy.textContent = "Copied"; }));
  }
  redraw();
  document.documentElement.dataset.ready = String(Math.round(performance.now())); // ms since it was opened
})();
