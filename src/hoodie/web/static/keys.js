// The keyboard: one listener, keys of the page first, and a dialog that lists them.
import { h } from "./dom.js";

const HELP = [
  ["/", "Search: tables, instants, partitions, a key"], ["j  k", "Next and previous row of the list"],
  ["Enter", "Open the row"], ["Esc", "Close the drawer; leave the search"],
  ["c", "Copy the command of the first finding"], ["1 … 8", "The pages of a table"],
  ["g", "All tables"], ["+  −  ←  →  0", "Timeline: zoom, move, fit"],
  ["t", "Light, dark, or as the system"], ["?", "These keys"],
];

const isTyping = (event) => event.target.closest("input, textarea, select") !== null;

/** Move the focus by `step` in the list of the page. */
export function moveInList(step) {
  const items = [...document.querySelectorAll("#main [data-item]")].filter((item) => item.offsetParent !== null);
  if (items.length === 0) return;
  const at = items.indexOf(document.activeElement.closest("[data-item]"));
  const item = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.max(0, Math.min(items.length - 1, at + step))];
  item.scrollIntoView({ block: "nearest" });
  item.focus();
}

/** Copy the command of the first finding, or of the first thing that waits. */
export function copyFirstCommand() {
  const button = document.querySelector("#main .finding .copy") || document.querySelector("#main .copy");
  if (button) button.click();
}

/** Show the keys. */
export function showKeys() {
  if (document.querySelector("dialog[open]")) return;
  const close = h("button", { type: "button", class: "quiet-button" }, "Close");
  const dialog = h("dialog", { class: "keys", "aria-labelledby": "keys-title" }, h("header", { class: "panel-head" }, h("h2", { id: "keys-title" }, "Keys"), close),
    h("dl", null, HELP.map(([keys, meaning]) => h("div", null, h("dt", null, keys.split("  ").map((key) => h("kbd", null, key))), h("dd", null, meaning)))));
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Listen to keys. `handlers`: functions by key; `pageKey(event)`: true if the page at hand used the key. */
export function listenToKeys(handlers, pageKey) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (event.key !== "Escape" && isTyping(event)) return;
    const isUsed = pageKey(event);
    if (isUsed || handlers[event.key]) event.preventDefault();
    if (!isUsed && handlers[event.key]) handlers[event.key](event);
  });
}
