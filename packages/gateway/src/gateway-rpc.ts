import { rpcClient, serveRpc, type CallOptions, type RpcServer } from '@treeward/base';
import type { EndpointInfo, EndpointSummary, GatewayControl, OpenEndpoint, WitnessEvent } from './types.js';

/** Offers a gateway to other processes on `socketPath`. Closing the server leaves the gateway as it is. */
export function serveGateway(
  socketPath: string,
  gateway: GatewayControl & { metricsText(): Promise<string> },
): Promise<RpcServer> {
  return serveRpc(socketPath, {
    open: (options: OpenEndpoint) => gateway.open(options),
    status: (rolloutId: string) => gateway.status(rolloutId),
    close: (rolloutId: string) => gateway.close(rolloutId),
    arrival: ({ rolloutId, after }: { rolloutId: string; after: number }) =>
      gateway.arrival(rolloutId, after),
    witness: ({ rolloutId, events }: { rolloutId: string; events: WitnessEvent[] }) =>
      gateway.witness(rolloutId, events),
    metrics: () => gateway.metricsText(),
  });
}

export interface RemoteGateway extends GatewayControl {
  /** Prometheus text. */
  metricsText(): Promise<string>;
  /** Drops the connections; open endpoints stay open. */
  disconnect(): void;
}

/**
 * A gateway in another process. `options.retryFor` bridges its restart; an `open` whose answer was lost may then fail
 * with GATEWAY_E_OPEN, and a restarted gateway knows no earlier rollout (GATEWAY_E_UNKNOWN).
 */
export function remoteGateway(socketPath: string, options: CallOptions = {}): RemoteGateway {
  const client = rpcClient(socketPath);
  return {
    open: (endpoint) => client.call<EndpointInfo>('open', endpoint, options),
    status: (rolloutId) => client.call<EndpointSummary>('status', rolloutId, options),
    close: (rolloutId) => client.call<EndpointSummary>('close', rolloutId, options),
    arrival: (rolloutId, after) => client.call<number | null>('arrival', { rolloutId, after }, options),
    witness: (rolloutId, events) => client.call<void>('witness', { rolloutId, events }, options),
    metricsText: () => client.call<string>('metrics', null, options),
    disconnect: () => client.close(),
  };
}
