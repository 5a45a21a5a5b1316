/** Structurally the `Policy` and `WeightsRef` of `@treeward/policy`; the learner does not look into that room. */
export interface Policy {
  readonly id: string;
  readonly version: number;
}

export interface WeightsRef {
  readonly format: 'gguf' | 'none';
  readonly path: string;
}
