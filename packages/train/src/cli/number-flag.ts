import { TreewardError } from '@treeward/base';

/** @throws TreewardError CLI_E_NUMBER naming the flag */
export function numberFlag(
  flag: string,
  text: string,
  {
    min = -Infinity,
    max = Infinity,
    integer = false,
  }: { min?: number; max?: number; integer?: boolean } = {},
): number {
  const value = text.trim() === '' ? NaN : Number(text);
  if (Number.isFinite(value) && value >= min && value <= max && (!integer || Number.isInteger(value)))
    return value;
  const kind = integer ? 'a whole number' : 'a number';
  const range = max === Infinity ? `of at least ${min}` : `from ${min} to ${max}`;
  throw new TreewardError('CLI_E_NUMBER', `${flag} ${text}: expected ${kind} ${range}`, {
    data: { field: flag },
  });
}
