import type { HarnessAdapter, HarnessCommand, HarnessTask } from '@treeward/harness-adapters';
import type { Scenario } from '@treeward/harness-adapters/testing';

/**
 * The real adapter with a scenario's tools and runs in place of the rollout's one prompt: several runs of the CLI, each going
 * on with the conversation of the one before, are one shell script in the same sandbox.
 */
export function scenarioAdapter(inner: HarnessAdapter, scenario: Scenario): HarnessAdapter {
  const { mounts = [] } = scenario;
  // What the rollout's task brings along, its MCP servers, stays.
  const tasks = (task?: HarnessTask): HarnessTask[] => scenario.tasks.map((own) => ({ ...task, ...own }));
  return {
    ...inner,
    name: `${inner.name}-scenario`,
    async detect() {
      const installed = await inner.detect();
      return installed && { ...installed, mounts: [...installed.mounts, ...mounts] };
    },
    async prepare(session, endpoint, task) {
      await scenario.before?.(session);
      await inner.prepare(session, endpoint, tasks(task)[0]);
    },
    command(session, installed, task, endpoint) {
      const commands = tasks(task).map((one) => inner.command(session, installed, one, endpoint));
      return commands.length === 1 ? commands[0]! : inOneShell(commands);
    },
  };
}

/** Environments are those of the first: a resumed run of the same tools has the same. */
function inOneShell(commands: readonly HarnessCommand[]): HarnessCommand {
  const lines = commands.map(({ argv, run }) => {
    return `printf %s ${quoted(run.stdin ?? '')} | ${argv.map(quoted).join(' ')}`;
  });
  return { argv: ['/bin/sh', '-c', lines.join('\n')], run: { ...commands[0]!.run, stdin: '' } };
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;
