import type { PolicyLossInput, PolicyLossOptions, PolicyLossResult } from './policy-loss.js';

/** What `treeward.node` exports, typed by hand in this one place. Changing it means raising both version numbers. */
export interface Binding {
  interfaceVersion: number;
  buildInfo(): { compiler: string; napi: number };
  policyLoss(input: PolicyLossInput, options: PolicyLossOptions): PolicyLossResult;
}

/** `kInterfaceVersion` of src/native/addon.cc. */
export const INTERFACE_VERSION = 1;
