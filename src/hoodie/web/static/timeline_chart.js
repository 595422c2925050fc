// The chart of a timeline: a lane an action, bars from requested to completed; only what is in the window is drawn.
import { h, put, svg } from "./dom.js";
import { counted, duration, local } from "./format.js";

const LANE = 26;
const AXIS = 26;
const MINI = 34;
const LABEL = 112;
const ORDER = ["commit", "deltacommit", "compaction", "log compaction", "clustering", "replacecommit", "clean", "rollback", "restore", "savepoint", "indexing"];
const BY_OPERATION = { compact: "compaction", log_compact: "log compaction", cluster: "clustering" };
const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000];
const SHORTEST = 2000;

/** The lane of an instant: table services that end as a commit or replacecommit stay in their own lane. */
const laneOf = (row) => BY_OPERATION[row.operation] || (row.action === "logcompaction" ? "log compaction" : row.action);

/** One sentence about an instant. */
function instantSentence(row) {
  const state = row.dead ? "dead" : row.state;
  return `${row.action}${row.operation ? ` (${row.operation})` : ""}, ${state}${row.seconds !== null && row.seconds !== undefined ? `, ${duration(row.seconds)}` : ""}`;
}

function tickText(time, step) {
  const date = new Date(time);
  if (step >= 86400) return local(date, false).slice(step >= 2592000 ? 0 : 5);
  const clock = local(date).slice(11, step >= 60 ? 16 : 19);
  return date.getHours() + date.getMinutes() + date.getSeconds() === 0 ? local(date, false).slice(5) : clock;
}

/** A chart of `rows`; it keeps its own window in time. `onOpen(row)`, `onMove()`: the window changed. */
export class TimelineChart {
  constructor({ onOpen, onMove }) {
    this.onOpen = onOpen;
    this.onMove = onMove;
    Object.assign(this, { groups: [], rows: [], hits: [], selected: null, isPlanned: false, from: Date.now() - 86400000, to: Date.now() });
    this.tip = h("div", { class: "tip", hidden: true });
    this.svg = svg("svg", { class: "timeline", role: "img", "aria-label": "Timeline" });
    this.node = h("div", { class: "timeline-host", tabindex: "0", role: "group", "aria-label": "Timeline: plus and minus zoom, the left and right arrows move, 0 shows everything" }, this.svg, this.tip);
    this.listenToPointer();
    this.resized = new ResizeObserver(() => { this.measured = null; this.draw(); });
    this.resized.observe(this.node);
  }

  /** Take rows: `[{name, rows}]`, the table's own first, then overlays; each row has start, end, lane. */
  setGroups(groups) {
    this.groups = groups.map(({ name, rows }) => {
      const lanes = new Map();
      for (const row of rows) {
        const lane = laneOf(row);
        if (!lanes.has(lane)) lanes.set(lane, []);
        lanes.get(lane).push(row);
      }
      const place = (lane) => (ORDER.includes(lane) ? ORDER.indexOf(lane) : ORDER.length);
      const sorted = [...lanes].sort(([a], [b]) => place(a) - place(b)).map(([lane, list]) => ({ lane, rows: list.sort((a, b) => a.start - b.start) }));
      return { name, lanes: sorted };
    });
    this.rows = groups.length ? groups[0].rows : [];
    this.first = this.rows.reduce((least, row) => Math.min(least, row.start), Infinity);
    this.last = this.rows.reduce((most, row) => Math.max(most, row.end || row.start), 0);
    this.hasPending = this.rows.some((row) => row.end === null);
    this.bins = null;
    this.draw();
  }

  /** Where the timeline ends: now, if something is pending or the newest instant is young. */
  present() {
    const isLive = this.hasPending || Date.now() - this.last < (this.last - this.first) * 0.2;
    return isLive ? Date.now() : this.last;
  }

  /** Show all rows, or only the newest `number` of them. */
  fit(number = Infinity) {
    if (this.rows.length === 0) return;
    const starts = this.rows.map((row) => row.start).sort((a, b) => b - a);
    const first = starts[Math.min(starts.length, number) - 1];
    const last = this.present();
    const margin = Math.max((last - first) * 0.03, SHORTEST / 2);
    this.show(first - margin, last + margin);
  }

  /** Show a window of time, at least two seconds and at most all rows with as much again beside them. */
  show(from, to) {
    const span = Math.max(SHORTEST, Math.min(to - from, Math.max((Date.now() - this.first) * 3, 3600000)));
    const middle = (from + to) / 2;
    this.from = middle - span / 2;
    this.to = middle + span / 2;
    this.draw();
  }

  /** Zoom by a factor around a time, by default the middle; below 1 shows less. */
  zoom(factor, around = (this.from + this.to) / 2) { this.show(around - (around - this.from) * factor, around + (this.to - around) * factor); }

  /** Move by a share of the window; negative is earlier. */
  pan(share) {
    const by = (this.to - this.from) * share;
    this.show(this.from + by, this.to + by);
  }

