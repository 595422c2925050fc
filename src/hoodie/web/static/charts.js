// Small charts: columns by day, and bars by class of size.
import { h, svg } from "./dom.js";
import { bytes, count, counted } from "./format.js";

const COLUMN_HEIGHT = 48;

/** The rows of the last days, with an empty one for each day that has none. */
export function everyDay(rows, days) {
  const known = new Map(rows.map((row) => [row.day, row]));
  const names = Array.from({ length: days }, (_, at) => new Date(Date.now() - (days - 1 - at) * 86400000).toISOString().slice(0, 10));
  return names.map((day) => known.get(day) || { day });
}

/** Columns by day with the sum above and the days below. `kind` chooses the colour. */
export function dayColumns({ title, rows, value, format, kind }) {
  const values = rows.map((row) => value(row) || 0);
  const top = Math.max(1, ...values);
  const low = Math.min(0, ...values);
  const scale = COLUMN_HEIGHT / (top - low);
  const columns = rows.map((row, at) => {
    const size = Math.abs(values[at]) * scale;
    const y = values[at] >= 0 ? (top - values[at]) * scale : top * scale;
    return svg("g", { class: "column" }, svg("title", null, `${row.day}: ${format(values[at])}`),
      svg("rect", { class: "hit", x: at * 10, y: 0, width: 10, height: COLUMN_HEIGHT }),
      svg("rect", { class: values[at] < 0 ? "bar below" : "bar", x: at * 10 + 1.5, y: values[at] ? Math.min(y, COLUMN_HEIGHT - 1.5) : COLUMN_HEIGHT - 1, width: 7, height: values[at] ? Math.max(size, 1.5) : 1 }));
  });
  const total = values.reduce((all, each) => all + each, 0);
  const last = values[values.length - 1] || 0;
  const label = `${title} by day, ${counted(rows.length, "day")}: ${format(total)} in total, at most ${format(Math.max(...values))} in a day`;
  const chart = svg("svg", { class: `columns ${kind}`, viewBox: `0 0 ${rows.length * 10} ${COLUMN_HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, columns);
  return h("figure", { class: "daily" },
    h("figcaption", null, h("span", null, title), h("strong", null, format(total)), h("span", { class: "note" }, `${rows[rows.length - 1].day.slice(5)}: ${format(last)}`)),
    chart,
    h("div", { class: "ends", "aria-hidden": "true" }, h("span", null, rows[0].day.slice(5)), h("span", null, rows[rows.length - 1].day.slice(5))));
}

/** One bar a class of file sizes; classes below `small` are marked. */
export function sizeHistogram(classes, small) {
  const most = Math.max(1, ...classes.map((each) => each.files));
  const rows = classes.map((each) => {
    const isSmall = each.to_bytes !== null && each.to_bytes <= small;
    const share = h("span", { class: isSmall ? "share small" : "share", style: { width: `${each.files ? Math.max((each.files / most) * 100, 0.8) : 0}%` } });
    const name = each.to_bytes === null ? `≥ ${bytes(each.from_bytes)}` : each.from_bytes ? `${bytes(each.from_bytes)} – ${bytes(each.to_bytes)}` : `< ${bytes(each.to_bytes)}`;
    return h("tr", null, h("th", { scope: "row" }, name), h("td", { class: "track" }, share), h("td", { class: "num" }, count(each.files)), h("td", { class: "num quiet" }, bytes(each.bytes)));
  });
  const head = h("tr", null, ["File size", "", "Files", "Bytes"].map((title, at) => (title ? h("th", { scope: "col", class: at > 1 ? "num" : null }, title) : h("td"))));
  return h("table", { class: "histogram" }, h("thead", null, head), h("tbody", null, rows));
}

/** A thin bar for a share between 0 and 1, in a cell of a table. */
export const meter = (share, text) => h("span", { class: "meter" }, h("span", { class: "meter-bar", style: { width: `${Math.max(0, Math.min(1, share)) * 100}%` } }), h("span", { class: "meter-text" }, text));
