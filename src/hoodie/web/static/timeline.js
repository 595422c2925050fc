// The timeline page: the chart, and the instants of its window as a list.
import { h, put } from "./dom.js";
import { bytes, count, counted, duration, when } from "./format.js";
import { announce, badge, empty, failure, grid, hashWith, instantLink, panel } from "./parts.js";
import { moveInList } from "./keys.js";
import { stateKind } from "./instant.js";
import { TimelineChart } from "./timeline_chart.js";

const FIRST = 1000;
const OLDER = 5000;
const FRESH = 50;
const LISTED = 60;
const NEWEST = 120;

function prepared(row) {
  const start = Date.parse(row.requested_at || row.completed_at);
  return { ...row, start, end: row.completed_at ? Math.max(start, Date.parse(row.completed_at)) : null, dead: Boolean(row.problem), fresh: false };
}

const keyOf = (row) => `${row.instant}${row.action === "savepoint" ? ".savepoint" : ""}`;

function changes(row) {
  const parts = [["+", row.inserted, "inserted"], ["~", row.updated, "updated"], ["−", row.deleted, "deleted"]].filter(([, number]) => number);
  if (parts.length === 0) return h("span", { class: "quiet" }, "–");
  return parts.map(([sign, number, name]) => h("span", { class: `change ${name}`, title: `${count(number)} ${name}` }, `${sign}${count(number)} `));
}

const COLUMNS = [
  { title: "Completed", cell: (row) => (row.completed_at ? when(row.completed_at) : h("span", { class: "quiet" }, "since ", when(row.requested_at, { relative: true }))) },
  { title: "Action", cell: (row) => row.action },
  { title: "Operation", cell: (row) => row.operation || h("span", { class: "quiet" }, "–") },
  { title: "State", cell: (row) => [row.state === "completed" && !row.dead ? h("span", { class: "quiet" }, "completed") : badge(row.problem ? "damaged" : row.dead ? "dead" : row.state, row.dead ? "error" : stateKind(row.state)), row.is_archived && " ", row.is_archived && badge("archived")] },
  { title: "Took", kind: "num", cell: (row) => duration(row.seconds) },
  { title: "Rows", kind: "num", cell: changes },
  { title: "Written", kind: "num", cell: (row) => bytes(row.bytes_written) },
  { title: "Instant", head: true, cell: (row) => instantLink(row.instant, row.action) },
];

/** The state of the page: rows by key, the cursor, and what is switched on. */
class TimelinePage {
  constructor(ctx) {
    Object.assign(this, { ctx, byKey: new Map(), overlay: null, next: null, archived: false, text: "", sorted: [], list: h("div") });
    this.note = h("span", { class: "note" });
    this.status = h("span", { class: "note" }, "Loading…");
    this.chart = new TimelineChart({ onOpen: (row, isOverlay) => (isOverlay && !this.byKey.has(keyOf(row)) ? announce(`An instant of the metadata table alone: ${row.instant}`, true) : this.open(row)), onMove: () => this.listSoon() });
    this.older = h("button", { type: "button", onclick: () => this.loadOlder(), disabled: true }, "Older");
  }

  open(row) {
    this.chart.selected = row;
    this.chart.draw();
    location.hash = hashWith({ instant: row.instant, action: row.action });
  }

  toggle(name, change) { return h("label", { class: "check" }, h("input", { type: "checkbox", onchange: (event) => change(event.target.checked) }), name); }
  tool(text, label, action) { return h("button", { type: "button", "aria-label": label, title: label, onclick: action }, text); }

  show() {
    const tools = h("div", { class: "tools", role: "toolbar", "aria-label": "Timeline" },
      this.tool("−", "Zoom out (−)", () => this.chart.zoom(1.6)), this.tool("+", "Zoom in (+)", () => this.chart.zoom(1 / 1.6)),
      this.tool("←", "Earlier (←)", () => this.chart.pan(-0.25)), this.tool("→", "Later (→)", () => this.chart.pan(0.25)),
      this.tool("Fit", "Show all loaded instants (0)", () => this.chart.fit()), this.tool("Newest", "Show the newest instants", () => this.chart.fit(NEWEST)),
      this.older, this.toggle("Archived", (isOn) => this.setArchived(isOn)), this.toggle("Metadata table", (isOn) => this.setOverlay(isOn)), this.status);
    this.frame = h("div", { class: "chart-frame" }, this.chart.node);
    put(this.ctx.host, h("div", { class: "panels" }, panel("Timeline", { wide: true }, tools, this.frame), panel("Instants in the window", { wide: true, side: this.note }, this.list)));
    this.refresh();
  }

  async refresh() {
    this.older.disabled = true;
    try {
      const answer = await this.ctx.get("timeline", { limit: FIRST, archived: this.archived });
      this.byKey = new Map(answer.rows.map((row) => [keyOf(row), prepared(row)]));
      this.next = answer.next;
      await this.markDead();
      this.redraw();
      this.chart.fit(NEWEST);
    } catch (error) {
      if (error.name !== "AbortError") put(this.frame, failure(error, () => this.show()));
    }
  }

  async markDead() {
    const waits = await this.ctx.get("waits").catch(() => ({ rows: [] }));
    for (const wait of waits.rows) {
      const row = this.byKey.get(wait.instant);
      if (row) row.dead = Boolean(row.problem) || wait.about.startsWith("dead");
    }
  }

