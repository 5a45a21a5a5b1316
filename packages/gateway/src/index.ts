export type {
  Canonicaliser,
  ClientLimits,
  EndpointInfo,
  EndpointSummary,
  FaultPlan,
  GatewayControl,
  GatewayOptions,
  OpenEndpoint,
  RequestFacts,
  WitnessEvent,
} from './types.js';
export { HOLD_MS } from './arrivals.js';
export { Gateway } from './gateway.js';
export { remoteGateway, serveGateway, type RemoteGateway } from './gateway-rpc.js';
export { presentsKey } from './presents-key.js';
export { CallRecorder } from './call-recorder.js';
export { Conversation } from './conversation.js';
export { EncodedText } from './encoded-text.js';
export { inlineEncoder, type EncodeThreads } from './encoder.js';
