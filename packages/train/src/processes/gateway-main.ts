/**
 * The gateway process: wires the rooms that may not know each other (adapters' canonicalisers, template, engine) and serves.
 * usage: node gateway-main.js <controlSocket> <configJson>
 */
import { existsSync } from 'node:fs';
import { adapterByName } from '@treeward/harness-adapters';
import { Gateway, serveGateway } from '@treeward/gateway';
import { BpeTokenizer, CompactTemplate, remoteEngine } from '@treeward/policy';

export interface GatewayConfig {
  engineSocket: string;
  tokenizer: string;
}

const [socketPath, configText] = process.argv.slice(2) as [string, string];
const config = JSON.parse(configText) as GatewayConfig;
process.on('disconnect', () => process.exit(0));
if (!existsSync(config.tokenizer)) throw new Error(`no tokenizer at ${config.tokenizer}`);

const gateway = new Gateway({
  engine: remoteEngine(config.engineSocket),
  template: new CompactTemplate(BpeTokenizer.load(config.tokenizer)),
  canonicalise: (harness) => (messages) => adapterByName(harness).canonicalise(messages),
});
await serveGateway(socketPath, gateway);
