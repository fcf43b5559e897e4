// Create and change elements. Text is only ever set as text, because contexts come from strangers.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, action] of Object.entries(value)) element.addEventListener(event, action);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Changes nothing where nothing changed, so that selections and screen readers stay where they are.
export function setText(node, text) {
  const value = text === null || text === undefined ? "" : String(text);
  if (node.textContent !== value) node.textContent = value;
}

// The same for a sentence in which `commands` stand between back quotes.
const sentences = new WeakMap();

export function setProse(node, text) {
  if (sentences.get(node) === text) return;
  sentences.set(node, text);
  const parts = text.split("`");
  const whole = parts.length % 2 === 1; // every quote has its partner
  node.replaceChildren(...(whole ? parts.map((part, n) => (n % 2 ? h("code", {}, part) : part)) : [text]));
}

export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

// Items with keys as children of one element: what stays is the same element, with its focus.
export class Keyed {
  #parent;
  #key;
  #make;
  #shown = new Map();

  // `make(item)` gives {element, update}.
  constructor(parent, key, make) {
    this.#parent = parent;
    this.#key = key;
    this.#make = make;
  }

  get size() {
    return this.#shown.size;
  }

  has(key) {
    return this.#shown.has(key);
  }

  update(item) {
    this.#shown.get(this.#key(item))?.update(item);
  }

  append(items) {
    for (const item of items) {
      if (!this.has(this.#key(item))) this.#parent.append(this.#made(item).element);
    }
  }

  show(items) {
    const wanted = new Set(items.map(this.#key));
    for (const [key, { element }] of this.#shown) {
      if (!wanted.has(key)) {
        element.remove();
        this.#shown.delete(key);
      }
    }
    let next = this.#parent.firstElementChild;
    for (const item of items) {
      const there = this.#shown.get(this.#key(item));
      if (there) there.update(item);
      const { element } = there ?? this.#made(item);
      if (element === next) next = next.nextElementSibling;
      else this.#parent.insertBefore(element, next);
    }
  }

  #made(item) {
    const made = this.#make(item);
    this.#shown.set(this.#key(item), made);
    return made;
  }
}

// Changes the page so that what is focused, or else what is in the middle, stays where it is seen.
export function steady(change) {
  const main = document.querySelector("main");
  const active = document.activeElement;
  const seen = (element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  };
  const held =
    active !== main && main.contains(active) && seen(active)
      ? active
      : document.elementFromPoint(innerWidth / 2, innerHeight / 2);
  const before = held?.getBoundingClientRect().top;
  change();
  if (scrollY > 0 && held?.isConnected) scrollBy(0, held.getBoundingClientRect().top - before);
}

// Rows of plain text in a table's body; cells with the same text are not changed.
export function fillRows(body, rows) {
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, r) => {
    const line = body.rows[r] ?? body.insertRow();
    row.forEach((cell, c) => setText(line.cells[c] ?? line.insertCell(), cell));
  });
}

// A disclosure whose content is made when it is first opened and kept up to date while it is open.
export function disclosure(summary, content, refresh) {
  const element = h("details", {}, h("summary", {}, summary), content);
  element.addEventListener("toggle", () => element.open && refresh());
  return { element, refresh: () => element.open && refresh() };
}
