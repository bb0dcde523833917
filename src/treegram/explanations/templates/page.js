"use strict";
// Names, labels and classes come from data: they are only ever read and written as text.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const body = document.getElementById("rows"), cards = document.getElementById("cards");

  // Filters by name, prediction and verdict, for rows and cards alike.
  const controls = document.getElementById("controls"), filters = all("[data-filter]", controls);
  const filter = () => {
    let shown = 0;
    for (const row of all("tr", body)) {
      const matches = filters.every(({ dataset, value, type }) => type === "search"
        ? row.dataset[dataset.filter].toLowerCase().includes(value.trim().toLowerCase())
        : !value || row.dataset[dataset.filter] === value);
      row.hidden = document.getElementById(row.dataset.card).hidden = !matches;
      shown += matches;
    }
    document.getElementById("shown").textContent = `${shown} of ${all("tr", body).length} shown`;
  };
  controls.hidden = false;
  controls.addEventListener("input", filter);
  filter();

  // Sorting: numbers from the largest, words from A; a second click reverses. Cards follow the rows.
  const key = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
  for (const head of all("table.sortable thead th")) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const rows = all("tbody tr", head.closest("table")), column = head.cellIndex;
      const isNumber = rows.every(row => key(row, column) !== "" && !isNaN(key(row, column)));
      const isReversed = head.getAttribute("aria-sort") === (isNumber ? "descending" : "ascending");
      const sign = isNumber === isReversed ? 1 : -1;
      rows.sort((a, b) => sign * (isNumber
        ? key(a, column) - key(b, column)
        : key(a, column).localeCompare(key(b, column), undefined, { numeric: true })));
      all("th", head.parentNode).forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      for (const row of rows) {
        row.parentNode.append(row);
        if (row.dataset.card) cards.append(document.getElementById(row.dataset.card));
      }
    });
  }

  // Which class the predicted one is compared with: the lists of that decision, and the colors of the nodes.
  const mix = (value, limit) => {
    const part = Math.min(Math.abs(value) / (limit || 1), 1), full = value > 0 ? [178, 24, 43] : [33, 102, 172];
    return `rgb(${full.map(channel => Math.round(255 + part * (channel - 255))).join(" ")})`;
  };
  const choose = (card, chosen) => {
    const values = card.dataset.values.split(";")[chosen].split(" ").map(Number);
    const limit = Math.max(...values.map(Math.abs));
    all("[data-contrast]", card).forEach(part => { part.hidden = Number(part.dataset.contrast) !== chosen; });
    for (const node of all("figure.explained .node", card)) {
      const value = values[node.dataset.node], shape = node.querySelector("circle") ?? node;
      const color = mix(value, shape === node ? 1.4 * limit : limit);
      shape.style.fill = color;
      if (shape === node) shape.style.stroke = color;
      node.querySelector("text.in")?.setAttribute("class", `in ${Math.abs(value) > 0.55 * limit ? "light" : "dark"}`);
      const words = Number(value.toPrecision(3)).toString().replace("-", "\u2212");
      node.tip = node.tip.replace(/contribution: .*$/, `contribution: ${value > 0 ? "+" : ""}${words}`);
    }
  };

  // A box with the name, label, vector and contribution of the node under the pointer, in the place of the browser's own.
  const tip = document.getElementById("tip");
  for (const node of all(".node")) {
    const title = node.querySelector("title");
    node.tip = title.textContent;
    title.remove();
    node.addEventListener("pointerenter", () => { tip.textContent = node.tip; tip.hidden = false; });
    node.addEventListener("pointermove", ({ clientX, clientY }) => {
      const left = Math.min(clientX + 14, innerWidth - tip.offsetWidth - 8);
      const top = clientY + 14 + tip.offsetHeight > innerHeight ? clientY - tip.offsetHeight - 8 : clientY + 14;
      tip.style.left = `${Math.max(left, 4)}px`;
      tip.style.top = `${Math.max(top, 4)}px`;
    });
    node.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
  // An entry of a list of nodes marks its node in the picture.
  for (const entry of all("[data-at]")) {
    const node = entry.closest("article").querySelector(`.explained [data-node="${entry.dataset.at}"]`);
    entry.addEventListener("pointerenter", () => node?.classList.add("marked"));
    entry.addEventListener("pointerleave", () => node?.classList.remove("marked"));
  }
  for (const select of all("select.contrast")) {
    select.closest("label").hidden = false;
    select.addEventListener("change", () => choose(select.closest("article"), select.selectedIndex));
  }
})();
