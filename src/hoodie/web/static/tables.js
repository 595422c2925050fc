// The list of all tables below the given places, by trouble.
import { h, put } from "./dom.js";
import { bytes, count, counted, when } from "./format.js";
import { get } from "./api.js";
import { badge, empty, notes } from "./parts.js";

const AT_ONCE = 4;
const CELLS = ["state", "rows", "size", "files", "waits", "newest", "type"];
const NUMBERS = ["rows", "size", "files", "waits"];

async function inTurns(items, work, signal) {
  const left = [...items];
  const run = async () => { while (left.length > 0 && !signal.aborted) await work(left.shift()); };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, run));
}

/** The badges of a table's findings, errors first. */
export function findingBadges(found) {
  const errors = found.filter((each) => each.severity === "error").length;
  const warnings = found.length - errors;
  if (found.length === 0) return badge("no findings", "ok");
  return [errors > 0 && badge(counted(errors, "error"), "error"), errors > 0 && warnings > 0 && " ", warnings > 0 && badge(counted(warnings, "warning"), "warning")];
}

function trouble(summary) {
  if (summary.error) return 1e6;
  return summary.findings.reduce((sum, each) => sum + (each.severity === "error" ? 1000 : 10), 0) + Math.min(summary.pending, 9);
}

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
  const entries = places.tables.map(shell);
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

async function fillTables(entries, body, verdict, signal) {
  await inTurns(entries, async (entry) => {
    try {
      entry.summary = await get(`tables/${entry.table.id}/summary`, {}, signal);
    } catch (error) {
      if (error.name === "AbortError") return;
      entry.summary = { error: error.message };
    }
    showSummary(entry);
  }, signal);
  if (signal.aborted) return;
  entries.sort((a, b) => trouble(b.summary) - trouble(a.summary) || a.table.name.localeCompare(b.table.name));
  const focused = document.activeElement;
  body.append(...entries.map((entry) => entry.line));
  if (focused && body.contains(focused)) focused.focus();
  const ill = entries.filter((entry) => trouble(entry.summary) >= 10).length;
  verdict.append(ill ? ` · ${counted(ill, "table")} with findings` : entries.length ? " · none has findings" : "");
  const seen = new IntersectionObserver((changes) => {
    const shown = changes.filter((each) => each.isIntersecting).map((each) => entries.find((entry) => entry.line === each.target));
    for (const entry of shown) seen.unobserve(entry.line);
    inTurns(shown.filter((entry) => entry && !entry.summary.error), async (entry) => {
      await get(`tables/${entry.table.id}/sizes`, {}, signal).then((sizes) => showSizes(entry, sizes), () => {});
    }, signal);
  });
  for (const entry of entries) seen.observe(entry.line);
}
