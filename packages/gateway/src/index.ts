export type { Canonicaliser, EndpointInfo, EndpointSummary, GatewayControl, OpenEndpoint } from './types.js';
