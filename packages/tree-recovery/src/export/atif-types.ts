import type { Json } from '@treeward/telemetry';

/** Agent Trajectory Interchange Format, the fields that are written and read here. */
export const ATIF_VERSION = 'ATIF-v1.7';

export interface AtifToolCall {
  tool_call_id: string;
  function_name: string;
  arguments: Json;
}

export interface AtifResult {
  source_call_id?: string;
  content: string;
  /** Trajectories of agents that the tool call started. */
  subagent_trajectory_ref?: { trajectory_id: string }[];
}

export interface AtifStep {
  /** From 1, in order. */
  step_id: number;
  timestamp?: string;
  source: 'system' | 'user' | 'agent';
  message: string;
  model_name?: string;
  tool_calls?: AtifToolCall[];
  observation?: { results: AtifResult[] };
  metrics?: {
    prompt_tokens?: number;
    completion_tokens?: number;
    completion_token_ids?: number[];
    logprobs?: (number | null)[];
  };
  /** The step stands in another document of this rollout as well, which shows where it was sampled. */
  is_copied_context?: boolean;
  extra?: { [key: string]: Json };
}

export interface AtifDocument {
  schema_version: string;
  session_id: string;
  trajectory_id: string;
  agent: { name: string; version: string; model_name: string };
  steps: AtifStep[];
  subagent_trajectories?: AtifDocument[];
  extra?: { [key: string]: Json };
}
