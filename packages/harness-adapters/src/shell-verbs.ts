/** The file verbs as shell commands, for harnesses whose only tool is a shell. Values are quoted, never interpreted. */
const quote = (value: string): string => `'${value.replaceAll("'", `'\\''`)}'`;

export const readCommand = (path: string): string => `cat -- ${quote(path)}`;

export const writeCommand = (path: string, content: string): string => {
  const directory = path.includes('/') ? `mkdir -p -- ${quote(path.replace(/\/[^/]*$/, '') || '/')} && ` : '';
  return `${directory}printf %s ${quote(content)} > ${quote(path)}`;
};

/** Replaces the first occurrence; fails where there is none. */
export const editCommand = (path: string, oldText: string, newText: string): string =>
  `OLD=${quote(oldText)} NEW=${quote(newText)} perl -0777 -i -pe 's/\\Q$ENV{OLD}\\E/$ENV{NEW}/ or die "text not found\\n"' -- ${quote(path)}`;

export const execCommand = (command: string): string => command;
