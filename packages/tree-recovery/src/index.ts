export type {
  CallRole,
  EdgeType,
  NodeKind,
  RolloutTree,
  TreeCall,
  TreeEdge,
  TreeIssue,
  TreeNodes,
} from './types.js';