  /** Draw before the next frame, once, however often it is called. */
  draw() {
    if (this.isPlanned) return;
    this.isPlanned = true;
    requestAnimationFrame(() => {
      this.isPlanned = false;
      if (this.node.isConnected) this.drawNow();
    });
  }

  width() { return (this.measured ??= Math.max(280, this.node.clientWidth)); }
  labelWidth() { return this.width() < 600 ? 84 : LABEL; }
  xOf(time) { return this.labelWidth() + ((time - this.from) / (this.to - this.from)) * (this.width() - this.labelWidth() - 12); }
  timeAt(x) { return this.from + ((x - this.labelWidth()) / (this.width() - this.labelWidth() - 12)) * (this.to - this.from); }

  drawNow() {
    const lanes = this.groups.flatMap((group, at) => group.lanes.map((lane, number) => ({ ...lane, overlay: at > 0, title: at > 0 && number === 0 ? group.name : null })));
    let y = AXIS;
    this.hits = [];
    const pieces = lanes.map((lane) => {
      y += lane.title ? 22 : 0;
      const made = this.drawLane(lane, y);
      y += LANE;
      return made;
    });
    const height = y + MINI + 6;
    this.svg.setAttribute("viewBox", `0 0 ${this.width()} ${height}`);
    this.svg.setAttribute("height", height);
    const inside = this.rows.filter((row) => row.start < this.to && (row.end || Date.now()) > this.from).length;
    this.svg.setAttribute("aria-label", `Timeline from ${local(new Date(this.from))} to ${local(new Date(this.to))}: ${counted(inside, "instant")}`);
    const now = this.xOf(Date.now());
    put(this.svg, this.drawAxis(y), pieces, now > this.labelWidth() && svg("line", { class: "now", x1: now, x2: now, y1: AXIS - 6, y2: y }), this.drawMini(y + 6));
    if (this.from !== this.drawn?.from || this.to !== this.drawn?.to) this.onMove();
    this.drawn = { from: this.from, to: this.to };
  }

  drawAxis(bottom) {
    const most = Math.max(2, Math.floor((this.width() - this.labelWidth()) / 86));
    const step = STEPS.find((each) => ((this.to - this.from) / 1000) / each <= most) || STEPS[STEPS.length - 1];
    const shift = new Date(this.from).getTimezoneOffset() * 60000;
    const ticks = [];
    for (let at = Math.ceil((this.from - shift) / (step * 1000)) * step * 1000 + shift; at < this.to; at += step * 1000) {
      const x = this.xOf(at);
      ticks.push(svg("line", { class: "tick", x1: x, x2: x, y1: AXIS - 6, y2: bottom }), x < this.width() - 18 && svg("text", { class: "axis", x, y: 13, "text-anchor": "middle" }, tickText(at, step)));
    }
    return svg("g", { class: "ticks" }, ticks);
  }

  drawLane({ lane, rows, overlay, title }, y) {
    const out = [];
    if (title) out.push(svg("text", { class: "group-title", x: 0, y: y - 8 }, title));
    out.push(svg("line", { class: "lane-line", x1: this.labelWidth() - 8, x2: this.width(), y1: y + LANE / 2, y2: y + LANE / 2 }));
    out.push(svg("text", { class: "lane-label", x: 0, y: y + LANE / 2 + 4 }, lane));
    let run = null;
    const flush = () => {
      if (run) out.push(this.drawRun(run, lane, y, overlay));
      run = null;
    };
    const right = this.width();
    const now = Date.now();
    for (const row of rows) {
      if (row.start > this.to) break;
      const end = row.end === null ? now : row.end;
      if (end < this.from) continue;
      const x0 = Math.max(this.xOf(row.start), this.labelWidth() - 6);
      const x1 = row.end === null ? right : Math.min(this.xOf(end), right);
      const isPlain = row.end !== null && !row.dead && !row.fresh && row !== this.selected;
      if (run && isPlain && run.plain && x0 - run.x0 < 4 && x1 - run.x0 < 8) {
        run.rows.push(row);
        run.x1 = Math.max(run.x1, x1);
        continue;
      }
      flush();
      run = { x0, x1, rows: [row], plain: isPlain };
    }
    flush();
    const group = svg("g", { class: overlay ? "lane overlay" : "lane" }, out);
    group.style.setProperty("--c", `var(--c-${lane.replace(" ", "-")}, var(--muted))`);
    return group;
  }

  drawRun({ x0, x1, rows }, lane, y, overlay) {
    const row = rows[rows.length - 1];
    const middle = y + LANE / 2;
    const state = [row.end === null ? "pending" : "", row.dead ? "dead" : "", row.is_archived ? "archived" : "", row.fresh ? "fresh" : "", row === this.selected ? "selected" : "", rows.length > 1 ? "many" : ""].join(" ");
    this.hits.push({ x0: Math.min(x0, (x0 + x1) / 2 - 5), x1: Math.max(x1, x0 + 6), y, rows, overlay });
    const parts = [];
    if (x1 - x0 < 7 && row.end !== null) parts.push(svg("circle", { class: `dot ${state}`, cx: (x0 + x1) / 2, cy: middle, r: row === this.selected ? 6 : 4 }));
    else parts.push(svg("rect", { class: `span ${state}`, x: x0, y: middle - 6, width: Math.max(3, x1 - x0), height: 12, rx: 4 }));
    if (row.dead) parts.push(svg("path", { class: "dead-mark", d: `M${x0 + 4} ${middle - 4}l8 8m0 -8l-8 8` }));
    return parts;
  }

