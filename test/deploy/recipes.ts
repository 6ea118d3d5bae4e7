// Starts each proxy of deploy/ from its recipe, in which only ports, certificates and paths are changed.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { ROOT } from '../kit/programs.ts';
import { atEnd, temporaryFolder } from '../kit/temporary.ts';
import { until } from '../kit/until.ts';

export const PROXIES = ['nginx', 'haproxy', 'caddy'] as const;
export type ProxyName = (typeof PROXIES)[number];

export interface Ports {
  readonly http: number;
  readonly https: number;
  readonly service: number;
  /** The ports of additional nodes. */
  readonly others?: readonly number[];
}

/** On a busy machine, Caddy takes a long time to issue its first certificate. */
const START_MILLIS = 60_000;

interface Command {
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The certificate to trust. */
  readonly authority: string;
}

/** Starts the proxy for https://localhost, and returns the certificate to trust once the proxy accepts connections. */
export async function startProxy(name: ProxyName, ports: Ports): Promise<string> {
  const { PATH } = process.env;
  const { words, env, authority } = COMMANDS[name](temporaryFolder(), ports);
  const [program = '', ...rest] = words;
  const child = spawn(program, rest, {
    env: { PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const closed = once(child, 'close');
  atEnd(async () => {
    // The process is stopped together with its workers.
    if (!hasEnded(child)) process.kill(-(child.pid as number), 'SIGKILL');
    await closed;
  });
  await until(async () => {
    if (hasEnded(child)) throw new Error(`${name} exited: ${output}`);
    return existsSync(authority) && (await handshakes(ports.https, readFileSync(authority)));
  }, START_MILLIS);
  return readFileSync(authority, 'utf8');
}

const COMMANDS: Readonly<Record<ProxyName, (folder: string, ports: Ports) => Command>> = { nginx, haproxy, caddy };

function nginx(folder: string, { http, https, service, others = [] }: Ports): Command {
  const { certificate, key } = selfSigned(folder);
  const site = adapted('nginx.conf', {
    'listen 80;': `listen 127.0.0.1:${http};`,
    'listen 443 ssl': `listen 127.0.0.1:${https} ssl`,
    '/etc/letsencrypt/live/chambers.example.org/fullchain.pem': certificate,
    '/etc/letsencrypt/live/chambers.example.org/privkey.pem': key,
    'server 127.0.0.1:8787;': [service, ...others].map((port) => `server 127.0.0.1:${port};`).join(' '),
    'proxy_cache_path /var/lib/nginx/chambers ': `proxy_cache_path ${folder}/cache `,
  });
  // Workers keep running as root, because only the owner may read the temporary folder.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((use) => `${use}_temp_path ${folder}/${use};`);
  const config = join(folder, 'nginx.conf');
  writeFileSync(join(folder, 'site.conf'), site);
  writeFileSync(
    config,
    `${user} daemon off; pid ${folder}/pid; error_log stderr; events {}
    http { access_log off; ${paths.join(' ')} include ${folder}/site.conf; }`,
  );
  return { words: ['nginx', '-p', folder, '-c', config, '-e', 'stderr'], authority: certificate };
}

function haproxy(folder: string, { http, https, service, others = [] }: Ports): Command {
  const { certificate, key } = selfSigned(folder);
  const both = join(folder, 'chambers.pem');
  writeFileSync(both, readFileSync(certificate, 'utf8') + readFileSync(key, 'utf8'));
  const config = join(folder, 'haproxy.cfg');
  const text = adapted('haproxy.cfg', {
    'bind :80\n': `bind 127.0.0.1:${http}\n`,
    'bind :443': `bind 127.0.0.1:${https}`,
    '/etc/haproxy/chambers.pem': both,
    'server chambers 127.0.0.1:8787 check': [service, ...others]
      .map((port) => `server node${port} 127.0.0.1:${port} check`)
      .join('\n    '),
  });
  writeFileSync(config, text);
  return { words: ['haproxy', '-db', '-f', config], authority: certificate };
}

/** Caddy creates its own certificate authority for localhost; only the test's client should trust it. */
function caddy(folder: string, { http, https, service, others = [] }: Ports): Command {
  const config = join(folder, 'Caddyfile');
  writeFileSync(config, adapted('Caddyfile', { 'admin off': `admin off\nskip_install_trust\nhttp_port ${http}` }));
  return {
    words: ['caddy', 'run', '--config', config, '--adapter', 'caddyfile'],
    env: {
      DOMAIN: `https://localhost:${https}`,
      UPSTREAM: [service, ...others].map((port) => `127.0.0.1:${port}`).join(' '),
      HOME: folder,
      XDG_DATA_HOME: folder,
    },
    authority: join(folder, 'caddy/pki/authorities/local/root.crt'),
  };
}

/** Returns the recipe with each text replaced; each must occur. */
function adapted(recipe: string, replacements: Readonly<Record<string, string>>): string {
  let text = readFileSync(join(ROOT, 'deploy', recipe), 'utf8');
  for (const [from, to] of Object.entries(replacements)) {
    if (!text.includes(from)) throw new Error(`deploy/${recipe} has no ${from}`);
    text = text.replaceAll(from, to);
  }
  return text;
}

function selfSigned(folder: string) {
  const [certificate, key] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const files = ['-keyout', key, '-out', certificate];
  execFileSync('openssl', ['req', '-x509', '-days', '2', ...curve, ...subject, ...files], { stdio: 'pipe' });
  return { certificate, key };
}

async function handshakes(port: number, ca: Buffer): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ca });
  try {
    await once(socket, 'secureConnect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
