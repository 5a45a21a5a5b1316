import type { Step } from './types.js';

export const read = (path: string): Step => ({ verb: 'read', path });
export const write = (path: string, content: string): Step => ({ verb: 'write', path, content });
export const edit = (path: string, old: string, replacement: string): Step => ({
  verb: 'edit',
  path,
  old,
  new: replacement,
});
export const exec = (command: string): Step => ({ verb: 'exec', command });

/** The values of a step in the order adapters list their argument names: path, content | path, old, new | command. */
export function stepArguments(step: Step): string[] {
  switch (step.verb) {
    case 'read':
      return [step.path];
    case 'write':
      return [step.path, step.content];
    case 'edit':
      return [step.path, step.old, step.new];
    case 'exec':
      return [step.command];
  }
}
