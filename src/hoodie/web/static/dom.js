// Elements by hand: every text goes into the page as a text node.

const SVG_SPACE = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  const kept = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  node.append(...kept.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

/** Make an HTML element; `on…` props are listeners, `style` is an object, null and false are left out. */
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);

/** Make an SVG element. */
export const svg = (tag, props, ...children) => fill(document.createElementNS(SVG_SPACE, tag), props, children);

/** Replace all children of a node. */
export function put(node, ...children) {
  node.replaceChildren();
  return fill(node, null, children);
}

const ICONS = {
  copy: "M5 5V2.5h8.5V11H11M2.5 5H11v8.5H2.5z",
  done: "M3 8.5l3.2 3.2L13 4.6",
  error: "M8 1.8l6.4 11.7H1.6zM8 6v3.6M8 11.4v.4",
  warning: "M8 1.8l6.4 11.7H1.6zM8 6v3.6M8 11.4v.4",
  ok: "M8 1.7a6.3 6.3 0 110 12.6A6.3 6.3 0 018 1.7zM5.2 8.2l2 2 3.7-4",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  clock: "M8 1.7a6.3 6.3 0 110 12.6A6.3 6.3 0 018 1.7zM8 4.5V8l2.4 1.6",
  theme: "M8 1.7a6.3 6.3 0 100 12.6zM8 1.7a6.3 6.3 0 010 12.6",
  search: "M7 2.5a4.5 4.5 0 110 9 4.5 4.5 0 010-9zM10.4 10.4l3.4 3.4",
};

/** Make a small line icon; it is hidden from assistive technology, the text beside it has the meaning. */
export const icon = (name) => svg("svg", { class: `icon icon-${name}`, viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
