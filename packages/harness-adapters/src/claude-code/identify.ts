import type { Identity } from '@treeward/telemetry';
import type { IdentifiableRequest } from '../types.js';

const CLASSES: Readonly<Record<string, Identity['requestClass']>> = {
  main: 'main',
  subagent: 'subagent',
  workflow: 'subagent',
  compaction: 'compaction',
  auxiliary: 'side',
  side_reply: 'side',
};

/**
 * Its headers say session, agent and parent; `cc_is_subagent` in the first system block corroborates, and stands in
 * where a proxy has taken headers away.
 */
export function identifyClaudeCode({ headers, messages }: IdentifiableRequest): Identity {
  const session = headers['x-claude-code-session-id'];
  const agent = headers['x-claude-code-agent-id'];
  const parentAgent = headers['x-claude-code-parent-agent-id'];
  const [first] = messages;
  const marked =
    first?.role === 'system' && /^x-anthropic-billing-header:.*\bcc_is_subagent=true/.test(first.text);
  const requestClass =
    CLASSES[headers['x-claude-code-request-class'] ?? ''] ??
    (agent !== undefined || marked ? 'subagent' : 'main');
  return {
    ...(session !== undefined && { session }),
    ...(agent !== undefined && { agent }),
    ...(parentAgent !== undefined && { parentAgent }),
    requestClass,
    ...(agent === undefined && !marked && { depth: 0 }),
    ...(agent !== undefined && parentAgent === undefined && { depth: 1 }),
    ...(headers['x-claude-code-context-compacted'] !== undefined && { compacted: true }),
  };
}
