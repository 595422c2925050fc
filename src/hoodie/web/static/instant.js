// The drawer of one instant: times by phase, writer and checkpoint, statistics by partition and file, raw content.
import { h, icon } from "./dom.js";
import { bytes, count, counted, duration, when } from "./format.js";
import { badge, command, empty, fact, facts, load, notes, pairs } from "./parts.js";

const SHOWN_MAX = 200;
let opener = null;

const STATES = { completed: "ok", archived: "plain", inflight: "warning", requested: "warning" };

/** The colour of a state's badge. */
export const stateKind = (state) => STATES[state] || "plain";

function phases(times) {
  const at = Object.fromEntries(Object.entries(times || {}).map(([name, text]) => [name, text ? Date.parse(text) : null]));
  const start = at.requested;
  if (!start) return null;
  const end = at.completed || Date.now();
  const inflight = at.inflight && at.inflight >= start && at.inflight <= end ? at.inflight : null;
  const pieces = [
    ["requested → inflight", start, inflight || (at.completed ? end : null), "plan", times.requested],
    ["inflight → completed", inflight, at.completed, "work", times.inflight],
  ].filter(([, from]) => from !== null && from !== undefined);
  const whole = Math.max(1, end - start);
  return h("div", { class: "phases" },
    h("div", { class: "phase-bar", "aria-hidden": "true" }, pieces.map(([, from, to, kind]) => h("span", { class: `phase ${kind}${to ? "" : " open"}`, style: { flexGrow: String(Math.max(((to || end) - from) / whole, 0.01)) } }))),
    h("dl", { class: "phase-times" },
      pieces.map(([name, from, to, kind]) => h("div", null, h("dt", null, h("span", { class: `key ${kind}` }), inflight || kind === "work" ? name : "requested → completed"), h("dd", null, to ? duration((to - from) / 1000) : `not over, since ${duration((Date.now() - from) / 1000)}`))),
      h("div", null, h("dt", null, "requested"), h("dd", null, when(times.requested))),
      times.completed && h("div", null, h("dt", null, "completed"), h("dd", null, when(times.completed)))));
}

const statCells = (sums, title) => [
  h("th", { scope: "row", class: "mono" }, title),
  ["numInserts", "numUpdateWrites", "numDeletes", "numWrites"].map((name) => h("td", { class: "num" }, count(sums[name] || 0))),
  h("td", { class: "num" }, bytes(sums.totalWriteBytes || 0)),
];

function partitionRows(name, sums, stats) {
  const title = name === "" ? "(no partition)" : name;
  const files = stats.slice(0, SHOWN_MAX).map((stat) => h("tr", { class: "file-row", hidden: true }, statCells(stat, stat.path ? stat.path.split("/").pop() : stat.fileId)));
  const cut = files.length < sums.files ? `, ${count(files.length)} shown` : "";
  const button = h("button", { type: "button", class: "fold", "aria-expanded": "false" }, `${title} `, h("span", { class: "note" }, counted(sums.files, "file"), cut));
  button.addEventListener("click", () => {
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    for (const file of files) file.hidden = isOpen;
  });
  return [h("tr", { class: "partition-row" }, statCells(sums, button)), ...files];
}

function statistics({ content, statistics: sums }) {
  const names = Object.keys(sums.by_partition).slice(0, SHOWN_MAX);
  const head = h("thead", null, h("tr", null, ["Partition and file", "Inserted", "Updated", "Deleted", "Rows written", "Bytes written"].map((title, at) => h("th", { scope: "col", class: at ? "num" : null }, title))));
  const body = h("tbody", null, names.map((name) => partitionRows(name, sums.by_partition[name], content?.partitionToWriteStats[name] || [])));
  const errors = sums.all.totalWriteErrors;
  return h("section", null,
    h("h3", null, "Statistics ", h("span", { class: "note" }, `${counted(sums.all.files, "file")} in ${counted(sums.partitions, "partition")}`), errors > 0 && badge(counted(errors, "write error"), "error")),
    sums.all.files === 0
      ? empty("It wrote no file.")
      : h("div", { class: "grid", role: "group", tabindex: "0", "aria-label": "Statistics by partition and file" }, h("table", null, head, body, h("tfoot", null, h("tr", null, statCells(sums.all, "All"))))),
    sums.partitions > names.length && h("p", { class: "note" }, `The first ${count(names.length)} partitions.`));
}

