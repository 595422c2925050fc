// The schema: the columns of now, each schema that the table had, and the difference between two of them.
import { h, put } from "./dom.js";
import { counted, when } from "./format.js";
import { empty, grid, instantLink, later, panel, showPanels } from "./parts.js";

function columnsPart(columns) {
  if (columns.length === 0) return empty("This table has no schema yet.");
  return grid("Columns", columns, [
    { title: "Column", head: true, kind: "mono", cell: (row) => row.name },
    { title: "Type", kind: "mono", cell: (row) => row.type },
    { title: "Null", cell: (row) => (row.nullable ? "allowed" : "not allowed") },
  ]);
}

/** The difference of two lists of columns: `{added, removed, changed: [{name, from, to}]}`. */
function difference(older, newer) {
  const text = (column) => `${column.type}${column.nullable ? "" : " not null"}`;
  const before = new Map(older.map((column) => [column.name, column]));
  const after = new Map(newer.map((column) => [column.name, column]));
  return {
    added: newer.filter((column) => !before.has(column.name)).map((column) => column.name),
    removed: older.filter((column) => !after.has(column.name)).map((column) => column.name),
    changed: newer.filter((column) => before.has(column.name) && text(before.get(column.name)) !== text(column)).map((column) => ({ name: column.name, from: text(before.get(column.name)), to: text(column) })),
  };
}

function differenceList(found) {
  const lines = [
    ...found.added.map((name) => ["added", `+ ${name}`]),
    ...found.removed.map((name) => ["removed", `− ${name}`]),
    ...found.changed.map((each) => ["altered", `~ ${each.name}: ${each.from} → ${each.to}`]),
  ];
  if (lines.length === 0) return h("p", { class: "quiet" }, "No column differs.");
  return h("ul", { class: "difference" }, lines.map(([kind, text]) => h("li", { class: `mono ${kind}` }, text)));
}

function comparePart(rows) {
  if (rows.length < 2) return empty("The schema never changed.", "Two schemas can be compared here after a change.");
  const choice = (label, at) => h("select", { "aria-label": label }, rows.map((row, number) => h("option", { value: number, selected: number === at }, row.instant)));
  const older = choice("From the schema of", 1);
  const newer = choice("To the schema of", 0);
  const result = h("div");
  const compare = () => put(result, differenceList(difference(rows[older.value].columns, rows[newer.value].columns)));
  older.addEventListener("change", compare);
  newer.addEventListener("change", compare);
  compare();
  return h("div", null, h("div", { class: "tools" }, h("label", null, "from ", older), h("label", null, "to ", newer)), result);
}

function historyPart(rows) {
  if (rows.length === 0) return empty("No schema was written yet.");
  return h("ol", { class: "versions" }, rows.map((row, at) => h("li", { "data-item": "1", tabindex: "-1" },
    h("div", { class: "version-head" }, instantLink(row.instant), h("span", { class: "note" }, when(row.completed_at), ` · ${counted(row.columns.length, "column")}`)),
    at === rows.length - 1 ? h("p", { class: "quiet" }, "The oldest that is known.") : differenceList(row))));
}

/** The schema page of a table. */
export function schemaPage(ctx) {
  const schemas = ctx.get("schemas");
  schemas.catch(() => {});
  showPanels(ctx,
    panel("Columns", {}, later(() => ctx.summary(), (summary) => columnsPart(summary.columns), 8)),
    h("div", { class: "stack" }, panel("History", { note: "newest first" }, later(() => schemas, (answer) => historyPart(answer.rows), 6)), panel("Compare", {}, later(() => schemas, (answer) => comparePart(answer.rows), 3))));
}
