import { exec, read, write } from '../../steps.js';
import { json, lines } from '../text.js';
import type { Plan, SetFamily } from '../set-task.js';

const HOSTS = ['shop.internal', 'desk.internal', 'stock.internal', 'files.internal'];

/** One location of one host in a proxy's configuration. Dominant mistake: the same address is replaced at other hosts too. */
export const proxyConfig: SetFamily = {
  name: 'proxy-config',
  domain: 'systems',
  level: 'base',
  make(random) {
    const hosts = random.shuffle(HOSTS).slice(0, 3);
    const host = random.pick(hosts.slice(1));
    const from = `10.0.${random.below(20)}.5:8080`;
    const to = `10.0.${20 + random.below(20)}.7:${9000 + random.below(90)}`;
    const seconds = 60 + 15 * random.below(5);
    const size = 4 + 4 * random.below(4);
    type Change = { target?: boolean; timeout?: boolean; gzip?: boolean };
    const server = (name: string, change: Change): string[] => [
      'server {',
      `    server_name ${name};`,
      `    client_max_body_size ${size}m;`,
      ...(change.gzip ? [] : ['    gzip off;']),
      '    # orders and stock',
      '    location /api {',
      `        proxy_pass http://${change.target ? to : from};`,
      ...(change.timeout ? [`        proxy_read_timeout ${seconds}s;`] : []),
      '    }',
      '    location /static {',
      `        proxy_pass http://${from};`,
      '        expires 7d;',
      '    }',
      '}',
    ];
    const config = (change: (name: string) => Change): string[] => [
      '# proxy of the main office',
      ...hosts.flatMap((name) => ['', ...server(name, change(name))]),
    ];
    const old = config(() => ({}));
    const right = config((name) => ({ gzip: true, target: name === host, timeout: name === host }));
    const answer = json({ host, old: from, new: to });
    const plan = (rows: readonly string[]): Plan => ({
      steps: [read('proxy.conf'), write('proxy.conf', lines(...rows)), write('change.json', answer)],
    });
    return {
      files: { 'proxy.conf': lines(...old) },
      query:
        `In proxy.conf, for the host ${host} only: let location /api pass to http://${to} and add the line "proxy_read_timeout ${seconds}s;" right after its proxy_pass; /static of that host stays. ` +
        'For all hosts: remove the line "gzip off;". Every other line stays as it is and where it is (indentation does not matter). ' +
        'Write change.json: {"host": that host, "old": address and port that /api passed to before, "new": address and port now}.',
      expected:
        'The agent changes one location of one host, removes gzip off everywhere and leaves the rest alone.',
      truth: { right, host, change: { host, old: from, new: to }, target: to },
      check: String.raw`
def blocks(lines):
    """The stripped lines of each server block, by host; what is outside under ''."""
    found, name = {"": []}, ""
    for line in lines:
        text = line.strip()
        if text.startswith("server {"):
            name = None
            pending = [text]
        elif name is None:
            pending.append(text)
            if text.startswith("server_name "):
                name = text[len("server_name "):].rstrip(";").strip()
                found[name] = pending
        else:
            found[name].append(text)
            if line.startswith("}"):
                name = ""
    return found

lines = ws.lines("proxy.conf") or []
found, wanted = blocks(lines), blocks(TRUTH["right"])
host = TRUTH["host"]
mine = found.get(host, [])
done = any(TRUTH["target"] in line for line in mine)
without = lambda rows: [row for row in rows if "proxy_read_timeout" not in row and row != "gzip off;"]
return {
    "target": float(sum(TRUTH["target"] in line for line in lines) == 1 and done),
    "host_block": float(done and mine == wanted[host]),
    "static_kept": float(done and "location /static {" in mine and mine[mine.index("location /static {"):] == wanted[host][wanted[host].index("location /static {"):]),
    "other_hosts": float(done and all(without(found.get(name, [])) == without(rows) for name, rows in wanted.items() if name != host)),
    "gzip_removed": float(done and not any("gzip" in line for line in lines)),
    "rest_in_place": float([line.strip() for line in lines] == [line.strip() for line in TRUTH["right"]]),
    "change": float(same(ws.json("change.json"), TRUTH["change"])),
}`,
      reference: plan(right),
      wrong: {
        'every-host': {
          why: 'the address is replaced wherever it occurs',
          steps: [
            read('proxy.conf'),
            exec(`sed -i 's/${from}/${to}/; /gzip off;/d' proxy.conf`),
            write('change.json', answer),
          ],
        },
        'timeout-everywhere': {
          why: 'the time limit is added at every host',
          ...plan(config((name) => ({ gzip: true, target: name === host, timeout: true }))),
        },
        'gzip-at-host': {
          why: 'gzip off is removed at that host only',
          ...plan(config((name) => (name === host ? { gzip: true, target: true, timeout: true } : {}))),
        },
      },
    };
  },
};
