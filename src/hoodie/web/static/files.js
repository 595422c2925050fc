// Files: sizes, partitions and their slices, the log backlog, and the history of a file group.
import { h, put } from "./dom.js";
import { bytes, count, counted, when } from "./format.js";
import { badge, command, empty, fact, facts, grid, instantLink, later, load, panel, showPanels } from "./parts.js";
import { meter, sizeHistogram } from "./charts.js";

const PAGE = 25;

function sizesPart(sizes) {
  if (!sizes.files) return empty("This table has no file yet.", "The first write makes them.");
  const small = sizes.histogram.length ? sizeHistogram(sizes.histogram, sizes.small_below_bytes) : null;
  const hint = `${count(sizes.small_files)} of ${counted(sizes.base_files, "base file")} are small, below ${bytes(sizes.small_below_bytes)}.`;
  return h("div", null, facts(fact("Base files", count(sizes.base_files)), fact("Log files", count(sizes.log_files), bytes(sizes.log_bytes)), fact("Mean size", bytes(sizes.bytes / sizes.files)), fact("Largest partition", sizes.largest_ratio ? `${sizes.largest_ratio.toFixed(1)} × median` : "–")), small, h("p", { class: "note" }, hint));
}

/** The page of a table's files. */
class FilesPage {
  constructor(ctx) { Object.assign(this, { ctx, sort: "bytes", detail: h("div", { class: "panels detail" }), partitions: h("div") }); }

  show() {
    const { ctx } = this;
    const order = h("select", { "aria-label": "Order of the partitions", onchange: (event) => { this.sort = event.target.value; put(this.partitions); this.showPartitions(); } }, h("option", { value: "bytes" }, "largest first"), h("option", { value: "name" }, "by name"));
    showPanels(ctx,
      panel("File sizes", { note: "latest file slices" }, later(() => ctx.get("sizes"), sizesPart, 8)),
      panel("Log backlog", { note: "most log bytes first" }, later(async () => [await ctx.get("backlog", { limit: 50 }), await ctx.summary()], (answers) => this.backlogPart(...answers), 8)),
      this.detail,
      panel("Partitions", { wide: true, side: order }, this.partitions));
    this.showPartitions();
    const { partition, file } = ctx.params;
    if (file) this.openGroup(file);
    else if (partition !== undefined) this.openPartition(partition);
  }

  backlogPart(answer, summary) {
    if (answer.rows.length === 0) return empty("No log file waits for a compaction.", summary.type === "copy_on_write" ? "A copy-on-write table has no log files." : null);
    const sum = (name) => answer.rows.reduce((all, row) => all + row[name], 0);
    const most = Math.max(...answer.rows.map((row) => row.log_size_bytes));
    return h("div", null,
      h("p", null, `${counted(answer.rows.length, "file group")} with ${bytes(sum("log_size_bytes"))} of logs; a compaction of them reads and writes about ${bytes(sum("cost_bytes"))}.`),
      command(`hoodie compact ${shellWord(summary.path)}`),
      grid("Log backlog by file group", answer.rows, [
        { title: "Partition", head: true, kind: "mono", cell: (row) => row.partition_path || "(no partition)" },
        { title: "Logs", kind: "num", cell: (row) => count(row.log_files) },
        { title: "Log bytes", cell: (row) => meter(row.log_size_bytes / most, bytes(row.log_size_bytes)) },
        { title: "Cost", kind: "num", cell: (row) => bytes(row.cost_bytes) },
        { title: "File group", cell: (row) => this.groupButton(row.file_id) },
      ], { open: (row) => this.openGroup(row.file_id) }));
  }

  groupButton(fileId) { return h("button", { type: "button", class: "link mono", title: `${fileId}: its history`, onclick: () => this.openGroup(fileId) }, fileId.slice(0, 8), "…"); }

