/** One line per part: name, minutes, counts, and for what was skipped or failed the reason. */
export function partTable(results) {
  const rows = [['part', 'minutes', 'passed', 'failed', 'skipped', '']];
  for (const { part, seconds, counts, note } of results) {
    rows.push([
      part,
      (seconds / 60).toFixed(2),
      `${counts.passed}`,
      `${counts.failed}`,
      `${counts.skipped}`,
      note ?? '',
    ]);
  }
  const total = results.reduce((sum, { seconds }) => sum + seconds, 0);
  rows.push(['total', (total / 60).toFixed(2), '', '', '', '']);
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...rows.map((row) => row[column].length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 || column === 5 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column]),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
