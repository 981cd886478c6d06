// Edits of the page: sent one at a time, in order, each until it is answered; and what needs no server.
(() => {
  "use strict";
  const root = document.documentElement;
  const tab = Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join("");
  const queue = [];
  let sending = null, number = 0, known = null, timer = 0;
  const FIT = ["solver", "scale", "projection", "n_foreground", "n_background", "dimension"];
  const set = (id, props) => window.dash_clientside.set_props(id, props);
  const $ = (id) => document.getElementById(id);

  function push(edit) {
    queue.push({ ...edit, tab, id: ++number });
    next();
  }
  function next() {
    busy();
    if (!sending) root.removeAttribute("data-refit");
    if (sending || !queue.length) return;
    sending = queue.shift();
    const refits = sending.do === "line" || sending.do === "undo" || sending.do === "redo" ||
      (sending.do === "set" && FIT.includes(sending.field));
    root.toggleAttribute("data-refit", refits);
    set("edit", { data: sending });
  }

  // busy until nothing is sent or drawn, for a moment: one answer asks for the next
  let asked = 0, calm = 0;
  function busy() {
    clearTimeout(calm);
    if (sending || queue.length || asked) return root.setAttribute("data-busy", "");
    calm = setTimeout(() => root.removeAttribute("data-busy"), 80);
  }

  // --- the server is gone, or back ---

  const fetched = window.fetch.bind(window);
  const isQuiet = (body) => typeof body === "string" && /"output":"[^"]*(told\.data|jobs\.children)/.test(body);
  window.fetch = async (...args) => {
    const counts = !isQuiet(args[1]?.body);
    asked += counts;
    busy();
    try {
      const answer = await fetched(...args);
      offline(answer.status === 401 || answer.status === 403 ? "closed" : "");
      return answer;
    } catch (error) {
      offline("gone");
      throw error;
    } finally {
      asked -= counts;
      busy();
    }
  };
  function offline(how) {
    const box = $("offline");
    if (!box || box.dataset.how === how) return;
    box.dataset.how = how;
    box.hidden = !how;
    box.querySelector("p").textContent = how === "closed"
      ? "This address is of another run of the explorer. Open the one that the terminal shows."
      : "The explorer does not answer: it was stopped, or the machine sleeps. Names and notes that were saved are kept. Start it again with the same command.";
    clearInterval(timer);
    if (how === "gone") timer = setInterval(again, 3000);
  }
  function again() { // the same edit, with the same number: it is made once
    if (!sending) return;
    set("edit", { data: { ...sending, again: Date.now() } });
  }

  // --- HTML, which the server has escaped, into its place ---

  // What a reader is typing, has opened and has under the keys stays so.
  const shown = new WeakMap();
  let filling = false;
  function fill(place, content) {
    if (shown.get(place) === content) return;
    shown.set(place, content);
    const active = document.activeElement, mine = place.contains(active) && active !== place ? active : null;
    const key = mine?.dataset.key, typed = mine?.dataset.say && mine.value !== mine.defaultValue ? mine.value : null;
    const ends = typed === null ? null : [mine.selectionStart, mine.selectionEnd];
    const open = [...place.querySelectorAll("details[open]")].map((each) => each.querySelector("summary").textContent);
    filling = true;
    place.innerHTML = content;
    filling = false;
    for (const each of place.querySelectorAll("details")) each.open = open.includes(each.querySelector("summary").textContent);
    const again = key && place.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!again) return;
    if (typed !== null) again.value = typed;
    again.focus({ preventScroll: true });
    if (ends) again.setSelectionRange(...ends);
  }
  function fillCards(place, cards) { // each in a place of its own, in the order of the page
    const known = new Map([...place.children].map((each) => [each.dataset.card, each]));
    cards.forEach(([number, content], i) => {
      const own = known.get(number) || document.createElement("div");
      known.delete(number);
      own.dataset.card = number;
      own.className = "place";
      fill(own, content);
      if (place.children[i] !== own) place.insertBefore(own, place.children[i] || null);
    });
    filling = true;
    for (const left of known.values()) left.remove();
    filling = false;
  }

  // --- what Dash calls ---

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.contrica = {
    start(_ready) {
      for (const each of document.querySelectorAll(".content")) {
        const inside = document.createElement("template");
        inside.innerHTML = each.textContent;
        each.parentElement.append(inside.content);
      }
      push({ do: "open", text: location.hash.slice(1) || location.search.slice(1) });
      return window.dash_clientside.no_update;
    },
    answered(state) {
      if (!state) return window.dash_clientside.no_update;
      known = state;
      $("undo").disabled = !state.undo;
      $("redo").disabled = !state.redo;
      const address = state.address ? `#${state.address}` : location.pathname;
      if (location.search || location.hash !== (state.address ? address : "")) history.replaceState(null, "", state.address ? location.pathname + address : address);
      if (sending && state.tab === tab && state.id >= sending.id) sending = null;
      root.dataset.ready = "";
      next();
      return window.dash_clientside.no_update;
    },
    filled() {
      for (const { prop_id: id, value } of window.dash_clientside.callback_context.triggered) {
        const place = $(id.split(".")[0].slice("html-".length));
        if (!place || value === undefined || value === null) continue;
        if (Array.isArray(value)) fillCards(place, value);
        else fill(place, value);
      }
      return window.dash_clientside.no_update;
    },
    // a field of Dash that a reader changed; what the server set itself is known already
    changed(...args) {
      const inputs = window.dash_clientside.callback_context.triggered;
      for (const { prop_id: id, value } of inputs) {
        const name = id.split(".")[0];
        if (!known || value === undefined || value === null || value === "") continue;
        const field = FIELDS[name];
        if (!field || known.values[field] === value) continue;
        push({ do: "set", field, value });
      }
      return window.dash_clientside.no_update;
    },
  };
  const FIELDS = {
    "axis-x": "x", "axis-y": "y", colour: "colour", solver: "solver", scale: "scale", projection: "projection",
    "knob-l": "n_foreground", "knob-r": "n_background", "knob-pcs": "dimension",
  };

  // --- what elements say of themselves: data-edit is made when they are clicked, data-say when changed ---

  document.addEventListener("click", (event) => {
    const at = event.target.closest?.("[data-edit], [data-act], [data-export], [role=tab], .help");
    closeHelp(at);
    const menu = document.querySelector(".menu[open]");
    if (menu && !menu.contains(event.target)) menu.removeAttribute("open");
    if (!at || at.disabled) return;
    if (at.dataset.tab) window.contricaDesk.openTab(at.dataset.tab);
    if (at.dataset.edit) push(JSON.parse(at.dataset.edit));
    else if (at.dataset.export) {
      menu?.removeAttribute("open");
      set("export", { data: { kind: at.dataset.export, id: ++number } });
    } else if (at.dataset.act) acts[at.dataset.act]?.(at);
    else if (at.classList.contains("help")) showHelp(at);
    else if (at.getAttribute("role") === "tab") openTab(at);
  });
  document.addEventListener("focusout", ({ target }) => {
    if (!filling) say(target, false);
  });
  // what is being typed is kept when the typing pauses, too: a page can end without a field being left
  let pause = 0;
  document.addEventListener("input", ({ target }) => {
    if (!target.dataset?.say) return;
    clearTimeout(pause);
    pause = setTimeout(() => say(document.activeElement, true), 800);
  });
  function say(field, typing) {
    if (!field?.dataset?.say) return;
    clearTimeout(pause);
    if (field.value !== field.defaultValue) push({ do: "say", ...JSON.parse(field.dataset.say), value: field.value, typing });
  }
  const acts = {
    dismiss: (at) => { shown.delete($("notices")); at.closest(".notice").remove(); },
    clear: () => window.contrica.clear(),
    mode: (at) => window.contrica.mode(at.dataset.mode),
    fit: () => window.contrica.reset(),
    kind: (at) => window.contrica.toggle(Number(at.dataset.kind), at),
  };

  // --- tabs ---

  function openTab(at) {
    for (const each of at.parentElement.children) {
      const on = each === at;
      each.setAttribute("aria-selected", String(on));
      each.tabIndex = on ? 0 : -1;
      $(each.getAttribute("aria-controls")).hidden = !on;
    }
    for (const plot of $(at.getAttribute("aria-controls")).querySelectorAll(".js-plotly-plot")) {
      if (plot._fullLayout) window.Plotly.Plots.resize(plot);
    }
  }
  window.contricaDesk = { push, openTab: (id) => openTab($(id)), state: () => known, idle: () => !sending && !queue.length };

  // --- help ---

  function showHelp(at) {
    const box = $("help"), told = $(`meaning-${at.dataset.help}`);
    if (!told) return;
    box.replaceChildren();
    const words = document.createElement("p"), link = document.createElement("a");
    words.textContent = told.dataset.sentence;
    link.href = `#meaning-${at.dataset.help}`;
    link.textContent = "More in the glossary";
    link.addEventListener("click", (event) => { // the hash is the state's
      event.preventDefault();
      closeHelp();
      $("glossary").querySelector("details").open = true;
      told.scrollIntoView({ block: "center" });
      told.focus();
    });
    box.append(words, link);
    box.hidden = false;
    const own = at.getBoundingClientRect();
    box.style.left = `${Math.max(8, Math.min(own.left, innerWidth - box.offsetWidth - 12)) + scrollX}px`;
    box.style.top = `${own.bottom + 6 + scrollY}px`;
    at.setAttribute("aria-describedby", "help");
  }
  function closeHelp(at) {
    const box = $("help");
    if (!box || box.hidden || (at && box.contains(at))) return;
    box.hidden = true;
    document.querySelector("[aria-describedby=help]")?.removeAttribute("aria-describedby");
  }

  // --- the keyboard ---

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, [contenteditable], [role=listbox], .dash-dropdown-content");
    if (event.key === "Escape") { closeHelp(); document.querySelector(".menu[open]")?.removeAttribute("open"); }
    const tabbed = event.target.closest?.("[role=tab]");
    if (tabbed && ["ArrowRight", "ArrowLeft"].includes(event.key)) {
      const all = [...tabbed.parentElement.children];
      const to = all[(all.indexOf(tabbed) + (event.key === "ArrowRight" ? 1 : all.length - 1)) % all.length];
      openTab(to);
      to.focus();
      return;
    }
    if (event.key === "Enter" && event.target.matches?.(".card input")) return event.target.blur();
    if (typing) return;
    const order = known?.order || [], at = order.indexOf(known?.values.card);
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
      event.preventDefault();
      $(event.shiftKey ? "redo" : "undo").click();
    } else if (event.ctrlKey || event.metaKey || event.altKey || !order.length) return;
    else if (event.key === "j" && at < order.length - 1) push({ do: "set", field: "card", value: order[at + 1] });
    else if (event.key === "k" && at > 0) push({ do: "set", field: "card", value: order[at - 1] });
    else if (event.key === "a" || event.key === "r") {
      document.querySelector(`.card.chosen .${event.key === "a" ? "accept" : "reject"}`)?.click();
    } else if (event.key === "n") {
      event.preventDefault();
      document.querySelector(".card.chosen input")?.focus();
    }
  });
})();
