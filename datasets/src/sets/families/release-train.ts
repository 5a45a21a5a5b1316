import { read, write } from '../../steps.js';
import { json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const NAMES = ['amber', 'birch', 'cedar', 'delta', 'ember', 'flint'];
const BUMPS = ['none', 'patch', 'minor', 'major'] as const;
const TEXTS = [
  'faster start',
  'new flag for quiet output',
  'drops the old format',
  'repairs empty input',
  'clearer messages',
  'reads larger files',
];

interface Options {
  dependents?: boolean;
  withdrawn?: boolean;
  everyChange?: boolean;
  history?: boolean;
}

/** Change notes → versions, changelogs and order of several packages. Dominant mistake: packages that need a changed one stay. */
export const releaseTrain: SetFamily = {
  name: 'release-train',
  domain: 'software',
  level: 'hard',
  timeoutSeconds: 600,
  make(random) {
    const [core, parse, view, tool, site, alone] = random.shuffle(NAMES) as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    const version = (): string => `${1 + random.below(4)}.${1 + random.below(8)}.${1 + random.below(8)}`;
    const packages = [
      { name: core, version: version(), needs: [] as string[], private: false },
      { name: parse, version: version(), needs: [core], private: false },
      { name: view, version: version(), needs: [core], private: false },
      { name: tool, version: version(), needs: [parse, view], private: false },
      { name: site, version: version(), needs: [tool, core], private: true },
      { name: alone, version: version(), needs: [], private: false },
    ];
    const of = (name: string): (typeof packages)[number] => packages.find((p) => p.name === name)!;
    const texts = random.shuffle(TEXTS);
    const changes = [
      { name: core, bump: 'patch', status: 'ready' },
      { name: view, bump: 'minor', status: 'ready' },
      { name: core, bump: 'minor', status: 'ready' },
      { name: parse, bump: 'major', status: 'withdrawn' },
      { name: tool, bump: 'patch', status: 'ready' },
      { name: site, bump: 'minor', status: 'ready' },
    ].map((change, i) => ({
      ...change,
      text: texts[i]!,
      path: `changes/${String(i + 1).padStart(2, '0')}.md`,
    }));
    const raise = (current: string, bump: string): string => {
      const [a, b, c] = current.split('.').map(Number) as [number, number, number];
      return bump === 'major' ? `${a + 1}.0.0` : bump === 'minor' ? `${a}.${b + 1}.0` : `${a}.${b}.${c + 1}`;
    };
    const release = ({
      dependents = true,
      withdrawn = false,
      everyChange = false,
      history = true,
    }: Options = {}) => {
      const versions = new Map<string, string>();
      const order: string[] = [];
      const logs: Record<string, string[]> = {};
      // Names in an order in which needs come first, alphabetical where that leaves a choice.
      const sorted: string[] = [];
      while (sorted.length < packages.length)
        sorted.push(
          packages
            .map((p) => p.name)
            .sort()
            .find((name) => !sorted.includes(name) && of(name).needs.every((n) => sorted.includes(n)))!,
        );
      for (const name of sorted) {
        const own = changes.filter((c) => c.name === name && (withdrawn || c.status === 'ready'));
        const updated = of(name)
          .needs.filter((n) => versions.has(n))
          .sort();
        const largest = BUMPS[Math.max(0, ...own.map((c) => BUMPS.indexOf(c.bump as 'patch')))]!;
        if (of(name).private || (own.length === 0 && !(dependents && updated.length > 0))) continue;
        const next = everyChange
          ? own.reduce((v, c) => raise(v, c.bump), of(name).version)
          : raise(of(name).version, largest === 'none' ? 'patch' : largest);
        versions.set(name, next);
        order.push(name);
        logs[name] = [
          `# ${name}`,
          '',
          `## ${next}`,
          '',
          ...own.map((c) => `- ${c.text}`),
          ...updated.map((n) => `- updates ${n} to ${versions.get(n)!}`),
          ...(history ? ['', `## ${of(name).version}`, '', '- earlier work'] : []),
        ];
      }
      const manifests = Object.fromEntries(
        packages.map((p) => [
          p.name,
          {
            name: p.name,
            version: versions.get(p.name) ?? p.version,
            ...(p.private && { private: true }),
            dependencies: Object.fromEntries(p.needs.map((n) => [n, `^${versions.get(n) ?? of(n).version}`])),
          },
        ]),
      );
      return { versions: Object.fromEntries(versions), order, logs, manifests };
    };
    const right = release();
    const before = Object.fromEntries(
      packages.map((p) => [
        p.name,
        {
          name: p.name,
          version: p.version,
          ...(p.private && { private: true }),
          dependencies: Object.fromEntries(p.needs.map((n) => [n, `^${of(n).version}`])),
        },
      ]),
    );
    const files = {
      ...Object.fromEntries(packages.map((p) => [`packages/${p.name}/package.json`, json(before[p.name])])),
      ...Object.fromEntries(
        packages.map((p) => [
          `packages/${p.name}/CHANGELOG.md`,
          lines(`# ${p.name}`, '', `## ${p.version}`, '', '- earlier work'),
        ]),
      ),
      ...Object.fromEntries(
        changes.map((c) => [
          c.path,
          lines(`package: ${c.name}`, `bump: ${c.bump}`, `status: ${c.status}`, '', c.text),
        ]),
      ),
      'RELEASING.md': lines(
        '# Releasing',
        '',
        '1. Changes with the status withdrawn are ignored. Private packages are never released, whatever changes.',
        '2. A package with changes is released once, with the largest of its bumps (major, minor, patch).',
        '3. A package that needs a released package is released too, at least with a patch.',
        '4. Each dependency on a released package becomes ^<its new version>, in private packages too. All else in package.json stays.',
        '5. CHANGELOG.md of a released package gets a section "## <new version>" above the older ones: "- <text>" for each of its changes in the order of the files, then "- updates <package> to <new version>" for each released package it needs, alphabetical. Empty lines do not matter.',
        '6. The order of release: always the alphabetically first package whose needs (as far as they are released) are all done.',
      ),
    };
    const plan = (result: typeof right): Plan => ({
      steps: [
        ...Object.keys(files).map(read),
        ...packages
          .filter((p) => json(result.manifests[p.name]) !== json(before[p.name]))
          .map((p) => write(`packages/${p.name}/package.json`, json(result.manifests[p.name]))),
        ...result.order.map((name) => write(`packages/${name}/CHANGELOG.md`, lines(...result.logs[name]!))),
        write('release.json', json({ order: result.order, versions: result.versions })),
      ],
    });
    return {
      files,
      query:
        'Prepare the release of the packages in packages/ from the files in changes/ following RELEASING.md: change package.json and CHANGELOG.md of the packages in place and leave changes/ as it is. ' +
        'Write release.json: {"order": the released packages in the order of release, "versions": an object from each released package to its new version}.',
      expected:
        'The agent bumps changed packages and their dependents, updates ranges and changelogs, skips private packages and withdrawn changes, and writes the order.',
      truth: { ...right, before, released: right.order, alone, site },
      check: `
def log(name):
    lines = ws.lines("packages/%s/CHANGELOG.md" % name)
    return None if lines is None else [line.strip() for line in lines if line.strip()]

found = {name: ws.json("packages/%s/package.json" % name) for name in TRUTH["manifests"]}
wanted, released = TRUTH["manifests"], TRUTH["released"]
changed = any(found[name] != TRUTH["before"][name] for name in found)
plan = ws.json("release.json")
logs = {name: [line for line in TRUTH["logs"][name] if line] for name in released}
top = {name: (log(name) or [])[1:len(logs[name]) - 2] for name in released}
return {
    "versions": share(at(found[name], "version") == wanted[name]["version"] for name in released),
    "ranges": share(at(found[name], "dependencies") == wanted[name]["dependencies"] for name in wanted if wanted[name]["dependencies"] and wanted[name] != TRUTH["before"][name]) if changed else 0.0,
    "rest_kept": float(changed and all(isinstance(found[name], dict) and {k: v for k, v in found[name].items() if k not in ("version", "dependencies")} == {k: v for k, v in wanted[name].items() if k not in ("version", "dependencies")} for name in wanted)),
    "private": float(changed and found[TRUTH["site"]] == wanted[TRUTH["site"]]),
    "unchanged": float(changed and found[TRUTH["alone"]] == wanted[TRUTH["alone"]] and len(log(TRUTH["alone"]) or []) == 3),
    "changelogs": share(top[name] == logs[name][1:-2] for name in released),
    "history_kept": share(log(name) == logs[name] for name in released),
    "order": float(same(at(plan, "order"), TRUTH["order"])),
    "listed_versions": float(same(at(plan, "versions"), TRUTH["versions"])),
    "agree": float(isinstance(at(plan, "versions"), dict) and changed and all(at(found.get(name), "version") == version for name, version in plan["versions"].items())),
}`,
      reference: plan(right),
      wrong: {
        'dependents-forgotten': {
          why: 'packages that only need a changed one are not released',
          ...plan(release({ dependents: false })),
        },
        'withdrawn-counted': {
          why: 'the withdrawn change is released',
          ...plan(release({ withdrawn: true })),
        },
        'bumps-added': {
          why: 'every change raises the version, one after the other',
          ...plan(release({ everyChange: true })),
        },
        'history-lost': {
          why: 'the changelogs are written anew without older versions',
          ...plan(release({ history: false })),
        },
      },
    };
  },
};
