import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command, Option } from 'commander';
import { heldOut, writeSolutions, writeTasks } from '@treeward/datasets';
import {
  checkTasks,
  detectFormat,
  loadTasks,
  materialise,
  writePinchbench,
  type FormatName,
  type TaskCheck,
} from '@treeward/eval';
import { BubblewrapProvider } from '@treeward/sandbox';
import { numberFlag } from '../cli/number-flag.js';
import { Progress } from '../progress.js';

const FORMATS: readonly FormatName[] = ['clawgym', 'pinchbench', 'jobbench', 'officeqa', 'harbor'];
const formatOption = (): Option =>
  new Option('--format <name>', 'by default: what lies in the folder').choices(FORMATS);

export function tasksCommand(): Command {
  return new Command('tasks')
    .description('check, convert and write tasks')
    .addCommand(checkCommand())
    .addCommand(convertCommand())
    .addCommand(miniCommand());
}

function checkCommand(): Command {
  return new Command('check')
    .description(
      'are these tasks fit for use: reference 1, untouched 0, no vacuous check, no leak, deterministic, no network',
    )
    .argument('<path>', 'folder (or .jsonl) of tasks in any format')
    .addOption(formatOption())
    .option('--concurrency <n>', 'tasks at once', '2')
    .option('--json', 'print {tasks: [{id, ok, reference, untouched, …}]}')
    .action(async (path: string, flags: { format?: FormatName; concurrency: string; json?: boolean }) => {
      const loaded = loadTasks(flags.format ?? detectFormat(path), path);
      const progress = new Progress({ quiet: flags.json ?? false });
      const sandboxes = new BubblewrapProvider();
      try {
        const report = await checkTasks(loaded, sandboxes, {
          concurrency: numberFlag('--concurrency', flags.concurrency, { min: 1, integer: true }),
          onDone: (check, done) => progress.update(`${done}/${loaded.tasks.length} ${check.id}`),
        });
        progress.line('');
        if (flags.json) process.stdout.write(`${JSON.stringify(report)}\n`);
        else {
          process.stdout.write(report.tasks.map(describeCheck).join(''));
          for (const { message } of report.problems) process.stdout.write(`unreadable  ${message}\n`);
          process.stdout.write(`${report.ok} ok, ${report.failed} not\n`);
        }
        if (report.failed > 0) process.exitCode = 1;
      } finally {
        await sandboxes.close();
      }
    });
}

function describeCheck(check: TaskCheck): string {
  const score = (value: number | null): string => (value === null ? '–' : value.toFixed(2));
  const wrong = check.wrong.map((each) => score(each.score)).join(' ');
  const head = `${check.ok ? 'ok    ' : 'NOT OK'} ${check.id.padEnd(28)} reference ${score(check.reference)}  untouched ${score(check.untouched)}  wrong ${wrong || '–'}\n`;
  return head + check.problems.map((problem) => `         ${problem}\n`).join('');
}

function convertCommand(): Command {
  return new Command('convert')
    .description('write tasks in another form')
    .argument('<path>', 'folder (or .jsonl) of tasks')
    .addOption(formatOption())
    .addOption(new Option('--to <name>', 'form').choices(['pinchbench', 'clawgym']).makeOptionMandatory())
    .requiredOption('--out <dir>', 'where to')
    .option('--json', 'print {written: [path]}')
    .action(
      (
        path: string,
        flags: { format?: FormatName; to: 'pinchbench' | 'clawgym'; out: string; json?: boolean },
      ) => {
        const { tasks, problems } = loadTasks(flags.format ?? detectFormat(path), path);
        const out = resolve(flags.out);
        mkdirSync(join(out, 'tasks'), { recursive: true });
        const written =
          flags.to === 'pinchbench'
            ? writePinchbench(tasks, out)
            : tasks.map(
                (task) => materialise(task, join(out, 'tasks', task.id.replace(/[^\w.-]/g, '_'))).directory,
              );
        for (const { message } of problems) process.stderr.write(`warning: ${message}\n`);
        process.stdout.write(
          flags.json
            ? `${JSON.stringify({ written, problems })}\n`
            : `${written.length} tasks written to ${out}\n`,
        );
        if (problems.length > 0) process.exitCode = 1;
      },
    );
}

function miniCommand(): Command {
  return new Command('mini')
    .description("write the embedded policy's held-out tasks, with their solutions")
    .requiredOption('--out <dir>', 'where to')
    .option('--count <n>', 'tasks', '72')
    .option('--json', 'print {written: [path]}')
    .action((flags: { out: string; count: string; json?: boolean }) => {
      const tasks = heldOut(numberFlag('--count', flags.count, { min: 1, integer: true }));
      const written = writeTasks(resolve(flags.out), tasks);
      tasks.forEach((task, at) => writeSolutions(task, written[at]!));
      process.stdout.write(
        flags.json ? `${JSON.stringify({ written })}\n` : `${written.length} tasks written to ${flags.out}\n`,
      );
    });
}
