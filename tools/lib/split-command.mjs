/** Splits a command line into words; single and double quotes keep spaces. No variables, no escapes: not a shell. */
export function splitCommand(line) {
  const words = [];
  for (const match of line.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)) {
    words.push(match[0].replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single));
  }
  return words;
}
