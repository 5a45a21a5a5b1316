import type { Command } from 'commander';
import { TreewardError } from '@treeward/base';

export interface CommandRun {
  /** As the process would exit, but for its exit codes of errors, which cli.ts gives. */
  code: number;
  stdout: string;
  /** Null unless the command failed by one of ours. */
  error: TreewardError | null;
}

/** A command in this process: what `treeward …` does without the seconds that starting it takes. One at a time: it listens at stdout. */
export async function runCommand(command: Command, args: readonly string[]): Promise<CommandRun> {
  const { write } = process.stdout;
  const before = process.exitCode;
  let stdout = '';
  process.stdout.write = ((chunk: string | Uint8Array) => {
    stdout += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
    return true;
  }) as typeof write;
  process.exitCode = undefined;
  try {
    await command.parseAsync(args, { from: 'user' });
    return { code: Number(process.exitCode ?? 0), stdout, error: null };
  } catch (error) {
    if (!TreewardError.isInstance(error)) throw error;
    return { code: 1, stdout, error };
  } finally {
    process.stdout.write = write;
    process.exitCode = before;
  }
}
