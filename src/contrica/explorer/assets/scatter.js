// Points of the scores' plot: drawn on a canvas below plotly's axes, which pans, zooms and lassoes.
//
// Software WebGL draws 200 000 points one to three times per second, and needs to evaluate code, which the
// page's policy forbids. Writing pixels takes some milliseconds on any machine.
(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const set = (id, props) => window.dash_clientside.set_props(id, props);
  const SLOW = 22; // milliseconds of a frame beyond which fewer points are drawn while the plot moves
  let data = null, hidden = new Set(), path = null, chosen = -1, pathAxes = "", stride = 1, rest = 0, index = null;
  let plot = null, mode = "lasso", hovering = 0;

  const bytes = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0)).buffer;
  function unpacked(packed) {
    const own = { ...packed, x: new Float32Array(bytes(packed.x)), y: new Float32Array(bytes(packed.y)),
      kind: new Uint16Array(bytes(packed.kind)), row: new Uint32Array(bytes(packed.row)) };
    own.n = own.x.length;
    own.rgb = own.palette.map((each) => [1, 3, 5].map((i) => parseInt(each.slice(i, i + 2), 16)));
    own.inside = null;
    return own;
  }

  const graph = () => document.querySelector("#scatter .js-plotly-plot");
  function area() {
    const { xaxis, yaxis, _size: size } = plot._fullLayout;
    return { left: size.l, top: size.t, width: size.w, height: size.h, x: xaxis.range, y: yaxis.range };
  }

  // --- pixels ---

  function disc(size) { // how much of each pixel a dot covers
    const side = Math.ceil(size), cover = [];
    for (let v = 0; v < side; v++) for (let u = 0; u < side; u++) {
      const far = Math.hypot(u + 0.5 - side / 2, v + 0.5 - side / 2);
      cover.push(Math.max(0, Math.min(1, size / 2 + 0.5 - far)));
    }
    return { side, cover };
  }

  function draw(moving) {
    const canvas = $("dots");
    plot = graph();
    if (!canvas || !plot || !plot._fullLayout?._size) return;
    const started = performance.now(), own = area(), density = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(own.width * density)), height = Math.max(1, Math.round(own.height * density));
    if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
    Object.assign(canvas.style, { left: `${own.left}px`, top: `${own.top}px`, width: `${own.width}px`, height: `${own.height}px` });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.clearRect(0, 0, width, height);
    canvas.dataset.drawn = "0";
    if (!data || !data.n || !data.shown) return;
    const image = context.createImageData(width, height), pixels = image.data;
    const step = moving ? stride : 1, count = Math.ceil(data.n / step);
    const size = (data.n > 60000 ? 2 : data.n > 12000 ? 2.6 : data.n > 3000 ? 3.6 : 5) * density;
    const { side, cover } = disc(size), strength = data.n > 60000 ? 0.55 : data.n > 3000 ? 0.7 : 0.8;
    const ax = width / (own.x[1] - own.x[0]), ay = height / (own.y[1] - own.y[0]);
    const { x, y, kind, rgb } = data, inside = selected();
    let drawn = 0;
    for (let i = 0; i < data.n; i += step) {
      const left = Math.round((x[i] - own.x[0]) * ax - side / 2), top = Math.round((own.y[1] - y[i]) * ay - side / 2);
      if (!(left > -side && top > -side && left < width && top < height) || hidden.has(kind[i])) continue;
      const colour = rgb[kind[i]], dim = inside && !inside[i] ? 0.16 : 1;
      const back = kind[i] === 0 ? 0.7 : 1;
      drawn += 1;
      for (let v = 0, c = 0; v < side; v++) {
        const line = top + v;
        for (let u = 0; u < side; u++, c++) {
          const column = left + u;
          if (line < 0 || column < 0 || line >= height || column >= width) continue;
          const alpha = cover[c] * strength * dim * back, at = (line * width + column) * 4;
          // colours as if multiplied by their opacity, over what is there
          const before = pixels[at + 3] / 255, after = alpha + before * (1 - alpha);
          if (after <= 0) continue;
          const share = alpha / after;
          pixels[at] += (colour[0] - pixels[at]) * share;
          pixels[at + 1] += (colour[1] - pixels[at + 1]) * share;
          pixels[at + 2] += (colour[2] - pixels[at + 2]) * share;
          pixels[at + 3] = after * 255;
        }
      }
    }
    context.putImageData(image, 0, 0);
    mark(context, own, density);
    canvas.dataset.drawn = String(drawn);
    canvas.dataset.count = String(count);
    const took = performance.now() - started;
    if (moving) { // fewer of them until the plot rests
      stride = took > SLOW ? Math.min(stride * 2, 64) : took < SLOW / 3 && stride > 1 ? stride / 2 : stride;
      clearTimeout(rest);
      rest = setTimeout(() => draw(false), 140);
    }
  }

  function mark(context, own, density) {
    if (chosen < 0) return;
    context.strokeStyle = "#1c1c1e";
    context.lineWidth = 2 * density;
    context.beginPath();
    context.arc(...place(chosen, own).map((each) => each * density), 8 * density, 0, 2 * Math.PI);
    context.stroke();
  }
  const place = (i, own) => [
    ((data.x[i] - own.x[0]) / (own.x[1] - own.x[0])) * own.width,
    ((own.y[1] - data.y[i]) / (own.y[1] - own.y[0])) * own.height,
  ];

  // --- rows inside the lasso ---

  function selected() {
    if (!path) return null;
    if (!data.inside) {
      data.inside = new Uint8Array(data.n);
      for (let i = data.n_back; i < data.n; i++) data.inside[i] = within(data.x[i], data.y[i]) ? 1 : 0;
    }
    return data.inside;
  }
  function within(x, y) {
    let found = false;
    for (let i = 0, j = path.length - 1; i < path.length; j = i++) {
      const [x1, y1] = path[i], [x0, y0] = path[j];
      if ((y0 > y) !== (y1 > y) && x < ((x1 - x0) * (y - y0)) / (y1 - y0) + x0) found = !found;
    }
    return found;
  }
  function lassoed(event) {
    let corners = null;
    if (event?.lassoPoints) corners = event.lassoPoints.x.map((each, i) => [each, event.lassoPoints.y[i]]);
    else if (event?.range) {
      const [a, b] = event.range.x, [c, d] = data.histogram ? [-1e300, 1e300] : event.range.y;
      corners = [[a, c], [b, c], [b, d], [a, d]];
    }
    if (!corners || corners.length < 3) return;
    path = corners;
    pathAxes = data.axes;
    data.inside = null;
    draw(false);
    window.contricaDesk.push({ do: "lasso", path: corners });
    window.contricaDesk.openTab("tab-rows");
  }
  function cleared(tell) {
    if (!path) return;
    path = null;
    if (data) data.inside = null;
    draw(false);
    if (tell) window.contricaDesk.push({ do: "lasso", path: null });
  }

  // --- the point below the pointer, or reached by the arrow keys ---

  function nearest(px, py, own) {
    const CELL = 22, key = [own.x, own.y, own.width, own.height, [...hidden]].join();
    if (!index || index.key !== key) {
      index = { key, cells: new Map() };
      for (let i = 0; i < data.n; i++) {
        if (hidden.has(data.kind[i])) continue;
        const [x, y] = place(i, own), cell = Math.floor(x / CELL) * 4096 + Math.floor(y / CELL);
        if (!index.cells.has(cell)) index.cells.set(cell, []);
        index.cells.get(cell).push(i);
      }
    }
    let best = -1, least = 14 ** 2;
    for (let dx = -1; dx <= 1; dx++) for (let dy = -1; dy <= 1; dy++) {
      const cell = (Math.floor(px / CELL) + dx) * 4096 + Math.floor(py / CELL) + dy;
      for (const i of index.cells.get(cell) || []) {
        const [x, y] = place(i, own), far = (x - px) ** 2 + (y - py) ** 2 + (i < data.n_back ? 6 : 0);
        if (far < least) [best, least] = [i, far];
      }
    }
    return best;
  }
  function choose(i) {
    chosen = i;
    draw(false);
    if (i < 0) { $("tip").hidden = true; return; }
    set("hovered", { data: { background: i < data.n_back, row: data.row[i], at: i } });
  }
  function tell(words) { // what the server knows of the row
    const tip = $("tip");
    if (chosen < 0 || !words || words.at !== chosen) return;
    const own = area(), [x, y] = place(chosen, own);
    tip.textContent = words.text;
    tip.hidden = false;
    tip.style.left = `${Math.min(own.left + x + 14, own.left + own.width - tip.offsetWidth)}px`;
    tip.style.top = `${Math.max(0, Math.min(own.top + y + 14, own.top + own.height - tip.offsetHeight))}px`;
    $("scatter-said").textContent = words.text.replaceAll("\n", "; ");
  }
  function pointed(event) {
    clearTimeout(hovering);
    if (!data?.shown || data.histogram || event.buttons) return;
    hovering = setTimeout(() => {
      const box = $("scatter").getBoundingClientRect(), own = area();
      const px = event.clientX - box.left - own.left, py = event.clientY - box.top - own.top;
      const found = px < 0 || py < 0 || px > own.width || py > own.height ? -1 : nearest(px, py, own);
      if (found !== chosen) choose(found);
    }, 45);
  }
  function keyed(event) {
    if (!data?.n || data.histogram || event.target.id !== "stack") return;
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") { cleared(true); return choose(-1); }
    if (event.key === "0") return reset();
    if (event.key === "+" || event.key === "-") return zoom(event.key === "+" ? 0.8 : 1.25);
    if (!step) return;
    event.preventDefault();
    data.order = data.order || Uint32Array.from({ length: data.n }, (_, i) => i).sort((a, b) => data.x[a] - data.x[b]);
    let at = chosen < 0 ? (step > 0 ? -1 : data.n) : data.order.indexOf(chosen);
    do at += step; while (at >= 0 && at < data.n && hidden.has(data.kind[data.order[at]]));
    if (at >= 0 && at < data.n) choose(data.order[at]);
  }
  function zoom(by) {
    const change = {};
    for (const name of ["xaxis", "yaxis"]) {
      const [a, b] = plot._fullLayout[name].range, middle = (a + b) / 2, half = ((b - a) / 2) * by;
      change[`${name}.range`] = [middle - half, middle + half];
    }
    window.Plotly.relayout(plot, change);
  }
  function reset() {
    if (!plot || !data) return;
    window.Plotly.relayout(plot, { "xaxis.range": [...data.x_range], "yaxis.range": [...data.y_range] });
  }

  // --- what plotly and Dash tell ---

  function listen() {
    plot = graph();
    if (!plot || plot.contrica) return;
    plot.contrica = true;
    let waits = false;
    plot.on("plotly_relayouting", () => { // once in a frame
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => { waits = false; draw(true); });
    });
    plot.on("plotly_relayout", () => draw(false));
    plot.on("plotly_afterplot", () => draw(false));
    plot.on("plotly_selected", lassoed);
    plot.on("plotly_deselect", () => cleared(true));
    $("stack").addEventListener("pointermove", pointed);
    $("stack").addEventListener("pointerleave", () => { clearTimeout(hovering); if (chosen >= 0) choose(-1); });
    $("stack").addEventListener("keydown", keyed);
    $("stack").addEventListener("focusout", () => { if (chosen >= 0) choose(-1); });
  }

  window.contrica = {
    reset,
    clear: () => cleared(true),
    mode(name) {
      mode = name;
      for (const each of document.querySelectorAll("[data-mode]")) each.setAttribute("aria-pressed", String(each.dataset.mode === name));
      if (graph()) window.Plotly.relayout(graph(), { dragmode: data?.histogram && name === "lasso" ? "select" : name });
    },
    toggle(kind, button) {
      if (!hidden.delete(kind)) hidden.add(kind);
      button.setAttribute("aria-pressed", String(!hidden.has(kind)));
      index = null;
      draw(false);
    },
  };
  Object.assign(window.dash_clientside.contrica, {
    drawn(packed) {
      if (!packed) return window.dash_clientside.no_update;
      if (data?.key !== packed.key) {
        if (data?.colours !== packed.colours) hidden = new Set();
        data = unpacked(packed);
        chosen = -1;
        index = null;
      }
      if (path && pathAxes !== packed.axes) path = null; // it was drawn in other scores
      data.inside = null;
      const settle = (tries) => {
        if (!graph()?._fullLayout && tries) return setTimeout(() => settle(tries - 1), 50);
        listen();
        if (mode !== "lasso") window.contrica.mode(mode);
        draw(false);
      };
      settle(100);
      return window.dash_clientside.no_update;
    },
    told(words) {
      tell(words);
      return window.dash_clientside.no_update;
    },
    // a line of ℓ, r or the dimension that was dragged
    dragged(event) {
      for (const [key, value] of Object.entries(event || {})) {
        const found = key.match(/^shapes\[(\d)\]\.x0$/);
        if (found) window.contricaDesk.push({ do: "line", name: ["l", "r", "pcs"][found[1]], at: value });
      }
      return window.dash_clientside.no_update;
    },
  });
})();
