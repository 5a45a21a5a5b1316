export type {
  Canonicaliser,
  EndpointInfo,
  EndpointSummary,
  FaultPlan,
  GatewayControl,
  GatewayOptions,
  OpenEndpoint,
  RequestFacts,
  WitnessEvent,
} from './types.js';
export { Gateway } from './gateway.js';
export { remoteGateway, serveGateway, type RemoteGateway } from './gateway-rpc.js';
export { Conversation, type GrownPrompt } from './conversation.js';
export { EncodedText } from './encoded-text.js';
