export type {
  CallRole,
  CausalOrder,
  EdgeType,
  NodeKind,
  RolloutTree,
  TreeCall,
  TreeEdge,
  TreeEpoch,
  TreeIssue,
  TreeNodes,
  TreeRun,
} from './types.js';
export { recoverTree, type RecordInput } from './recover.js';
export { recoverDirectory } from './recover-directory.js';
export { readTree, writeTree } from './tree-file.js';
export { summarise, type TreeSummary } from './summary.js';
export { describeTree, treeToJson } from './describe.js';
export type { RecoverOutcome, RecoverTask } from './recover-worker.js';
export { causalOrders, type OrderedCall, type OrderedEdge } from './causal-order.js';
export { causalAdvantages, type CausalCredit } from './causal-advantages.js';
export { applyPreset, presets, type CreditSettings, type Preset } from './presets.js';
export { confidenceOf, evidencePattern, readCalibration, type Calibration } from './calibration.js';
export { EVIDENCE, type Evidence } from './evidence.js';
export { treeToDot } from './export/dot.js';
export { trainedSegments, type Segment } from './export/segments.js';
export { treeToAtif } from './export/to-atif.js';
export { importAtif, type ImportedTrajectory } from './export/from-atif.js';
export type { AtifDocument, AtifResult, AtifStep, AtifToolCall } from './export/atif-types.js';
export { treeToRecord } from './export/to-record.js';
