// The data: rows as of an instant, a record by its key, and the rows that a write changed.
import { h, put } from "./dom.js";
import { valueNode, when } from "./format.js";
import { shellWord } from "./files.js";
import { empty, grid, instantLink, load, notes, panel, showPanels } from "./parts.js";

const field = (label, name, props) => h("label", { class: "field" }, h("span", null, label), h("input", { name, autocomplete: "off", spellcheck: "false", ...props }));

function form(label, fields, send) {
  const node = h("form", { class: "form", "aria-label": label }, fields, h("button", { type: "submit", class: "primary" }, label));
  node.addEventListener("submit", (event) => { event.preventDefault(); send(Object.fromEntries(new FormData(node))); });
  return node;
}

function rowsPart(answer) {
  if (answer.rows.length === 0) return empty("No row.", "The table is empty, or no row matches the condition.");
  const names = answer.columns ? answer.columns.map((column) => column.name || column) : Object.keys(answer.rows[0]);
  const columns = names.map((name) => ({ title: name, kind: typeof answer.rows[0][name] === "number" ? "num" : "clip", cell: (row) => valueNode(row[name]) }));
  return h("div", null, grid("Rows", answer.rows, columns), notes(answer.notes));
}

function changedCell(row, name) {
  const text = (side) => (side === null ? undefined : JSON.stringify(side[name]));
  if (text(row.before) === text(row.after)) return valueNode(row.after[name]);
  return h("span", { class: "pair" }, row.before && h("del", null, valueNode(row.before[name])), row.before && row.after && " ", row.after && h("ins", null, valueNode(row.after[name])));
}

function changedPart(answer) {
  if (answer.rows.length === 0) return h("div", null, empty("This write changed no row."), notes(answer.notes));
  const names = [...new Set(answer.rows.flatMap((row) => Object.keys(row.after || row.before || {})))];
  const kind = (row) => (row.before === null ? "inserted" : row.after === null ? "deleted" : "updated");
  const columns = [
    { title: "Change", cell: (row) => h("span", { class: `change ${kind(row)}` }, kind(row)) },
    { title: "Key", head: true, kind: "mono", cell: (row) => valueNode(row.key) },
    ...names.map((name) => ({ title: name, kind: "clip", cell: (row) => changedCell(row, name) })),
  ];
  return h("div", null, grid("Changed rows", answer.rows, columns), notes(answer.notes));
}

function recordPart(answer, id) {
  if (!answer.row && answer.versions.length === 0) return h("div", null, empty(`No record has the key ${answer.key}.`, "Keys of several columns are written as column:value,column:value."), notes(answer.notes));
  const names = [...new Set(answer.versions.concat(answer).flatMap((each) => Object.keys(each.row || {})))];
  const columns = [
    { title: "Completed", cell: (row) => when(row.completed_at) },
    { title: "Instant", head: true, cell: (row) => instantLink(row.instant) },
    ...names.map((name) => ({ title: name, kind: "clip", cell: (row) => (row.row ? valueNode(row.row[name]) : h("span", { class: "change deleted" }, "deleted")) })),
  ];
  const place = answer.location;
  return h("div", null,
    place
      ? h("p", { class: "location" }, "In ", h("a", { class: "mono", href: `#/${id}/files?file=${encodeURIComponent(place.file_id)}` }, place.file || place.file_id), " of ", h("span", { class: "mono" }, place.partition_path || "(no partition)"), ", written by ", instantLink(place.instant))
      : h("p", null, "The record is not in the table now."),
    answer.row && rowsPart({ rows: [answer.row] }),
    answer.versions.length > 0 && h("div", null, h("h3", null, "Versions"), grid("Versions of the record", answer.versions, columns)),
    notes(answer.notes));
}

/** The data page of a table. */
export function dataPage(ctx) {
  const off = () => empty("Rows are not shown here.", "The server was started with --no-data. Start it without, or print rows by the command:", `hoodie head ${shellWord(ctx.table.path)}`);
  if (!ctx.hasData) return void showPanels(ctx, panel("Data", { wide: true }, off()));
  const [rows, record, changed] = [h("div"), h("div"), h("div")];
  const reload = (host, ask, render) => { put(host); load(host, ask, render, 6); };
  const showRows = (values = {}) => reload(rows, () => ctx.get("rows", { limit: values.limit || 50, where: values.where, as_of: values.as_of, columns: values.columns }), rowsPart);
  const showRecord = (key) => reload(record, () => ctx.get("record", { key, versions: 5 }), (answer) => recordPart(answer, ctx.id));
  const showChanged = (instant) => reload(changed, () => ctx.get("changed", { instant, limit: 100 }), changedPart);
  const keyField = field("Record key", "key", { required: true, placeholder: "id, or a:1,b:2", value: ctx.params.key || null });
  const instantField = field("Instant of the write", "instant", { required: true, placeholder: "20261130010032557", value: ctx.params.changed || null });
  showPanels(ctx,
    !ctx.isExport && panel("Find a record", {}, form("Find", [keyField], (values) => showRecord(values.key)), record),
    !ctx.isExport && panel("Changes of a write", {}, form("Show changes", [instantField], (values) => showChanged(values.instant)), changed),
    panel("Rows", { wide: true, note: "in no defined order" }, !ctx.isExport && form("Show rows", [field("Where", "where", { placeholder: "fare > 10 and city = 'sf'" }), field("As of", "as_of", { placeholder: "an instant or a time" }), field("Columns", "columns", { placeholder: "id, fare" }), field("At most", "limit", { type: "number", min: 1, max: 5000, value: 50 })], showRows), rows));
  showRows();
  if (ctx.params.key) showRecord(ctx.params.key);
  else put(record, empty("A record, its place and its versions appear here."));
  if (ctx.params.changed) showChanged(ctx.params.changed);
  else ctx.summary().then((summary) => {
    if (!summary.newest || !changed.isConnected || changed.firstChild) return;
    instantField.querySelector("input").value = summary.newest.instant;
    put(changed, empty("Rows before and after a write appear here.", "The newest write is filled in."));
  }, () => {});
  return { search: { placeholder: "Look up a record key", input: () => {}, enter: (text) => { keyField.querySelector("input").value = text; showRecord(text); } } };
}
