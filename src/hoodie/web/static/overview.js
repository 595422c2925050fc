// What an operator needs without a click: what is wrong, what waits, how the table grows, who wrote what.
import { h, icon, put } from "./dom.js";
import { bytes, count, counted, short, when } from "./format.js";
import { badge, command, empty, fact, facts, grid, hashWith, instantLink, later, load, notes, pairs, panel } from "./parts.js";
import { dayColumns, everyDay } from "./charts.js";

const DAYS = 30;
const WRITERS = 12;

/** One finding: its kind and place, what it means, and the command that mends it. */
export const findingItem = (found) => h("li", { class: `finding ${found.severity}`, "data-item": "1", tabindex: "-1" },
  icon(found.severity === "error" ? "error" : "warning"),
  h("div", null,
    h("p", { class: "finding-title" }, h("strong", null, found.kind), " ", badge(found.severity, found.severity), found.count > 1 && badge(counted(found.count, "place"))),
    h("p", { class: "mono quiet break" }, found.key),
    found.meaning && h("p", null, found.meaning),
    found.expected && h("p", { class: "quiet" }, `Expected: ${found.expected}. Found: ${found.found}.`),
    command(found.remedy)));

function wrongPart(summary, id) {
  const more = h("span", null, "Files and indexes are checked by ", h("a", { href: `#/${id}/findings` }, "verify"), ".");
  return summary.findings.length ? h("ul", { class: "findings" }, summary.findings.map(findingItem)) : empty("Nothing is wrong on the timeline.", more);
}

function waitItem(row) {
  const isDead = row.about && row.about.startsWith("dead");
  return h("li", { class: isDead ? "wait dead" : "wait" }, icon("clock"),
    h("div", null,
      h("p", { class: "finding-title" }, h("strong", null, row.kind), " ", row.state && badge(row.state, isDead ? "error" : "plain"), row.since && h("span", { class: "note" }, "since ", when(row.since, { relative: true }))),
      row.about && h("p", { class: isDead ? "dead-text" : null }, row.about),
      row.instant && h("p", null, instantLink(row.instant)),
      command(row.command)));
}

const waitsPart = (answer) => answer.rows.length ? h("ul", { class: "findings" }, answer.rows.map(waitItem)) : empty("Nothing waits.", "No pending plan, no unfinished write, no log backlog.");

function growthPart(answer) {
  if (answer.rows.length === 0) return empty("No write in this time.", `The charts need a completed write of the last ${DAYS} days.`);
  const rows = everyDay(answer.rows, DAYS);
  return h("div", null,
    h("div", { class: "dailies" }, dayColumns({ title: "Rows added", rows, value: (row) => row.rows, format: short, kind: "rows" }),
      dayColumns({ title: "Bytes written", rows, value: (row) => row.bytes_written, format: bytes, kind: "bytes" }),
      dayColumns({ title: "Files created", rows, value: (row) => row.files_created, format: short, kind: "files" }),
      dayColumns({ title: "Small files", rows, value: (row) => row.small_files, format: short, kind: "small" })),
    notes(answer.notes));
}

function writersPart(answer) {
  if (answer.rows.length === 0) return empty("No completed write.", "The first write of this table appears here.");
  return grid("Writers, newest first", answer.rows, [
    { title: "Completed", cell: (row) => when(row.completed_at, { relative: true }) },
    { title: "Operation", cell: (row) => row.operation || "–" },
    { title: "Writer", head: true, cell: (row) => (row.writer === "unknown" ? h("span", { class: "quiet" }, "unknown") : row.writer) },
    { title: "Checkpoint", kind: "mono clip", cell: (row) => h("span", { title: row.place }, row.place || "–") },
    { title: "Instant", cell: (row) => instantLink(row.instant) },
  ], { open: (row) => { location.hash = hashWith({ instant: row.instant }); } });
}

function sizeFacts(sizes) {
  const small = sizes.base_files ? sizes.small_files / sizes.base_files : 0;
  return facts(fact("Rows", count(sizes.rows), sizes.rows_note || null), fact("Size", bytes(sizes.bytes), sizes.log_bytes ? `${bytes(sizes.log_bytes)} in logs` : null),
    fact("Files", count(sizes.files), sizes.log_files ? `${count(sizes.log_files)} log ${sizes.log_files === 1 ? "file" : "files"}` : null),
    fact("Small files", count(sizes.small_files), `${Math.round(small * 100)} % of base files, below ${bytes(sizes.small_below_bytes)}`),
    fact("Partitions", count(sizes.partitions), sizes.largest_ratio ? `largest ${sizes.largest_ratio.toFixed(1)} × median` : null),
    fact("File groups", count(sizes.file_groups)));
}

function aboutPart(summary) {
  const rows = [
    ["record key", summary.record_key.join(", ") || "automatic"], ["partitioned by", summary.partitioned_by.join(", ") || "not partitioned"],
    ["ordering", summary.ordering.join(", ") || "none"], ["index", summary.index || "none"],
    ["metadata table", summary.metadata_partitions.join(", ") || "none"],
    ["active instants", `${count(summary.instants)}, ${count(summary.pending)} pending`],
    ["columns", `${count(summary.columns.length)}: ${summary.columns.map((column) => column.name).join(", ")}`],
  ];
  return h("div", null, pairs(rows), h("details", null, h("summary", null, `Properties (${count(Object.keys(summary.properties).length)})`), pairs(Object.entries(summary.properties).map(([name, value]) => [name, String(value)]))));
}

/** The overview of a table. */
export function overviewPage(ctx) {
  const regions = { wrong: h("div"), waits: h("div"), sizes: h("div", { class: "later facts-host" }), growth: h("div"), writers: h("div") };
  const parts = {
    wrong: [() => ctx.summary(), (summary) => wrongPart(summary, ctx.id), 5],
    waits: [() => ctx.get("waits"), waitsPart, 5],
    sizes: [() => ctx.get("sizes"), sizeFacts, 2],
    growth: [() => ctx.get("growth", { days: DAYS }), growthPart, 6],
    writers: [() => ctx.get("writers", { limit: WRITERS }), writersPart, 8],
  };
  const fillParts = () => Promise.all(Object.entries(parts).map(([name, [ask, render, lines]]) => load(regions[name], ask, render, lines)));
  put(ctx.host, regions.sizes,
    h("div", { class: "panels" }, panel("What is wrong", {}, regions.wrong), panel("What waits", {}, regions.waits),
      panel("How it grows", { wide: true, note: `by day (UTC), last ${DAYS} days` }, regions.growth),
      panel("Who wrote what", { wide: true, side: h("a", { href: `#/${ctx.id}/timeline` }, "Timeline") }, regions.writers),
      panel("About the table", { wide: true }, later(() => ctx.summary(), aboutPart, 6))));
  fillParts();
  return { live: fillParts };
}
