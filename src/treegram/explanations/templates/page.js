"use strict";
// Names, labels and classes come from data: they are only ever read and written as text.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const cards = document.getElementById("cards"), articles = all("article", cards);

  // Filters by name, prediction and verdict.
  const controls = document.getElementById("controls"), filters = all("[data-filter]", controls);
  const filter = () => {
    let shown = 0;
    for (const card of articles) {
      const matches = filters.every(({ dataset, value, type }) => type === "search"
        ? card.dataset[dataset.filter].toLowerCase().includes(value.trim().toLowerCase())
        : !value || card.dataset[dataset.filter] === value);
      card.hidden = !matches;
      shown += matches;
    }
    document.getElementById("shown").textContent = `${shown} of ${articles.length} shown`;
  };
  controls.hidden = false;
  filters.forEach(field => field.addEventListener("input", filter));
  filter();

  // The order: numbers by size, words from A.
  const order = document.getElementById("order");
  order.addEventListener("change", () => {
    const [field, sign] = order.value.split(" "), key = card => card.dataset[field];
    articles.sort((a, b) => Number(sign) * (["name", "prediction"].includes(field)
      ? key(a).localeCompare(key(b), undefined, { numeric: true }) : key(a) - key(b)));
    cards.append(...articles);
  });

  // A link to a graph opens its details, also if a filter had hidden it.
  const follow = () => {
    const card = articles.find(({ id }) => `#${id}` === location.hash);
    if (!card) return;
    card.hidden = false;
    card.querySelector("details").open = true;
    card.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();

  // Which class the predicted one is compared with: the lists of that decision, and the colors of the nodes.
  const read = (card, chosen) => card.dataset.values.split(";")[chosen].split(" ").map(Number);
  const tell = value => `contribution: ${value > 0 ? "+" : ""}${Number(value.toPrecision(3))}`.replace("-", "\u2212");
  const choose = (card, chosen) => {
    const values = read(card, chosen);
    const limit = Math.max(...values.map(Math.abs)) || 1;
    all("[data-contrast]", card).forEach(part => { part.hidden = Number(part.dataset.contrast) !== chosen; });
    for (const node of all("figure.explained .node, .strip .node", card)) {
      const value = values[node.dataset.node], part = Math.abs(value) / limit;
      node.style.setProperty("--s", `${100 * part}%`);
      node.classList.toggle("for", value > 0);
      node.classList.toggle("against", value <= 0);
      node.classList.toggle("strong", part > 0.55);
      node.tip = node.tip.replace(/contribution: .*$/, tell(value));
    }
  };

  // A box with the name, label, vector and contribution of the node under the pointer, in the place of the browser's own.
  // A node in the picture, in the sequence or in a list marks the same node in the others.
  const tip = document.getElementById("tip");
  for (const card of articles) {
    const nodes = all("figure.explained .node", card), cells = [...nodes, ...all(".strip .node", card)];
    const values = read(card, 0), tips = new Map(nodes.map(node => [node.dataset.node, node.querySelector("title").textContent]));
    all(".node title", card).forEach(title => title.remove());
    const mark = (number, on) => cells.forEach(node => node.classList.toggle("marked", on && node.dataset.node === number));
    for (const node of cells) {
      node.tip = tips.get(node.dataset.node) ?? `${node.textContent}\n${tell(values[node.dataset.node])}`;
      node.addEventListener("pointerenter", () => { tip.textContent = node.tip; tip.hidden = false; mark(node.dataset.node, true); });
      node.addEventListener("pointermove", ({ clientX, clientY }) => {
        const left = Math.min(clientX + 14, innerWidth - tip.offsetWidth - 8);
        const top = clientY + 14 + tip.offsetHeight > innerHeight ? clientY - tip.offsetHeight - 8 : clientY + 14;
        tip.style.left = `${Math.max(left, 4)}px`;
        tip.style.top = `${Math.max(top, 4)}px`;
      });
      node.addEventListener("pointerleave", () => { tip.hidden = true; mark(node.dataset.node, false); });
    }
    for (const entry of all("[data-at]", card)) {
      entry.addEventListener("pointerenter", () => mark(entry.dataset.at, true));
      entry.addEventListener("pointerleave", () => mark(entry.dataset.at, false));
    }
  }
  for (const select of all("select.contrast")) {
    select.closest("label").hidden = false;
    select.addEventListener("change", () => choose(select.closest("article"), select.selectedIndex));
  }
})();
