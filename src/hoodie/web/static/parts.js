// The parts that all pages are made of: panels, badges, commands to copy, tables, and the three states of loading.
import { h, put, icon } from "./dom.js";
import { count } from "./format.js";

let heading = 0;

/** A titled section of a page. `side` stands at the right of the title. */
export function panel(title, { side = null, wide = false, note = null } = {}, ...body) {
  heading += 1;
  const id = `heading-${heading}`;
  return h("section", { class: wide ? "panel wide" : "panel", "aria-labelledby": id },
    h("header", { class: "panel-head" }, h("h2", { id }, title), note && h("span", { class: "note" }, note), side),
    h("div", { class: "panel-body" }, body));
}

/** Fill the place of a page with its panels. */
export const showPanels = (ctx, ...parts) => put(ctx.host, h("div", { class: "panels" }, parts));

/** A short word in a coloured frame. */
export const badge = (text, kind = "plain") => h("span", { class: `badge badge-${kind}` }, text);

/** Put a text on the clipboard. */
export async function copyText(text) {
  const isCopied = await navigator.clipboard.writeText(text).then(() => true, () => false);
  announce(isCopied ? `Copied: ${text}` : `The browser refused. Select the text and copy it: ${text}`, true);
}

/** Tell a short message to the reader, seen if `show`, and to assistive technology always. */
export function announce(text, show = false) {
  let live = document.getElementById("live");
  if (!live) document.body.append((live = h("div", { id: "live", role: "status", "aria-live": "polite" })));
  live.className = show ? "toast" : "offscreen";
  live.textContent = text;
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => { live.className = "offscreen"; }, 2500);
}

/** A command of the shell with a copy button; a remedy that is a sentence stays a sentence. */
export function command(text) {
  if (!text) return null;
  if (!text.startsWith("hoodie ")) return h("p", { class: "sentence" }, prose(text));
  const button = h("button", { type: "button", class: "copy", title: "Copy the command", "aria-label": `Copy the command ${text}` }, icon("copy"));
  button.addEventListener("click", async () => {
    await copyText(text);
    put(button, icon("done"));
    setTimeout(() => put(button, icon("copy")), 1500);
  });
  return h("div", { class: "command" }, h("code", { tabindex: "0" }, text), button);
}

/** A text of a report: what stands in backticks is code. */
export const prose = (text) => typeof text === "string" ? text.split("`").map((piece, at) => (at % 2 ? h("code", null, piece) : piece)) : text;

/** What a place shows when there is nothing: a title, and what to do. */
export const empty = (title, hint = null, text = null) => h("div", { class: "empty" }, h("p", null, prose(title)), hint && h("p", { class: "quiet" }, prose(hint)), command(text));

/** An error and what to do about it. */
export const failure = (error, retry = null) => h("div",
  { class: error.kind === "NotExported" ? "empty" : "failure", role: error.kind === "NotExported" ? null : "alert" },
  h("p", null, prose(error.message)), error.hint && h("p", { class: "quiet" }, prose(error.hint)),
  retry && error.kind !== "NotExported" && h("button", { type: "button", onclick: retry }, "Try again"));

/** Grey lines of the height that the answer will have. */
export const skeleton = (lines) => h("div", { class: "skeleton", "aria-hidden": "true" }, Array.from({ length: lines }, () => h("span")));

/** Fill `host` with what `render` makes of the answer of `ask`; meanwhile grey lines, or what stands there. */
export async function load(host, ask, render, lines = 4) {
  if (!host.firstChild) put(host, skeleton(lines));
  host.setAttribute("aria-busy", "true");
  try {
    put(host, render(await ask()));
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!error.kind && !error.hint && !error.status) console.error(error);
    put(host, failure(error, () => { put(host); load(host, ask, render, lines); }));
  } finally {
    host.removeAttribute("aria-busy");
  }
}

/** A region that is filled later; a shorthand for a `div` and `load`. */
export function later(ask, render, lines = 4) {
  const host = h("div", { class: "later" });
  load(host, ask, render, lines);
  return host;
}

/** A number with its label; `value` is a text or a node. */
export const fact = (label, value, note = null) => h("div", { class: "fact" }, h("dt", null, label), h("dd", null, h("span", { class: "value" }, value), note && h("span", { class: "note" }, prose(note))));

/** Names and values, one below the other. */
export const pairs = (rows) => h("dl", { class: "pairs" }, rows.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));

/** A row of facts. */
export const facts = (...items) => h("dl", { class: "facts" }, items);

function gridRow(columns, row, open) {
  const line = h("tr", { "data-item": open ? "1" : null, tabindex: open ? "-1" : null });
  line.append(...columns.map((column) => h(column.head ? "th" : "td", { scope: column.head ? "row" : null, class: column.kind || null }, column.cell(row))));
  if (open) {
    line.addEventListener("click", (event) => { if (!event.target.closest("a, button, code") && !String(getSelection())) open(row, line); });
    line.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target === line) open(row, line); });
  }
  return line;
}

/** A table of rows. Columns: `{title, cell(row), kind, head}`. `open(row)`: what a click or Enter does; `more(next)`: the next page. */
export function grid(label, rows, columns, { open = null, next = null, more = null } = {}) {
  const body = h("tbody", null, rows.map((row) => gridRow(columns, row, open)));
  const head = h("thead", null, h("tr", null, columns.map((column) => h("th", { scope: "col", class: column.kind || null }, column.title))));
  const wrap = h("div", { class: "grid", role: "group", "aria-label": label, tabindex: "0" }, h("table", null, head, body));
  if (next === null || more === null) return wrap;
  let cursor = next;
  const status = h("span", { class: "note" }, `${count(rows.length)} shown`);
  const showMore = async () => {
    const answer = await more(cursor);
    body.append(...answer.rows.map((row) => gridRow(columns, row, open)));
    cursor = answer.next;
    put(status, `${count(body.childElementCount)} shown`);
    if (cursor === null) button.remove();
  };
  const button = h("button", { type: "button", onclick: () => showMore().catch((error) => put(status, error.message)) }, "Show more");
  return h("div", null, wrap, h("div", { class: "grid-foot" }, status, button));
}

/** The address of the page at hand with parameters set, or removed by null. */
export function hashWith(changes) {
  const [path, query = ""] = location.hash.split("?");
  const params = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  const text = params.toString();
  return `${path || "#/"}${text ? `?${text}` : ""}`;
}

/** A link to an instant: it opens the drawer on the page at hand. */
export function instantLink(instant, action = null) {
  if (!instant) return h("span", { class: "quiet" }, "–");
  return h("a", { class: "mono instant", href: hashWith({ instant, action }), title: "Open this instant" }, instant);
}

/** Notes of a report, if it has any. */
export const notes = (list) => list && list.length ? h("ul", { class: "notes" }, list.map((text) => h("li", null, prose(text)))) : null;
