/** A line's fence, if it is one: its character, how long it is, what stands behind it. */
function fenceOf(line: string): { mark: string; length: number; info: string } | null {
  const [, run, info] = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
  if (run === undefined) return null;
  // A back-tick behind back-ticks makes it inline code, not a fence.
  if (run[0] === '`' && info!.includes('`')) return null;
  return { mark: run[0]!, length: run.length, info: info!.trim() };
}

export interface Block {
  /** First word behind the opening fence, lower case. */
  language: string;
  /** Line of the opening fence; `end` is the line of the closing one, or one past the last. */
  start: number;
  end: number;
}

/**
 * The outermost fenced blocks. A fence with a language inside a fence opens a block of its own (task files quote Markdown
 * inside Markdown with fences of one length, which CommonMark would end too early). Where that leaves a block open at the end
 * of the text, `nested: false` reads it as CommonMark does.
 */
function blocks(lines: readonly string[], nested: boolean): { found: Block[]; open: boolean } {
  const found: Block[] = [];
  const stack: { mark: string; length: number }[] = [];
  let outer: { language: string; start: number } | null = null;
  lines.forEach((line, at) => {
    const fence = fenceOf(line);
    if (!fence) return;
    const top = stack.at(-1);
    if (!top) {
      stack.push(fence);
      outer = { language: fence.info.split(/[\s{]/)[0]!.toLowerCase(), start: at };
    } else if (fence.mark === top.mark && fence.length >= top.length && fence.info === '') {
      stack.pop();
      if (stack.length === 0) {
        found.push({ ...outer!, end: at });
        outer = null;
      }
    } else if (nested && fence.info !== '') stack.push(fence);
  });
  const open = outer !== null;
  if (outer !== null) found.push({ ...(outer as { language: string; start: number }), end: lines.length });
  return { found, open };
}

export function fencedBlocks(lines: readonly string[]): Block[] {
  const nested = blocks(lines, true);
  return nested.open ? blocks(lines, false).found : nested.found;
}

/**
 * Sections of a task file by their `## ` heading. A heading inside a fence is text. Of two sections with one name the last
 * counts, as in the original.
 */
export function parseSections(body: string, options: { strict?: boolean } = {}): Map<string, string> {
  const lines = body.split('\n');
  const inFence = new Set<number>();
  if (!options.strict) {
    for (const { start, end } of fencedBlocks(lines)) for (let at = start; at <= end; at++) inFence.add(at);
  }
  const sections = new Map<string, string>();
  let name: string | null = null;
  let from = 0;
  const close = (to: number): void => {
    if (name !== null) sections.set(name, lines.slice(from, to).join('\n').trim());
  };
  lines.forEach((line, at) => {
    const heading = inFence.has(at) ? undefined : /^##\s+(.+)$/.exec(line)?.[1];
    if (heading === undefined) return;
    close(at);
    name = options.strict ? heading : heading.trim();
    from = at + 1;
  });
  close(lines.length);
  return sections;
}

/** The first python block of a section. `strict`: up to the first three back-ticks, wherever they stand. Null for none. */
export function pythonBlock(section: string, options: { strict?: boolean } = {}): string | null {
  if (options.strict) return /```python\s*([\s\S]*?)\s*```/.exec(section)?.[1] ?? null;
  const lines = section.split('\n');
  const block = fencedBlocks(lines).find(({ language }) => /^(python3?|py)$/.test(language));
  return block ? lines.slice(block.start + 1, block.end).join('\n') : null;
}

/** Items of a check list: `- [ ] x`. */
export const checklist = (section: string): string[] =>
  section.split('\n').flatMap((line) => {
    const item = /^-\s+\[[ xX]\]\s+(.+)$/.exec(line.trim())?.[1];
    return item === undefined ? [] : [item];
  });
