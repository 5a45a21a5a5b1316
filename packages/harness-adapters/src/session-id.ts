import { createHash } from 'node:crypto';

/** A UUID that says which rollout a harness's session belongs to: the same rollout always gets the same one. */
export function sessionUuid(rolloutId: string): string {
  const hex = createHash('sha256').update(`session/${rolloutId}`).digest('hex');
  const variant = ((parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join('-');
}
