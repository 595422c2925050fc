// The index and the metadata table: their partitions, how old they are, the last check, and the locks.
import { h } from "./dom.js";
import { bytes, count, when } from "./format.js";
import { shellWord } from "./files.js";
import { badge, empty, fact, facts, grid, instantLink, later, panel, showPanels } from "./parts.js";

const isBehind = (row, summary) => Boolean(summary.newest && row.newest_instant && row.newest_instant < summary.newest.instant);

function partitionsPart(answer, summary) {
  if (answer.rows.length === 0) return empty("This table has no metadata table.", "Reads list the folders of the table. Indexes are built by the command:", `hoodie index build ${shellWord(summary.path)}`);
  return grid("Partitions of the metadata table", answer.rows, [
    { title: "Partition", head: true, cell: (row) => [row.partition, row.is_inflight && " ", row.is_inflight && badge("is being built", "warning")] },
    { title: "File groups", kind: "num", cell: (row) => count(row.file_groups) },
    { title: "Files", kind: "num", cell: (row) => count(row.files) },
    { title: "Log files", kind: "num", cell: (row) => count(row.log_files) },
    { title: "Size", kind: "num", cell: (row) => bytes(row.bytes) },
    { title: "Newest write", cell: (row) => (row.newest_instant ? h("span", { class: "mono" }, row.newest_instant) : "–") },
    { title: "Staleness", cell: (row) => (row.partition !== "files" ? h("span", { class: "quiet" }, "compared by verify") : isBehind(row, summary) ? badge("behind the newest write", "warning") : badge("up to date", "ok")) },
    { title: "Newest compaction", cell: (row) => (row.newest_compaction ? h("span", { class: "mono" }, row.newest_compaction) : h("span", { class: "quiet" }, "none yet")) },
  ]);
}

function checkPart(answer, id) {
  const link = h("a", { href: `#/${id}/findings` }, "Findings");
  if (answer.state === "none") return empty("Not checked since the server began.", h("span", null, "The page ", link, " starts a check of files and indexes."));
  if (answer.state === "running") return empty("A check runs.", h("span", null, link, " shows how far it is."));
  if (answer.state === "failed") return empty(`The last check failed: ${answer.error}`, link);
  const ill = answer.report.findings.length;
  return facts(fact("Result", answer.report.ok && ill === 0 ? badge("no findings", "ok") : badge(`${count(ill)} findings`, answer.report.ok ? "warning" : "error")), ...Object.entries(answer.report.checked).map(([name, number]) => fact(`${name} checked`, count(number))), fact("Details", link));
}

/** The table of locks of a table. */
function locksPart(answer) {
  if (answer.rows.length === 0) return empty("No lock can be seen.");
  return grid("Locks", answer.rows, [
    { title: "Provider", head: true, cell: (row) => row.provider },
    { title: "Holder", cell: (row) => row.holder || badge("free", "ok") },
    { title: "Used here", cell: (row) => (row.is_ours ? "yes" : "no") },
    { title: "Written", cell: (row) => when(row.written) },
    { title: "Until", cell: (row) => when(row.until) },
    { title: "Place", kind: "mono", cell: (row) => row.place },
  ]);
}

/** The index page of a table. */
export function indexPage(ctx) {
  const summaryFacts = (summary) => facts(fact("Index of writes", summary.index || "none"), fact("Metadata partitions", count(summary.metadata_partitions.length), summary.metadata_partitions.join(", ") || null), fact("Newest write", summary.newest ? when(summary.newest.completed_at, { relative: true }) : "none", summary.newest && instantLink(summary.newest.instant)));
  showPanels(ctx,
    panel("Index", {}, later(() => ctx.summary(), summaryFacts, 2)),
    panel("Last check", {}, later(() => ctx.get("verify"), (answer) => checkPart(answer, ctx.id), 2)),
    panel("Metadata table", { wide: true }, later(async () => [await ctx.get("index"), await ctx.summary()], (answers) => partitionsPart(...answers), 5)),
    panel("Locks", { wide: true }, later(() => ctx.get("locks"), locksPart, 2)));
}
