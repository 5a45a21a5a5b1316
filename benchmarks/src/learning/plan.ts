/** One way of training, compared with the others on the same seeds and held-out tasks. */
export interface Arm {
  name: string;
  /** `--set` overrides on top of the mix's config file. */
  set: readonly string[];
  /** What a reader should expect of it. */
  about: string;
}

export const ARMS: readonly Arm[] = [
  {
    name: 'rloo',
    set: ['algo.type=rloo'],
    about: 'the default: leave-one-out baseline, constant normaliser',
  },
  {
    name: 'ppo-history',
    set: ['algo.type=ppo', 'algo.critic=history', 'algo.order=lineage'],
    about: 'a critic that sees what had happened before each token',
  },
  {
    name: 'shuffled',
    set: ['algo.type=rloo', 'algo.rewards=shuffled'],
    about: 'the control: rewards permuted inside each group',
  },
];

export interface Run {
  arm: Arm;
  seed: number;
  /** Folder name of the run. */
  id: string;
}

/** Seed by seed, so that a stopped experiment holds whole comparisons. */
export function planRuns(arms: readonly Arm[], seeds: readonly number[]): Run[] {
  return seeds.flatMap((seed) => arms.map((arm) => ({ arm, seed, id: `${arm.name}-${seed}` })));
}
