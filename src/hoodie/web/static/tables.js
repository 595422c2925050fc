// The list of all tables below the given places, by trouble.
import { h, put } from "./dom.js";
import { bytes, count, counted, when } from "./format.js";
import { get } from "./api.js";
import { badge, empty, notes } from "./parts.js";

// Fewer requests at once than the six connections that browsers allow, and those for sizes apart: they may take long.
const [SUMMARIES, SUMMARY_MS] = [3, 20000];
const [SIZES, SIZES_MS] = [2, 60000];
const CELLS = ["state", "rows", "size", "files", "waits", "newest", "type"];
const NUMBERS = ["rows", "size", "files", "waits"];

/** Return a function that takes items; `work` runs for a few of them at once, and is given a signal that ends it. */
function lane(atOnce, milliseconds, signal, work) {
  const waiting = [];
  let running = 0;
  const next = async () => {
    if (running >= atOnce || waiting.length === 0 || signal.aborted) return;
    running += 1;
    await work(waiting.shift(), AbortSignal.any([signal, AbortSignal.timeout(milliseconds)]));
    running -= 1;
    next();
  };
  return (item) => { waiting.push(item); next(); };
}

/** The badges of a table's findings, errors first. */
export function findingBadges(found) {
  const errors = found.filter((each) => each.severity === "error").length;
  const warnings = found.length - errors;
  if (found.length === 0) return badge("no findings", "ok");
  return [errors > 0 && badge(counted(errors, "error"), "error"), errors > 0 && warnings > 0 && " ", warnings > 0 && badge(counted(warnings, "warning"), "warning")];
}

function trouble(summary) {
  if (summary === null) return -1;
  if (summary.error) return summary.isLate ? 1e5 : 1e6;
  return summary.findings.reduce((sum, each) => sum + (each.severity === "error" ? 1000 : 10), 0) + Math.min(summary.pending, 9);
}

const byTrouble = (a, b) => trouble(b.summary) - trouble(a.summary) || a.table.name.localeCompare(b.table.name);

function shell(table) {
  const cells = Object.fromEntries(CELLS.map((name) => [name, h("td", { class: NUMBERS.includes(name) ? "num" : null }, name === "state" ? h("span", { class: "bone" }) : "–")]));
  const link = h("a", { href: `#/${table.id}/overview` }, table.name);
  const line = h("tr", { "data-item": "1", tabindex: "-1" }, h("th", { scope: "row" }, link, h("span", { class: "path mono" }, table.path)), Object.values(cells));
  const open = (event) => { if (!event.target.closest("a") && (event.type === "click" || event.key === "Enter")) location.hash = `#/${table.id}/overview`; };
  line.addEventListener("click", open);
  line.addEventListener("keydown", open);
  return { table, line, cells, summary: null };
}

function showSummary(entry) {
  const { summary, cells } = entry;
  if (summary.isLate) return put(cells.state, badge("no answer yet", "warning"));
  if (summary.error) return put(cells.state, badge("cannot be read", "error"), h("span", { class: "path" }, summary.error));
  put(cells.state, findingBadges(summary.findings));
  put(cells.waits, summary.pending ? badge(count(summary.pending), "warning") : h("span", { class: "quiet" }, "0"));
  put(cells.newest, summary.newest ? when(summary.newest.completed_at, { relative: true }) : h("span", { class: "quiet" }, "never"));
  return put(cells.type, summary.type.replaceAll("_", "-"), h("span", { class: "quiet" }, ` v${summary.version}`));
}

function showSizes(entry, sizes) {
  put(entry.cells.rows, h("span", { title: sizes.rows_note || null }, count(sizes.rows)));
  put(entry.cells.size, bytes(sizes.bytes));
  put(entry.cells.files, count(sizes.files));
}

/** The page of all tables. */
export function tablesPage({ host, places, signal }) {
  const entries = places.tables.map(shell).sort(byTrouble);
  const body = h("tbody", null, entries.map((entry) => entry.line));
  const head = ["Table", "State", "Rows", "Size", "Files", "Waiting", "Last write", "Type"].map((title, at) => h("th", { scope: "col", class: at > 1 && at < 6 ? "num" : null }, title));
  const verdict = h("p", { class: "verdict" }, `${counted(entries.length, "table")} below ${places.places.join(", ")}`);
  put(host, h("header", { class: "page-head" }, h("h1", null, "Tables"), verdict), notes(places.notes),
    entries.length
      ? h("section", { class: "panel wide", "aria-label": "Tables" }, h("div", { class: "grid", role: "group", tabindex: "0", "aria-label": "Tables by trouble" }, h("table", { class: "tables" }, h("thead", null, h("tr", null, head)), body)))
      : empty("No table was found.", `Searched: ${places.places.join(", ")}. A table is a folder with .hoodie/hoodie.properties. Give another place, or make one:`, "hoodie demo"));
  fillTables(entries, body, verdict, signal);
  return {
    search: { placeholder: "Filter tables",
      input: (text) => { for (const { table, line } of entries) line.hidden = !`${table.name} ${table.path}`.toLowerCase().includes(text.toLowerCase()); },
      enter: () => { const entry = [...body.children].find((line) => !line.hidden); if (entry) entry.querySelector("a").click(); } },
  };
}

/** Move the row of a table to its place by trouble; the other rows are in order. */
function arrange(entry, entries, body) {
  const focused = entry.line.contains(document.activeElement) ? document.activeElement : null;
  entries.sort(byTrouble);
  body.insertBefore(entry.line, entries[entries.indexOf(entry) + 1]?.line || null);
  if (focused) focused.focus({ preventScroll: true });
}

function fillTables(entries, body, verdict, signal) {
  const askSizes = lane(SIZES, SIZES_MS, signal, (entry, ends) => get(`tables/${entry.table.id}/sizes`, {}, ends).then((sizes) => showSizes(entry, sizes),
    (error) => { if (error.name === "TimeoutError") put(entry.cells.size, h("span", { class: "quiet" }, "no answer yet")); }));
  const seen = new IntersectionObserver((changes) => {
    for (const { target } of changes.filter((each) => each.isIntersecting)) {
      seen.unobserve(target);
      askSizes(entries.find((entry) => entry.line === target));
    }
  });
  let left = entries.length;
  const askSummary = lane(SUMMARIES, SUMMARY_MS, signal, async (entry, ends) => {
    entry.summary = await get(`tables/${entry.table.id}/summary`, {}, ends).catch((error) => ({ error: error.message, isLate: error.name === "TimeoutError" }));
    if (signal.aborted) return;
    showSummary(entry);
    arrange(entry, entries, body);
    if (!entry.summary.error) seen.observe(entry.line);
    left -= 1;
    if (left > 0) return;
    const late = entries.filter((each) => each.summary.isLate).length;
    const ill = entries.filter((each) => trouble(each.summary) >= 10).length - late;
    verdict.append(ill ? ` · ${counted(ill, "table")} with findings` : late ? "" : " · none has findings", late ? ` · ${counted(late, "table")} without an answer yet` : "");
  });
  entries.slice().forEach(askSummary);
}
