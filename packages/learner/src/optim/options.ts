/** How weights move. What is fixed for a run; the learning rate of each update comes with the update. */
export interface OptimizerOptions {
  /** `muon`: hidden matrices by Muon, the rest by AdamW. @default 'adamw' */
  kind?: 'adamw' | 'muon';
  /**
   * The rate that `muonLr` belongs to: an update at `lr` moves Muon's matrices at `muonLr · updateLr / lr`, so that one
   * schedule drives both. @default 3e-3
   */
  lr?: number;
  /** @default 4e-3 */
  muonLr?: number;
  /** @default [0.9, 0.99] */
  betas?: readonly [number, number];
  /** @default 1e-8 */
  eps?: number;
  /** Decoupled, on matrices that AdamW updates; gains have none. @default 0 */
  weightDecay?: number;
  /** Of Muon's Nesterov momentum. @default 0.95 */
  muonMomentum?: number;
  /** Decoupled, on the matrices that Muon updates. @default 0.05 */
  muonWeightDecay?: number;
}

export interface ResolvedOptimizer {
  kind: 'adamw' | 'muon';
  lr: number;
  muonLr: number;
  betas: readonly [number, number];
  eps: number;
  weightDecay: number;
  muonMomentum: number;
  muonWeightDecay: number;
}

export const resolveOptimizer = (options: OptimizerOptions = {}): ResolvedOptimizer => ({
  kind: options.kind ?? 'adamw',
  lr: options.lr ?? 3e-3,
  muonLr: options.muonLr ?? 4e-3,
  betas: options.betas ?? [0.9, 0.99],
  eps: options.eps ?? 1e-8,
  weightDecay: options.weightDecay ?? 0,
  muonMomentum: options.muonMomentum ?? 0.95,
  muonWeightDecay: options.muonWeightDecay ?? 0.05,
});