  showPartitions() {
    const ask = (offset) => this.ctx.get("partitions", { sort: this.sort, limit: PAGE, offset });
    load(this.partitions, () => ask(0), (answer) => {
      if (answer.rows.length === 0) return empty("No partition has files.");
      const most = Math.max(1, ...answer.rows.map((row) => row.size_bytes));
      return grid("Partitions", answer.rows, [
        { title: "Partition", head: true, kind: "mono", cell: (row) => h("button", { type: "button", class: "link mono", onclick: () => this.openPartition(row.partition_path) }, row.partition_path || "(no partition)") },
        { title: "Size", cell: (row) => meter(row.size_bytes / most, bytes(row.size_bytes)) },
        { title: "File groups", kind: "num", cell: (row) => count(row.file_groups) },
        { title: "Rows in base files", kind: "num", cell: (row) => count(row.base_rows) },
        { title: "Log files", kind: "num", cell: (row) => count(row.log_files) },
        { title: "Newest write", cell: (row) => instantLink(row.latest_instant) },
      ], { next: answer.next, more: ask, open: (row) => this.openPartition(row.partition_path) });
    }, 8);
  }

  showDetail(part) {
    put(this.detail, part);
    part.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }

  openPartition(partition) {
    const ask = (offset) => this.ctx.get("slices", { partition, limit: PAGE, offset });
    const columns = [
      { title: "File group", head: true, kind: "mono", cell: (row) => h("button", { type: "button", class: "link mono", onclick: () => this.openGroup(row.file_id) }, row.file_id) },
      { title: "Base file", kind: "num", cell: (row) => bytes(row.base_size_bytes) },
      { title: "Rows", kind: "num", cell: (row) => count(row.base_rows) },
      { title: "Logs", kind: "num", cell: (row) => count(row.log_files) },
      { title: "Log bytes", kind: "num", cell: (row) => bytes(row.log_size_bytes) },
      { title: "Base instant", cell: (row) => instantLink(row.base_instant) },
    ];
    const body = later(() => ask(0), (answer) => (answer.rows.length ? grid("File slices", answer.rows, columns, { next: answer.next, more: ask, open: (row) => this.openGroup(row.file_id) }) : empty("No file slice in this partition.")), 5);
    this.showDetail(panel("File slices", { wide: true, note: partition || "(no partition)" }, body));
  }

  openGroup(fileId) {
    const columns = [
      { title: "Completed", cell: (row) => when(row.completed_at) },
      { title: "Kind", cell: (row) => [badge(row.kind, row.kind === "log" ? "warning" : "plain"), row.is_current && " ", row.is_current && badge("current", "ok")] },
      { title: "Operation", cell: (row) => row.operation || "–" },
      { title: "Size", kind: "num", cell: (row) => bytes(row.size_bytes) },
      { title: "Rows", kind: "num", cell: (row) => count(row.rows) },
      { title: "Instant", cell: (row) => instantLink(row.instant) },
      { title: "File", head: true, kind: "clip", cell: (row) => h("span", { class: "mono", title: row.file }, row.file) },
    ];
    const body = later(() => this.ctx.get("group", { file_id: fileId }), (answer) => (answer.rows.length ? grid("Files of the group, oldest first", answer.rows, columns) : empty("No file of this group is left.")), 5);
    this.showDetail(panel("History of a file group", { wide: true, note: fileId }, body));
  }
}

/** A path or URI as one word of the shell; a path, if it is on a local disk. */
export function shellWord(uri) {
  const text = uri.replace(/^file:\/\//, "");
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\"'\"'")}'`;
}

/** The files of a table. */
export function filesPage(ctx) {
  const page = new FilesPage(ctx);
  page.show();
  const filter = (text) => { for (const line of page.partitions.querySelectorAll("tbody tr")) line.hidden = !line.firstChild.textContent.toLowerCase().includes(text.toLowerCase()); };
  return { search: { placeholder: "Filter partitions", input: filter, enter: (text) => page.openPartition(text.trim()) } };
}