function plainFacts(content) {
  const simple = Object.entries(content).filter(([, value]) => value !== null && ["string", "number", "boolean"].includes(typeof value));
  const lists = Object.entries(content).filter(([, value]) => value !== null && typeof value === "object");
  const rows = [...simple.map(([name, value]) => [name, String(value)]), ...lists.map(([name, value]) => [name, counted(Array.isArray(value) ? value.length : Object.keys(value).length, "entry")])];
  return rows.length ? h("section", null, h("h3", null, "Content"), pairs(rows)) : null;
}

function writerPart(extra) {
  const rows = Object.entries(extra || {}).filter(([name, value]) => name !== "schema" && value !== null && value !== "");
  if (rows.length === 0) return null;
  return h("section", null, h("h3", null, "Writer and checkpoint"), pairs(rows.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)])));
}

function rawPart(answer) {
  const text = JSON.stringify(answer.content, null, 2);
  if (answer.content === null) return null;
  return h("details", { class: "raw", open: window.innerWidth >= 1500 }, h("summary", null, "Raw content"), h("pre", { tabindex: "0", "aria-label": "Raw content as JSON" }, text.length > 400000 ? `${text.slice(0, 400000)}\n… ${counted(text.length - 400000, "more character")}` : text));
}

function decoded(answer, waiting) {
  const content = answer.content || {};
  const sums = answer.statistics?.all;
  const extra = content.extraMetadata;
  const rest = Object.fromEntries(Object.entries(content).filter(([name]) => !["partitionToWriteStats", "extraMetadata", "operationType", "compacted", "version"].includes(name)));
  return h("div", { class: "instant-body" },
    h("div", { class: "decoded" },
      facts(fact("Action", answer.action), content.operationType && fact("Operation", String(content.operationType).toLowerCase()),
        fact("State", badge(answer.state, stateKind(answer.state))),
        sums?.files > 0 && fact("Rows written", count(sums.numWrites)),
        sums?.files > 0 && fact("Bytes written", bytes(sums.totalWriteBytes))),
      waiting && h("div", { class: "waiting" }, badge(waiting.about, waiting.about.startsWith("dead") ? "error" : "warning"), command(waiting.command)),
      phases(answer.times),
      notes(answer.notes),
      writerPart(extra),
      sums ? statistics(answer) : answer.content === null ? empty("The file of this instant is empty.", "Most pending instants have no content before they are completed.") : plainFacts(rest)),
    rawPart(answer));
}

/** Remove the drawer and give the focus back. */
export function closeInstant() {
  const drawer = document.querySelector(".drawer");
  if (!drawer) return;
  drawer.remove();
  const again = opener?.isConnected ? opener : document.querySelector(`[data-key="${opener?.dataset?.key}"]`);
  (again || document.getElementById("main")).focus({ preventScroll: true });
  opener = null;
}

/** Open the drawer of an instant. `ask`: its answer; `onClose`: the reader closed it; `changes`: link to its rows. */
export function openInstant(instant, { ask, waiting, onClose, changes }) {
  if (!document.querySelector(".drawer")) opener = document.activeElement;
  const old = document.querySelector(".drawer");
  const close = h("button", { type: "button", class: "quiet-button", "aria-label": "Close the instant", title: "Close (Esc)", onclick: onClose }, icon("close"));
  const body = h("div", { class: "drawer-body" });
  const title = h("h2", { id: "drawer-title" }, h("span", { class: "note" }, "Instant "), h("span", { class: "mono" }, instant));
  const drawer = h("div", { class: old ? "drawer" : "drawer slide", role: "dialog", "aria-labelledby": "drawer-title", tabindex: "-1" }, h("div", { class: "drawer-head" }, title, changes && h("a", { href: changes }, "Changed rows"), close), body);
  if (old) old.replaceWith(drawer);
  else document.body.append(drawer);
  drawer.focus({ preventScroll: true });
  return load(body, async () => [await ask(), await waiting()], ([answer, waits]) => decoded(answer, waits), 10);
}
