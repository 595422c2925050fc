// The shell: routes in the hash, the head of a table, the drawer, search, theme and keys.
import { h, icon, put } from "./dom.js";
import { ago, when } from "./format.js";
import { exportedTable, get, listen } from "./api.js";
import { announce, badge, copyText, empty, failure, hashWith, skeleton } from "./parts.js";
import { closeInstant, openInstant } from "./instant.js";
import { copyFirstCommand, listenToKeys, moveInList, showKeys } from "./keys.js";
import { findingBadges, tablesPage } from "./tables.js";
import { overviewPage } from "./overview.js";
import { timelinePage } from "./timeline.js";
import { filesPage } from "./files.js";
import { indexPage } from "./index_page.js";
import { schemaPage } from "./schema.js";
import { dataPage } from "./data.js";
import { findingsPage } from "./findings.js";
import { flowsPage } from "./flows.js";

const PAGES = Object.entries({ overview: overviewPage, timeline: timelinePage, files: filesPage, index: indexPage, schema: schemaPage, data: dataPage, findings: findingsPage, flows: flowsPage });
const THEMES = ["system", "light", "dark"];
const main = document.getElementById("main");
const searchBox = h("input", { type: "search", id: "search", "aria-label": "Search", autocomplete: "off", spellcheck: "false" });
let places = null;
let shown = { key: null, page: {}, stop: () => {}, abort: new AbortController() };

function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [id = "", page = "overview"] = path.split("/");
  return { id: id || (exportedTable ?? ""), page, params: Object.fromEntries(new URLSearchParams(query)) };
}

const titleOf = (page) => page[0].toUpperCase() + page.slice(1);

/** Set the theme, or the remembered one; a page of a file may have no memory. */
function setTheme(theme) {
  let chosen = theme;
  try {
    chosen = theme || localStorage.getItem("hoodie-theme");
    localStorage.setItem("hoodie-theme", chosen || "system");
  } catch { /* the theme lasts as long as the page */ }
  document.documentElement.dataset.theme = chosen || "system";
}

function nextTheme() {
  const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length];
  setTheme(theme);
  announce(`Colours: ${theme}`, true);
}

function drawTop() {
  const theme = h("button", { type: "button", id: "theme", class: "quiet-button", "aria-label": "Colours", title: "Colours: light, dark, or as the system (t)", onclick: nextTheme }, icon("theme"));
  const help = h("button", { type: "button", class: "quiet-button", "aria-label": "Keys", title: "Keys (?)", onclick: showKeys }, "?");
  searchBox.addEventListener("input", () => shown.page.search && shown.page.search.input(searchBox.value));
  searchBox.addEventListener("keydown", (event) => { if (event.key === "Enter") enterSearch(); });
  put(document.getElementById("top"), h("a", { class: "brand", href: "#/" }, h("span", { class: "mark", "aria-hidden": "true" }, h("i"), h("i"), h("i")), "hoodie"),
    h("nav", { class: "crumbs", "aria-label": "Place" }),
    h("div", { class: "search", role: "search" }, icon("search"), searchBox, h("kbd", { "aria-hidden": "true" }, "/")),
    theme, help);
  setTheme(null);
}

function enterSearch() {
  const text = searchBox.value.trim();
  if (!text) return;
  if (/^\d{14,17}$/.test(text) && route().id) location.hash = hashWith({ instant: text, action: null });
  else if (shown.page.search) shown.page.search.enter(text);
  else location.hash = `#/?q=${encodeURIComponent(text)}`;
}

function tableHead(table, page) {
  const state = h("span", { class: "state" }, h("span", { class: "bone" }));
  const copy = h("button", { type: "button", class: "path mono", title: "Copy the path", onclick: () => copyText(table.path) }, table.path);
  const tabs = PAGES.map(([name], at) => h("a", { href: `#/${table.id}/${name}`, "aria-current": name === page ? "page" : null, title: `Key ${at + 1}` }, titleOf(name)));
  const head = h("header", { class: "page-head" }, h("div", { class: "title-line" }, h("h1", null, table.name), state), copy, h("nav", { class: "tabs", "aria-label": "Pages of the table" }, tabs));
  const showState = (summary) => put(state, badge(summary.type.replaceAll("_", "-")), badge(`version ${summary.version}`), findingBadges(summary.findings), h("span", { class: "note" }, summary.newest ? ["last write ", when(summary.newest.completed_at, { relative: true })] : "never written"));
  return { head, showState };
}

function tableContext(table, params, abort) {
  let summary = null;
  const ask = (part, more = {}) => get(`tables/${table.id}/${part}`, more, abort.signal);
  const forget = () => { summary = null; };
  const askSummary = () => (summary ??= ask("summary").catch((error) => { forget(); throw error; }));
  const known = { id: table.id, table, params, signal: abort.signal, hasData: places.data, isExport: exportedTable !== null };
  return { ...known, host: h("div", { class: "page" }), get: ask, summary: askSummary, forget };
}