  drawMini(y) {
    if (this.rows.length < 2) return null;
    const left = this.labelWidth();
    const wide = this.width() - left - 12;
    const span = Math.max(1, this.present() - this.first);
    const bins = Math.max(20, Math.floor(wide / 6));
    if (!this.bins || this.bins.length !== bins) {
      this.bins = new Array(bins).fill(0);
      for (const row of this.rows) this.bins[Math.min(bins - 1, Math.floor(((row.start - this.first) / span) * bins))] += 1;
    }
    const most = Math.max(...this.bins);
    const bars = this.bins.map((number, at) => number > 0 && svg("rect", { x: left + (at * wide) / bins, y: y + 22 - Math.max(2, (number / most) * 20), width: Math.max(1, wide / bins - 1), height: Math.max(2, (number / most) * 20) }));
    const x0 = Math.max(left, left + ((this.from - this.first) / span) * wide);
    const x1 = Math.min(left + wide, left + ((this.to - this.first) / span) * wide);
    this.mini = { y, left, wide, span };
    return svg("g", { class: "mini" }, svg("text", { class: "lane-label", x: 0, y: y + 16 }, "all loaded"), bars, svg("rect", { class: "window", x: x0, y: y - 2, width: Math.max(4, x1 - x0), height: 26, rx: 3 }));
  }

  hitAt(event) {
    const box = this.svg.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const found = this.hits.filter((hit) => y >= hit.y && y < hit.y + LANE && x >= hit.x0 - 2 && x <= hit.x1 + 2);
    return found.sort((a, b) => a.x1 - a.x0 - (b.x1 - b.x0))[0] || null;
  }

  showTip(event) {
    const hit = this.hitAt(event);
    this.node.classList.toggle("over", hit !== null);
    this.tip.hidden = hit === null;
    if (hit === null) return;
    const row = hit.rows[hit.rows.length - 1];
    put(this.tip, hit.rows.length > 1 ? h("strong", null, `${counted(hit.rows.length, "instant")}: zoom in to see each`) : h("strong", null, row.instant), h("span", null, instantSentence(row)), h("span", { class: "quiet" }, local(new Date(row.start))));
    const box = this.node.getBoundingClientRect();
    const x = Math.max(8, Math.min(event.clientX - box.left + 12, box.width - this.tip.offsetWidth - 8));
    this.tip.style.transform = `translate(${x}px, ${hit.y + LANE + 4}px)`;
  }

  openAt(event) {
    const hit = this.hitAt(event);
    if (hit && hit.rows.length > 1) {
      const starts = hit.rows.map((row) => row.start);
      const span = Math.max(SHORTEST, Math.max(...starts) - Math.min(...starts));
      this.show(Math.min(...starts) - span * 0.3, Math.max(...starts) + span * 0.3);
    } else if (hit) this.onOpen(hit.rows[0], hit.overlay);
  }

  listenToPointer() {
    let drag = null;
    this.node.addEventListener("wheel", (event) => {
      const y = event.clientY - this.svg.getBoundingClientRect().top;
      const isAxis = y < AXIS || (this.mini && y > this.mini.y);
      if (event.ctrlKey || isAxis) this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), this.timeAt(event.clientX - this.svg.getBoundingClientRect().left));
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / 800);
      else return;
      event.preventDefault();
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => {
      const box = this.svg.getBoundingClientRect();
      const isMini = this.mini && event.clientY - box.top > this.mini.y - 2;
      drag = { x: event.clientX, from: this.from, to: this.to, moved: false, isMini };
      if (isMini) this.centre(event.clientX - box.left);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!drag) return this.showTip(event);
      const by = event.clientX - drag.x;
      if (Math.abs(by) > 3 && !drag.moved) {
        drag.moved = true;
        this.svg.setPointerCapture(event.pointerId);
      }
      if (drag.isMini) return this.centre(event.clientX - this.svg.getBoundingClientRect().left);
      const time = (by / (this.width() - this.labelWidth())) * (drag.to - drag.from);
      if (drag.moved) this.show(drag.from - time, drag.to - time);
      return undefined;
    });
    this.svg.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved && !drag.isMini) this.openAt(event);
      drag = null;
    });
    this.node.addEventListener("pointerleave", () => { this.tip.hidden = true; });
  }

  centre(x) {
    const { left, wide, span } = this.mini;
    const time = this.first + ((x - left) / wide) * span;
    this.show(time - (this.to - this.from) / 2, time + (this.to - this.from) / 2);
  }
}
