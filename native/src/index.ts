export { NativeError, type NativeErrorCode } from './errors.js';
export { getBackendInfo, type BackendInfo } from './load-binding.js';
export {
  policyLoss,
  type PolicyLossInput,
  type PolicyLossOptions,
  type PolicyLossResult,
  type PolicyLossStats,
} from './policy-loss.js';
