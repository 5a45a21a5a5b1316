import { bytesOf } from '../formats/materialise.js';
import type { EvalTask } from '../types.js';
import { checkerTexts } from './play-solution.js';

const NETWORK =
  /\b(?:import|from)\s+(?:socket|urllib\.request|urllib3|requests|httpx|aiohttp|http\.client|ftplib|smtplib)\b|\burlopen\s*\(|\b(?:curl|wget)(?:\s+|["'],\s*)["']?(?:-|https?:|\$)|\b(?:pip3? install|npm install|apt-get)\b/;
const CHANCE =
  /\b(?:random\.(?:random|choice|randint|shuffle|sample)|uuid\.uuid[14]|datetime\.(?:now|today|utcnow)|date\.today|time\.time)\s*\(/;

const found = (task: EvalTask, pattern: RegExp): string[] =>
  [...checkerTexts(task)].flatMap(([path, text]) =>
    text
      .split('\n')
      .flatMap((line, at) =>
        pattern.test(line) && !/^\s*#/.test(line)
          ? [`reward/${path}:${at + 1}: ${line.trim().slice(0, 100)}`]
          : [],
      ),
  );

/** Lines of a checker that reach for the network. There is none where it runs. */
export const networkUse = (task: EvalTask): string[] => found(task, NETWORK);

/** Lines of a checker whose outcome may change from day to day or run to run. */
export const chanceUse = (task: EvalTask): string[] => found(task, CHANCE);

const SECRET =
  /(^|\/)(check\.py|reward\.sh|rubric\.json|RUBRICS\.json|solution(\/|\.)|reference\.json|expected_output|ground_truth|answers?\.(json|txt|csv|md))/i;
const COPYING = /\b(copy|copies|duplicate|rename|move|archive|back ?up|organi[sz]e|restore)\b/i;

/**
 * Answers that the agent is given: files of the grading among the inputs, the checker's own text, or (with a reference solution) a
 * whole output that stands in an input or in the prompt already. `outputs`: what the reference makes, by path.
 */
export function answerLeaks(task: EvalTask, outputs: ReadonlyMap<string, Buffer>): string[] {
  const inputs = task.files.map((file) => ({ path: file.path, bytes: bytesOf(file) }));
  const leaks = inputs
    .filter(({ path }) => SECRET.test(path))
    .map(({ path }) => `input_files/${path} looks like a part of the grading`);
  for (const [path, text] of checkerTexts(task)) {
    const body = text.trim();
    if (body.length < 200) continue;
    for (const input of inputs)
      if (input.bytes.includes(body)) leaks.push(`input_files/${input.path} holds reward/${path}`);
  }
  if (COPYING.test(task.query)) return leaks;
  for (const [path, bytes] of outputs) {
    const body = bytes.toString('utf8').trim();
    if (body.length < 24) continue;
    const before = inputs.find((input) => input.path !== path && input.bytes.includes(body));
    if (before) leaks.push(`the output ${path} stands in input_files/${before.path}`);
    else if (task.query.includes(body)) leaks.push(`the output ${path} stands in the prompt`);
  }
  return leaks;
}

/** Paths that a prompt names, as far as they look like files. */
export const mentionedPaths = (query: string): string[] => [
  ...new Set(
    [...query.matchAll(/(?<![\w./@:-])((?:[\w-]+\/)*[\w-]+(?:\.[A-Za-z][A-Za-z0-9]{0,5})+)(?![\w/])/g)]
      .map(([, path]) => path!)
      .filter((path) => !/\.(com|org|net|io)$/.test(path)),
  ),
];
