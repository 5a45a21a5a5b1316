/** ClawGym-Bench's six domains in the paper's order, with their number of tasks there. */
export const DOMAINS: readonly { name: string; short: string; tasks: number }[] = [
  { name: 'Productivity & Collaboration', short: 'P&C', tasks: 44 },
  { name: 'Systems & Automation', short: 'S&A', tasks: 42 },
  { name: 'Analysis & Reasoning', short: 'A&R', tasks: 35 },
  { name: 'Content & Domain', short: 'C&D', tasks: 28 },
  { name: 'Planning & Knowledge', short: 'P&K', tasks: 26 },
  { name: 'Software Development', short: 'SD', tasks: 25 },
];

const key = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z]+/g, ' ')
    .replace(/\band\b/g, ' ')
    .replace(/ +/g, ' ')
    .trim();
const BY_KEY = new Map(
  DOMAINS.flatMap(({ name, short }) => [
    [key(name), name],
    [short.toLowerCase(), name],
  ]),
);

/** The domain's one spelling ("productivity and collaboration" is one of ours); anything else stays as it is. */
export const domainOf = (category: string): string =>
  BY_KEY.get(key(category)) ?? BY_KEY.get(category.trim().toLowerCase()) ?? category.trim();
