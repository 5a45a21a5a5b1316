import { join } from 'node:path';

/**
 * Where things lie in a run. Everything is append-only or written-then-renamed, so that killing any process at any
 * instant loses at most the step in progress.
 *
 *   config.json env.json metrics.jsonl log.ndjson
 *   rollouts/<rolloutId>/{telemetry.ndjson,tokens.bin,tree.bin,transcript/,workspace.diff,result.json}
 *   batches/000012.json   checkpoints/step_000010/{model.safetensors,optimizer.safetensors,state.json}
 */
export class RunFolder {
  readonly root: string;
  constructor(root: string) {
    this.root = root;
  }
  get config(): string {
    return join(this.root, 'config.json');
  }
  get env(): string {
    return join(this.root, 'env.json');
  }
  get metrics(): string {
    return join(this.root, 'metrics.jsonl');
  }
  get log(): string {
    return join(this.root, 'log.ndjson');
  }
  get summary(): string {
    return join(this.root, 'summary.json');
  }
  get rollouts(): string {
    return join(this.root, 'rollouts');
  }
  get checkpoints(): string {
    return join(this.root, 'checkpoints');
  }
  rollout(rolloutId: string): RolloutFolder {
    return new RolloutFolder(join(this.rollouts, rolloutId));
  }
  batch(step: number): string {
    return join(this.root, 'batches', `${String(step).padStart(6, '0')}.json`);
  }
  checkpoint(step: number): string {
    return join(this.checkpoints, `step_${String(step).padStart(6, '0')}`);
  }
}

export class RolloutFolder {
  readonly root: string;
  constructor(root: string) {
    this.root = root;
  }
  get telemetry(): string {
    return join(this.root, 'telemetry.ndjson');
  }
  get tokens(): string {
    return join(this.root, 'tokens.bin');
  }
  get tree(): string {
    return join(this.root, 'tree.bin');
  }
  get transcript(): string {
    return join(this.root, 'transcript');
  }
  get workspaceDiff(): string {
    return join(this.root, 'workspace.diff');
  }
  get result(): string {
    return join(this.root, 'result.json');
  }
}