function showTable(table, page, params, abort) {
  const ctx = tableContext(table, params, abort);
  const { head, showState } = tableHead(table, page);
  const found = PAGES.find(([name]) => name === page) || PAGES[0];
  document.title = `${titleOf(found[0])} · ${table.name} · hoodie`;
  const above = ctx.isExport ? badge("exported report") : [h("a", { href: "#/" }, "Tables"), h("span", { "aria-hidden": "true" }, "/")];
  put(document.querySelector(".crumbs"), above, h("span", { "aria-current": "true" }, table.name));
  put(main, head, ctx.host);
  ctx.summary().then(showState, (error) => { if (error.name !== "AbortError") put(head.querySelector(".state"), badge("cannot be read", "error")); });
  const made = found[1](ctx) || {};
  let last = null;
  const stop = listen(table.id, async (event) => {
    const text = JSON.stringify(event);
    if (last !== null && last !== text) {
      ctx.forget();
      ctx.summary().then(showState, () => {});
      if (made.live) await Promise.resolve(made.live(event)).catch(() => {});
      announce(`The timeline changed: ${event.newest}`);
    }
    last = text;
  }, (text) => announce(text, true));
  const current = head.querySelector("[aria-current]");
  if (current) current.parentElement.scrollLeft = current.offsetLeft - 40;
  return { ctx, page: made, stop };
}

const waitOf = (ctx, instant) => ctx.get("waits").then((answer) => answer.rows.find((row) => row.instant === instant) || null, () => null);

function showDrawer({ id, params }) {
  if (!params.instant || !shown.ctx) return closeInstant();
  const { ctx } = shown;
  return openInstant(params.instant, {
    ask: () => ctx.get("instant", { time: params.instant, action: params.action }),
    waiting: () => waitOf(ctx, params.instant),
    onClose: () => { location.hash = hashWith({ instant: null, action: null }); },
    changes: ctx.hasData && !ctx.isExport ? `#/${id}/data?changed=${params.instant}` : null,
  });
}

function showSearch() {
  const { search } = shown.page;
  searchBox.value = "";
  searchBox.placeholder = search ? search.placeholder : "Find a table or an instant";
}

/** Show what the hash names; only the drawer, if the page stays the same. */
function show() {
  const place = route();
  const { instant, action, ...rest } = place.params;
  const key = JSON.stringify([place.id, place.page, rest]);
  if (key === shown.key) return showDrawer(place);
  shown.stop();
  shown.abort.abort();
  if (shown.page.close) shown.page.close();
  closeInstant();
  const abort = new AbortController();
  const table = places.tables.find((each) => each.id === place.id);
  if (table) shown = { key, abort, ...showTable(table, place.page, rest, abort) };
  else if (place.id) {
    put(main, empty("No table has this address.", "It may be gone since the server began. Go back to all tables, or start `hoodie ui` again."), h("p", null, h("a", { href: "#/" }, "All tables")));
    shown = { key, abort, page: {}, stop: () => {} };
  } else {
    document.title = "Tables · hoodie";
    put(document.querySelector(".crumbs"), h("span", { "aria-current": "true" }, "Tables"));
    put(main);
    shown = { key, abort, page: tablesPage({ host: main, places, signal: abort.signal }), stop: () => {} };
  }
  window.scrollTo(0, 0);
  showSearch();
  if (rest.q && shown.page.search) {
    searchBox.value = rest.q;
    shown.page.search.input(rest.q);
  }
  return showDrawer(place);
}

function leave() {
  if (document.querySelector(".drawer")) location.hash = hashWith({ instant: null, action: null });
  else if (document.activeElement === searchBox) {
    searchBox.value = "";
    if (shown.page.search) shown.page.search.input("");
    searchBox.blur();
  }
}

function startKeys() {
  const pageKey = (event) => {
    const at = Number(event.key);
    if (at >= 1 && at <= PAGES.length && route().id) {
      location.hash = `#/${route().id}/${PAGES[at - 1][0]}`;
      return true;
    }
    return Boolean(shown.page.key && !document.querySelector(".drawer") && shown.page.key(event));
  };
  const focusSearch = () => { searchBox.focus(); searchBox.select(); };
  const goUp = () => { location.hash = "#/"; };
  listenToKeys({ "/": focusSearch, "?": showKeys, j: () => moveInList(1), k: () => moveInList(-1), c: copyFirstCommand, t: nextTheme, g: goUp, Escape: leave }, pageKey);
}

async function start() {
  put(main, skeleton(8));
  try {
    places = await get("places");
  } catch (error) {
    put(main, failure(error, start));
    return;
  }
  window.addEventListener("hashchange", show);
  setInterval(() => { for (const node of document.querySelectorAll("time[data-relative]")) node.textContent = ago(new Date(node.dateTime)); }, 10000);
  if (!location.hash && places.tables.length === 1) history.replaceState(null, "", `#/${places.tables[0].id}/overview`);
  show();
}

drawTop();
startKeys();
start();
