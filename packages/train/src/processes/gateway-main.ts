/**
 * The gateway process: wires the rooms that may not know each other (adapters, template, engine) and serves.
 * usage: node gateway-main.js <controlSocket> <configJson>
 */
import { endWithParent } from '@treeward/base';
import { adapterByName } from '@treeward/harness-adapters';
import { Gateway, serveGateway } from '@treeward/gateway';
import type { Message } from '@treeward/messages';
import { createTemplate, remoteEngine, type TemplateSpec } from '@treeward/policy';
import { pino } from 'pino';
import { openFront } from '../endpoint/front.js';

export interface GatewayConfig {
  engineSocket: string;
  template: TemplateSpec;
  /** Threads that encode large texts. @default 1 */
  encodeThreads?: number;
  /** As a plain chat endpoint: every prompt from its text as it came. For comparison. @default false */
  plain?: boolean;
  /** Loopback port of Prometheus metrics. @default not served */
  metricsPort?: number;
  /** Messages and replies in the process's log. @default false */
  logPrompts?: boolean;
}

const [socketPath, configText] = process.argv.slice(2) as [string, string];
const config = JSON.parse(configText) as GatewayConfig;
endWithParent(() => process.exit(0));

const gateway = new Gateway({
  engine: remoteEngine(config.engineSocket),
  template: createTemplate(config.template),
  encodeOn: { template: config.template, threads: config.encodeThreads ?? 1 },
  ...(config.plain
    ? { graft: false }
    : {
        canonicalise: (harness: string) => (messages: readonly Message[]) =>
          adapterByName(harness).canonicalise(messages),
      }),
  identify: (harness) => (request) => adapterByName(harness).identify?.(request) ?? {},
  log: pino({ name: 'gateway' }, pino.destination(2)),
  logPrompts: config.logPrompts ?? false,
});
await serveGateway(socketPath, gateway);
if (config.metricsPort !== undefined) {
  await openFront({
    port: config.metricsPort,
    target: () => Promise.resolve(null),
    metrics: () => gateway.metricsText(),
  });
}