  rows() {
    return [...this.byKey.values()].filter((row) => !this.text || `${row.instant} ${row.action} ${row.operation || ""} ${row.dead ? "dead" : row.state}`.toLowerCase().includes(this.text));
  }

  redraw() {
    const rows = this.rows();
    this.sorted = [...rows].sort((a, b) => (b.instant < a.instant ? -1 : b.instant > a.instant ? 1 : 0));
    const groups = [{ name: "", rows }];
    if (this.overlay) groups.push({ name: "Metadata table", rows: this.overlay });
    this.chart.setGroups(groups);
    this.older.disabled = this.next === null;
    this.older.title = this.next === null ? "All instants are loaded" : "Load older instants";
    put(this.status, `${counted(rows.length, "instant")}${this.next === null ? "" : ", older ones are not loaded"}`);
    if (this.byKey.size === 0) put(this.frame, empty("This table has no instant yet.", "The first write makes one."));
    else if (!this.frame.contains(this.chart.node)) put(this.frame, this.chart.node);
    this.listSoon();
  }

  listSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.showList(), 80);
  }

  showList() {
    const { from, to } = this.chart;
    const inside = this.sorted.filter((row) => row.start <= to && (row.end === null || row.end >= from));
    const shown = inside.slice(0, LISTED);
    const focused = document.activeElement && this.list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    put(this.note, inside.length > LISTED ? `newest ${LISTED} of ${count(inside.length)}` : counted(inside.length, "instant"));
    if (inside.length === 0) return put(this.list, empty("No instant in this window.", this.byKey.size ? "Fit (0) shows all that are loaded." : null));
    put(this.list, grid("Instants in the window, newest first", shown, COLUMNS, { open: (row) => this.open(row) }));
    return this.list.querySelectorAll("tbody tr").forEach((line, at) => {
      line.dataset.key = keyOf(shown[at]);
      if (shown[at].fresh) line.classList.add("fresh");
      line.addEventListener("focus", () => { this.chart.selected = shown[at]; this.chart.draw(); });
      if (line.dataset.key === focused) line.focus({ preventScroll: true });
    });
  }

  async loadOlder() {
    this.older.disabled = true;
    put(this.status, "Loading older instants…");
    try {
      const answer = await this.ctx.get("timeline", { limit: OLDER, before: this.next, archived: this.archived });
      for (const row of answer.rows) if (!this.byKey.has(keyOf(row))) this.byKey.set(keyOf(row), prepared(row));
      this.next = answer.next;
      this.redraw();
      announce(`${counted(answer.rows.length, "older instant")} loaded`);
      this.chart.fit();
    } catch (error) {
      put(this.status, error.message);
      this.older.disabled = false;
    }
  }

  async setArchived(isOn) {
    this.archived = isOn;
    put(this.status, "Loading…");
    await this.refresh();
    if (isOn) this.chart.fit();
  }

  async setOverlay(isOn) {
    this.overlay = null;
    if (isOn) {
      put(this.status, "Loading the metadata table…");
      try {
        const answer = await this.ctx.get("timeline", { limit: FIRST, metadata: true, archived: this.archived });
        this.overlay = answer.rows.map(prepared);
      } catch (error) {
        announce(error.message, true);
      }
    }
    this.redraw();
    if (isOn && this.overlay && this.overlay.length === 0) announce("This table has no metadata table.", true);
  }

  /** New instants slide in; the window follows if it showed the present. */
  async live() {
    const answer = await this.ctx.get("timeline", { limit: FRESH });
    // The page was hidden for long: what lies between is loaded too.
    if (answer.next !== null && !answer.rows.some((row) => this.byKey.has(keyOf(row)))) return this.refresh();
    const isFollowing = this.chart.to > this.chart.last;
    for (const row of answer.rows) {
      const old = this.byKey.get(keyOf(row));
      if (!old || old.state !== row.state) this.byKey.set(keyOf(row), { ...prepared(row), fresh: true });
    }
    const newest = new Set(answer.rows.map(keyOf));
    const oldest = answer.rows.length ? answer.rows[answer.rows.length - 1].instant : "";
    for (const [key, row] of this.byKey) if (row.instant >= oldest && !newest.has(key) && row.end === null) this.byKey.delete(key);
    await this.markDead();
    this.redraw();
    const past = Date.now() - this.chart.to;
    if (isFollowing && past > 0) this.chart.show(this.chart.from + past, this.chart.to + past);
    return setTimeout(() => { for (const row of this.byKey.values()) row.fresh = false; }, 1500);
  }

  key(event) {
    const actions = { "+": () => this.chart.zoom(1 / 1.6), "=": () => this.chart.zoom(1 / 1.6), "-": () => this.chart.zoom(1.6), ArrowLeft: () => this.chart.pan(-0.2), ArrowRight: () => this.chart.pan(0.2), 0: () => this.chart.fit() };
    const action = actions[event.key];
    if (!action || event.target.closest(".grid, [role=toolbar] input")) return false;
    action();
    return true;
  }
}

/** The timeline of a table. */
export function timelinePage(ctx) {
  const page = new TimelinePage(ctx);
  page.show();
  const filter = (text) => { page.text = text.trim().toLowerCase(); page.redraw(); };
  const search = { placeholder: "Filter instants", input: filter, enter: () => moveInList(1) };
  return { live: () => page.live(), key: (event) => page.key(event), close: () => page.chart.resized.disconnect(), search };
}
